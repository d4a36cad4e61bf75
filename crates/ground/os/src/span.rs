//! New ranges of addresses at a boundary of huge pages.

use crate::error::OsError;
use core::ptr::{self, NonNull};
use rustix::mm::{MapFlags, ProtFlags};

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
    let start: *mut u8 = start.map_err(|errno| OsError::of(what, errno, advice))?.cast();
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
