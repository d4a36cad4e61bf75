//! What programs call to allocate and to free: the functions that place, or the next allocator's own.
//!
//! As long as nothing is to be placed, and from when nothing is placed any more, a call that allocates is one jump to
//! the next allocator: nothing is looked at and nothing is counted. So is one that frees as long as nothing was ever
//! placed. It allocates nothing itself.

use crate::entry::{Back, Entry, Free, Front, Malloc, Realloc, Two};
use crate::next;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Where `malloc` leads.
pub static MALLOC: Entry<Malloc> = Entry::of(next_malloc as *const c_void);
/// Where `calloc` leads.
pub static CALLOC: Entry<Two> = Entry::of(next_calloc as *const c_void);
/// Where `memalign` leads.
pub static MEMALIGN: Entry<Two> = Entry::of(next_memalign as *const c_void);
/// Where `aligned_alloc` leads.
pub static ALIGNED_ALLOC: Entry<Two> = Entry::of(next_aligned_alloc as *const c_void);
/// Where `valloc` leads.
pub static VALLOC: Entry<Malloc> = Entry::of(next_valloc as *const c_void);
/// Where `pvalloc` leads.
pub static PVALLOC: Entry<Malloc> = Entry::of(next_pvalloc as *const c_void);
/// Where `realloc` leads.
pub static REALLOC: Entry<Realloc> = Entry::of(next_realloc as *const c_void);
/// Where `free` and its like lead.
pub static FREE: Entry<Free> = Entry::of(next_free as *const c_void);

/// Where calls lead once pages are learnt: `malloc`, which only counts before that, and all others before that too.
static LATER: [AtomicPtr<c_void>; 6] = [const { AtomicPtr::new(ptr::null_mut()) }; 6];
/// What counts.
static COUNTING: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Where these lead once something may be placed.
static REALLOC_LATER: Entry<Realloc> = Entry::of(next_realloc as *const c_void);
static FREE_LATER: Entry<Free> = Entry::of(next_free as *const c_void);

/// Calls lead to these functions from now on.
pub(crate) fn lead_to(front: &Front) {
    MALLOC.set(front.malloc);
    CALLOC.set(front.calloc);
    MEMALIGN.set(front.memalign);
    ALIGNED_ALLOC.set(front.aligned_alloc);
    VALLOC.set(front.valloc);
    PVALLOC.set(front.pvalloc);
}

/// All calls lead to these functions from now on, those that take memory back as well.
pub(crate) fn lead_all_to(front: &Front, back: &Back) {
    // Who is followed is there before anybody frees it.
    FREE.set(back.free);
    REALLOC.set(back.realloc);
    lead_to(front);
}

/// Calls lead to these functions from now on, but for `malloc`, which only counts by `counting` until something is to
/// be learnt or placed.
pub(crate) fn lead_to_counting(counting: *mut c_void, later: &Front) {
    COUNTING.store(counting, Ordering::Relaxed);
    let Front { malloc, calloc, memalign, aligned_alloc, valloc, pvalloc } = *later;
    let all = [malloc, calloc, memalign, aligned_alloc, valloc, pvalloc];
    LATER.iter().zip(all).for_each(|(kept, function)| kept.store(function, Ordering::Relaxed));
    lead_to(&Front { malloc: counting, ..*later });
}

/// Counting alone is over.
pub(crate) fn lead_from_counting() {
    MALLOC.set(LATER[0].load(Ordering::Relaxed));
}

/// Objects are counted once more, in a child of `fork` whose parent left everything to the next allocator.
pub(crate) fn lead_to_counting_again() {
    let [_, calloc, memalign, aligned_alloc, valloc, pvalloc] =
        LATER.each_ref().map(|kept| kept.load(Ordering::Relaxed));
    let malloc = COUNTING.load(Ordering::Relaxed);
    lead_to(&Front { malloc, calloc, memalign, aligned_alloc, valloc, pvalloc });
    #[cfg(target_env = "gnu")]
    crate::links::lead_here();
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

/// Calls go past this library from now on, where a program's own words can be changed; those that take memory back
/// too, where nothing was placed.
pub(crate) fn lead_past(nothing_placed: bool) {
    #[cfg(target_env = "gnu")]
    if let (Some(front), Some(back)) = (next::found(), next::found_back()) {
        crate::links::lead_past(&front, Some(&back).filter(|_| nothing_placed));
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = nothing_placed;
}

/// Frees lead to `later` once something may be placed.
pub(crate) fn lead_back_later(later: &Back) {
    FREE_LATER.set(later.free);
    REALLOC_LATER.set(later.realloc);
}

/// Frees lead to the next allocator from now on: nothing was ever placed.
pub(crate) fn lead_back_on() {
    if let Some(found) = next::found_back() {
        FREE.set(found.free);
        REALLOC.set(found.realloc);
    }
}

/// Pages are learnt from now on: who changes the size of an object learns as well as who asks for one.
pub(crate) fn lead_realloc_back() {
    REALLOC.set(REALLOC_LATER.address());
}

/// Something may be placed from now on, and for good.
pub(crate) fn lead_back() {
    FREE.set(FREE_LATER.address());
    REALLOC.set(REALLOC_LATER.address());
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

/// `realloc(3)`.
///
/// # Safety
/// `old` is null, or came from this family and is not free.
#[inline(always)]
pub(crate) unsafe fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: a function of this signature; the caller vouches for `old`.
    unsafe { (REALLOC.call())(old, size) }
}

/// `free(3)`.
///
/// # Safety
/// `old` is null, or came from this family and is not free.
#[inline(always)]
pub(crate) unsafe fn free(old: *mut c_void) {
    // SAFETY: a function of this signature; the caller vouches for `old`.
    unsafe { (FREE.call())(old) }
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

unsafe extern "C" fn next_realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the same.
    unsafe { next::realloc(old, size) }
}

unsafe extern "C" fn next_free(old: *mut c_void) {
    // SAFETY: the caller's contract is the same.
    unsafe { next::free(old) }
}
