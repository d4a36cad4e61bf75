//! The calls by which a program maps memory, and changes what it mapped. What lies in the window goes to the pager,
//! piece by piece, everything else to the kernel as it was called.

use core::ffi::{c_int, c_uint, c_void};
use core::ops::Range;
use core::ptr;

use isochrone_tier::live::guest::{Ask, Guest, Whose};
use isochrone_units::PAGE_BYTES;

use super::kernel::{done, errno, place, refuse, word, word_of_offset};
use super::process::{here, is_large, is_told, wanted};

/// What a mapping that is paged may be: private, without a file, and nothing else that matters.
const PAGED: c_int =
    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_POPULATE;
const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
/// include/uapi/asm-generic/mman-common.h, since Linux 5.18. Of locked pages we refuse it, as older kernels do.
const MADV_DONTNEED_LOCKED: c_int = 24;
/// The same, since Linux 6.13.
const MADV_GUARD_INSTALL: c_int = 102;

fn tiered() -> Option<&'static Guest> {
    here().filter(|guest| !guest.is_alone())
}

/// Unmaps, without us.
pub(super) fn unmap_raw(address: usize, bytes: usize) -> c_int {
    // SAFETY: the caller's contract is that of `munmap`.
    unsafe { done(libc::SYS_munmap, &[address, bytes]) }
}

/// What is done to a range of the program's.
#[derive(Clone, Copy)]
enum Deed {
    Unmap,
    Ask(Ask),
}

/// What to do besides what the pager did to its pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernel {
    /// The kernel is told as well.
    Too,
    /// The kernel is told of what is not the pager's alone.
    Elsewhere,
}

/// Does it to a range: by the pager where it has pages, by the kernel elsewhere.
fn over(
    range: &Range<usize>,
    deed: Deed,
    kernel: Kernel,
    raw: &dyn Fn(usize, usize) -> c_int,
) -> c_int {
    let whole = || raw(range.start, range.len());
    let Some(guest) = tiered() else { return whole() };
    let part = guest.part(range.start, range.len());
    if part.is_empty() || !range.start.is_multiple_of(PAGE_BYTES) {
        return whole();
    }
    let sides = [range.start..part.start, part.end..range.end];
    for side in sides.into_iter().filter(|side| !side.is_empty()) {
        if raw(side.start, side.len()) != 0 {
            return -1;
        }
    }
    let (mut rest, mut hole) = (part, false);
    while !rest.is_empty() {
        let (piece, whose) = guest.piece(&rest);
        rest.start = piece.end;
        let outcome = match (whose, deed) {
            (Whose::Ours, Deed::Unmap) => guest.unmap(&piece),
            (Whose::Ours, Deed::Ask(ask)) => guest.ask(&piece, ask),
            (Whose::Foreign, _) => Ok(()),
            (Whose::Free, _) => {
                hole |= !matches!(deed, Deed::Unmap);
                continue;
            }
        };
        if let Err(errno) = outcome {
            return refuse(errno, -1);
        }
        let tells = whose == Whose::Foreign || kernel == Kernel::Too;
        if tells && raw(piece.start, piece.len()) != 0 {
            return -1;
        }
    }
    // As the kernel says where something is not mapped.
    if hole { refuse(libc::ENOMEM, -1) } else { 0 }
}

fn range_of(address: *mut c_void, bytes: usize) -> Range<usize> {
    let first = address.expose_provenance();
    first..first.saturating_add(bytes)
}

/// `mmap(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let is_paged = flags & kind == kind && flags & !PAGED == 0 && access == BOTH;
    if is_paged && address.is_null() && is_large(bytes) {
        let paged = wanted().and_then(|guest| guest.map(bytes, PAGE_BYTES, BOTH.cast_unsigned()));
        if let Some(paged) = paged {
            return ptr::with_exposed_provenance_mut(paged);
        }
    }
    if flags & libc::MAP_FIXED != 0
        && let Some(guest) = tiered()
    {
        let part = guest.part(address.expose_provenance(), bytes);
        if !part.is_empty()
            && let Err(errno) = guest.give_over(&part)
        {
            return refuse(errno, libc::MAP_FAILED);
        }
    }
    let [access, flags, file] = [access, flags, file].map(word);
    let (first, offset) = (address.expose_provenance(), word_of_offset(offset));
    // SAFETY: the caller's contract is the same.
    unsafe { place(libc::SYS_mmap, &[first, bytes, access, flags, file, offset]) }
}

