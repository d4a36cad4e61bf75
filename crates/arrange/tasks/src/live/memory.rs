//! Memory for data: one reserved range, handed out in whole pages that nobody has touched yet, so that
//! a task's first touch decides where they live; or a range of somebody else's, who also says where its pages
//! live.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use isochrone_os::OsError;
use isochrone_os::space::Space;
use isochrone_units::{PAGE_BYTES, RegionId};

use crate::arena::objects::pieces;

/// Data of at least this size begin at a huge page.
const HUGE_BYTES: usize = 2 << 20;

/// Whose range it is.
#[derive(Debug)]
enum Owner {
    Us(Space),
    /// Address and length, once they are told.
    Other(OnceLock<(usize, usize)>),
}

/// The range, and how much of it is given out.
#[derive(Debug)]
pub(crate) struct Memory {
    owner: Owner,
    used: AtomicUsize,
}

/// What was handed out for a piece of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Address of the first byte.
    pub(crate) base: usize,
    /// Address of the words that tell where its pages live.
    pub(crate) homes: usize,
}

impl Memory {
    /// Reserves `bytes`.
    pub(crate) fn new(bytes: usize, shared: bool) -> Result<Self, OsError> {
        Ok(Self { owner: Owner::Us(Space::new(bytes, shared)?), used: AtomicUsize::new(0) })
    }

    /// A range that [`Self::give`] names later.
    pub(crate) const fn of_other() -> Self {
        Self { owner: Owner::Other(OnceLock::new()), used: AtomicUsize::new(0) }
    }

    /// Names the range of somebody else; false if that was done before.
    pub(crate) fn give(&self, first: NonNull<u8>, bytes: usize) -> bool {
        match &self.owner {
            Owner::Us(_) => false,
            Owner::Other(range) => range.set((first.expose_provenance().get(), bytes)).is_ok(),
        }
    }

    fn range(&self) -> (usize, usize) {
        match &self.owner {
            Owner::Us(space) => (space.as_ptr().expose_provenance(), space.len()),
            Owner::Other(range) => range.get().copied().unwrap_or_default(),
        }
    }

    /// Untouched memory for `bytes`; `None` if there is not so much left.
    pub(crate) fn take(&self, bytes: usize) -> Option<Piece> {
        let unit = if bytes >= HUGE_BYTES { HUGE_BYTES } else { PAGE_BYTES };
        let (first, length) = self.range();
        // Of others' pages nobody asks us where they live.
        let words = match self.owner {
            Owner::Us(_) => pieces(bytes as u64).checked_mul(2)?,
            Owner::Other(_) => 0,
        };
        // Only the program registers data, so nobody else moves the mark meanwhile.
        let start = self.used.load(Ordering::Relaxed).checked_next_multiple_of(unit)?;
        let homes = start.checked_add(bytes)?.checked_next_multiple_of(PAGE_BYTES)?;
        let end = homes.checked_add(words)?;
        if end > length {
            return None;
        }
        self.used.store(end, Ordering::Relaxed);
        Some(Piece { base: first + start, homes: first + homes })
    }

    /// Asks something of our own pages; those of others stay as they are.
    fn ours(
        &self,
        address: usize,
        ask: impl FnOnce(&Space, usize) -> Result<(), OsError>,
    ) -> Result<(), OsError> {
        match &self.owner {
            Owner::Us(space) => ask(space, address - space.as_ptr().addr()),
            Owner::Other(_) => Ok(()),
        }
    }

    /// Spreads pages that nobody has touched over `regions`.
    pub(crate) fn interleave(
        &self,
        base: usize,
        bytes: usize,
        regions: &[RegionId],
    ) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.interleave(offset, bytes, regions))
    }

    /// Forbids huge pages: one lives in one region as a whole, where tasks of several regions may touch its
    /// parts.
    pub(crate) fn small_pages(&self, base: usize, bytes: usize) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.huge(offset, bytes, false))
    }

    /// Gives the pages back to the system.
    pub(crate) fn release(&self, base: usize, bytes: usize) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.release(offset, bytes))
    }

    /// Lets the pages of a part be used, or not at all.
    pub(crate) fn protect(&self, base: usize, bytes: usize, usable: bool) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.protect(offset, bytes, usable))
    }

    /// Where each page from `base` on lives, as the kernel says.
    pub(crate) fn regions_of(
        &self,
        base: usize,
        out: &mut [Option<RegionId>],
    ) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.regions_of(offset, out))
    }
}
