//! What each page of a far file must hold: a sum of every page that was written there. A file that somebody else
//! cuts, writes to or grows again says nothing of it, and its holes read as zeros; a sum tells.
//!
//! The words are shared by all processes of a team. A page's word is written and read by who owns its group.

use core::sync::atomic::{AtomicU64, Ordering};

use isochrone_os::OsError;
use isochrone_os::space::Space;
use isochrone_units::PAGE_BYTES;

use super::Part;

/// Sums by page; taken as they are used.
#[derive(Debug)]
pub(super) struct Sums(Space);

/// Lanes that are summed side by side: a multiplication takes several cycles, and another can begin in each.
const LANES: usize = 4;
/// An odd number whose bits look random: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Sums {
    /// For a file of so many bytes.
    ///
    /// # Errors
    /// [`OsError`] where there are not so many addresses.
    pub(super) fn new(bytes: usize) -> Result<Self, OsError> {
        let words = bytes.div_ceil(PAGE_BYTES).max(1);
        Space::new(words.saturating_mul(size_of::<AtomicU64>()), true).map(Self)
    }

    fn words(&self) -> &[AtomicU64] {
        let first = self.0.as_ptr().cast::<AtomicU64>();
        // SAFETY: the space is this value's, readable, writable, zeroed and aligned to pages; it lives as long as
        // `self`, and everybody who has it has these atomic words of it and nothing else.
        unsafe { std::slice::from_raw_parts(first, self.0.len() / size_of::<AtomicU64>()) }
    }

    /// Each page of a part with its word.
    fn pages<'s>(
        &'s self,
        part: &Part,
        bytes: &'s [u8],
    ) -> impl Iterator<Item = (&'s [u8], &'s AtomicU64)> {
        let words = self.words().iter().skip(part.at() / PAGE_BYTES);
        bytes.chunks(PAGE_BYTES).zip(words)
    }

    /// Notes what was written.
    pub(super) fn note(&self, part: &Part, written: &[u8]) {
        for (page, word) in self.pages(part, written) {
            word.store(sum(page), Ordering::Release);
        }
    }

    /// Whether what was read is what was written there last.
    pub(super) fn hold(&self, part: &Part, read: &[u8]) -> bool {
        self.pages(part, read).all(|(page, word)| word.load(Ordering::Acquire) == sum(page))
    }
}

/// A number that depends on every bit of some bytes. Not for who wants to be fooled: two pages with one sum can be
/// made, but do not come about by themselves.
fn sum(bytes: &[u8]) -> u64 {
    let mut lanes = [1_u64, 2, 3, 4];
    let mut chunks = bytes.chunks_exact(8 * LANES);
    let mix = |lane: u64, word: u64| (lane ^ word).wrapping_mul(SPREAD).rotate_left(29);
    for chunk in &mut chunks {
        for (lane, eight) in lanes.iter_mut().zip(chunk.chunks_exact(8)) {
            *lane = mix(*lane, u64::from_le_bytes(eight.try_into().unwrap_or_default()));
        }
    }
    let rest = chunks.remainder().iter().map(|byte| u64::from(*byte));
    rest.chain(lanes).fold(bytes.len() as u64, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts_and_so_does_its_place() {
        let zeros = [0_u8; PAGE_BYTES];
        let mut seen = vec![sum(&zeros), sum(&zeros[1..])];
        for at in [0, 1, 7, 8, 31, 32, 2048, PAGE_BYTES - 1] {
            for bit in 0..8 {
                let mut page = zeros;
                page[at] ^= 1 << bit;
                seen.push(sum(&page));
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn pages_are_told_apart_by_where_they_lie() {
        let sums = Sums::new(4 * PAGE_BYTES).unwrap();
        let bytes: Vec<u8> = (0_u8..251).cycle().take(2 * PAGE_BYTES).collect();
        let part = |at: usize| Part::owned(at * PAGE_BYTES, 2 * PAGE_BYTES);
        sums.note(&part(1), &bytes);
        assert!(sums.hold(&part(1), &bytes) && !sums.hold(&part(0), &bytes));
        assert!(!sums.hold(&part(1), &vec![0; 2 * PAGE_BYTES]));
        assert!(!sums.hold(&Part::owned(0, PAGE_BYTES), &[0; PAGE_BYTES]), "never written");
    }
}
