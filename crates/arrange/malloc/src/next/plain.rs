//! The ordinary names, where the C library is another one than glibc.

use core::ffi::c_void;
use core::ptr;
use isochrone_os::pages::kernel_page_bytes;

/// Nothing has to be looked up.
pub fn resolve() {}

/// None of them has the signature of its name.
pub(crate) fn found() -> Option<crate::entry::Front> {
    None
}

/// None of those that take memory back, either.
pub(crate) fn found_back() -> Option<crate::entry::Back> {
    None
}

/// `malloc` of the C library.
#[inline]
pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    unsafe { libc::malloc(size) }
}

/// `calloc` of the C library.
#[inline]
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any sizes are allowed.
    unsafe { libc::calloc(count, size) }
}

/// `memalign` of the C library.
#[inline]
pub fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: any size and alignment are allowed; nonsense gives null.
    unsafe { libc::memalign(align, size) }
}

/// `aligned_alloc` by `memalign`, which takes what it takes.
pub fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    memalign(align, size)
}

/// `valloc` by `memalign`.
pub fn valloc(size: usize) -> *mut c_void {
    memalign(kernel_page_bytes(), size)
}

/// `pvalloc` by `memalign`.
pub fn pvalloc(size: usize) -> *mut c_void {
    let page = kernel_page_bytes();
    size.max(1)
        .checked_next_multiple_of(page)
        .map_or(ptr::null_mut(), |whole| memalign(page, whole))
}

/// `realloc` of the C library.
///
/// # Safety
/// `old` is null or came from it and is not free.
#[inline]
pub unsafe fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller vouches for `old`.
    unsafe { libc::realloc(old, size) }
}

/// `free` of the C library.
///
/// # Safety
/// `old` is null or came from it and is not free.
#[inline]
pub unsafe fn free(old: *mut c_void) {
    // SAFETY: the caller vouches for `old`.
    unsafe { libc::free(old) }
}

/// 0: not every C library can tell how long an object is.
///
/// # Safety
/// None is needed; the signature is that of the other implementation.
pub unsafe fn usable_size(_old: *mut c_void) -> usize {
    0
}
