//! The allocator underneath: what is not placed goes to glibc by the names that it exports for
//! this very purpose (`__libc_malloc` and its like), so that no symbol has to be looked up and
//! nothing can recurse into the replacement.
//!
//! `malloc_usable_size` and `aligned_alloc` have no such twin and are looked up once, in libc
//! itself. On a system without glibc the ordinary names serve: there this crate can be a Rust
//! program's allocator, but not a replacement of `malloc`.

use core::ffi::c_void;
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

#[cfg(target_env = "gnu")]
mod names {
    use core::ffi::c_void;
    unsafe extern "C" {
        #[link_name = "__libc_malloc"]
        pub(super) fn malloc(size: usize) -> *mut c_void;
        #[link_name = "__libc_calloc"]
        pub(super) fn calloc(count: usize, size: usize) -> *mut c_void;
        #[link_name = "__libc_realloc"]
        pub(super) fn realloc(old: *mut c_void, size: usize) -> *mut c_void;
        #[link_name = "__libc_free"]
        pub(super) fn free(old: *mut c_void);
        #[link_name = "__libc_memalign"]
        pub(super) fn memalign(align: usize, size: usize) -> *mut c_void;
        #[link_name = "__libc_valloc"]
        pub(super) fn valloc(size: usize) -> *mut c_void;
        #[link_name = "__libc_pvalloc"]
        pub(super) fn pvalloc(size: usize) -> *mut c_void;
    }
}

#[cfg(not(target_env = "gnu"))]
mod names {
    use core::ffi::c_void;
    use isochrone_os::pages::kernel_page_bytes;
    pub(super) use libc::{calloc, free, malloc, memalign, realloc};

    pub(super) unsafe fn valloc(size: usize) -> *mut c_void {
        // SAFETY: any size is allowed.
        unsafe { memalign(kernel_page_bytes(), size) }
    }

    pub(super) unsafe fn pvalloc(size: usize) -> *mut c_void {
        match size.max(1).checked_next_multiple_of(kernel_page_bytes()) {
            // SAFETY: any size is allowed.
            Some(whole) => unsafe { memalign(kernel_page_bytes(), whole) },
            None => core::ptr::null_mut(),
        }
    }
}

type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
type AlignedAlloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;

static USABLE_SIZE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static ALIGNED_ALLOC: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks up what has no name of its own. Once, from a constructor: the dynamic linker may allocate
/// meanwhile, which is delegated. What is not found stays null.
pub(crate) fn resolve() {
    // SAFETY: a constant name; NOLOAD only asks for what is loaded already.
    let libc = unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    let library = if libc.is_null() { libc::RTLD_NEXT } else { libc };
    for (name, place) in [(c"malloc_usable_size", &USABLE_SIZE), (c"aligned_alloc", &ALIGNED_ALLOC)]
    {
        // SAFETY: a library that is never unloaded and a constant name.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        place.store(found, Ordering::Release);
    }
}

/// Bytes of the object by which glibc learns to keep memory.
const KEPT_BYTES: usize = 4 << 20;

/// Has glibc keep up to twice [`KEPT_BYTES`] at the end of its heaps. It gives back what is free
/// there beyond 128 KiB, which small objects mostly prevent by lying in between; where these are
/// placed elsewhere, heaps were given back and faulted in again all the time (`mstress` of
/// mimalloc-bench: 17 700 page faults, 3050 without the library). Its threshold is twice the size
/// of the largest object freed that had a mapping of its own (mallopt(3), `M_MMAP_THRESHOLD`,
/// "dynamic"); such an object, of which nothing is touched, costs two system calls.
pub(crate) fn keep_memory() {
    let object = malloc(KEPT_BYTES);
    // SAFETY: null, or just allocated and known to nobody else.
    unsafe { free(core::hint::black_box(object)) };
}

/// `malloc` of glibc.
#[inline]
pub(crate) fn malloc(size: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    unsafe { names::malloc(size) }
}

/// `calloc` of glibc.
#[inline]
pub(crate) fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any sizes are allowed.
    unsafe { names::calloc(count, size) }
}

/// `memalign` of glibc.
#[inline]
pub(crate) fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: any size and alignment are allowed; nonsense gives null.
    unsafe { names::memalign(align, size) }
}

/// `valloc` of glibc.
pub(crate) fn valloc(size: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    unsafe { names::valloc(size) }
}

/// `pvalloc` of glibc.
pub(crate) fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    unsafe { names::pvalloc(size) }
}

/// `aligned_alloc` of this very glibc: versions differ in what they refuse.
pub(crate) fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    let found = ALIGNED_ALLOC.load(Ordering::Acquire);
    if found.is_null() {
        return memalign(align, size);
    }
    // SAFETY: the symbol has had this signature since C11.
    let function = unsafe { transmute::<*mut c_void, AlignedAlloc>(found) };
    // SAFETY: any size and alignment are allowed; nonsense gives null.
    unsafe { function(align, size) }
}

/// `realloc` of glibc.
///
/// # Safety
/// `old` is null or came from glibc and is not free.
#[inline]
pub(crate) unsafe fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller vouches for `old`.
    unsafe { names::realloc(old, size) }
}

/// `free` of glibc, which keeps `errno` (since 2.33).
///
/// # Safety
/// `old` is null or came from glibc and is not free.
#[inline]
pub(crate) unsafe fn free(old: *mut c_void) {
    // SAFETY: the caller vouches for `old`.
    unsafe { names::free(old) }
}

/// `malloc_usable_size` of glibc; 0 where the C library has no such function.
///
/// # Safety
/// `old` is null or came from glibc and is not free.
pub(crate) unsafe fn usable_size(old: *mut c_void) -> usize {
    if USABLE_SIZE.load(Ordering::Acquire).is_null() {
        resolve();
    }
    let found = USABLE_SIZE.load(Ordering::Acquire);
    if found.is_null() || old.is_null() {
        return 0;
    }
    // SAFETY: the symbol has had this signature since glibc 2.0.
    let function = unsafe { transmute::<*mut c_void, UsableSize>(found) };
    // SAFETY: the caller vouches for `old`.
    unsafe { function(old) }
}
