//! Where blocks of threads come from: mapped memory, cut up, and kept for the next thread when one
//! ends. A block is never given back to the system, since there are as many as there were threads
//! at once.

use crate::lock::Lock;
use crate::memory;
use crate::thread::Thread;
use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

// A free block begins with the link to the next one.
const _: () = assert!(size_of::<Thread>() >= size_of::<*mut Thread>());

/// Blocks mapped at a time.
const BLOCKS: usize = 16;

/// Blocks that no thread has.
#[derive(Debug)]
pub(crate) struct Slab {
    pub(crate) lock: Lock,
    free: UnsafeCell<*mut Thread>,
}

// SAFETY: the list is touched under the lock only.
unsafe impl Sync for Slab {}

impl Slab {
    pub(crate) const fn new() -> Self {
        Self { lock: Lock::new(), free: UnsafeCell::new(ptr::null_mut()) }
    }

    /// A block, holding `thread`. `None` where there is no memory.
    pub(crate) fn take(&self, thread: Thread) -> Option<NonNull<Thread>> {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, so this is the only reference.
        let free = unsafe { &mut *self.free.get() };
        if free.is_null() {
            fill(free)?;
        }
        let block = NonNull::new(*free)?;
        // SAFETY: blocks in the list are mapped, no thread has them, and they begin with a link.
        *free = unsafe { block.cast::<*mut Thread>().read() };
        // SAFETY: the block was just taken from the list, and is aligned and large enough.
        unsafe { block.write(thread) };
        Some(block)
    }

    /// Takes back what [`Self::take`] gave; its thread must not use it any more.
    pub(crate) fn put(&self, block: *mut Thread) {
        let _held = self.lock.hold();
        // SAFETY: the lock is held, so this is the only reference.
        let free = unsafe { &mut *self.free.get() };
        // SAFETY: the block is one of this slab's, and nobody else's any more.
        unsafe { block.cast::<*mut Thread>().write(*free) };
        *free = block;
    }
}

/// Maps blocks and links them.
fn fill(free: &mut *mut Thread) -> Option<()> {
    let first = memory::zeroed(BLOCKS * size_of::<Thread>())?.cast::<Thread>().as_ptr();
    for index in 0..BLOCKS {
        let block = first.wrapping_add(index);
        // SAFETY: inside of what was just mapped, aligned since a page is.
        unsafe { block.cast::<*mut Thread>().write(*free) };
        *free = block;
    }
    Some(())
}
