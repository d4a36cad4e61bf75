//! Room for packed groups: which part of a store is whose.
//!
//! A group is eight units long. The store is cut into chunks of 56 units, of which each has slots of one size, from
//! one unit to eight, while any of them is taken; one that is empty is anybody's again. So a store whose groups
//! change their sizes takes no more than what they have at a time, and what stands between (Bonwick's slabs, USENIX
//! 1994; zsmalloc of Linux does the same).
//!
//! All words are atomic and may lie in memory that processes share. A chunk's word says its size and which slots are
//! taken, and is changed by compare-and-swap: it alone decides. Bitmaps tell for each size which chunks may have
//! room, and are hints: whoever finds a wrong one mends it. So one who is killed amid this leaves at worst a slot,
//! or a chunk, that nobody has.

use core::sync::atomic::{AtomicU64, Ordering};

use isochrone_os::OsError;
use isochrone_os::mapping::Mapping;

/// Units of a group.
pub(super) const GROUP_UNITS: usize = 8;
/// Units of a chunk: of each size of slots they hold at least 54.
const CHUNK_UNITS: usize = 56;
/// A chunk's word: slots that are taken, below its size.
const SIZE_SHIFT: u32 = 56;
/// In place of a size: a chunk that is free.
const FREE: usize = 0;
/// Bitmaps: one for each size, and one of chunks that were given back.
const MAPS: usize = GROUP_UNITS + 1;
const BITS: usize = 64;

/// Which slots of a store are taken.
#[derive(Debug)]
pub(super) struct Slots {
    table: Mapping,
    units: usize,
    chunks: usize,
}

impl Slots {
    /// Of a store of so many groups; nothing is taken.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory for the table.
    pub(super) fn new(
        groups: usize,
        map: impl FnOnce(usize) -> Result<Mapping, OsError>,
    ) -> Result<Self, OsError> {
        let units = groups * GROUP_UNITS;
        let chunks = units.div_ceil(CHUNK_UNITS);
        let words = 2 + chunks + MAPS * (words_of(chunks) + words_of(words_of(chunks)));
        Ok(Self { table: map(words * size_of::<u64>())?, units, chunks })
    }

    /// Chunks that were ever taken: those behind them hold nothing.
    fn begun(&self) -> &AtomicU64 {
        &self.table.words()[0]
    }

    /// Chunks that are taken.
    fn held(&self) -> &AtomicU64 {
        &self.table.words()[1]
    }

    fn chunk(&self, at: usize) -> &AtomicU64 {
        &self.table.words()[2 + at]
    }

    /// For 64 chunks each a word, and for 64 of these words each a word.
    fn map(&self, size: usize) -> (&[AtomicU64], &[AtomicU64]) {
        let fine = words_of(self.chunks);
        let both = fine + words_of(fine);
        let first = 2 + self.chunks + size * both;
        self.table.words()[first..first + both].split_at(fine)
    }

    /// Units of the chunks that are taken.
    pub(super) fn held_units(&self) -> usize {
        let held = usize::try_from(self.held().load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        held.saturating_mul(CHUNK_UNITS).min(self.units)
    }

    /// Takes a slot of `size` units, or a longer one where there is none: its first unit.
    pub(super) fn take(&self, size: usize) -> Option<u64> {
        let longer = || (size + 1..=GROUP_UNITS).find_map(|size| self.take_of(size));
        self.take_of(size).or_else(|| self.open(size)).or_else(longer)
    }

    /// Gives back the slot that begins at this unit.
    pub(super) fn give(&self, unit: u64) {
        let unit = usize::try_from(unit).unwrap_or(usize::MAX);
        let (at, within) = (unit / CHUNK_UNITS, unit % CHUNK_UNITS);
        let chunk = self.chunk(at);
        let mut seen = chunk.load(Ordering::Acquire);
        let size = size_of_slots(seen);
        loop {
            let left = seen & !(1 << (within / size.max(1)));
            let next = if taken(left) == 0 { 0 } else { left };
            // Release: what was read of the slot comes before whoever takes it.
            match chunk.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if next == 0 => {
                    self.held().fetch_sub(1, Ordering::Relaxed);
                    return self.mark(FREE, at);
                }
                Ok(_) => return self.mark(size, at),
                Err(other) => seen = other,
            }
        }
    }

    /// A slot in a chunk that has some of this size.
    fn take_of(&self, size: usize) -> Option<u64> {
        self.marked(size, |at| self.take_in(size, at))
    }

