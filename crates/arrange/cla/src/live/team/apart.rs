//! What becomes of a call of which ranks say different things, and of one that is done by other means.
//!
//! The calls that come after it go on wherever all ranks can be brought to one state again. Where the root decides, the
//! others go by its bytes. Where the root alone hears from others, it takes what they gave, since they have gone on.
//! Where all hear from all, nobody is done with the call: they meet, and begin with clean lines.

use super::{Ends, Team};
use crate::live::channel::{Ended, Failed, Opened};
use crate::live::classes::{CLASSES, class};
use crate::live::error::TeamError;
use crate::live::kind::Kind;
use crate::live::lines::Hears;
use crate::live::said::{Said, Told, all_hear_all, root_decides, root_hears};
use crate::program::{Combine, Element, Gone, Rank};

impl Team {
    /// Says that this rank does a call by other means than lines, and waits until all that it depends on have come to
    /// it: a root that decides asks nobody, the others of such a call ask the root, and of any other call everybody.
    ///
    /// # Errors
    /// [`TeamError::Unlike`] and [`TeamError::Apart`] where another rank does the call in lines, or makes another one;
    /// what a root that decides had sent is dropped. [`TeamError::Gone`] when a rank has ended.
    pub fn by_other_means(&mut self, kind: Kind, root: Rank) -> Result<(), TeamError> {
        let mine = self.begin(kind, root, Told::NONE)?;
        let asked = self.asked(kind, root);
        let differing =
            asked.into_iter().find_map(|rank| match self.waits.until_said(rank, mine) {
                Ok(said) => said.filter(|&said| self.waits.differs(mine, rank, said)).map(Ok),
                Err(gone) => Some(Err(gone)),
            });
        let found = self.waits.found();
        self.waits.over();
        let theirs = match differing {
            None => return Ok(()),
            Some(Ok(theirs)) => Ok(theirs),
            Some(Err(gone)) => found.ok_or(gone),
        };
        match theirs {
            // SAFETY: there is no room for any byte.
            Ok(theirs) => Err(unsafe { self.differ(mine, theirs, None) }),
            Err(gone) => Err(self.gone(gone)),
        }
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
        let (bytes, found) = (ends.bytes, self.waits.found());
        self.waits.over();
        let theirs = match (done, found) {
            (Ok(()), _) => return Ok(()),
            (_, Some(found)) => {
                // Whoever found it while it waited for a shape or for lines took it for the end of all.
                self.broken = None;
                found
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
        Err(unsafe { self.differ(mine, theirs, Some(ends)) })
    }

    /// Another rank said `theirs` of the call of which this one said `mine`: what the caller is told.
    ///
    /// # Safety
    /// `ends` are what the caller's call may read and write; none where it is done by other means.
    unsafe fn differ(&mut self, mine: Said, theirs: Said, ends: Option<Ends>) -> TeamError {
        let here = ends.map_or(usize::MAX, |ends| ends.bytes);
        let ends = ends.unwrap_or(Ends::NONE);
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
                Err(None) => self.give_up(unlike),
                Err(Some(error)) => error,
            };
        }
        if all_hear_all(kind) && self.meet() { unlike } else { self.give_up(unlike) }
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
                return Err(None);
            }
            others.push((Rank(rank), said));
        }
        if others.iter().all(|(_, said)| !said.told().is_in_lines()) {
            return if self.meet() { Ok(None) } else { Err(None) };
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
        // SAFETY: a block of so many bytes, and room for one of each rank.
        let done = unsafe { self.once(said, size, any, own.as_ptr(), place, Hears::Any) };
        done.map_err(|failed| Some(self.failed(failed)))?;
        if mine.kind() == Kind::Gather {
            // SAFETY: the caller vouches for the buffers.
            unsafe { self.put(&all, size, &others, ends) };
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

    /// All ranks have come to a call that none of them can end: they meet, and begin anew with clean lines. Whether
    /// they did.
    fn meet(&mut self) -> bool {
        // Who waited for others to take lines back cannot tell whether they did so for that, or meet here.
        self.openings.met_at != self.calls && self.take_lines_back().is_ok()
    }

    /// No call can succeed any more, here or elsewhere.
    fn give_up(&mut self, why: TeamError) -> TeamError {
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
        self.openings.came * u64::from(self.ranks()) <= self.header().taken_back.0.load()
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
        // SAFETY: room for what the root gives; ranks that follow read nothing of their own.
        let done = unsafe { self.once(theirs, given, super::NOTHING, place, place, Hears::Tells) };
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
