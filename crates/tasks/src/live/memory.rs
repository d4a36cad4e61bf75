//! Memory for data: one reserved range, handed out in whole pages that nobody has touched yet, so that
//! a task's first touch decides where they live.

use core::sync::atomic::{AtomicUsize, Ordering};

use isochrone_os::OsError;
use isochrone_os::space::Space;
use isochrone_units::{PAGE_BYTES, RegionId};

use crate::arena::objects::pieces;

/// Data of at least this size begin at a huge page.
const HUGE_BYTES: usize = 2 << 20;

/// The range, and how much of it is given out.
#[derive(Debug)]
pub(crate) struct Memory {
    space: Space,
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
        Ok(Self { space: Space::new(bytes, shared)?, used: AtomicUsize::new(0) })
    }

    /// Untouched memory for `bytes`; `None` if there is not so much left.
    pub(crate) fn take(&self, bytes: usize) -> Option<Piece> {
        let unit = if bytes >= HUGE_BYTES { HUGE_BYTES } else { PAGE_BYTES };
        let words = pieces(bytes as u64).checked_mul(2)?;
        // Only the program registers data, so nobody else moves the mark meanwhile.
        let start = self.used.load(Ordering::Relaxed).checked_next_multiple_of(unit)?;
        let homes = start.checked_add(bytes)?.checked_next_multiple_of(PAGE_BYTES)?;
        let end = homes.checked_add(words)?;
        if end > self.space.len() {
            return None;
        }
        self.used.store(end, Ordering::Relaxed);
        let first = self.space.as_ptr().expose_provenance();
        Some(Piece { base: first + start, homes: first + homes })
    }

    fn offset(&self, address: usize) -> usize {
        address - self.space.as_ptr().addr()
    }

    /// Spreads pages that nobody has touched over `regions`.
    pub(crate) fn interleave(
        &self,
        base: usize,
        bytes: usize,
        regions: &[RegionId],
    ) -> Result<(), OsError> {
        self.space.interleave(self.offset(base), bytes, regions)
    }

    /// Forbids huge pages: one lives in one region as a whole, where tasks of several regions may touch its
    /// parts.
    pub(crate) fn small_pages(&self, base: usize, bytes: usize) -> Result<(), OsError> {
        self.space.huge(self.offset(base), bytes, false)
    }

    /// Gives the pages back to the system.
    pub(crate) fn release(&self, base: usize, bytes: usize) -> Result<(), OsError> {
        self.space.release(self.offset(base), bytes)
    }

    /// Lets the pages of a part be used, or not at all.
    pub(crate) fn protect(&self, base: usize, bytes: usize, usable: bool) -> Result<(), OsError> {
        self.space.protect(self.offset(base), bytes, usable)
    }

    /// Where each page from `base` on lives, as the kernel says.
    pub(crate) fn regions_of(
        &self,
        base: usize,
        out: &mut [Option<RegionId>],
    ) -> Result<(), OsError> {
        self.space.regions_of(self.offset(base), out)
    }
}