    /// A slot in a chunk that nobody has.
    fn open(&self, size: usize) -> Option<u64> {
        let first = |at: usize| {
            let chunk = self.chunk(at);
            let word = (size as u64) << SIZE_SHIFT | 1;
            let is_mine = chunk.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed);
            is_mine.ok().map(|_| at)
        };
        let again = self.marked(FREE, |at| {
            let mine = first(at);
            self.unmark(FREE, at);
            mine
        });
        let at = again.or_else(|| self.begin().and_then(first))?;
        self.held().fetch_add(1, Ordering::Relaxed);
        self.mark(size, at);
        Some((at * CHUNK_UNITS) as u64)
    }

    /// A chunk that was never taken.
    fn begin(&self) -> Option<usize> {
        let more = |begun: u64| (begun < self.chunks as u64).then_some(begun + 1);
        let begun = self.begun().fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
        begun.ok().and_then(|at| usize::try_from(at).ok())
    }

    /// A slot of a chunk, if that has slots of this size and one is free.
    fn take_in(&self, size: usize, at: usize) -> Option<u64> {
        let chunk = self.chunk(at);
        let mut seen = chunk.load(Ordering::Acquire);
        loop {
            let free = if size_of_slots(seen) == size { self.all(size, at) & !seen } else { 0 };
            let bit = free & free.wrapping_neg();
            if bit == 0 {
                self.unmark(size, at);
                return None;
            }
            match chunk.compare_exchange(seen, seen | bit, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if free == bit {
                        self.unmark(size, at);
                    }
                    let slot = bit.trailing_zeros() as usize;
                    return Some((at * CHUNK_UNITS + slot * size) as u64);
                }
                Err(other) => seen = other,
            }
        }
    }

    /// A bit for each slot that a chunk has of a size; the last chunk may be shorter.
    fn all(&self, size: usize, at: usize) -> u64 {
        let units = CHUNK_UNITS.min(self.units - at * CHUNK_UNITS);
        (1 << (units / size)) - 1
    }

    /// The first that `take` finds among chunks that are said to have room, the lowest first: so those above become
    /// empty.
    fn marked<T>(&self, size: usize, take: impl Fn(usize) -> Option<T>) -> Option<T> {
        let (fine, coarse) = self.map(size);
        let set = |words: &[AtomicU64], at: usize| bits(words[at].load(Ordering::Acquire));
        // A store for a large window is long, and little of it was ever begun.
        let begun = usize::try_from(self.begun().load(Ordering::Acquire)).unwrap_or(self.chunks);
        (0..words_of(words_of(begun)))
            .flat_map(|at| set(coarse, at).map(move |bit| at * BITS + bit))
            .flat_map(|at| set(fine, at).map(move |bit| at * BITS + bit))
            .find_map(take)
    }

    /// Says that a chunk may have room.
    fn mark(&self, size: usize, at: usize) {
        let (fine, coarse) = self.map(size);
        set(&fine[at / BITS], at % BITS);
        set(&coarse[at / BITS / BITS], at / BITS % BITS);
    }

    /// Says that a chunk has no room, unless it has some by now.
    fn unmark(&self, size: usize, at: usize) {
        let (fine, coarse) = self.map(size);
        let word = &fine[at / BITS];
        // SeqCst, with the looks behind them: either this sees what somebody else set meanwhile, or he sees it gone.
        if word.fetch_and(!(1 << (at % BITS)), Ordering::SeqCst) == 1 << (at % BITS) {
            let upper = &coarse[at / BITS / BITS];
            upper.fetch_and(!(1 << (at / BITS % BITS)), Ordering::SeqCst);
            if word.load(Ordering::SeqCst) != 0 {
                set(upper, at / BITS % BITS);
            }
        }
        let chunk = self.chunk(at).load(Ordering::SeqCst);
        let has_room = match size {
            FREE => chunk == 0,
            _ => size_of_slots(chunk) == size && self.all(size, at) & !chunk != 0,
        };
        if has_room {
            self.mark(size, at);
        }
    }
}

/// Words that have a bit for each of so many.
const fn words_of(bits: usize) -> usize {
    bits.div_ceil(BITS)
}

fn set(word: &AtomicU64, bit: usize) {
    // The line is written only where it has to be.
    if word.load(Ordering::SeqCst) & 1 << bit == 0 {
        word.fetch_or(1 << bit, Ordering::SeqCst);
    }
}

/// The bits of a word that are set, ascending.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < BITS).then_some(bit)
    })
}

fn size_of_slots(chunk: u64) -> usize {
    usize::try_from(chunk >> SIZE_SHIFT).unwrap_or(FREE)
}

