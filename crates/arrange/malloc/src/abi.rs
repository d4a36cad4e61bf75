//! The malloc family under ordinary names, with the semantics of glibc to the letter: what comes
//! back for size zero, for overflow, for nonsense alignments, and in `errno`.
//!
//! Objects of up to 256 bytes are placed; all others, and all that cannot be placed, go to glibc,
//! which then sets `errno` itself. Whose a pointer is, its address says. A free of what the program does
//! not have ends it with a line, as glibc does. The shared library of
//! `isochrone-preload` exports these functions under the names that programs call.

use crate::entry::{Back, Front};
use crate::errno::{self, Kept};
use crate::instance::process::instance;
use crate::life;
use crate::misuse::{freed_wrongly, reallocated_wrongly};
use crate::objects::{
    AtHand, count_at_hand, count_left, count_on, keep, keep_any, learn_in_time, place,
    place_at_hand, release,
};
use crate::process::{ARENA, PROCESS};
use crate::report::Reason;
use crate::{front, next};
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use isochrone_alloc::{SizeClass, Slot};

/// Tells the process what to do, by the record at `path`. Once, before it has other threads.
/// Without a readable record, and where system calls are filtered in another way than for who wrote
/// it, the process stays transparent: every call goes to the next allocator. Later calls do nothing: a second
/// arena would make pointers of the first one the next allocator's.
pub fn begin(path: Option<&CStr>) {
    let placing = Front {
        malloc: place_malloc as *mut c_void,
        calloc: place_calloc as *mut c_void,
        memalign: place_memalign as *mut c_void,
        aligned_alloc: place_aligned_alloc as *mut c_void,
        valloc: place_valloc as *mut c_void,
        pvalloc: place_pvalloc as *mut c_void,
    };
    let taking_back =
        Back { free: place_free as *mut c_void, realloc: place_realloc as *mut c_void };
    life::begin(path, count_malloc as *mut c_void, &placing, &taking_back);
}

/// `malloc(3)`.
#[inline(always)]
pub fn malloc(size: usize) -> *mut c_void {
    front::malloc(size)
}

/// `calloc(3)`.
#[inline(always)]
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    front::calloc(count, size)
}

/// While objects are only counted: nobody has a block, and what is larger is not looked at.
#[unsafe(link_section = "isochrone_called")]
unsafe extern "C" fn count_malloc(size: usize) -> *mut c_void {
    if size > SizeClass::LARGEST_BYTES || count_at_hand(size) {
        return next::malloc(size);
    }
    count_slowly(size)
}

/// Out of line, so that an object is counted without a call.
#[cold]
#[inline(never)]
#[unsafe(link_section = "isochrone_called")]
fn count_slowly(size: usize) -> *mut c_void {
    if count_on(size) {
        return PROCESS.saw(next::malloc(size));
    }
    // SAFETY: any size is allowed.
    unsafe { place_malloc(size) }
}

#[unsafe(link_section = "isochrone_called")]
unsafe extern "C" fn place_malloc(size: usize) -> *mut c_void {
    match SizeClass::of_size(size) {
        Some(class) => match place_at_hand(class, size) {
            AtHand::Slot(found) => found,
            AtHand::Counted => next::malloc(size),
            AtHand::Nothing => malloc_slowly(class, size),
        },
        None => {
            count_left(Reason::Size, size);
            next::malloc(size)
        }
    }
}

/// Out of line, so that what is at hand is handed out without a call.
#[cold]
#[inline(never)]
#[unsafe(link_section = "isochrone_called")]
fn malloc_slowly(class: SizeClass, size: usize) -> *mut c_void {
    let found = place(class, size);
    if found.is_null() { PROCESS.saw(next::malloc(size)) } else { found }
}

#[unsafe(link_section = "isochrone_called")]
unsafe extern "C" fn place_calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        return next::calloc(count, size);
    };
    match SizeClass::of_size(bytes) {
        Some(class) => {
            let found = match place_at_hand(class, bytes) {
                AtHand::Slot(found) => found,
                AtHand::Counted => return next::calloc(count, size),
                AtHand::Nothing => place(class, bytes),
            };
            if found.is_null() {
                return PROCESS.saw(next::calloc(count, size));
            }
            // SAFETY: a slot of this class was just handed out and is at least so long.
            unsafe { found.cast::<u8>().write_bytes(0, bytes) };
            found
        }
        None => {
            count_left(Reason::Size, bytes);
            next::calloc(count, size)
        }
    }
}

/// `free(3)`. Keeps `errno`.
///
/// # Safety
/// `old` is null, or came from this family and is not free.
#[inline(always)]
pub unsafe fn free(old: *mut c_void) {
    // SAFETY: the caller's contract is the same.
    unsafe { front::free(old) }
}

/// Since something was placed.
#[unsafe(link_section = "isochrone_called")]
unsafe extern "C" fn place_free(old: *mut c_void) {
    match ARENA.offset(old) {
        Some(offset) => free_slot(offset),
        // SAFETY: the caller vouches for it, and it is not of the arena.
        None => unsafe { next::free(old) },
    }
}

/// Out of line, so that what is glibc's passes without saving a register.
#[inline(never)]
#[unsafe(link_section = "isochrone_called")]
fn free_slot(offset: usize) {
    match ARENA.take_back(offset) {
        Ok((slot, class)) if keep_any(slot, class) => {}
        Ok((slot, _)) => free_by_rank(slot),
        Err(found) => freed_wrongly(found),
    }
}

