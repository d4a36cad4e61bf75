//! Calls whose bytes are copied once, from the memory of one rank to that of another.
//!
//! Ranks say through lines where their bytes are. Then each copies what it needs (or, in a gather, what it gives), and
//! all hear from all how that went: nobody's buffer is another's business after that. Whoever speaks first may say that
//! the call is to be done by other means; then all leave it. A copy that fails sends all of them there, now and from
//! then on.

use super::{Ends, NOTHING, Team, hears};
use crate::live::channel::Failed;
use crate::live::classes::BYTES_MAX;
use crate::live::error::TeamError;
use crate::live::kind::Kind;
use crate::live::lines::Hears;
use crate::live::said::{Said, Told, moves};
use crate::program::{Combine, Element, Rank};
use isochrone_os::peer;
use isochrone_os::process::{self, ProcessId};
use std::hash::{BuildHasher as _, RandomState};

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

/// The lines by which ranks say where their bytes are.
const fn by(kind: Kind) -> Kind {
    if kind.rooted() { Kind::Broadcast } else { Kind::Allgather }
}

/// What a rank says of its bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Offer {
    /// Whose memory it is; 0: the call is to be done by other means.
    process: u64,
    first: u64,
    bytes: u64,
}

/// How it went, the worst of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
enum Went {
    Well,
    /// A rank has other bytes than the root.
    Unlike,
    /// A copy failed.
    Failed,
}

impl Offer {
    const BYTES: usize = size_of::<Self>();

    fn of(first: *const u8, bytes: usize) -> Self {
        let process = process::this().0;
        Self {
            process: u64::try_from(process).unwrap_or(0),
            first: first.expose_provenance() as u64,
            bytes: bytes as u64,
        }
    }

    fn process(self) -> ProcessId {
        ProcessId(i32::try_from(self.process).unwrap_or(0))
    }

    fn at(self, offset: usize) -> usize {
        usize::try_from(self.first).unwrap_or(0).wrapping_add(offset)
    }

    fn bytes(self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Copies `bytes` of it from byte `offset` on.
    ///
    /// # Safety
    /// There is room for them at `to`.
    unsafe fn read(self, offset: usize, to: *mut u8, bytes: usize) -> Went {
        // SAFETY: the caller vouches for the room.
        match unsafe { peer::read(self.process(), self.at(offset), to, bytes) } {
            Ok(()) => Went::Well,
            Err(_) => Went::Failed,
        }
    }
}

impl Team {
    /// Looks whether each rank reaches the memory of each other one, by real reads; returns what all find alike. All
    /// ranks make this call. Where they do, calls of [`crate::live::Settings::single_copy_bytes`] and more are
    /// copied once from
    /// then on, also those of other teams of the same arena whose ranks have not begun.
    ///
    /// # Errors
    /// [`TeamError`] when a rank has ended.
    pub fn try_reach(&mut self) -> Result<bool, TeamError> {
        // Nothing that another process of the same number has at this address.
        let secret = Box::new(RandomState::new().hash_one(self.me.0));
        let mine = Offer { bytes: *secret, ..Offer::of((&raw const *secret).cast(), 0) };
        let mut all = vec![Offer::default(); usize::from(self.ranks())];
        let (send, receive) = ((&raw const mine).cast(), all.as_mut_ptr().cast());
        let (root, bytes) = (Rank(0), Offer::BYTES);
        // SAFETY: an offer of this rank's, and room for one of each.
        unsafe { self.call(Kind::Allgather, root, bytes, NOTHING, send, receive) }?;
        let reached = all.iter().all(|offer| {
            let mut found = 0_u64;
            // SAFETY: room for a word.
            let went = unsafe { offer.read(0, (&raw mut found).cast(), size_of::<u64>()) };
            went == Went::Well && found == offer.bytes
        });
        let went = if reached { Went::Well } else { Went::Failed };
        // Nobody's secret goes before all have looked.
        let reach = self.all_went(went)? == Went::Well;
        drop(secret);
        if let Some(arena) = self.area.arena() {
            arena.note_reach(reach);
        }
        self.set_reach(reach);
        Ok(reach)
    }

    /// Whether ranks reach each other's memory; none where nobody has looked.
    #[must_use]
    pub const fn reach(&self) -> Option<bool> {
        self.reach
    }

    /// Whether a call of so many bytes is copied once, by what all ranks know alike beside their bytes.
    #[inline]
    #[must_use]
    pub const fn is_single(&self, kind: Kind, bytes: usize) -> bool {
        bytes >= self.single_from[kind as usize]
            && matches!(self.reach, Some(true))
            && bytes <= BYTES_MAX
            && moves(kind)
    }

    /// Has calls of each collective copied once from so many bytes on, in place of
    /// [`crate::live::Settings::single_copy_bytes`], where ranks reach each other's memory. All ranks say the same
    /// before the same call.
    pub fn copy_once_from(&mut self, from: impl Fn(Kind) -> usize) {
        // Whoever has no byte has nothing to copy.
        self.single_from = Kind::ALL.map(|kind| from(kind).max(1));
    }

