//! What becomes of a call of which ranks say different things, and of one that is done by other means.
//!
//! The calls that come after it go on wherever all ranks can be brought to one state again. Where the root decides, the
//! others go by its bytes. Where the root alone hears from others, it takes what they gave, since they have gone on.
//! Where all hear from all, nobody is done with the call: they meet, and begin with clean lines. Where some have gone
//! on and nobody can take what they gave, all meet in the next call, before the first of those that know uses lines
//! again.

use super::{Ends, NOTHING, Team};
use crate::live::assembly::Found;
use crate::live::channel::{Ended, Failed, Opened};
use crate::live::classes::{CLASSES, class};
use crate::live::differing::differs;
use crate::live::error::TeamError;
use crate::live::kind::Kind;
use crate::live::lines::Hears;
use crate::live::said::{Said, Told, all_hear_all, root_decides, root_hears};
use crate::program::{Combine, Element, Gone, Rank};

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

impl Team {
    /// Says that this rank does a call by other means than lines, and waits until all that it depends on have come to
    /// it: a root that decides asks nobody, the others of such a call ask the root, and of any other call everybody.
    ///
    /// # Errors
    /// [`TeamError::Unlike`] and [`TeamError::Apart`] where another rank does the call in lines, or makes another one;
    /// what a root that decides had sent is dropped. [`TeamError::Gone`] when a rank has ended.
    pub fn by_other_means(&mut self, kind: Kind, root: Rank) -> Result<(), TeamError> {
        let mine = self.begin(kind, root, Told::NONE)?;
        loop {
            let told = self.others_too(mine);
            if !std::mem::take(&mut self.openings.anew) {
                return told;
            }
        }
    }

    /// Waits until all that this rank depends on have come to a call that it does by other means.
    fn others_too(&mut self, mine: Said) -> Result<(), TeamError> {
        let asked = self.asked(mine.kind(), mine.root());
        let (me, waits) = (self.me, &self.waits);
        let differing = asked.into_iter().find_map(|rank| match waits.until_said(rank, mine) {
            Ok(said) => said.filter(|&said| differs(mine, me, Rank(rank), said)).map(Ok),
            Err(gone) => Some(Err(gone)),
        });
        let done = match differing {
            None => Ok(()),
            Some(Err(gone)) => Err(Ended::Gone(gone)),
            Some(Ok(theirs)) => {
                waits.has_found(theirs);
                Err(Ended::Astray)
            }
        };
        // SAFETY: there is no room for any byte.
        unsafe { self.ended(done.map_err(Failed::from), mine, Ends::NONE) }
    }

    /// Whom this rank asks before it does a call by other means.
    fn asked(&self, kind: Kind, root: Rank) -> Vec<u16> {
        if root_decides(kind) {
            return if self.me == root { Vec::new() } else { vec![root.0] };
        }
        (0..self.ranks()).filter(|&rank| rank != self.me.0).collect()
    }

    /// What a call that did not end well comes to. Where the root decides, its bytes are taken all the same.
    ///
    /// # Safety
    /// `ends` are what the caller's call may read and write.
    #[cold]
    pub(super) unsafe fn ended(
        &mut self,
        done: Result<(), Failed>,
        mine: Said,
        ends: Ends,
    ) -> Result<(), TeamError> {
        self.waits.decide(true);
        // SAFETY: the caller vouches for the buffers.
        let told = unsafe { self.told(done, mine, ends) };
        self.waits.decide(false);
        if !self.openings.anew {
            self.waits.over();
        }
        told
    }

