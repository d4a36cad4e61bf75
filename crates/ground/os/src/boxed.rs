//! A value in memory of its own, for code that stands below `malloc`: it keeps its address, and a
//! large one does not go from frame to frame of a stack that may be small.

use crate::error::OsError;
use crate::table::Room;
use core::ops::{Deref, DerefMut};
use core::ptr;

/// A value at an address that does not change when the box is moved.
#[derive(Debug)]
pub struct Boxed<T> {
    room: Room<T>,
}

impl<T> Boxed<T> {
    /// # Errors
    /// [`OsError`] where there is no address space left.
    pub fn new(value: T) -> Result<Self, OsError> {
        let room = Room::new(1)?;
        // SAFETY: aligned, as large as the value, and nobody else's.
        unsafe { room.first.write(value) };
        Ok(Self { room })
    }

    /// The value, for somebody who is gone before the box is.
    ///
    /// # Safety
    /// The reference must not be used after the box was dropped. The box may be moved.
    #[must_use]
    pub unsafe fn lasting(&self) -> &'static T {
        // SAFETY: written in `new`; the caller vouches for the time.
        unsafe { self.room.first.as_ref() }
    }

    /// The value for the rest of the process's life.
    #[must_use]
    pub fn leak(self) -> &'static T {
        let place = self.room.first;
        core::mem::forget(self);
        // SAFETY: written in `new`, and never unmapped any more.
        unsafe { place.as_ref() }
    }
}

impl<T> Deref for Boxed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: written in `new`, and there until `drop`.
        unsafe { self.room.first.as_ref() }
    }
}

impl<T> DerefMut for Boxed<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the box is borrowed mutably, and nobody else has the memory.
        unsafe { self.room.first.as_mut() }
    }
}

impl<T> Drop for Boxed<T> {
    fn drop(&mut self) {
        // SAFETY: written in `new`, and dropped once; the room drops no value.
        unsafe { ptr::drop_in_place(self.room.first.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_holds_its_value_and_drops_it() {
        let dropped = core::cell::Cell::new(false);
        struct Tell<'a>(&'a core::cell::Cell<bool>, [u64; 700]);
        impl Drop for Tell<'_> {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let mut boxed = Boxed::new(Tell(&dropped, [7; 700])).expect("memory");
        boxed.1[3] = 8;
        let moved = boxed;
        assert!(moved.1.iter().sum::<u64>() == 4901 && !dropped.get());
        drop(moved);
        assert!(dropped.get());
        assert_eq!(Boxed::new(5_u32).expect("memory").leak(), &5);
    }
}
