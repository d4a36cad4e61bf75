//! Ranges that tasks left undone when they failed, or were left out since others had: what lies there is not what
//! the program asked for, until somebody writes it anew.
//!
//! Runs without a failure do not come here. Of more ranges than the table has, neighbours are put together,
//! and in the end all data count as undone.

use super::{Arena, BROKEN, NO_DATA};
use crate::range::{DataId, Range};
use crate::sync::{AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Relaxed};

/// A range that was left undone.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Broken {
    start: AtomicU64,
    /// The first byte behind it; 0 for an entry that is free.
    end: AtomicU64,
    data: AtomicU32,
    /// The kernel of the task that failed.
    kernel: AtomicU32,
}

impl Broken {
    /// The range and the kernel, if there are any.
    fn get(&self) -> Option<(Range, u32)> {
        let (start, end) = (self.start.load(Relaxed), self.end.load(Relaxed));
        let bytes = end.checked_sub(start).filter(|bytes| *bytes > 0)?;
        Some((
            Range { data: DataId(self.data.load(Relaxed)), start, bytes },
            self.kernel.load(Relaxed),
        ))
    }

    fn put(&self, range: Range, kernel: u32) {
        self.data.store(range.data.0, Relaxed);
        self.start.store(range.start, Relaxed);
        self.end.store(range.end(), Relaxed);
        self.kernel.store(kernel, Relaxed);
    }

    fn clear(&self) {
        self.put(Range::default(), 0);
    }
}

/// Whether an entry is about some of a range.
fn meets(entry: Range, range: Range) -> bool {
    entry.data.0 == NO_DATA || entry.overlaps(range)
}

impl Arena {
    /// Whether any range is undone.
    fn has_broken(&self) -> bool {
        self.run().broken.load(Relaxed) > 0
    }

    /// The first undone range that has bytes of `range`, and the kernel of the task that failed.
    pub(crate) fn broken_of(&self, range: Range) -> Option<(Range, u32)> {
        if !self.has_broken() {
            return None;
        }
        let _held = self.run().failure_lock.hold();
        let entries = self.broken.iter().filter_map(Broken::get);
        let met = entries.filter(|(entry, _)| meets(*entry, range)).min();
        met.map(
            |(entry, kernel)| {
                if entry.data.0 == NO_DATA { (range, kernel) } else { (entry, kernel) }
            },
        )
    }

    /// A task of this kernel leaves a range undone.
    pub(crate) fn break_range(&self, range: Range, kernel: u32) {
        if range.bytes == 0 {
            return;
        }
        let _held = self.run().failure_lock.hold();
        let mut whole = range;
        for entry in self.broken.iter() {
            let Some((theirs, _)) = entry.get() else { continue };
            if theirs.data == range.data
                && theirs.start <= whole.end()
                && whole.start <= theirs.end()
            {
                whole = hull(theirs, whole);
                entry.clear();
            }
        }
        self.enter_broken(whole, kernel);
        self.count_broken();
    }

    /// A range is written anew: it is no longer undone.
    pub(crate) fn mend(&self, range: Range) {
        if !self.has_broken() {
            return;
        }
        let _held = self.run().failure_lock.hold();
        for entry in self.broken.iter() {
            let Some((theirs, kernel)) = entry.get().filter(|(theirs, _)| theirs.overlaps(range))
            else {
                continue;
            };
            let below = Range { bytes: range.start.saturating_sub(theirs.start), ..theirs };
            let above = Range {
                start: range.end().max(theirs.start),
                bytes: theirs.end().saturating_sub(range.end()),
                ..theirs
            };
            entry.clear();
            for rest in [below, above] {
                if rest.bytes > 0 {
                    self.enter_broken(rest, kernel);
                }
            }
        }
        self.count_broken();
    }

    /// Puts a range into a free entry, or into one of the same data, or gives all data up.
    fn enter_broken(&self, range: Range, kernel: u32) {
        if let Some(free) = self.broken.iter().find(|entry| entry.get().is_none()) {
            return free.put(range, kernel);
        }
        let alike =
            |entry: &&Broken| entry.get().is_some_and(|(theirs, _)| theirs.data == range.data);
        if let Some(entry) = self.broken.iter().find(alike) {
            let theirs = entry.get().map_or(range, |(theirs, _)| theirs);
            return entry.put(hull(theirs, range), kernel);
        }
        let all = Range { data: DataId(NO_DATA), start: 0, bytes: u64::MAX };
        if let Some(first) = self.broken.first() {
            first.put(all, kernel);
        }
    }

    fn count_broken(&self) {
        let run = self.run();
        let count = self.broken.iter().filter(|entry| entry.get().is_some()).count();
        let count = u32::try_from(count).unwrap_or(BROKEN);
        // All undone ranges together are one failure: workers look at that word before they begin a task.
        match (run.broken.swap(count, Relaxed), count) {
            (0, 1..) => _ = run.failures.fetch_add(1, AcqRel),
            (1.., 0) => _ = run.failures.fetch_sub(1, AcqRel),
            _ => {}
        }
    }
}

/// The shortest range that has both.
fn hull(a: Range, b: Range) -> Range {
    let start = a.start.min(b.start);
    Range { start, bytes: a.end().max(b.end()) - start, ..a }
}

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Capacity, Heap};

    fn range(data: u32, start: u64, bytes: u64) -> Range {
        Range { data: DataId(data), start, bytes }
    }

    fn arena() -> Arena {
        Arena::new(&mut Heap, Capacity::default(), 1, 1)
    }

    #[test]
    fn what_is_undone_stays_so_until_it_is_written_anew() {
        let arena = arena();
        assert_eq!(arena.broken_of(range(0, 0, 8)), None);
        arena.break_range(range(0, 0, 100), 7);
        arena.break_range(range(1, 0, 8), 9);
        assert_eq!(arena.broken_of(range(0, 99, 8)), Some((range(0, 0, 100), 7)));
        assert_eq!(arena.broken_of(range(0, 100, 8)), None);
        // A hole, then its edges.
        arena.mend(range(0, 40, 20));
        assert_eq!(arena.broken_of(range(0, 40, 20)), None);
        assert_eq!(arena.broken_of(range(0, 0, 41)), Some((range(0, 0, 40), 7)));
        assert_eq!(arena.broken_of(range(0, 59, 2)), Some((range(0, 60, 40), 7)));
        arena.mend(range(0, 0, 1000));
        assert!(arena.has_broken(), "of other data");
        arena.mend(range(1, 0, 8));
        assert!(!arena.has_broken());
    }

    #[test]
    fn neighbours_are_one_range_and_too_many_ranges_lose_none() {
        let arena = arena();
        (0..10_000).for_each(|piece| arena.break_range(range(0, piece * 8, 8), 1));
        assert_eq!(arena.broken_of(range(0, 5, 1)), Some((range(0, 0, 80_000), 1)));
        arena.mend(range(0, 0, 80_000));
        // Apart from one another, of one piece of data and then of many.
        (0..1000).for_each(|piece| arena.break_range(range(0, piece * 16, 8), 1));
        assert!((0..1000).all(|piece| arena.broken_of(range(0, piece * 16, 8)).is_some()));
        (1..1000).for_each(|data| arena.break_range(range(data, 0, 8), 1));
        assert!((0..1000).all(|data| arena.broken_of(range(data, 0, 8)).is_some()));
    }
}