    /// # Safety
    /// As for [`Self::ended`].
    unsafe fn told(
        &mut self,
        done: Result<(), Failed>,
        mine: Said,
        ends: Ends,
    ) -> Result<(), TeamError> {
        let (bytes, found, asked) = (ends.bytes, self.waits.found(), self.waits.was_asked());
        let theirs = match (done, found) {
            (Ok(()), _) => return Ok(()),
            (_, Some(found)) => {
                // Whoever found it while it waited for a shape or for lines took it for the end of all.
                self.broken = None;
                found
            }
            _ if asked => return Err(self.come(mine.kind(), ends)),
            (Err(Failed::Unopened(unlike @ TeamError::Unlike { .. })), None) => {
                let unlike = self.left_unsound(unlike);
                // The root is told. Who only gives to it is not, as by the MPI.
                return if root_hears(mine.kind()) { Ok(()) } else { Err(unlike) };
            }
            (Err(Failed::Unopened(error)), None) => return Err(error),
            (Err(Failed::Ended(Ended::Gone(gone))), None) => return Err(self.gone(gone)),
            // The next call finds all where it would be with equal bytes.
            (Err(Failed::Ended(Ended::Unlike(theirs))), None) => {
                return Err(TeamError::Unlike { mine: bytes, theirs: theirs.bytes() });
            }
            // Whoever it was has gone on since.
            (Err(Failed::Ended(Ended::Astray)), None) => {
                return Err(self.give_up(TeamError::Unlike { mine: bytes, theirs: None }));
            }
        };
        // SAFETY: the caller vouches for the buffers.
        let told = unsafe { self.differ(mine, theirs, ends) };
        Err(if self.waits.was_asked() { self.come(mine.kind(), ends) } else { told })
    }

    /// Another rank said `theirs` of the call of which this one said `mine`: what the caller is told.
    ///
    /// # Safety
    /// `ends` are what the caller's call may read and write.
    unsafe fn differ(&mut self, mine: Said, theirs: Said, ends: Ends) -> TeamError {
        let here = if mine.told() == Told::NONE { usize::MAX } else { ends.bytes };
        let unlike = TeamError::Unlike { mine: here, theirs: theirs.told().bytes() };
        let kind = mine.kind();
        if !mine.same_collective(theirs) {
            // What each rank takes for the next chunk is not the same any more: nothing more can be done in lines.
            return self.give_up(TeamError::Apart);
        }
        if root_decides(kind) && self.unopen() {
            match theirs.told().bytes() {
                None if theirs.told() == Told::NONE => return TeamError::Elsewhere,
                None if theirs.told() == Told::SINGLE => {
                    // SAFETY: the caller vouches for the room.
                    return match unsafe { self.follow_single(theirs, ends.bytes, ends.receive) } {
                        Err(TeamError::Unlike { theirs, .. }) => {
                            TeamError::Unlike { mine: here, theirs }
                        }
                        done => done.err().unwrap_or(unlike),
                    };
                }
                Some(given) => {
                    // SAFETY: the caller vouches for the room.
                    let done =
                        unsafe { self.follow(theirs, given as usize, ends.bytes, ends.receive) };
                    return done.err().unwrap_or(unlike);
                }
                None => {}
            }
        }
        if root_hears(kind) && (self.me == mine.root() || !mine.told().is_in_lines()) {
            // SAFETY: the caller vouches for the buffers.
            return match unsafe { self.hear_others(mine, ends) } {
                Ok(Some(theirs)) => TeamError::Unlike { mine: here, theirs: Some(theirs) },
                Ok(None) => unlike,
                Err(None) => self.left_unsound(TeamError::Unlike { mine: here, theirs: None }),
                Err(Some(error)) => error,
            };
        }
        if all_hear_all(kind) {
            let met = self.meet(ends.are_spoilt(kind));
            return if met.is_ok() { unlike } else { self.give_up(unlike) };
        }
        // Nothing of theirs has come.
        self.left_unsound(TeamError::Unlike { mine: here, theirs: None })
    }

