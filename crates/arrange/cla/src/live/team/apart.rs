//! What becomes of a call of which ranks say different things, and of one that is done by other means.

use super::Team;
use crate::live::channel::{Ended, Failed, Opened};
use crate::live::error::TeamError;
use crate::live::kind::Kind;
use crate::live::said::{Said, Told, root_decides};
use crate::program::{Gone, Rank};

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
            Ok(theirs) => Err(unsafe { self.differ(mine, theirs, None, std::ptr::null_mut()) }),
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
    /// `receive` has room for what the caller's call with `bytes` bytes may write to it.
    #[cold]
    pub(super) unsafe fn ended(
        &mut self,
        done: Result<(), Failed>,
        mine: Said,
        bytes: usize,
        receive: *mut u8,
    ) -> Result<(), TeamError> {
        let found = self.waits.found();
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
        // SAFETY: the caller vouches for the room.
        Err(unsafe { self.differ(mine, theirs, Some(bytes), receive) })
    }

    /// Another rank said `theirs` of the call of which this one said `mine`: what the caller is told.
    ///
    /// # Safety
    /// `receive` has room for so many `bytes`.
    unsafe fn differ(
        &mut self,
        mine: Said,
        theirs: Said,
        bytes: Option<usize>,
        receive: *mut u8,
    ) -> TeamError {
        let (here, room) = (bytes.unwrap_or(usize::MAX), bytes.unwrap_or(0));
        let unlike = TeamError::Unlike { mine: here, theirs: theirs.told().bytes() };
        let follows = mine.same_collective(theirs) && root_decides(mine.kind()) && self.unopen();
        match theirs.told().bytes() {
            None if follows && theirs.told() == Told::NONE => TeamError::Elsewhere,
            None if follows && theirs.told() == Told::SINGLE => {
                // SAFETY: the caller vouches for the room.
                match unsafe { self.follow_single(theirs, room, receive) } {
                    Err(TeamError::Unlike { theirs, .. }) => {
                        TeamError::Unlike { mine: here, theirs }
                    }
                    done => done.err().unwrap_or(unlike),
                }
            }
            Some(given) if follows => {
                // SAFETY: the caller vouches for the room.
                let done = unsafe { self.follow(theirs, given as usize, room, receive) };
                done.err().unwrap_or(unlike)
            }
            _ => {
                // What each rank takes for the next chunk is not the same any more: nothing more can be done in lines.
                self.give_up(if mine.same_collective(theirs) { unlike } else { TeamError::Apart })
            }
        }
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
        let done = unsafe { self.once(theirs, given, super::NOTHING, place, place, false) };
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
