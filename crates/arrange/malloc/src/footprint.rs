//! How much memory a program has its small objects in while the next allocator has them all: the pages in which some of
//! them lie, each counted once.
//!
//! Nobody sees what the program frees by then, and what it has allocated says little: who frees each object before the
//! next one has next to nothing in use. One object in a page's worth of them is looked at. So memory that grows is
//! counted as it grows, and memory that is used again is found again. A child of `fork` has its parent's objects too.
//! It never touches an object.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use isochrone_units::PAGE_BYTES;

/// Bits of the set. Pages share one by chance, so of many pages fewer are counted.
const BITS: usize = 1 << 13;
/// Pages above which the count says no more than that there are many.
const MANY: usize = BITS / 2;

/// Pages in which sampled objects lay.
#[derive(Debug)]
pub(crate) struct Footprint {
    seen: [AtomicU64; BITS / 64],
    pages: AtomicUsize,
}

impl Footprint {
    pub(crate) const fn new() -> Self {
        Self { seen: [const { AtomicU64::new(0) }; BITS / 64], pages: AtomicUsize::new(0) }
    }

    /// An object lies there.
    pub(crate) fn note(&self, object: *const u8) {
        let page = (object.addr() / PAGE_BYTES) as u64;
        // Multiplied by the golden ratio neighbours lie far apart (Knuth, volume 3, section 6.4).
        let place = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS.ilog2());
        let (word, bit) = (usize::try_from(place / 64).unwrap_or(0), 1 << (place % 64));
        if let Some(word) = self.seen.get(word)
            && word.load(Relaxed) & bit == 0
            && word.fetch_or(bit, Relaxed) & bit == 0
        {
            self.pages.fetch_add(1, Relaxed);
        }
    }

    /// Whether objects were seen in so many bytes of pages.
    pub(crate) fn reaches(&self, bytes: u64) -> bool {
        let pages = usize::try_from(bytes / PAGE_BYTES as u64).unwrap_or(MANY);
        self.pages.load(Relaxed) >= pages.min(MANY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    fn at(address: usize) -> *const u8 {
        ptr::without_provenance(address)
    }

    #[test]
    fn memory_that_grows_is_counted_and_memory_that_is_used_again_is_not() {
        let (grows, again) = (Footprint::new(), Footprint::new());
        let start = 0x7f12_3456_7000;
        for page in 0..300 {
            grows.note(at(start + page * PAGE_BYTES + page % 64 * 16));
            again.note(at(start + page % 100 * PAGE_BYTES + page * 8 % 4096));
        }
        assert!(grows.reaches(1 << 20), "{:?}", grows.pages);
        assert!(!grows.reaches(2 << 20));
        assert!(!again.reaches(1 << 20) && again.reaches(100 * 4096), "{:?}", again.pages);
    }

    #[test]
    fn so_much_is_reached_at_last_whatever_a_cache_holds() {
        let footprint = Footprint::new();
        (0..1 << 20).for_each(|page| footprint.note(at(page * PAGE_BYTES)));
        assert!(footprint.reaches(u64::MAX));
    }
}
