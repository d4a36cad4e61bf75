//! Pieces of memory that processes take from one another's hands: which are free.
//!
//! A piece is a run of granules, as many as a power of two says. Those that were given back wait in one list for each
//! size, last one first: it is the warmest. Lists are stacks that need no lock, so that a process which ends in the
//! middle keeps nobody waiting; at worst its piece is lost.

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// Sizes of pieces: 1, 2, 4, ... granules.
pub(super) const SIZES: usize = 12;

/// Which granules are free, of those from 1 to `ALL` - 1: granule 0 is the caller's. All zero at the beginning.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Pieces<const ALL: usize> {
    /// Granules that were handed out at least once.
    used: AtomicU32,
    /// By size: the first granule of the piece that was given back last (0: none), and above it how often the list was
    /// changed. A process that was held up between looking and taking finds another number there.
    free: [AtomicU64; SIZES],
    /// By the first granule of a piece in a list: that of the next one.
    next: [AtomicU32; ALL],
}

/// What was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granules {
    /// The first one.
    pub(super) first: u32,
    /// Whether nobody ever had them.
    pub(super) fresh: bool,
}

const COUNT: u32 = u32::BITS;

#[allow(clippy::cast_possible_truncation, reason = "the low half")]
const fn first_of(head: u64) -> u32 {
    head as u32
}

/// A list that begins at `first` after `head`.
const fn after(head: u64, first: u32) -> u64 {
    ((head >> COUNT).wrapping_add(1)) << COUNT | first as u64
}

impl<const ALL: usize> Pieces<ALL> {
    /// Takes a piece of 2^`size` granules; none where none is left.
    pub(super) fn take(&self, size: usize) -> Option<Granules> {
        let list = self.free.get(size)?;
        // Partner: `give`, whose giver has done with the piece and said which one is next.
        let mut head = list.load(Ordering::Acquire);
        while first_of(head) != 0 {
            let first = first_of(head);
            // Another one where somebody else was sooner: then the list has another count.
            let next = self.next.get(first as usize)?.load(Ordering::Relaxed);
            match list.compare_exchange(
                head,
                after(head, next),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(Granules { first, fresh: false }),
                Err(now) => head = now,
            }
        }
        self.fresh(1 << size)
    }

    /// Granules that nobody had so far.
    fn fresh(&self, count: u32) -> Option<Granules> {
        let fits = |used: u32| {
            let end = used.checked_add(count)?;
            ((end as usize) < ALL).then_some(end)
        };
        // Relaxed: nothing is read that another process wrote there.
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let end = fits(used)?;
            match self.used.compare_exchange(used, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Granules { first: used + 1, fresh: true }),
                Err(now) => used = now,
            }
        }
    }

    /// Gives a piece of 2^`size` granules back, which begins at `first` and which nobody uses any more.
    pub(super) fn give(&self, first: u32, size: usize) {
        let (Some(list), Some(next)) = (self.free.get(size), self.next.get(first as usize)) else {
            return;
        };
        let mut head = list.load(Ordering::Relaxed);
        loop {
            next.store(first_of(head), Ordering::Relaxed);
            // Release: whoever takes it finds what was done to it, and `next`. Acquire as well, so that it also finds
            // what stands behind the piece that was first before.
            match list.compare_exchange(
                head,
                after(head, first),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Granules that were handed out at least once.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn new() -> Self {
        Self {
            used: AtomicU32::new(0),
            free: std::array::from_fn(|_| AtomicU64::new(0)),
            next: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_is_taken_again_and_nothing_grows() {
        let pieces = Pieces::<16>::new();
        let take = |size| pieces.take(size).map(|granules| (granules.first, granules.fresh));
        assert_eq!(
            (take(0), take(2), take(0)),
            (Some((1, true)), Some((2, true)), Some((6, true)))
        );
        pieces.give(1, 0);
        pieces.give(6, 0);
        assert_eq!((take(0), take(0)), (Some((6, false)), Some((1, false))), "the warmest first");
        assert_eq!((take(3), take(0)), (Some((7, true)), Some((15, true))));
        assert_eq!((take(0), take(1), take(SIZES)), (None, None, None), "all are handed out");
        for _ in 0..100_000 {
            pieces.give(2, 2);
            assert_eq!(take(2), Some((2, false)));
        }
        assert_eq!(pieces.used(), 15);
    }

    #[test]
    fn no_piece_is_two_threads_at_once() {
        let pieces = Pieces::<8>::new();
        let held: [AtomicU32; 8] = std::array::from_fn(|_| AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let first = pieces.take(0).expect("three of seven").first;
                        assert_eq!(held[first as usize].fetch_add(1, Ordering::Relaxed), 0);
                        held[first as usize].fetch_sub(1, Ordering::Relaxed);
                        pieces.give(first, 0);
                    }
                });
            }
        });
        assert!(pieces.used() <= 3);
    }
}
