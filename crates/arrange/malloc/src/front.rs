//! What programs call to allocate: the functions that place, or the next allocator's own.
//!
//! As long as nothing is to be placed, and from when nothing is placed any more, a call is one jump to the next
//! allocator: nothing is looked at and nothing is counted. It allocates nothing itself.

use crate::entry::{Entry, Front, Malloc, Two};
use crate::next;
use core::ffi::c_void;

static MALLOC: Entry<Malloc> = Entry::of(next_malloc as *const c_void);
static CALLOC: Entry<Two> = Entry::of(next_calloc as *const c_void);
static MEMALIGN: Entry<Two> = Entry::of(next_memalign as *const c_void);
static ALIGNED_ALLOC: Entry<Two> = Entry::of(next_aligned_alloc as *const c_void);
static VALLOC: Entry<Malloc> = Entry::of(next_valloc as *const c_void);
static PVALLOC: Entry<Malloc> = Entry::of(next_pvalloc as *const c_void);

/// Calls lead to these functions from now on.
pub(crate) fn lead_to(front: &Front) {
    MALLOC.set(front.malloc);
    CALLOC.set(front.calloc);
    MEMALIGN.set(front.memalign);
    ALIGNED_ALLOC.set(front.aligned_alloc);
    VALLOC.set(front.valloc);
    PVALLOC.set(front.pvalloc);
}

/// Calls lead to the next allocator from now on. Whoever is on the way to another function still gets there.
pub(crate) fn lead_on() {
    let through = Front {
        malloc: next_malloc as *mut c_void,
        calloc: next_calloc as *mut c_void,
        memalign: next_memalign as *mut c_void,
        aligned_alloc: next_aligned_alloc as *mut c_void,
        valloc: next_valloc as *mut c_void,
        pvalloc: next_pvalloc as *mut c_void,
    };
    lead_to(&next::found().unwrap_or(through));
}

/// `malloc(3)`.
#[inline(always)]
pub(crate) fn malloc(size: usize) -> *mut c_void {
    // SAFETY: a function of this signature. Any size is allowed.
    unsafe { (MALLOC.call())(size) }
}

/// `calloc(3)`.
#[inline(always)]
pub(crate) fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { (CALLOC.call())(count, size) }
}

/// `memalign(3)`.
#[inline(always)]
pub(crate) fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: a function of this signature. Any size and alignment are allowed; nonsense gives null.
    unsafe { (MEMALIGN.call())(align, size) }
}

/// `aligned_alloc(3)`.
#[inline(always)]
pub(crate) fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: as in `memalign`.
    unsafe { (ALIGNED_ALLOC.call())(align, size) }
}

/// `valloc(3)`.
#[inline(always)]
pub(crate) fn valloc(size: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { (VALLOC.call())(size) }
}

/// `pvalloc(3)`.
#[inline(always)]
pub(crate) fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { (PVALLOC.call())(size) }
}

unsafe extern "C" fn next_malloc(size: usize) -> *mut c_void {
    next::malloc(size)
}

unsafe extern "C" fn next_calloc(count: usize, size: usize) -> *mut c_void {
    next::calloc(count, size)
}

unsafe extern "C" fn next_memalign(align: usize, size: usize) -> *mut c_void {
    next::memalign(align, size)
}

unsafe extern "C" fn next_aligned_alloc(align: usize, size: usize) -> *mut c_void {
    next::aligned_alloc(align, size)
}

unsafe extern "C" fn next_valloc(size: usize) -> *mut c_void {
    next::valloc(size)
}

unsafe extern "C" fn next_pvalloc(size: usize) -> *mut c_void {
    next::pvalloc(size)
}