    /// Whether any call may be copied once.
    pub(super) fn copies_once(&self) -> bool {
        self.reach == Some(true) && self.single_from.iter().any(|from| *from < usize::MAX)
    }

    const fn set_reach(&mut self, reach: bool) {
        self.reach = Some(reach);
    }

    /// Leaves a call that [is copied once](Self::is_single) to other means, on all ranks, if this one speaks first in
    /// it: the root, or any rank where there is none. The others find it out in their call.
    ///
    /// # Errors
    /// [`TeamError::Elsewhere`], unless ranks make different calls or one has ended.
    pub fn single_by_other_means(&mut self, kind: Kind, root: Rank) -> Result<(), TeamError> {
        let said = self.begin(kind, root, Told::SINGLE)?;
        // SAFETY: there is no room for any byte.
        unsafe { self.offered(said, Offer::default(), Ends::NONE) }?;
        Err(TeamError::Elsewhere)
    }

    /// A call that is copied once.
    ///
    /// # Safety
    /// As for [`Team::call`].
    #[cold]
    pub(super) unsafe fn single(
        &mut self,
        kind: Kind,
        root: Rank,
        bytes: usize,
        send: *const u8,
        receive: *mut u8,
    ) -> Result<(), TeamError> {
        let said = self.begin(kind, root, Told::SINGLE)?;
        let all = bytes.saturating_mul(usize::from(self.ranks()));
        let mut send = send;
        let in_place = kind == Kind::Alltoall && send == receive.cast_const();
        if in_place {
            self.scratch.resize(all, 0);
            // SAFETY: the caller's blocks, one for each rank, and the team's own room for them.
            unsafe { std::ptr::copy_nonoverlapping(send, self.scratch.as_mut_ptr(), all) };
            send = self.scratch.as_ptr();
        }
        // In a gather the others put their blocks where the root has room.
        let first = if kind == Kind::Gather { receive.cast_const() } else { send };
        let offer = Offer::of(first, bytes);
        // SAFETY: the caller vouches for the room.
        let ends = Ends { send, receive, bytes };
        // SAFETY: as above.
        let offers = unsafe { self.offered(said, offer, ends) }?;
        // SAFETY: the caller vouches for the buffers.
        let done = unsafe { self.taken(kind, root, &offers, ends) };
        if in_place && done == Err(TeamError::Elsewhere) {
            // SAFETY: as above; who does it now finds what there was.
            unsafe { std::ptr::copy_nonoverlapping(send, receive, all) };
        }
        done
    }

    /// A root that decides copies once, and this rank has said something else of the call.
    ///
    /// # Safety
    /// `receive` has `room` bytes.
    pub(super) unsafe fn follow_single(
        &mut self,
        theirs: Said,
        room: usize,
        receive: *mut u8,
    ) -> Result<(), TeamError> {
        let heard = self.exchanged(theirs, Offer::default(), Hears::Tells);
        let offers = heard.map_err(|failed| self.failed(failed))?;
        let ends = Ends { send: std::ptr::null(), receive, bytes: room };
        // SAFETY: the caller vouches for the room.
        unsafe { self.taken(theirs.kind(), theirs.root(), &offers, ends) }
    }

    /// What all that speak first said of a call: the root, or all ranks.
    ///
    /// # Safety
    /// `ends` are what the caller's call may read and write.
    unsafe fn offered(
        &mut self,
        said: Said,
        mine: Offer,
        ends: Ends,
    ) -> Result<Vec<Offer>, TeamError> {
        // Nobody hears from the root of a gather before it speaks.
        let hears = hears(said.kind(), self.me == said.root());
        match self.exchanged(said, mine, hears) {
            Ok(offers) => {
                self.waits.over();
                Ok(offers)
            }
            Err(failed) => {
                // SAFETY: the caller vouches for the room.
                let done = unsafe { self.ended(Err(failed), said, ends) };
                if self.openings.anew {
                    // Ranks are at other points of such a call.
                    return Err(self.give_up(TeamError::Ahead));
                }
                Err(done.err().unwrap_or(TeamError::Elsewhere))
            }
        }
    }

    /// Says and hears where bytes are, by the lines of a small collective.
    fn exchanged(&mut self, said: Said, mine: Offer, hears: Hears) -> Result<Vec<Offer>, Failed> {
        let by = by(said.kind());
        let ranks = if by == Kind::Allgather { usize::from(self.ranks()) } else { 1 };
        let mut offers = vec![mine; ranks];
        let (send, receive) = ((&raw const mine).cast(), offers.as_mut_ptr().cast());
        let ends = Ends { send, receive, bytes: Offer::BYTES };
        // SAFETY: an offer of this rank's, and room for those that come.
        unsafe { self.once(by, said, ends, NOTHING, hears) }?;
        Ok(offers)
    }

