//! Free entries of a table: every worker keeps some at hand, and passes several at once on through a list
//! that a lock guards. Entry 0 is never given out: it ends chains.

use crate::sync::{AtomicU32, Ordering};

use super::lock::Lock;
#[cfg(not(all(loom, test)))]
use super::table::Zeroed;

/// Entries that a worker keeps at most.
const HAND_MAX: usize = 128;

/// The words of a pool; its list is a table of the arena.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Shared {
    lock: Lock,
    /// Entries in the list.
    listed: AtomicU32,
    /// Entries that were never used begin here.
    fresh: AtomicU32,
}

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Shared {}

impl Shared {
    /// The first entry that may be given out.
    pub(crate) fn begin_at(&self, entry: u32) {
        self.fresh.store(entry, Ordering::Relaxed);
    }
}

/// A pool of an arena: free entries of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) shared: &'a Shared,
    /// Numbers of free entries, the one to be given next last. They lie together, so that who takes
    /// what another gave fetches one line for sixteen of them, and not one for each.
    pub(crate) list: &'a [AtomicU32],
}

impl Pool<'_> {
    /// Entries in the table, free or not.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.list.len()
    }

    /// About how many free entries are here.
    #[inline]
    pub(crate) fn free(self) -> usize {
        let fresh = self.shared.fresh.load(Ordering::Relaxed).max(1) as usize;
        let listed = self.shared.listed.load(Ordering::Relaxed) as usize;
        listed + self.len().saturating_sub(fresh)
    }

    /// Moves up to `wanted` entries to `out`, but leaves `spare`.
    fn give_out(self, wanted: usize, spare: usize, out: &mut Vec<u32>) {
        let before = out.len();
        let guard = self.shared.lock.hold();
        let wanted = wanted.min(self.free().saturating_sub(spare));
        let listed = self.shared.listed.load(Ordering::Relaxed) as usize;
        let left = listed.saturating_sub(wanted);
        out.extend(self.list[left..listed].iter().map(|entry| entry.load(Ordering::Relaxed)));
        self.shared.listed.store(word(left), Ordering::Relaxed);
        let mut fresh = self.shared.fresh.load(Ordering::Relaxed).max(1);
        let first = out.len();
        while (fresh as usize) < self.len() && out.len() < before + wanted {
            out.push(fresh);
            fresh += 1;
        }
        self.shared.fresh.store(fresh, Ordering::Relaxed);
        drop(guard);
        // The lowest number comes first, so that a run that needs few entries touches few lines.
        out[first..].reverse();
    }

    /// Takes entries back.
    fn take_back(self, entries: &[u32]) {
        let guard = self.shared.lock.hold();
        let listed = self.shared.listed.load(Ordering::Relaxed) as usize;
        for (place, entry) in self.list[listed..].iter().zip(entries) {
            place.store(*entry, Ordering::Relaxed);
        }
        self.shared.listed.store(word(listed + entries.len()), Ordering::Relaxed);
        drop(guard);
    }
}

fn word(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A worker's own free entries.
#[derive(Debug)]
pub(crate) struct Hand {
    entries: Vec<u32>,
    /// How many it keeps.
    most: usize,
}

impl Hand {
    /// An empty hand of one of so many workers, for a table of so many entries: all hands together keep
    /// a quarter of them at most, so that nobody starves.
    pub(crate) fn of(entries: usize, workers: usize) -> Self {
        let most = (entries / (4 * workers.max(1))).clamp(1, HAND_MAX);
        Self { entries: Vec::with_capacity(2 * most), most }
    }

    /// Entries at hand.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry that will be given so many times later, if it is at hand by now.
    #[inline]
    pub(crate) fn ahead(&self, later: usize) -> Option<u32> {
        self.entries.len().checked_sub(1 + later).map(|at| self.entries[at])
    }

    /// A free entry: from the hand, else from the pool, which then gives several. `spare` entries must
    /// stay there.
    #[inline]
    pub(crate) fn take(&mut self, pool: Pool<'_>, spare: usize) -> Option<u32> {
        match self.entries.pop() {
            Some(entry) => Some(entry),
            None => self.refill(pool, spare).then(|| self.entries.pop()).flatten(),
        }
    }

    /// Makes sure that `wanted` entries are at hand, if there are so many.
    pub(crate) fn reserve(&mut self, wanted: usize, pool: Pool<'_>) -> bool {
        while self.entries.len() < wanted {
            if !self.refill(pool, 0) {
                return false;
            }
        }
        true
    }

    /// Takes some entries from the pool.
    #[cold]
    fn refill(&mut self, pool: Pool<'_>, spare: usize) -> bool {
        let before = self.entries.len();
        pool.give_out(self.most.div_ceil(2), spare, &mut self.entries);
        self.entries.len() > before
    }

    /// Gives an entry back.
    #[inline]
    pub(crate) fn give(&mut self, entry: u32, pool: Pool<'_>) {
        self.entries.push(entry);
        if self.entries.len() > self.most {
            self.pass_on(self.most / 2, pool);
        }
    }

    /// Leaves `keep` entries at hand and gives the oldest of the others to the pool.
    #[cold]
    pub(crate) fn pass_on(&mut self, keep: usize, pool: Pool<'_>) {
        let count = self.entries.len().saturating_sub(keep);
        if count > 0 {
            pool.take_back(&self.entries[..count]);
            self.entries.drain(..count);
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::*;

    #[test]
    fn entries_are_given_once_and_come_back() {
        let list: Table<AtomicU32> = Table::heap(100);
        let shared = Shared::default();
        let pool = Pool { shared: &shared, list: &list };
        let (mut one, mut other) = (Hand::of(100, 2), Hand::of(100, 2));
        let mut taken: Vec<u32> = Vec::new();
        while let Some(entry) = one.take(pool, 20) {
            taken.push(entry);
        }
        assert_eq!((taken.len(), pool.free()), (79, 20), "some are spared");
        while let Some(entry) = one.take(pool, 0) {
            taken.push(entry);
        }
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..100).collect::<Vec<u32>>(), "entry 0 ends chains");
        for entry in taken {
            other.give(entry, pool);
        }
        other.pass_on(0, pool);
        let mut again: Vec<u32> = std::iter::from_fn(|| one.take(pool, 0)).collect();
        again.sort_unstable();
        assert_eq!(again, sorted);
    }
}
