//! New ranges of addresses at a boundary of huge pages.

use crate::error::OsError;
use core::ptr::{self, NonNull};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

/// Bytes in a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Maps `bytes` of anonymous memory, a multiple of a page, at a 2 MiB boundary: one huge page too much first,
/// then what sticks out is given back. `what` cannot be done where it fails, and `advice` is the way out.
///
/// # Errors
/// [`OsError`] where `bytes` is 0 or there is not so much address space.
pub(crate) fn at_huge_boundary(
    bytes: usize,
    access: ProtFlags,
    flags: MapFlags,
    what: &'static str,
    advice: &'static str,
) -> Result<NonNull<u8>, OsError> {
    let refused = OsError::invalid(what, advice);
    let span = bytes.checked_add(HUGE_PAGE_BYTES).filter(|_| bytes > 0).ok_or(refused)?;
    // SAFETY: a new range wherever the kernel finds room disturbs nobody.
    let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), span, access, flags) };
    let refused_by = |errno| OsError::of(what, errno, advice_for(errno, advice));
    let start: *mut u8 = start.map_err(refused_by)?.cast();
    let before = start.align_offset(HUGE_PAGE_BYTES);
    let base = start.wrapping_add(before);
    let sides = [(start, before), (base.wrapping_add(bytes), span - before - bytes)];
    for (side, length) in sides.into_iter().filter(|(_, length)| *length > 0) {
        // SAFETY: both sides lie in the range that was just mapped and that nobody knows of.
        let result = unsafe { rustix::mm::munmap(side.cast(), length) };
        debug_assert!(result.is_ok(), "a part of a new mapping can be unmapped");
    }
    NonNull::new(base).ok_or(refused)
}

/// The way out where a mapping is refused: a program that locks all of its future memory (mlockall(2), `MCL_FUTURE`)
/// may lock too little for it.
pub(crate) fn advice_for(errno: Errno, advice: &'static str) -> &'static str {
    if errno == Errno::AGAIN { "raise ulimit -l, or call munlockall() before" } else { advice }
}

/// Lets a range be read and written that was mapped without any access. Its pages come when they are touched, also
/// where the program locks all of its future memory: the kernel then fills at once what is mapped, if it may be used,
/// and keeps it.
///
/// # Errors
/// [`OsError`] where the kernel refuses.
///
/// # Safety
/// The range is a mapping of the caller's alone.
pub(crate) unsafe fn open_unlocked(place: *mut u8, bytes: usize) -> Result<(), OsError> {
    let both = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: the caller's own range, of which no content changes.
    let opened = unsafe { rustix::mm::munlock(place.cast(), bytes) }
        // SAFETY: the same; nobody relies on its being closed.
        .and_then(|()| unsafe { rustix::mm::mprotect(place.cast(), bytes, both) });
    let advice = "allow munlock and mprotect in the sandbox, or ask for less memory";
    opened.map_err(|errno| OsError::of("cannot open memory that is to come later", errno, advice))
}