/// `mmap64`, which is the same here.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller's contract is the same.
    unsafe { mmap(address, bytes, access, flags, file, offset) }
}

/// `munmap(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, bytes: usize) -> c_int {
    over(&range_of(address, bytes), Deed::Unmap, Kernel::Elsewhere, &unmap_raw)
}

/// `mprotect(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, bytes: usize, access: c_int) -> c_int {
    let raw = |first: usize, bytes: usize| {
        // SAFETY: the caller's contract is the same.
        unsafe { done(libc::SYS_mprotect, &[first, bytes, word(access)]) }
    };
    let ask = Ask::Protect(access.cast_unsigned());
    if access & !7 != 0 {
        return raw(address.expose_provenance(), bytes);
    }
    over(&range_of(address, bytes), Deed::Ask(ask), Kernel::Elsewhere, &raw)
}

/// What advice means to pages of the pager, and whether the kernel is told as well.
const fn meaning(advice: c_int) -> (Ask, Kernel) {
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE | MADV_DONTNEED_LOCKED => {
            (Ask::Discard, Kernel::Elsewhere)
        }
        libc::MADV_WILLNEED => (Ask::Need, Kernel::Elsewhere),
        libc::MADV_COLD | libc::MADV_PAGEOUT => (Ask::Cold, Kernel::Elsewhere),
        // Small pages alone, each of which is this process's: whatever would join them is not done.
        libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE
        | libc::MADV_MERGEABLE
        | libc::MADV_UNMERGEABLE
        | libc::MADV_NORMAL
        | libc::MADV_RANDOM
        | libc::MADV_SEQUENTIAL => (Ask::Nothing, Kernel::Elsewhere),
        libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => (Ask::Nothing, Kernel::Too),
        MADV_GUARD_INSTALL => (Ask::Guard, Kernel::Too),
        _ => (Ask::Odd, Kernel::Too),
    }
}

/// `madvise(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    let raw = |first: usize, bytes: usize| {
        // SAFETY: the caller's contract is the same.
        unsafe { done(libc::SYS_madvise, &[first, bytes, word(advice)]) }
    };
    let (ask, kernel) = meaning(advice);
    over(&range_of(address, bytes), Deed::Ask(ask), kernel, &raw)
}

/// `posix_madvise(3)`, whose advice to give pages up does nothing, as the C library's.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    if advice == libc::MADV_DONTNEED {
        return 0;
    }
    // SAFETY: the caller's contract is the same.
    let refused = unsafe { madvise(address, bytes, advice) };
    if refused == 0 { 0 } else { errno() }
}

fn lock_pages(address: *const c_void, bytes: usize, flags: c_uint) -> c_int {
    let first = address.expose_provenance() / PAGE_BYTES * PAGE_BYTES;
    let range = first..address.expose_provenance().saturating_add(bytes);
    let raw = |first: usize, bytes: usize| {
        // SAFETY: locking changes no content.
        unsafe { done(libc::SYS_mlock2, &[first, bytes, flags as usize]) }
    };
    over(&range, Deed::Ask(Ask::Lock), Kernel::Too, &raw)
}

/// `mlock(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(address: *const c_void, bytes: usize) -> c_int {
    lock_pages(address, bytes, 0)
}

/// `mlock2(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(address: *const c_void, bytes: usize, flags: c_uint) -> c_int {
    lock_pages(address, bytes, flags)
}

/// `munlock(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munlock(address: *const c_void, bytes: usize) -> c_int {
    let first = address.expose_provenance() / PAGE_BYTES * PAGE_BYTES;
    let range = first..address.expose_provenance().saturating_add(bytes);
    let raw = |first: usize, bytes: usize| {
        // SAFETY: unlocking changes no content.
        unsafe { done(libc::SYS_munlock, &[first, bytes]) }
    };
    over(&range, Deed::Ask(Ask::Unlock), Kernel::Too, &raw)
}

