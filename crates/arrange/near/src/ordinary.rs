//! The allocator that the program has without us, whichever that is.

use std::alloc::Layout;
use std::ptr;

/// What `malloc` aligns to on every machine that this runs on.
const ALIGN: usize = 16;

/// Memory of the ordinary allocator, or null.
pub(crate) fn alloc(layout: Layout) -> *mut u8 {
    if layout.align() <= ALIGN {
        // SAFETY: any size may be asked for.
        return unsafe { libc::malloc(layout.size()) }.cast();
    }
    let mut found = ptr::null_mut();
    // SAFETY: the alignment is a power of two and a multiple of a pointer's size; `found` has room for a pointer.
    let failed = unsafe { libc::posix_memalign(&raw mut found, layout.align(), layout.size()) };
    if failed == 0 { found.cast() } else { ptr::null_mut() }
}

/// Gives it back.
///
/// # Safety
/// `at` is null, or memory of the ordinary allocator that is not free.
pub(crate) unsafe fn free(at: *mut u8) {
    // SAFETY: the caller vouches for it.
    unsafe { libc::free(at.cast()) };
}
