//! The next allocator's functions, looked up once.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use super::lent;
use crate::entry::{Back, Entry, Free, Front, Malloc, Realloc, Two};
use crate::errno;

type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;

/// What glibc calls its own functions, for programs without a dynamic linker. (The shared library exports two of these
/// names itself; no call comes to these there, since a dynamic linker finds the ordinary names.)
mod own {
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

static MALLOC: Entry<Malloc> = Entry::of(first_malloc as *const c_void);
static CALLOC: Entry<Two> = Entry::of(first_calloc as *const c_void);
static REALLOC: Entry<Realloc> = Entry::of(first_realloc as *const c_void);
static FREE: Entry<Free> = Entry::of(first_free as *const c_void);
static MEMALIGN: Entry<Two> = Entry::of(first_memalign as *const c_void);
static ALIGNED_ALLOC: Entry<Two> = Entry::of(first_aligned_alloc as *const c_void);
static VALLOC: Entry<Malloc> = Entry::of(first_valloc as *const c_void);
static PVALLOC: Entry<Malloc> = Entry::of(first_pvalloc as *const c_void);
static USABLE_SIZE: Entry<UsableSize> = Entry::of(first_usable_size as *const c_void);

/// Those that take memory back, behind a look at whether it was lent.
static REALLOC_BEHIND: Entry<Realloc> = Entry::of(ptr::null());
static FREE_BEHIND: Entry<Free> = Entry::of(ptr::null());
static USABLE_SIZE_BEHIND: Entry<UsableSize> = Entry::of(ptr::null());

/// Somebody looks them up now.
static BUSY: AtomicBool = AtomicBool::new(false);
/// All are known.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// Looks up the next allocator. Calls meanwhile, of the dynamic linker or of other threads, get memory that is lent.
pub fn resolve() {
    if KNOWN.load(Ordering::Acquire) || BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    let look = |name: &CStr, own: *const c_void| {
        // SAFETY: a constant name; which library comes next the linker knows by who calls.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        if found.is_null() { own.cast_mut() } else { found }
    };
    let free = look(c"free", own::free as *const c_void);
    let realloc = look(c"realloc", own::realloc as *const c_void);
    let usable_size = look(c"malloc_usable_size", no_usable_size as *const c_void);
    let calloc = look(c"calloc", own::calloc as *const c_void);
    let memalign = look(c"memalign", own::memalign as *const c_void);
    let aligned_alloc = look(c"aligned_alloc", own::memalign as *const c_void);
    let valloc = look(c"valloc", own::valloc as *const c_void);
    let pvalloc = look(c"pvalloc", own::pvalloc as *const c_void);
    let malloc = look(c"malloc", own::malloc as *const c_void);
    // Who takes memory back is known before anybody gives any.
    FREE_BEHIND.set(free);
    REALLOC_BEHIND.set(realloc);
    USABLE_SIZE_BEHIND.set(usable_size);
    FREE.set(free_unless_lent as *mut c_void);
    REALLOC.set(realloc_unless_lent as *mut c_void);
    USABLE_SIZE.set(usable_size_unless_lent as *mut c_void);
    CALLOC.set(calloc);
    MEMALIGN.set(memalign);
    ALIGNED_ALLOC.set(aligned_alloc);
    VALLOC.set(valloc);
    PVALLOC.set(pvalloc);
    MALLOC.set(malloc);
    if !lent::close() {
        // Nothing that comes back can have been lent.
        FREE.set(free);
        REALLOC.set(realloc);
        USABLE_SIZE.set(usable_size);
    }
    KNOWN.store(true, Ordering::Release);
}

/// The functions that allocate, to be called without us.
pub(crate) fn found() -> Option<Front> {
    Some(Front {
        malloc: MALLOC.address(),
        calloc: CALLOC.address(),
        memalign: MEMALIGN.address(),
        aligned_alloc: ALIGNED_ALLOC.address(),
        valloc: VALLOC.address(),
        pvalloc: PVALLOC.address(),
    })
}

/// The functions that take memory back, to be called without us.
pub(crate) fn found_back() -> Option<Back> {
    Some(Back { free: FREE.address(), realloc: REALLOC.address() })
}

/// `malloc` of the next allocator.
#[inline]
pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: a function of this signature. Any size is allowed.
    unsafe { (MALLOC.call())(size) }
}

/// `calloc` of the next allocator.
#[inline]
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: a function of this signature. Any sizes are allowed.
    unsafe { (CALLOC.call())(count, size) }
}

/// `memalign` of the next allocator.
#[inline]
pub fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: a function of this signature. Any size and alignment are allowed; nonsense gives null.
    unsafe { (MEMALIGN.call())(align, size) }
}

/// `aligned_alloc` of the next allocator: they differ in what they refuse.
pub fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: as in `memalign`.
    unsafe { (ALIGNED_ALLOC.call())(align, size) }
}

/// `valloc` of the next allocator.
pub fn valloc(size: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { (VALLOC.call())(size) }
}

/// `pvalloc` of the next allocator.
pub fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { (PVALLOC.call())(size) }
}

/// `realloc` of the next allocator.
///
/// # Safety
/// `old` is null or came from it and is not free.
#[inline]
pub unsafe fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: a function of this signature; the caller vouches for `old`.
    unsafe { (REALLOC.call())(old, size) }
}

