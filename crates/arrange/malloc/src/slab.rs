//! Where blocks of threads come from: mapped memory, cut up, and kept for the next thread when one
//! ends. A block is never given back to the system, since there are as many as there were threads
//! at once.

use crate::instance::Instance;
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

impl Free {
    const NONE: Self = {
        let none = core::ptr::null_mut();
        Self { used: none, fresh: none, fresh_count: 0 }
    };
}

// SAFETY: the list is touched under the lock only.
unsafe impl Sync for Slab {}

impl Slab {
    pub(crate) const fn new() -> Self {
        Self { lock: Lock::new(), free: UnsafeCell::new(Free::NONE) }
    }

    /// In a child of `fork`: where a thread that there is not any more was at it, blocks on it are
    /// lost. Blocks of lost threads are lost as well.
    pub(crate) fn forked(&self) {
        if self.lock.free_of_lost() {
            let _held = self.lock.hold();
            // SAFETY: the lock is held, so nobody has a reference; what lies there is not read.
            unsafe { self.free.get().write(Free::NONE) };
        }
    }

    /// A block that a thread had, or else a new one of zeroed memory. `None` where there is no memory.
    pub(crate) fn take(&self, instance: &'static Instance<'static>) -> Option<NonNull<Thread>> {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, so this is the only reference.
        let free = unsafe { &mut *self.free.get() };
        if let Some(block) = NonNull::new(free.used) {
            // SAFETY: blocks in the list hold a value, and no thread has them.
            free.used = unsafe { block.as_ref() }.own.link;
            return Some(block);
        }
        if free.fresh_count == 0 {
            free.fresh = memory::zeroed(BLOCKS * size_of::<Thread>())?.cast::<Thread>().as_ptr();
            free.fresh_count = BLOCKS;
        }
        let block = NonNull::new(free.fresh)?;
        free.fresh = free.fresh.wrapping_add(1);
        free.fresh_count -= 1;
        // SAFETY: inside of what was mapped, zeroed, aligned since a page is, and nobody's.
        unsafe { Thread::begin(block, instance) };
        Some(block)
    }

    /// Takes back what [`Self::take`] gave; its thread must not use it any more.
    pub(crate) fn put(&self, block: NonNull<Thread>) {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, so this is the only reference.
        let free = unsafe { &mut *self.free.get() };
        let mut block = block;
        // SAFETY: the block is one of this slab's, holds a value, and is nobody else's any more.
        unsafe { block.as_mut() }.own.link = free.used;
        free.used = block.as_ptr();
    }
}