/// `mlockall(2)`: not of a process whose memory is larger than what may be in fast memory.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    // Also before the first large mapping: what comes later would all be in memory at once, the window too.
    if is_told() && here().is_none_or(|guest| !guest.is_alone()) {
        return refuse(libc::ENOMEM, -1);
    }
    // SAFETY: locking changes no content.
    unsafe { done(libc::SYS_mlockall, &[word(flags)]) }
}

/// `mremap(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_bytes: usize,
    bytes: usize,
    flags: c_int,
    new_place: *mut c_void,
) -> *mut c_void {
    let whole = |bytes: usize| bytes.checked_next_multiple_of(PAGE_BYTES);
    let (Some(old_whole), Some(kept)) = (whole(old_bytes), whole(bytes)) else {
        return refuse(libc::EINVAL, libc::MAP_FAILED);
    };
    let range = range_of(old, old_whole);
    let moved = tiered().and_then(|guest| {
        let part = guest.part(range.start, range.len());
        (!part.is_empty()).then_some((guest, part))
    });
    let Some((guest, part)) = moved else {
        // SAFETY: the caller's contract is the same.
        return unsafe {
            let [first, to] = [old, new_place].map(|place| place.expose_provenance());
            place(libc::SYS_mremap, &[first, old_bytes, bytes, word(flags), to])
        };
    };
    if part != range || !range.start.is_multiple_of(PAGE_BYTES) || bytes == 0 {
        return refuse(libc::EINVAL, libc::MAP_FAILED);
    }
    match guest.piece(&range) {
        (piece, Whose::Ours) if piece == range && guest.is_plain(&range) => {}
        (_, Whose::Free) => return refuse(libc::EFAULT, libc::MAP_FAILED),
        // Several mappings at once, or one that may not be written.
        _ => return refuse(libc::ENOMEM, libc::MAP_FAILED),
    }
    if flags & !libc::MREMAP_MAYMOVE != 0 {
        // SAFETY: the caller's contract is the same.
        return unsafe { moved_to(guest, &range, bytes, flags, new_place) };
    }
    if kept <= range.len() {
        let end = range.start + kept..range.end;
        return match guest.unmap(&end) {
            Ok(()) => old,
            Err(errno) => refuse(errno, libc::MAP_FAILED),
        };
    }
    if guest.grow(&range, bytes) {
        return old;
    }
    if flags & libc::MREMAP_MAYMOVE == 0 {
        return refuse(libc::ENOMEM, libc::MAP_FAILED);
    }
    // SAFETY: the caller moves a mapping that is readable and writable, and which nobody else uses meanwhile.
    match unsafe { guest.relocate(&range, bytes) } {
        Some(new) => ptr::with_exposed_provenance_mut(new),
        None => refuse(libc::ENOMEM, libc::MAP_FAILED),
    }
}

/// To a place that the program names: from there on it is the kernel's.
///
/// # Safety
/// As of `mremap(2)`.
unsafe fn moved_to(
    guest: &Guest,
    range: &Range<usize>,
    bytes: usize,
    flags: c_int,
    new_place: *mut c_void,
) -> *mut c_void {
    let target = range_of(new_place, bytes);
    let overlaps = target.start < range.end && range.start < target.end;
    if flags != libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED || overlaps {
        return refuse(libc::EINVAL, libc::MAP_FAILED);
    }
    let fixed = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the caller names the place for it.
    let new = unsafe { mmap(new_place, bytes, BOTH, fixed, -1, 0) };
    if new == libc::MAP_FAILED {
        return new;
    }
    let old: *const u8 = ptr::with_exposed_provenance(range.start);
    // SAFETY: both are mapped, readable and writable, and apart.
    unsafe { ptr::copy_nonoverlapping(old, new.cast::<u8>(), range.len().min(bytes)) };
    match guest.unmap(range) {
        Ok(()) => new,
        Err(errno) => refuse(errno, libc::MAP_FAILED),
    }
}
