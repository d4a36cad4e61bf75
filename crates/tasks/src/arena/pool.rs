//! Free entries of a table: every worker keeps some at hand, and passes chains of them on through a
//! list that a lock guards. Entry 0 is never given out: it ends chains.

use crate::sync::{AtomicU32, Ordering};

use super::lock::Lock;
use super::slot::{Block, Edge, NONE, Slot};
use super::table::{Table, Zeroed};

/// Entries that a worker keeps at most.
const HAND_MAX: usize = 128;

/// What can lie on a free list.
pub(crate) trait Linked {
    /// The word that links free entries.
    fn link(&self) -> &AtomicU32;
}

impl Linked for Slot {
    fn link(&self) -> &AtomicU32 {
        &self.next
    }
}

impl Linked for Block {
    fn link(&self) -> &AtomicU32 {
        &self.next
    }
}

impl Linked for Edge {
    fn link(&self) -> &AtomicU32 {
        &self.next
    }
}

/// The shared part: a list of chains. A chain's entries are linked, its first one holds no more than
/// that; chains are kept in a ring of their first entries.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Shared {
    lock: Lock,
    /// First entry of all that lie here.
    head: AtomicU32,
    /// Entries that were never used begin here.
    fresh: AtomicU32,
    /// Entries in the list.
    listed: AtomicU32,
}

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Shared {}

impl Shared {
    /// About how many free entries are here.
    pub(crate) fn free<T>(&self, table: &[T]) -> usize {
        let fresh = self.fresh.load(Ordering::Relaxed).max(1) as usize;
        self.listed.load(Ordering::Relaxed) as usize + table.len().saturating_sub(fresh)
    }

    /// The first entry that may be given out.
    pub(crate) fn begin_at(&self, entry: u32) {
        self.fresh.store(entry, Ordering::Relaxed);
    }
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

    /// A free entry: from the hand, else from the shared list, which then gives several. `spare` entries
    /// must stay there.
    #[inline]
    pub(crate) fn take<T: Linked + Zeroed>(
        &mut self,
        table: &Table<T>,
        shared: &Shared,
        spare: usize,
    ) -> Option<u32> {
        match self.entries.pop() {
            Some(entry) => Some(entry),
            None => self.refill(table, shared, spare).then(|| self.entries.pop()).flatten(),
        }
    }

    /// Makes sure that `wanted` entries are at hand, if there are so many.
    pub(crate) fn reserve<T: Linked + Zeroed>(
        &mut self,
        wanted: usize,
        table: &Table<T>,
        shared: &Shared,
    ) -> bool {
        while self.entries.len() < wanted {
            if !self.refill(table, shared, 0) {
                return false;
            }
        }
        true
    }

    /// Takes some entries from the shared list.
    #[cold]
    fn refill<T: Linked + Zeroed>(
        &mut self,
        table: &Table<T>,
        shared: &Shared,
        spare: usize,
    ) -> bool {
        let before = self.entries.len();
        let guard = shared.lock.hold();
        let wanted = self.most.div_ceil(2).min(shared.free(table).saturating_sub(spare));
        let mut entry = shared.head.load(Ordering::Relaxed);
        let mut listed = shared.listed.load(Ordering::Relaxed);
        while entry != NONE && self.entries.len() < before + wanted {
            self.entries.push(entry);
            listed -= 1;
            entry = table[entry as usize].link().load(Ordering::Relaxed);
        }
        shared.listed.store(listed, Ordering::Relaxed);
        shared.head.store(entry, Ordering::Relaxed);
        let mut fresh = shared.fresh.load(Ordering::Relaxed).max(1);
        while (fresh as usize) < table.len() && self.entries.len() < before + wanted {
            self.entries.push(fresh);
            fresh += 1;
        }
        shared.fresh.store(fresh, Ordering::Relaxed);
        drop(guard);
        // The lowest number comes first, so that a run that needs few entries touches few lines.
        self.entries[before..].reverse();
        self.entries.len() > before
    }

    /// Gives an entry back.
    #[inline]
    pub(crate) fn give<T: Linked + Zeroed>(
        &mut self,
        entry: u32,
        table: &Table<T>,
        shared: &Shared,
    ) {
        self.entries.push(entry);
        if self.entries.len() > self.most {
            self.pass_on(self.most / 2, table, shared);
        }
    }

    /// Leaves `keep` entries at hand and gives the oldest of the others to the shared list.
    #[cold]
    pub(crate) fn pass_on<T: Linked + Zeroed>(
        &mut self,
        keep: usize,
        table: &Table<T>,
        shared: &Shared,
    ) {
        let Some(count) = self.entries.len().checked_sub(keep).filter(|count| *count > 0) else {
            return;
        };
        for pair in self.entries[..count].windows(2) {
            table[pair[0] as usize].link().store(pair[1], Ordering::Relaxed);
        }
        let guard = shared.lock.hold();
        let old = shared.head.load(Ordering::Relaxed);
        table[self.entries[count - 1] as usize].link().store(old, Ordering::Relaxed);
        shared.head.store(self.entries[0], Ordering::Relaxed);
        let listed = shared.listed.load(Ordering::Relaxed);
        shared.listed.store(listed + u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
        drop(guard);
        self.entries.drain(..count);
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_given_once_and_come_back() {
        let table: Table<Edge> = Table::heap(100);
        let shared = Shared::default();
        let (mut one, mut other) = (Hand::of(100, 2), Hand::of(100, 2));
        let mut taken: Vec<u32> = Vec::new();
        while let Some(entry) = one.take(&table, &shared, 20) {
            taken.push(entry);
        }
        assert_eq!((taken.len(), shared.free(&table)), (79, 20), "some are spared");
        while let Some(entry) = one.take(&table, &shared, 0) {
            taken.push(entry);
        }
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..100).collect::<Vec<u32>>(), "entry 0 ends chains");
        for entry in taken {
            other.give(entry, &table, &shared);
        }
        other.pass_on(0, &table, &shared);
        let mut again: Vec<u32> = std::iter::from_fn(|| one.take(&table, &shared, 0)).collect();
        again.sort_unstable();
        assert_eq!(again, sorted);
    }
}
