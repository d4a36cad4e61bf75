//! Memory for who asks while the next allocator is being looked up: a few pages that are never taken back.
//!
//! The dynamic linker asks for some hundred bytes at most (the text of an error, before glibc 2.34 a result for each
//! thread). What was lent is told by its address; whether anything was, by one word.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that can be lent in all.
const BYTES: usize = 16 << 10;
/// As the C standard asks of memory for any object.
const ALIGNMENT: usize = 16;

/// Of the pages, and the most that anybody gets.
const PAGES_ALIGNMENT: usize = 64;

#[repr(C, align(64))]
struct Pages(UnsafeCell<[u8; BYTES]>);

// SAFETY: each byte is given to one caller alone ([`lend`]), and nothing else here touches any but through a pointer
// that a caller hands in.
unsafe impl Sync for Pages {}

static PAGES: Pages = Pages(UnsafeCell::new([0; BYTES]));
static LENT: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory of `size` bytes at a multiple of `align`; null where there is no more, or after [`close`].
pub(super) fn lend(align: usize, size: usize) -> *mut c_void {
    let align = align.max(ALIGNMENT);
    if align > PAGES_ALIGNMENT || !align.is_power_of_two() {
        return ptr::null_mut();
    }
    let place = |lent: usize| {
        let begin = lent.next_multiple_of(align);
        let end = begin.checked_add(size.max(1))?;
        (end <= BYTES).then_some((begin, end))
    };
    // Bytes of one caller are no other's, and all were zero before the program began. Acquire: who finds that it is
    // closed sees what was known before.
    let before =
        LENT.fetch_update(Ordering::Relaxed, Ordering::Acquire, |lent| Some(place(lent)?.1));
    match before.ok().and_then(place) {
        Some((begin, _)) => PAGES.0.get().cast::<u8>().wrapping_add(begin).cast(),
        None => ptr::null_mut(),
    }
}

/// Lends nothing any more. Whether anything was lent.
pub(super) fn close() -> bool {
    // Release: what is known now is seen by who finds that it is closed.
    LENT.swap(BYTES, Ordering::AcqRel) > 0
}

/// How many bytes lie from `pointer` to the end of the pages; `None` for a pointer that is not into them.
pub(super) fn bytes_from(pointer: *const c_void) -> Option<usize> {
    let offset = pointer.addr().checked_sub(PAGES.0.get().addr())?;
    BYTES.checked_sub(offset).filter(|left| *left > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_zero_apart_and_told_by_its_address() {
        let (first, second) = (lend(0, 40), lend(64, 8));
        assert!(!first.is_null() && !second.is_null());
        assert!(second.addr() >= first.addr() + 40 && second.addr().is_multiple_of(64));
        // SAFETY: 40 bytes were lent to this test.
        assert!((0..40).all(|at| unsafe { first.cast::<u8>().wrapping_add(at).read() } == 0));
        let left = bytes_from(first).zip(bytes_from(second));
        assert_eq!(left.map(|(first, second)| first - second), Some(second.addr() - first.addr()));
        assert!(
            lend(16, BYTES).is_null() && lend(4096, 1).is_null() && lend(16, usize::MAX).is_null()
        );
        assert!(
            bytes_from((&raw const first).cast()).is_none() && bytes_from(ptr::null()).is_none()
        );
        assert!(close(), "something was");
        assert!(lend(16, 1).is_null());
    }
}
