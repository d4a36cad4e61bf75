//! The arena: the memory that slots are numbers of, page by page and line by line.
//!
//! It never says whose a slot is. Its memory, and the address space for it, grow at the end.

use crate::Slot;
use isochrone_os::OsError;
use isochrone_os::reserve::{Reservation, Step, Stride};
use isochrone_os::steps::Plot;
use isochrone_units::PAGE_BYTES;

/// Memory in which slots lie.
#[derive(Debug)]
pub struct Arena {
    memory: Reservation,
}

impl Arena {
    /// An arena of at most `limit_bytes`, whose address space is taken as it grows.
    ///
    /// # Errors
    /// [`OsError`] where there is none.
    pub fn new(limit_bytes: usize, huge_pages: bool) -> Result<Self, OsError> {
        Ok(Self { memory: Reservation::new(limit_bytes, huge_pages)? })
    }

    /// The same as a part of a plot.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn within(plot: &mut Plot, limit_bytes: usize, huge_pages: bool) -> Result<Self, OsError> {
        Ok(Self { memory: Reservation::within(plot, limit_bytes, huge_pages)? })
    }

    /// The next stride (less where the limit ends): see [`Reservation::grow`].
    ///
    /// # Errors
    /// [`OsError`] where there is no memory; then nothing has changed.
    pub fn grow(&self, stride: Stride) -> Result<Option<Step>, OsError> {
        self.memory.grow(stride)
    }

    /// Where a slot begins. It may be used if its page is memory, and the heap gave it out.
    #[inline]
    #[must_use]
    pub fn address_of(&self, slot: Slot) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(slot.offset())
    }

    /// The slot that begins at an address; `None` outside of the arena, and where none begins.
    #[inline]
    #[must_use]
    pub fn slot_at(&self, address: *const u8) -> Option<Slot> {
        Slot::at_offset(self.memory.offset_of(address)?)
    }

    /// Pages that are memory.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.memory.committed() / PAGE_BYTES
    }

    /// Pages that it can grow to.
    #[must_use]
    pub const fn pages_max(&self) -> usize {
        self.memory.reach() / PAGE_BYTES
    }

    /// The memory, for timing its lines.
    #[must_use]
    pub const fn memory(&self) -> &Reservation {
        &self.memory
    }
}
