//! The malloc family: large objects are mappings of the window, all others are the next allocator's.

use core::ffi::{c_int, c_void};
use core::ptr;

use isochrone_malloc::next;
use isochrone_os::signal::say;
use isochrone_tier::live::guest::Guest;
use isochrone_units::PAGE_BYTES;

use super::kernel::refuse;
use super::mappings::unmap_raw;
use super::process::{here, is_large, wanted};

const BOTH: u32 = 3;
const WRONG: &[u8] = b"isochrone: free(): invalid pointer\n";

/// A large object, if there is room for it.
fn placed(bytes: usize, align: usize) -> Option<*mut c_void> {
    let guest = wanted()?;
    let address = guest.map(bytes, align, BOTH)?;
    guest.set_object(address, bytes);
    Some(ptr::with_exposed_provenance_mut(address))
}

/// The pager, for an object of its window.
#[inline]
fn owner(object: *mut c_void) -> Option<&'static Guest> {
    let guest = here().filter(|guest| guest.holds(object.addr()))?;
    // Where the program mapped something else, and in a child, the next allocator may have got the addresses.
    let is_elsewhere = || guest.is_alone() || guest.is_foreign(object.addr());
    (guest.object(object.addr()) > 0 || !is_elsewhere()).then_some(guest)
}

/// Bytes of an object of the window; ends the process where there is none.
fn bytes_of(guest: &Guest, object: *mut c_void) -> usize {
    let bytes = guest.object(object.addr());
    if bytes == 0 || !object.addr().is_multiple_of(PAGE_BYTES) {
        say(WRONG);
        std::process::abort();
    }
    bytes
}

fn give_back(guest: &Guest, object: *mut c_void) {
    let bytes = bytes_of(guest, object);
    let address = object.expose_provenance();
    guest.set_object(address, 0);
    if guest.is_alone() {
        unmap_raw(address, bytes);
    } else {
        // Where a handler refuses, the object stays mapped and is nobody's.
        let _ = guest.unmap(&(address..address + bytes));
    }
}

/// `malloc(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let large = if is_large(size) { placed(size, 1) } else { None };
    large.unwrap_or_else(|| next::malloc(size))
}

/// `calloc(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let bytes = count.checked_mul(size).filter(|bytes| is_large(*bytes));
    bytes.and_then(|bytes| placed(bytes, 1)).unwrap_or_else(|| next::calloc(count, size))
}

/// `free(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(old: *mut c_void) {
    match owner(old) {
        Some(guest) => give_back(guest, old),
        // SAFETY: the caller's contract is the same.
        None => unsafe { next::free(old) },
    }
}

/// `realloc(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if let Some(guest) = owner(old) {
        return resized(guest, old, size);
    }
    let large = if is_large(size) && !old.is_null() { placed(size, 1) } else { None };
    let Some(new) = large else {
        // SAFETY: the caller's contract is the same.
        return unsafe { next::realloc(old, size) };
    };
    // SAFETY: the caller's contract is the same.
    let bytes = unsafe { next::usable_size(old) };
    // SAFETY: `old` has so many bytes, and `new` has `size`, elsewhere.
    unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), bytes.min(size)) };
    // SAFETY: as above; nobody uses `old` any more.
    unsafe { next::free(old) };
    new
}

/// An object of the window in another size.
fn resized(guest: &'static Guest, old: *mut c_void, size: usize) -> *mut c_void {
    let (address, bytes) = (old.expose_provenance(), bytes_of(guest, old));
    let range = address..address + bytes;
    if size == 0 {
        give_back(guest, old);
        return ptr::null_mut();
    }
    let kept = size.checked_next_multiple_of(PAGE_BYTES);
    if let Some(kept) = kept.filter(|_| !guest.is_alone() && is_large(size)) {
        if kept <= bytes {
            // Where a handler refuses, the end stays mapped and is nobody's.
            let _ = guest.unmap(&(address + kept..range.end));
            guest.set_object(address, kept);
            return old;
        }
        if guest.grow(&range, size) {
            guest.set_object(address, size);
            return old;
        }
        guest.set_object(address, 0);
        // SAFETY: an object of the caller's, which is readable and writable, and which nobody else uses.
        if let Some(new) = unsafe { guest.relocate(&range, size) } {
            guest.set_object(new, size);
            return ptr::with_exposed_provenance_mut(new);
        }
        guest.set_object(address, bytes);
    }
    let new = next::malloc(size);
    if !new.is_null() {
        // SAFETY: both have so many bytes, and are apart.
        unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), bytes.min(size)) };
        give_back(guest, old);
    }
    new
}

/// `memalign(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    aligned(align, size).unwrap_or_else(|| next::memalign(align, size))
}

fn aligned(align: usize, size: usize) -> Option<*mut c_void> {
    if is_large(size) && align.is_power_of_two() { placed(size, align) } else { None }
}

/// `aligned_alloc(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    aligned(align, size).unwrap_or_else(|| next::aligned_alloc(align, size))
}

/// `posix_memalign(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let new = aligned(align, size).unwrap_or_else(|| next::memalign(align, size));
    if new.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller gives a place for it.
    unsafe { out.write(new) };
    0
}

/// `valloc(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    aligned(PAGE_BYTES, size).unwrap_or_else(|| next::valloc(size))
}

/// `pvalloc(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    aligned(PAGE_BYTES, size).unwrap_or_else(|| next::pvalloc(size))
}

/// `malloc_usable_size(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(old: *mut c_void) -> usize {
    match owner(old) {
        Some(guest) => bytes_of(guest, old),
        None if old.is_null() => 0,
        // SAFETY: the caller's contract is the same.
        None => unsafe { next::usable_size(old) },
    }
}

/// `reallocarray(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's contract is the same.
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => refuse(libc::ENOMEM, ptr::null_mut()),
    }
}