const fn taken(chunk: u64) -> u64 {
    chunk & ((1 << SIZE_SHIFT) - 1)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a small store")]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;

    fn slots(groups: usize) -> Slots {
        Slots::new(groups, Mapping::shared_memfd).unwrap()
    }

    /// Units that a slot at this unit has.
    fn length(slots: &Slots, unit: u64) -> usize {
        size_of_slots(slots.chunk(unit as usize / CHUNK_UNITS).load(Ordering::Relaxed))
    }

    proptest! {
        /// Slots are long enough, lie in the store and in no other; when all are given back, groups that are not made
        /// shorter have all of it.
        #[test]
        fn units_have_one_owner(
            groups in 1_usize..40,
            steps in prop::collection::vec((1_usize..=8, any::<bool>(), any::<prop::sample::Index>()), 0..400),
        ) {
            let slots = slots(groups);
            let mut owned: BTreeMap<u64, usize> = BTreeMap::new();
            for (size, takes, which) in steps {
                if takes || owned.is_empty() {
                    let Some(unit) = slots.take(size) else { continue };
                    let length = length(&slots, unit);
                    prop_assert!(length >= size && unit as usize + length <= groups * GROUP_UNITS);
                    let below = owned.range(..=unit).next_back().map(|(unit, length)| unit + *length as u64);
                    prop_assert!(below.is_none_or(|end| end <= unit));
                    let above = owned.range(unit..).next().map(|(unit, _)| *unit);
                    prop_assert!(above.is_none_or(|first| unit + length as u64 <= first));
                    owned.insert(unit, length);
                } else {
                    let unit = *owned.keys().nth(which.index(owned.len())).unwrap();
                    owned.remove(&unit);
                    slots.give(unit);
                }
            }
            owned.into_keys().for_each(|unit| slots.give(unit));
            prop_assert_eq!(slots.held_units(), 0);
            prop_assert!((0..groups).all(|_| slots.take(GROUP_UNITS).is_some()));
            prop_assert_eq!(slots.take(1), None);
        }
    }

    #[test]
    fn groups_that_change_their_sizes_take_no_more_than_they_have() {
        const GROUPS: usize = 1000;
        let slots = slots(2 * GROUPS);
        let mut owned: Vec<u64> = (0..GROUPS).map(|_| slots.take(1).unwrap()).collect();
        for size in [2, 3, 4, 5, 6, 7, 8, 3, 1, 5] {
            for unit in &mut owned {
                let new = slots.take(size).expect("there is room");
                slots.give(std::mem::replace(unit, new));
            }
            // Slots that do not fill their chunks, and a chunk or two of each size.
            let most = GROUPS * size * CHUNK_UNITS / 54 + 3 * CHUNK_UNITS;
            assert!(slots.held_units() <= most, "{} of size {size}", slots.held_units());
        }
    }

    #[test]
    fn threads_never_have_one_slot_twice() {
        const GROUPS: usize = 24;
        let slots = slots(GROUPS);
        let taken: Vec<AtomicBool> =
            (0..GROUPS * GROUP_UNITS).map(|_| AtomicBool::new(false)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (slots, taken) = (&slots, &taken);
                scope.spawn(move || {
                    let mut draw = thread + 1;
                    let mut own: Vec<(u64, usize)> = Vec::new();
                    for _ in 0..40_000 {
                        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let size = (draw >> 33) as usize % GROUP_UNITS + 1;
                        if own.len() < 8
                            && let Some(unit) = slots.take(size)
                        {
                            let length = length(slots, unit);
                            let units = &taken[unit as usize..unit as usize + length];
                            units.iter().for_each(|u| assert!(!u.swap(true, Ordering::SeqCst)));
                            own.push((unit, length));
                        } else if !own.is_empty() {
                            let (unit, length) = own.swap_remove((draw >> 40) as usize % own.len());
                            let units = &taken[unit as usize..unit as usize + length];
                            units.iter().for_each(|u| assert!(u.swap(false, Ordering::SeqCst)));
                            slots.give(unit);
                        }
                    }
                    own.into_iter().for_each(|(unit, length)| {
                        let units = &taken[unit as usize..unit as usize + length];
                        units.iter().for_each(|u| u.store(false, Ordering::SeqCst));
                        slots.give(unit);
                    });
                });
            }
        });
        assert_eq!(slots.held_units(), 0);
        assert!((0..GROUPS).all(|_| slots.take(GROUP_UNITS).is_some()), "no hint is lost");
    }
}
