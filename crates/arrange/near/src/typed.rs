//! Values of a type in memory near cores.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::process;
use std::ptr::NonNull;

use isochrone_units::CoreId;

use crate::placement::{Distance, Placement};

/// Values of one type, near the core of each thread that makes them, or near one core. It may be shared and copied.
pub struct Pool<'p, T> {
    placement: &'p Placement,
    core: Option<CoreId>,
    values: PhantomData<fn() -> T>,
}

impl<T> Clone for Pool<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pool<'_, T> {}

impl<T> fmt::Debug for Pool<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("core", &self.core).finish_non_exhaustive()
    }
}

impl Placement {
    /// Values near the core of each thread that makes them.
    #[must_use]
    pub const fn pool<T>(&self) -> Pool<'_, T> {
        Pool { placement: self, core: None, values: PhantomData }
    }

    /// Values near a core, whichever thread makes them.
    #[must_use]
    pub const fn pool_near<T>(&self, core: CoreId) -> Pool<'_, T> {
        Pool { placement: self, core: Some(core), values: PhantomData }
    }
}

impl<'p, T> Pool<'p, T> {
    /// Puts a value near the pool's core. Like `Box`, it ends the process where there is no memory at all.
    #[must_use]
    pub fn put(&self, value: T) -> Near<'p, T> {
        let layout = Layout::new::<T>();
        let at = match layout.size() {
            0 => NonNull::dangling(),
            _ => {
                let found = self.placement.alloc_for(self.core, layout).cast::<T>();
                NonNull::new(found).unwrap_or_else(|| handle_alloc_error(layout))
            }
        };
        // SAFETY: it was just allocated for a `T` and is nobody else's, or `T` has no size.
        unsafe { at.write(value) };
        Near { at, placement: self.placement, value: PhantomData }
    }
}

/// A value in memory of a placement: a `Box` near a core.
pub struct Near<'p, T> {
    at: NonNull<T>,
    placement: &'p Placement,
    value: PhantomData<T>,
}

// SAFETY: it owns the value, as a `Box` does; a placement is shared by threads.
unsafe impl<T: Send> Send for Near<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Near<'_, T> {}

impl<'p, T> Near<'p, T> {
    /// How far the value is from a core: see [`Placement::distance`].
    #[must_use]
    pub fn distance(&self, core: CoreId) -> Option<Distance> {
        self.placement.distance(self.at.as_ptr().cast(), core)
    }

    /// Moves the value to memory near a core that is about to use it.
    #[must_use]
    pub fn move_near(self, core: CoreId) -> Self {
        let pool = self.placement.pool_near(core);
        pool.put(self.into_inner())
    }

    /// The value, whose memory is given back.
    #[must_use]
    pub fn into_inner(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: the value is there, and nobody reads it again: `this` is not dropped.
        let value = unsafe { this.at.read() };
        this.give_back();
        value
    }

    /// Gives the memory back. Only once, when the value is not there any more.
    fn give_back(&self) {
        if size_of::<T>() == 0 {
            return;
        }
        // SAFETY: it came from this placement in `put`, and this value, its only owner, gives it up.
        let freed = unsafe { self.placement.free(self.at.as_ptr().cast()) };
        if freed.is_err() {
            // Somebody else has freed it by its address: what lies there now is not known.
            process::abort();
        }
    }
}

impl<T> Deref for Near<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value was written in `put` and is dropped with `self`.
        unsafe { self.at.as_ref() }
    }
}

impl<T> DerefMut for Near<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { self.at.as_mut() }
    }
}

impl<T> Drop for Near<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the value was written in `put`, and nobody sees it after this.
        unsafe { self.at.drop_in_place() };
        self.give_back();
    }
}

impl<T: fmt::Debug> fmt::Debug for Near<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