/// `free` of the next allocator. glibc's keeps `errno` since 2.33.
///
/// # Safety
/// `old` is null or came from it and is not free.
#[inline]
pub unsafe fn free(old: *mut c_void) {
    // SAFETY: a function of this signature; the caller vouches for `old`.
    unsafe { (FREE.call())(old) }
}

/// `malloc_usable_size` of the next allocator.
///
/// # Safety
/// `old` is null or came from it and is not free.
pub unsafe fn usable_size(old: *mut c_void) -> usize {
    // SAFETY: a function of this signature; the caller vouches for `old`.
    unsafe { (USABLE_SIZE.call())(old) }
}

/// What a function that allocates does at the first call: the one that was found, or memory that is lent while
/// somebody looks. `this` is where the entry leads until it is known.
fn first<F: Copy>(
    entry: &Entry<F>,
    this: *const c_void,
    call: impl FnOnce(F) -> *mut c_void,
    lend: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    resolve();
    let is_known = || entry.address().cast_const() != this;
    let lent = if is_known() { ptr::null_mut() } else { lend() };
    if !lent.is_null() {
        return lent;
    }
    if is_known() {
        return call(entry.call());
    }
    errno::set(libc::ENOMEM);
    ptr::null_mut()
}

unsafe extern "C" fn first_malloc(size: usize) -> *mut c_void {
    let this = first_malloc as *const c_void;
    // SAFETY: the function that was found, with what it was called with.
    first(&MALLOC, this, |found| unsafe { found(size) }, || lent::lend(0, size))
}

unsafe extern "C" fn first_calloc(count: usize, size: usize) -> *mut c_void {
    let this = first_calloc as *const c_void;
    // SAFETY: the function that was found, with what it was called with.
    first(
        &CALLOC,
        this,
        |found| unsafe { found(count, size) },
        || count.checked_mul(size).map_or(ptr::null_mut(), |bytes| lent::lend(0, bytes)),
    )
}

unsafe extern "C" fn first_memalign(align: usize, size: usize) -> *mut c_void {
    let this = first_memalign as *const c_void;
    // SAFETY: the function that was found, with what it was called with.
    first(&MEMALIGN, this, |found| unsafe { found(align, size) }, || lent::lend(align, size))
}

unsafe extern "C" fn first_aligned_alloc(align: usize, size: usize) -> *mut c_void {
    let this = first_aligned_alloc as *const c_void;
    // SAFETY: the function that was found, with what it was called with.
    first(&ALIGNED_ALLOC, this, |found| unsafe { found(align, size) }, || lent::lend(align, size))
}

// Whole pages are not lent.
unsafe extern "C" fn first_valloc(size: usize) -> *mut c_void {
    let this = first_valloc as *const c_void;
    // SAFETY: the function that was found, with what it was called with.
    first(&VALLOC, this, |found| unsafe { found(size) }, ptr::null_mut)
}

unsafe extern "C" fn first_pvalloc(size: usize) -> *mut c_void {
    let this = first_pvalloc as *const c_void;
    // SAFETY: the function that was found, with what it was called with.
    first(&PVALLOC, this, |found| unsafe { found(size) }, ptr::null_mut)
}

unsafe extern "C" fn first_free(old: *mut c_void) {
    resolve();
    // SAFETY: the caller's contract is the same.
    unsafe { free_unless_lent(old) }
}

unsafe extern "C" fn first_realloc(old: *mut c_void, size: usize) -> *mut c_void {
    resolve();
    // SAFETY: the caller's contract is the same.
    unsafe { realloc_unless_lent(old, size) }
}

unsafe extern "C" fn first_usable_size(old: *mut c_void) -> usize {
    resolve();
    // SAFETY: the caller's contract is the same.
    unsafe { usable_size_unless_lent(old) }
}

// Until the allocator is known nobody has anything but what is lent, so there is nothing to do for anything else.

unsafe extern "C" fn free_unless_lent(old: *mut c_void) {
    if let Some(free) = FREE_BEHIND.known().filter(|_| lent::bytes_from(old).is_none()) {
        // SAFETY: the caller vouches for `old`, and it was not lent.
        unsafe { free(old) }
    }
}

unsafe extern "C" fn realloc_unless_lent(old: *mut c_void, size: usize) -> *mut c_void {
    let left = lent::bytes_from(old);
    if let Some(realloc) = REALLOC_BEHIND.known().filter(|_| left.is_none()) {
        // SAFETY: as in `free_unless_lent`.
        return unsafe { realloc(old, size) };
    }
    let new = malloc(size);
    if let Some(left) = left.filter(|_| !new.is_null()) {
        // SAFETY: `left` bytes follow `old` in the pages that are lent, some of them perhaps others', whose values are
        // of no use; `new` has `size`, and is no part of what `old` was lent.
        unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), size.min(left)) };
    }
    new
}

unsafe extern "C" fn usable_size_unless_lent(old: *mut c_void) -> usize {
    let usable_size = USABLE_SIZE_BEHIND.known().filter(|_| lent::bytes_from(old).is_none());
    // SAFETY: as in `free_unless_lent`.
    usable_size.map_or(0, |usable_size| unsafe { usable_size(old) })
}

/// Of an allocator that cannot tell.
unsafe extern "C" fn no_usable_size(_old: *mut c_void) -> usize {
    0
}
