//! Memory of our own. We are called from inside of the program's allocator, which holds its locks then, so nothing here
//! may ask it for memory. What is needed is made once, when the pager begins, and lives as long as the process.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use super::kernel::memory;

/// The kernel is asked for so many bytes at once, or for one object that is larger.
const CHUNK_BYTES: usize = 256 << 10;

#[global_allocator]
static HEAP: Heap =
    Heap { busy: AtomicBool::new(false), free: UnsafeCell::new(Free { at: 0, end: 0 }) };

struct Heap {
    busy: AtomicBool,
    free: UnsafeCell<Free>,
}

#[derive(Clone, Copy)]
struct Free {
    at: usize,
    end: usize,
}

// SAFETY: `free` is touched by who has set `busy` alone.
unsafe impl Sync for Heap {}

impl Heap {
    fn with<T>(&self, act: impl FnOnce(&mut Free) -> T) -> T {
        while self.busy.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: nobody else has it while `busy` is set by this thread.
        let result = act(unsafe { &mut *self.free.get() });
        self.busy.store(false, Ordering::Release);
        result
    }
}

// SAFETY: objects are cut one behind the other from memory that is never given back, so none overlaps another.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let address = self.with(|free| {
            let cut = |free: &Free| {
                let at = free.at.checked_next_multiple_of(layout.align())?;
                let end = at.checked_add(layout.size())?;
                (free.at > 0 && end <= free.end).then_some((at, end))
            };
            if cut(free).is_none() {
                let bytes = (layout.size() + layout.align()).next_multiple_of(CHUNK_BYTES);
                let at = memory(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
                *free = Free { at, end: at + bytes };
            }
            let (at, end) = cut(free)?;
            free.at = end;
            Some(at)
        });
        address.map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