/// Out of line, so that no register is saved for a rank where none is asked for.
#[inline(never)]
#[unsafe(link_section = "isochrone_called")]
fn free_by_rank(slot: Slot) {
    if !keep(slot) {
        free_slowly(slot);
    }
}

#[cold]
#[inline(never)]
fn free_slowly(slot: Slot) {
    release(slot);
}

/// `realloc(3)`.
///
/// # Safety
/// `old` is null, or came from this family and is not free.
#[inline(always)]
pub unsafe fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the same.
    unsafe { front::realloc(old, size) }
}

/// `reallocarray(3)`. The C library's calls `realloc`; that of an allocator behind this library resizes by itself, and
/// knows nothing of what is placed.
///
/// # Safety
/// `old` is null, or came from this family and is not free.
pub unsafe fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        errno::set(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: the caller's contract is the same.
    unsafe { front::realloc(old, bytes) }
}

/// Since something was placed.
unsafe extern "C" fn place_realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if old.is_null() {
        return malloc(size);
    }
    match ARENA.offset(old) {
        // SAFETY: the caller vouches for `old`, and it is of the arena.
        Some(offset) => unsafe { replace(old, offset, size) },
        None => {
            learn_in_time();
            // SAFETY: the caller vouches for `old`, and it is not of the arena.
            unsafe { next::realloc(old, size) }
        }
    }
}

/// `realloc` of a slot. It stays where it is while it fits and is not much too large. Out of line, so that what is the
/// next allocator's passes without saving a register.
///
/// # Safety
/// `old` is a slot of the arena, at `offset`, that is not free.
#[inline(never)]
unsafe fn replace(old: *mut c_void, offset: usize, size: usize) -> *mut c_void {
    let Some(class) = ARENA.held(offset) else { reallocated_wrongly() };
    if size == 0 {
        return replace_by_nothing(offset);
    }
    let bytes = class.bytes();
    if size <= bytes && (size > bytes / 4 || class == SizeClass::B16) {
        return old;
    }
    let new = malloc(size);
    if new.is_null() {
        // What shrinks may stay where it is.
        return if size <= bytes { old } else { new };
    }
    // SAFETY: both are live, at least so long, and different memory.
    unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), bytes.min(size)) };
    free_slot(offset);
    new
}

/// `realloc` of a slot to no bytes. glibc's leaves no object then (null), others' an empty one: what is returned is the
/// next allocator's answer, given for an object of its own.
#[cold]
#[inline(never)]
fn replace_by_nothing(offset: usize) -> *mut c_void {
    let errno = Kept::new();
    let other = next::malloc(1);
    free_slot(offset);
    drop(errno);
    // SAFETY: just allocated there, and known to nobody else.
    if other.is_null() { other } else { unsafe { next::realloc(other, 0) } }
}

fn slot_class(offset: usize) -> Option<SizeClass> {
    instance()?.heap().class_of(Slot::at_offset(offset)?)
}

/// Places an aligned object, or has `other` do it. Alignments are powers of two; glibc takes
/// others as the next one, and all up to 16 as none.
fn aligned(align: usize, size: usize, other: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let rounded = if align <= 16 { Some(1) } else { align.checked_next_power_of_two() };
    match rounded.and_then(|align| SizeClass::of(size, align)) {
        Some(class) => {
            let found = place(class, size);
            if found.is_null() { PROCESS.saw(other()) } else { found }
        }
        None => {
            let fits = size <= SizeClass::LARGEST_BYTES;
            count_left(if fits { Reason::Alignment } else { Reason::Size }, size);
            other()
        }
    }
}

/// `memalign(3)`.
#[inline(always)]
pub fn memalign(align: usize, size: usize) -> *mut c_void {
    front::memalign(align, size)
}

unsafe extern "C" fn place_memalign(align: usize, size: usize) -> *mut c_void {
    aligned(align, size, || next::memalign(align, size))
}

/// `aligned_alloc(3)`. Versions of glibc differ in what they refuse, so nonsense is theirs.
#[inline(always)]
pub fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    front::aligned_alloc(align, size)
}

unsafe extern "C" fn place_aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return next::aligned_alloc(align, size);
    }
    aligned(align, size, || next::aligned_alloc(align, size))
}

/// `posix_memalign(3)`. Leaves `errno` alone, and `out` too when it fails.
///
/// # Safety
/// `out` can be written.
pub unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let errno = Kept::new();
    let found = front::memalign(align, size);
    drop(errno);
    if found.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller gives a place for a pointer.
    unsafe { out.write(found) };
    0
}

/// `valloc(3)`.
#[inline(always)]
pub fn valloc(size: usize) -> *mut c_void {
    front::valloc(size)
}

unsafe extern "C" fn place_valloc(size: usize) -> *mut c_void {
    count_left(Reason::Alignment, size);
    next::valloc(size)
}

/// `pvalloc(3)`.
#[inline(always)]
pub fn pvalloc(size: usize) -> *mut c_void {
    front::pvalloc(size)
}

unsafe extern "C" fn place_pvalloc(size: usize) -> *mut c_void {
    count_left(Reason::Alignment, size);
    next::pvalloc(size)
}

/// `malloc_usable_size(3)`.
///
/// # Safety
/// `old` is null, or came from this family and is not free.
pub unsafe fn malloc_usable_size(old: *mut c_void) -> usize {
    match ARENA.offset(old) {
        Some(offset) => slot_class(offset).map_or(0, SizeClass::bytes),
        // SAFETY: the caller vouches for it, and it is not of the arena.
        None => unsafe { next::usable_size(old) },
    }
}