    /// In a call in which the root alone hears from the others, ranks have given other bytes than the root takes. Takes
    /// what they gave at the root; returns the most of it that differs from the root's. Nothing, where none of them was
    /// in lines: then all have come, and begin anew.
    ///
    /// # Errors
    /// Nothing more, where they differ among themselves, so that lines cannot be one for all.
    ///
    /// # Safety
    /// As for [`Self::differ`].
    unsafe fn hear_others(
        &mut self,
        mine: Said,
        ends: Ends,
    ) -> Result<Option<u32>, Option<TeamError>> {
        let mut others = Vec::new();
        for rank in (0..self.ranks()).filter(|&rank| rank != mine.root().0) {
            let said = if rank == self.me.0 {
                mine
            } else {
                let said = self.waits.until_said(rank, mine);
                said.map_err(|gone| Some(self.gone(gone)))?.ok_or(None)?
            };
            if !said.same_collective(mine) {
                return Err(Some(self.give_up(TeamError::Apart)));
            }
            others.push((Rank(rank), said));
        }
        if others.iter().all(|(_, said)| !said.told().is_in_lines()) {
            return self.meet(false).map(|()| None).map_err(|_| None);
        }
        let given = others.iter().map(|(_, said)| said.told().bytes());
        let given: Vec<u32> = given.collect::<Option<_>>().ok_or(None)?;
        let size = together(&given).ok_or(None)?;
        if self.me != mine.root() || !self.unopen() {
            return Err(None);
        }
        let mut all = vec![0_u8; size * usize::from(self.ranks())];
        let own = vec![0_u8; size];
        let (said, place) = (others[0].1, all.as_mut_ptr());
        // Whatever they combine: nobody looks at what comes of it.
        let any = Combine::Max(Element::U8);
        let blocks = Ends { send: own.as_ptr(), receive: place, bytes: size };
        // SAFETY: a block of so many bytes, and room for one of each rank.
        let done = unsafe { self.once(said.kind(), said, blocks, any, Hears::Any) };
        done.map_err(|failed| Some(self.failed(failed)))?;
        if mine.kind() == Kind::Gather {
            // SAFETY: the caller vouches for the buffers.
            unsafe { self.put(&all, size, &others, ends) };
            self.gave = vec![u32::try_from(ends.bytes).unwrap_or(u32::MAX); self.ranks().into()];
            others
                .iter()
                .zip(&given)
                .for_each(|((rank, _), bytes)| self.gave[rank.index()] = *bytes);
        }
        let differs = |bytes: &u32| *bytes as usize != ends.bytes;
        Ok(given.into_iter().filter(differs).max())
    }

