//! How many groups a fault is worth: more and more where faults follow each other, one where they do not. So what is
//! gone through in order comes by few faults, and what is not never fills fast memory with groups that nobody uses.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::names::Group;

/// Groups that one fault brings at most: of a page each, one more costs a third of a fault.
pub const CLUSTER_MOST: u32 = 32;
/// Of fast memory one fault brings one part of so many at most.
const PART: u32 = 8;
/// Places for streams, by where each goes on: a sort has as many as its digit has values.
const PLACES: usize = 4096;
/// A stream goes on within so many faults, or is over. More would take neighbours for streams that were touched anyhow.
const LATELY: u32 = 512;
/// And within one fault for so many groups of the area: of accesses without an order one in so many at most falls
/// behind a late one by chance, and brings a group in vain.
const BY_CHANCE: u32 = 16;
/// Bits of a place that say when, by the count of faults.
const WHEN_BITS: u32 = 24;

/// Where faults were last. All who have faults share it; what two of them overwrite costs a fault.
#[derive(Debug)]
pub struct Streams {
    /// For a stream: the group behind those that were brought, when, and how many were brought.
    places: Box<[AtomicU64]>,
    faults: AtomicU32,
}

impl Default for Streams {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { places, faults: AtomicU32::new(0) }
    }
}

impl Streams {
    /// How many groups to bring for a fault in an area of so many `groups`, of which `frames` fit; `here` says how many
    /// of so many there are from it on.
    pub fn cluster(
        &self,
        group: Group,
        groups: u32,
        frames: u32,
        here: impl Fn(u32) -> u32,
    ) -> u32 {
        let lately = (groups / BY_CHANCE).clamp(1, LATELY);
        let now = self.faults.fetch_add(1, Ordering::Relaxed);
        let before = Stream::of(self.place(group.0).load(Ordering::Relaxed));
        let goes_on = before.next == group.0 && before.size > 0 && before.is_recent(now, lately);
        let size = if goes_on { (2 * before.size).min(CLUSTER_MOST) } else { 1 };
        let size = here(size.min(frames / PART).max(1)).max(1);
        let next = group.0.wrapping_add(size);
        self.place(next).store(Stream { next, when: now, size }.word(), Ordering::Relaxed);
        size
    }

    /// Neighbours and equal distances are spread.
    fn place(&self, group: u32) -> &AtomicU64 {
        &self.places[(group.wrapping_mul(0x9e37_79b9) >> (u32::BITS - PLACES.ilog2())) as usize]
    }
}

/// A stream, as a word of [`Streams`].
#[derive(Clone, Copy, Debug)]
struct Stream {
    next: u32,
    when: u32,
    size: u32,
}

impl Stream {
    fn of(word: u64) -> Self {
        let [next, rest] =
            [word >> 32, word & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(0));
        Self { next, when: rest & ((1 << WHEN_BITS) - 1), size: rest >> WHEN_BITS }
    }

    fn word(self) -> u64 {
        let rest = self.size << WHEN_BITS | self.when & ((1 << WHEN_BITS) - 1);
        u64::from(self.next) << 32 | u64::from(rest)
    }

    const fn is_recent(self, now: u32, lately: u32) -> bool {
        now.wrapping_sub(self.when) & ((1 << WHEN_BITS) - 1) <= lately
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: u32 = 1 << 20;

    #[test]
    fn what_is_gone_through_in_order_comes_by_more_and_more_and_the_rest_one_by_one() {
        let streams = Streams::default();
        let at = |group: u32| streams.cluster(Group(group), MANY, 1000, |most| most);
        // Two at once, each from where the last ended.
        for (first, size) in
            [(0, 1), (5000, 1), (1, 2), (5001, 2), (3, 4), (7, 8), (5003, 4), (15, 16), (31, 32)]
        {
            assert_eq!(at(first), size, "{first}");
        }
        assert_eq!(at(63), CLUSTER_MOST, "no more than that");
        for random in [900, 300, 4000, 77_000, 20, 1234] {
            assert_eq!(at(random), 1, "{random}");
        }
    }

    #[test]
    fn as_many_streams_as_a_digit_has_values_are_known_and_old_ones_are_not() {
        let streams = Streams::default();
        let sizes = |round: u32| {
            let at = move |stream: u32| stream * 4096 + (1 << round) - 1;
            (0..256)
                .filter(|stream| {
                    streams.cluster(Group(at(*stream)), MANY, 1000, |most| most) == 1 << round
                })
                .count()
        };
        // Some fall on one place.
        assert!((0..5).all(|round| sizes(round) > 150));
        let streams = Streams::default();
        streams.cluster(Group(7), MANY, 1000, |most| most);
        (0..=LATELY)
            .for_each(|n| _ = streams.cluster(Group(1000 + 2 * n), MANY, 1000, |most| most));
        assert_eq!(streams.cluster(Group(8), MANY, 1000, |most| most), 1, "too long ago");
    }

    #[test]
    fn a_fault_never_takes_much_of_fast_memory_nor_what_is_not_there() {
        let streams = Streams::default();
        let sizes: Vec<u32> =
            (0..9).map(|n| streams.cluster(Group(n), MANY, 16, |most| most)).collect();
        assert_eq!(sizes.iter().max(), Some(&2));
        let streams = Streams::default();
        assert!((0..9).all(|n| streams.cluster(Group(n), MANY, 1000, |_| 0) == 1));
    }

    #[test]
    fn in_a_small_area_accesses_without_an_order_are_rarely_taken_for_streams() {
        let groups = 2048;
        let in_vain = |steps: u64| {
            let streams = Streams::default();
            let at = |step| isochrone_stats::derive_seed(1, step) % u64::from(groups);
            let sizes = (0..steps).map(|step| {
                let group = Group(u32::try_from(at(step)).unwrap());
                streams.cluster(group, groups, groups / 2, |most| most) - 1
            });
            f64::from(sizes.sum::<u32>()) / steps as f64
        };
        // One in sixteen follows a late one, and of these as many go on.
        assert!(in_vain(20_000) < 0.09, "{}", in_vain(20_000));
        // Two that take turns in order are known all the same.
        let streams = Streams::default();
        let of = |first: u32, n: u32| {
            streams.cluster(Group(first + (1 << n) - 1), groups, groups / 2, |most| most)
        };
        assert!((0..5).all(|n| of(0, n) == 1 << n && of(1000, n) == 1 << n));
    }
}