    /// Copies what was offered, and hears how that went elsewhere.
    ///
    /// # Safety
    /// As for [`Team::call`]; at other ranks than the root of a broadcast or a scatter there may be room for fewer
    /// bytes.
    unsafe fn taken(
        &mut self,
        kind: Kind,
        root: Rank,
        offers: &[Offer],
        ends: Ends,
    ) -> Result<(), TeamError> {
        if offers.iter().any(|offer| offer.process == 0) {
            return Err(TeamError::Elsewhere);
        }
        let unlike = |offer: &&Offer| offer.bytes() != ends.bytes;
        let theirs = offers.iter().find(unlike).map(|offer| offer.bytes());
        let unlike = theirs.map(|theirs| TeamError::Unlike {
            mine: ends.bytes,
            theirs: Some(u32::try_from(theirs).unwrap_or(u32::MAX)),
        });
        let went = match (kind.rooted(), unlike.clone()) {
            // All have heard the same.
            (false, Some(unlike)) => return Err(unlike),
            // SAFETY: the caller vouches for the buffers, and all ranks offer as many bytes.
            (false, None) => unsafe { self.exchange(kind, offers, ends) },
            // SAFETY: the caller vouches for the buffers.
            (true, _) => unsafe { self.with_root(kind, root, offers[0], ends) },
        };
        match self.all_went(went)? {
            Went::Failed => {
                self.set_reach(false);
                Err(TeamError::Elsewhere)
            }
            Went::Unlike => {
                Err(unlike.unwrap_or(TeamError::Unlike { mine: ends.bytes, theirs: None }))
            }
            Went::Well => unlike.map_or(Ok(()), Err),
        }
    }

    /// This rank's part of a call in which the root alone has all bytes.
    ///
    /// # Safety
    /// As for [`Self::taken`].
    unsafe fn with_root(&self, kind: Kind, root: Rank, offer: Offer, ends: Ends) -> Went {
        let Ends { send, receive, bytes } = ends;
        let place = self.me.index().saturating_mul(bytes);
        if self.me == root {
            match kind {
                // SAFETY: the root's own block.
                Kind::Scatter => unsafe { own(send.wrapping_add(place), receive, bytes) },
                // SAFETY: as above.
                Kind::Gather => unsafe { own(send, receive.wrapping_add(place), bytes) },
                _ => {}
            }
            return Went::Well;
        }
        let fits = offer.bytes().min(bytes);
        match kind {
            Kind::Gather if offer.bytes() != bytes => Went::Unlike,
            Kind::Gather => {
                // SAFETY: this rank's block, and the root has room for one of each rank.
                match unsafe { peer::write(offer.process(), offer.at(place), send, bytes) } {
                    Ok(()) => Went::Well,
                    Err(_) => Went::Failed,
                }
            }
            // SAFETY: the caller has room for as many.
            Kind::Scatter => unsafe {
                let begin = self.me.index().saturating_mul(offer.bytes());
                offer.read(begin, receive, fits)
            },
            // SAFETY: as above.
            _ => unsafe { offer.read(0, receive, fits) },
        }
    }

    /// This rank's part of a call in which all give bytes to all, as many each.
    ///
    /// # Safety
    /// As for [`Team::call`].
    unsafe fn exchange(&self, kind: Kind, offers: &[Offer], ends: Ends) -> Went {
        let Ends { send, receive, bytes } = ends;
        let (me, ranks) = (self.me.index(), offers.len());
        let begin = if kind == Kind::Alltoall { me * bytes } else { 0 };
        // SAFETY: this rank's own block.
        unsafe { own(send.wrapping_add(begin), receive.wrapping_add(me * bytes), bytes) };
        // Each begins with its neighbour, so that not all read from one.
        let others = (1..ranks).map(|step| (me + step) % ranks);
        // SAFETY: there is room for a block of each rank.
        let read = |rank: usize| unsafe {
            offers[rank].read(begin, receive.wrapping_add(rank * bytes), bytes)
        };
        others.map(read).find(|went| *went != Went::Well).unwrap_or(Went::Well)
    }

    /// The worst of how it went on all ranks.
    fn all_went(&mut self, mine: Went) -> Result<Went, TeamError> {
        let (mine, mut worst) = (mine as u64, 0_u64);
        let (send, receive) = ((&raw const mine).cast(), (&raw mut worst).cast());
        let (bytes, most) = (size_of::<u64>(), Combine::Max(Element::U64));
        // SAFETY: a word of this rank's each.
        let done = unsafe { self.call(Kind::Allreduce, Rank(0), bytes, most, send, receive) };
        match done {
            Ok(()) => Ok(match worst {
                0 => Went::Well,
                1 => Went::Unlike,
                _ => Went::Failed,
            }),
            // No rank has lines for it: all leave the call, and all that follow.
            Err(TeamError::Full { .. }) => Ok(Went::Failed),
            Err(error) => Err(error),
        }
    }
}

/// Copies a rank's own block, unless it is where it is to be.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of so many bytes; they do not overlap, or are the same.
unsafe fn own(from: *const u8, to: *mut u8, bytes: usize) {
    if from != to.cast_const() {
        // SAFETY: the caller vouches for both.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
}
