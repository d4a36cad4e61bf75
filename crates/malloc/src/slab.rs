//! Where blocks of threads come from: mapped memory, cut up, and kept for the next thread when one
//! ends. A block is never given back to the system, since there are as many as there were threads
//! at once.

use crate::lock::Lock;
use crate::memory;
use crate::thread::Thread;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// Blocks mapped at a time.
const BLOCKS: usize = 16;

/// Blocks that no thread has.
#[derive(Debug)]
pub(crate) struct Slab {
    lock: Lock,
    free: UnsafeCell<Free>,
}

#[derive(Debug)]
struct Free {
    /// Those that threads had, linked: values that are as good as new.
    used: *mut Thread,
    /// The first of those that none ever had, and how many there are.
    fresh: *mut Thread,
    fresh_count: usize,
}

// SAFETY: the list is touched under the lock only.
unsafe impl Sync for Slab {}

impl Slab {
    pub(crate) const fn new() -> Self {
        let none = core::ptr::null_mut();
        let free = Free { used: none, fresh: none, fresh_count: 0 };
        Self { lock: Lock::new(), free: UnsafeCell::new(free) }
    }

    /// A block that a thread had, or else one with a new value. `None` where there is no memory.
    pub(crate) fn take(&self, new: impl FnOnce() -> Thread) -> Option<NonNull<Thread>> {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, so this is the only reference.
        let free = unsafe { &mut *self.free.get() };
        if let Some(block) = NonNull::new(free.used) {
            // SAFETY: blocks in the list hold a value, and no thread has them.
            free.used = unsafe { block.as_ref() }.link;
            return Some(block);
        }
        if free.fresh_count == 0 {
            free.fresh = memory::zeroed(BLOCKS * size_of::<Thread>())?.cast::<Thread>().as_ptr();
            free.fresh_count = BLOCKS;
        }
        let block = NonNull::new(free.fresh)?;
        free.fresh = free.fresh.wrapping_add(1);
        free.fresh_count -= 1;
        // SAFETY: inside of what was mapped, aligned since a page is, and nobody's.
        unsafe { block.write(new()) };
        Some(block)
    }

    /// Takes back what [`Self::take`] gave; its thread must not use it any more.
    pub(crate) fn put(&self, block: NonNull<Thread>) {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, so this is the only reference.
        let free = unsafe { &mut *self.free.get() };
        let mut block = block;
        // SAFETY: the block is one of this slab's, holds a value, and is nobody else's any more.
        unsafe { block.as_mut() }.link = free.used;
        free.used = block.as_ptr();
    }
}
