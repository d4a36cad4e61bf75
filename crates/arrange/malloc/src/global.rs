//! The allocator of a Rust program: `#[global_allocator] static A: IsochroneAlloc = ...`.
//!
//! It is the same process-wide allocator that the preloaded library is, without the C names. Until
//! [`IsochroneAlloc::begin`] is called, and wherever nothing can be placed, it is the system's.

use crate::process::PROCESS;
use crate::report::Report;
use crate::{abi, life};
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::CStr;
use core::ptr;

/// Places what a Rust program allocates.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsochroneAlloc;

impl IsochroneAlloc {
    /// Tells the allocator what to do, by the configuration in the file at `path`; with `None`, or
    /// a file that is no configuration, everything goes to the system's allocator. Call it once,
    /// before there are other threads; later calls do nothing.
    pub fn begin(path: Option<&CStr>) {
        abi::begin(path);
    }

    /// Completes the report, where there is one: call it before the program ends.
    pub fn end() {
        life::end();
    }

    /// What the process has counted so far. Threads add what they did every 64 objects.
    #[must_use]
    pub fn report() -> Report {
        PROCESS.counters().snapshot()
    }
}

// SAFETY: memory comes from slots of the arena, each handed out to one owner at a time, or from
// glibc; both are aligned as asked, and `dealloc` gives each back to where it came from.
unsafe impl GlobalAlloc for IsochroneAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let found = if layout.align() <= 16 {
            abi::malloc(layout.size())
        } else {
            abi::memalign(layout.align(), layout.size())
        };
        found.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            return abi::calloc(1, layout.size()).cast();
        }
        let found = abi::memalign(layout.align(), layout.size()).cast::<u8>();
        if !found.is_null() {
            // SAFETY: so many bytes were just allocated.
            unsafe { found.write_bytes(0, layout.size()) };
        }
        found
    }

    #[inline]
    unsafe fn dealloc(&self, old: *mut u8, _: Layout) {
        // SAFETY: the caller vouches that `old` is of this allocator and not free.
        unsafe { abi::free(old.cast()) };
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= 16 {
            // SAFETY: as above; the size is not zero, by the trait's contract.
            return unsafe { abi::realloc(old.cast(), size) }.cast();
        }
        let new = abi::memalign(layout.align(), size).cast::<u8>();
        if !new.is_null() {
            // SAFETY: both are live, at least so long, and different memory.
            unsafe { ptr::copy_nonoverlapping(old, new, layout.size().min(size)) };
            // SAFETY: as above.
            unsafe { abi::free(old.cast()) };
        }
        new
    }
}
