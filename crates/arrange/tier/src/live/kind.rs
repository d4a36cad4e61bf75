//! An allocator over one large array: objects of any size in memory of which a part is in fast memory, for all threads
//! of this process.

use core::ptr::NonNull;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use isochrone_os::race;

use super::config::{Config, TierError};
use super::far::Far;
use super::global::{FreeError, NoPiece};
use super::mapped::Mapped;
use super::objects::{Objects, Taken};
use crate::pages::Trouble;

/// The largest alignment: that of the array itself.
pub const ALIGN_MOST: usize = 2 << 20;

/// The allocator, and its array.
#[derive(Debug)]
pub struct Kind {
    array: Mapped,
    objects: Mutex<Objects>,
}

impl Kind {
    /// Maps an array for objects. Of `config` counts what is about memory, as in [`Mapped::new`].
    ///
    /// # Errors
    /// [`TierError`] where the kernel lacks something, or another array is mapped.
    pub fn new(config: Config, far: Box<dyn Far>) -> Result<Self, TierError> {
        let group_bytes = config.group_bytes();
        let array = Mapped::new(config, far)?;
        let objects = Mutex::new(Objects::new(array.len() / group_bytes, group_bytes));
        Ok(Self { array, objects })
    }

    /// The array: for pins, advice and statistics.
    #[must_use]
    pub const fn array(&self) -> &Mapped {
        &self.array
    }

    fn objects(&self) -> Result<MutexGuard<'_, Objects>, Trouble> {
        // The lock of a child may be held by a thread that it does not have.
        if !self.array.is_here() {
            return Err(Trouble::Elsewhere);
        }
        Ok(self.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn offset_of(&self, at: NonNull<u8>) -> Result<usize, NoPiece> {
        let address = at.addr().get();
        let offset = address.checked_sub(self.array.as_ptr().addr());
        offset.filter(|offset| *offset < self.array.len()).ok_or(NoPiece(address))
    }

    /// Memory for an object, at a multiple of `align`, a power of two up to [`ALIGN_MOST`]; `None` where no such piece
    /// is free. With `zeroed` it holds zeros.
    ///
    /// # Errors
    /// [`Trouble::Elsewhere`] in a process that has nothing of the array.
    pub fn malloc(
        &self,
        bytes: usize,
        align: usize,
        zeroed: bool,
    ) -> Result<Option<NonNull<u8>>, Trouble> {
        let taken = self.objects()?.take(bytes, align);
        let Some(Taken { at, is_new }) = taken else { return Ok(None) };
        // Who had these bytes before is done with them: the lock says so to all but a sanitizer.
        race::acquire(&self.objects);
        let first = self.array.as_ptr().wrapping_add(at);
        if zeroed && !is_new {
            // SAFETY: inside of the array, and nobody else's: it was taken just now.
            unsafe { first.write_bytes(0, bytes) };
        }
        Ok(NonNull::new(first))
    }

    /// Gives an object back. Of one that had whole groups, memory and room in the far tier are free at once, and all
    /// pins of it end.
    ///
    /// # Errors
    /// [`FreeError`] where no object begins there, the kernel refuses, or the process has nothing of the array.
    pub fn free(&self, at: NonNull<u8>) -> Result<(), FreeError> {
        let offset = self.offset_of(at)?;
        race::release(&self.objects);
        let left = self.objects()?.leave(offset).ok_or(NoPiece(at.addr().get()))?;
        left.map_or(Ok(()), |bytes| Ok(self.forget(&bytes)?))
    }

    fn forget(&self, bytes: &Range<usize>) -> Result<(), Trouble> {
        // Nobody waits for this one with the lock: who faults may be the one that asks.
        self.array.give_up(bytes.clone())?;
        self.objects()?.give(bytes);
        Ok(())
    }

    /// Bytes that may be used of an object.
    ///
    /// # Errors
    /// [`FreeError`] where none begins there, or the process has nothing of the array.
    pub fn usable(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        let offset = self.offset_of(at)?;
        Ok(self.objects()?.usable(offset).ok_or(NoPiece(at.addr().get()))?)
    }

    /// Makes an object longer where it is; false where something lies behind it.
    ///
    /// # Errors
    /// As [`Self::usable`].
    pub fn grow(&self, at: NonNull<u8>, bytes: usize) -> Result<bool, FreeError> {
        self.usable(at)?;
        let offset = self.offset_of(at)?;
        Ok(self.objects()?.grow(offset, bytes))
    }
}