    /// Puts what others gave, which lies in blocks of `size` bytes, to where a gather is to have it, as far as there is
    /// room, and this rank's own block.
    ///
    /// # Safety
    /// As for [`Self::differ`].
    unsafe fn put(&self, all: &[u8], size: usize, others: &[(Rank, Said)], ends: Ends) {
        let Ends { send, receive, bytes } = ends;
        if bytes == 0 {
            return;
        }
        for (rank, said) in others {
            let fits = said.told().bytes().map_or(0, |given| bytes.min(given as usize));
            let from = all[rank.index() * size..][..fits].as_ptr();
            // SAFETY: the caller has room for a block of each rank.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    from,
                    receive.wrapping_add(rank.index() * bytes),
                    fits,
                );
            }
        }
        let place = receive.wrapping_add(self.me.index() * bytes);
        // SAFETY: this rank's own block, which may be where it is to be.
        unsafe { std::ptr::copy(send, place, bytes) };
    }

    /// All ranks have come to a call that none of them can end: they meet, and have clean lines then. Where an earlier
    /// call had left lines unsound they begin this one anew, if nobody's part of it is `spoilt`.
    fn meet(&mut self, spoilt: bool) -> Result<(), TeamError> {
        // Who waited for others to take lines back cannot tell whether they did so for that, or meet here.
        if self.openings.met_at == self.calls || self.has_come_in_vain() {
            return Err(TeamError::Ahead);
        }
        if let Found::Anew(_) = self.take_lines_back(spoilt)? {
            self.openings.anew = true;
            self.openings.met_at = 0;
        }
        Ok(())
    }

    /// All ranks meet before this one does a call in lines: an earlier one has left these unsound.
    #[cold]
    pub(super) fn begin_anew(&mut self) -> Result<(), TeamError> {
        self.waits.decide(true);
        let met = self.meet(false);
        self.waits.decide(false);
        // It begins now.
        self.openings.anew = false;
        met.map_err(|error| self.give_up(error))
    }

    /// Others ask all ranks to meet, which ended a wait of this one.
    fn come(&mut self, kind: Kind, ends: Ends) -> TeamError {
        // Whoever was asked while it waited for a shape took it for the end of all.
        self.broken = None;
        let unlike = TeamError::Unlike { mine: ends.bytes, theirs: None };
        if self.header().assembly.unsound() >= self.calls {
            return self.left_unsound(unlike);
        }
        match self.meet(ends.are_spoilt(kind)) {
            Ok(()) => unlike,
            Err(error) => self.give_up(error),
        }
    }

    /// Some ranks have gone on from this call, and what they gave in lines cannot be taken: all meet in the next one.
    fn left_unsound(&mut self, why: TeamError) -> TeamError {
        // Ranks are at other points of a call that is copied once.
        if self.copies_once() || self.has_come_in_vain() {
            return self.give_up(why);
        }
        self.openings.due = true;
        self.header().assembly.unsound_since(self.calls);
        why
    }

    /// Before a channel is opened in a call from which ranks go on that have given: waits until all that give have come
    /// to it, and refuses it where they differ. Lines that only some of them had taken would be others' in later calls.
    pub(super) fn givers_are_alike(&mut self, root: Rank, bytes: usize) -> Result<(), TeamError> {
        let Some(mine) = self.waits.said() else { return Ok(()) };
        let (me, ranks) = (self.me, self.ranks());
        let gives = |rank: Rank| !(root_hears(mine.kind()) && rank == root);
        if !gives(me) {
            return Ok(());
        }
        for rank in (0..ranks).filter(|&rank| rank != me.0 && gives(Rank(rank))) {
            let said = self.waits.until_said(rank, mine).map_err(|gone| self.gone(gone))?;
            if said.is_some_and(|said| !said.same_collective(mine)) {
                return Err(self.give_up(TeamError::Apart));
            }
            let told = said.map(Said::told);
            if !told.is_some_and(|told| told.goes_with(mine.told())) {
                let theirs = told.and_then(Told::bytes);
                return Err(TeamError::Unlike { mine: bytes, theirs });
            }
        }
        Ok(())
    }

    /// No call can succeed any more, here or elsewhere.
    pub(super) fn give_up(&mut self, why: TeamError) -> TeamError {
        self.waits.stop(None);
        self.broken = Some(why.clone());
        why
    }

    /// Closes the channel that this call has opened, which other ranks do not open now. Returns whether this rank's
    /// lines are handed out as theirs again: not if it waited for them to take lines back.
    fn unopen(&mut self) -> bool {
        if let Some(Opened { index, left }) = self.openings.last.take() {
            // Who follows writes nothing before it has heard from others, which it has not.
            self.channels[index] = None;
            self.supply.as_before(left);
        }
        !self.has_come_in_vain()
    }

    /// Whether this rank waited for others where all meet, and they did not come.
    fn has_come_in_vain(&self) -> bool {
        self.openings.came * u64::from(self.ranks()) > self.header().assembly.came()
    }

    /// Takes the `given` bytes of a root that decides, and keeps as many of them as there is room for.
    ///
    /// # Safety
    /// `receive` has `room` bytes.
    unsafe fn follow(
        &mut self,
        theirs: Said,
        given: usize,
        room: usize,
        receive: *mut u8,
    ) -> Result<(), TeamError> {
        let mut all = vec![0_u8; given];
        let place = all.as_mut_ptr();
        let ends = Ends { send: place, receive: place, bytes: given };
        // SAFETY: room for what the root gives; ranks that follow read nothing of their own.
        let done = unsafe { self.once(theirs.kind(), theirs, ends, NOTHING, Hears::Tells) };
        let fits = given.min(room);
        if done.is_ok() && fits > 0 {
            // SAFETY: `all` has as many bytes, and so has the caller's room, which is another memory.
            unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), receive, fits) };
        }
        done.map_err(|failed| self.failed(failed))
    }

    /// What a call comes to of which all ranks had said the same, and that failed.
    pub(super) fn failed(&mut self, failed: Failed) -> TeamError {
        match failed {
            Failed::Unopened(error) => error,
            Failed::Ended(Ended::Gone(gone)) => self.gone(gone),
            Failed::Ended(_) => self.gone(Gone::Stopped),
        }
    }
}

/// Bytes by which calls of so many bytes go through the same lines, if they do.
fn together(given: &[u32]) -> Option<usize> {
    let (least, most) = (*given.iter().min()?, *given.iter().max()?);
    let class = class(most as usize);
    let alike = least == most || (Told::of(least as usize)).goes_with(Told::of(most as usize));
    // Of one class they go in one chunk.
    alike.then_some(if least == most { most } else { CLASSES[class] } as usize)
}
