//! Ranges that tasks left undone when they failed, or were left out since others had: what lies there is not what
//! the program asked for, until somebody writes it anew.
//!
//! Runs without a failure do not come here. Of more ranges than the table has, neighbours are put together,
//! and in the end all data count as undone.

use super::lock::Lock;
#[cfg(not(all(loom, test)))]
use super::table::Zeroed;
use crate::range::{DataId, Range};
use crate::sync::{AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Relaxed};

/// No piece of data has this number: in its place all of them.
const NO_DATA: u32 = u32::MAX;

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

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Broken {}

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

/// All that are undone: a view of words that workers share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undone<'a> {
    pub(super) entries: &'a [Broken],
    /// Entries that are in use.
    pub(super) count: &'a AtomicU32,
    /// The word that workers look at before they begin a task: all undone ranges together are one failure.
    pub(super) failures: &'a AtomicU32,
    pub(super) lock: &'a Lock,
}

impl Undone<'_> {
    fn is_empty(self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// The first undone range that has bytes of `range`, and the kernel of the task that failed.
    pub(crate) fn of(self, range: Range) -> Option<(Range, u32)> {
        if self.is_empty() {
            return None;
        }
        let _held = self.lock.hold();
        let entries = self.entries.iter().filter_map(Broken::get);
        let met = entries.filter(|(entry, _)| meets(*entry, range)).min();
        met.map(
            |(entry, kernel)| {
                if entry.data.0 == NO_DATA { (range, kernel) } else { (entry, kernel) }
            },
        )
    }

    /// A task of this kernel leaves a range undone.
    pub(crate) fn add(self, range: Range, kernel: u32) {
        if range.bytes == 0 {
            return;
        }
        let _held = self.lock.hold();
        let mut whole = range;
        for entry in self.entries.iter() {
            let Some((theirs, _)) = entry.get() else { continue };
            if theirs.data == range.data
                && theirs.start <= whole.end()
                && whole.start <= theirs.end()
            {
                whole = hull(theirs, whole);
                entry.clear();
            }
        }
        self.enter(whole, kernel);
        self.recount();
    }

    /// A range is written anew: it is no longer undone.
    pub(crate) fn mend(self, range: Range) {
        if self.is_empty() {
            return;
        }
        let _held = self.lock.hold();
        for entry in self.entries.iter() {
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
                    self.enter(rest, kernel);
                }
            }
        }
        self.recount();
    }

    /// Puts a range into a free entry, or into one of the same data, or gives all data up.
    fn enter(self, range: Range, kernel: u32) {
        if let Some(free) = self.entries.iter().find(|entry| entry.get().is_none()) {
            return free.put(range, kernel);
        }
        let alike =
            |entry: &&Broken| entry.get().is_some_and(|(theirs, _)| theirs.data == range.data);
        if let Some(entry) = self.entries.iter().find(alike) {
            let theirs = entry.get().map_or(range, |(theirs, _)| theirs);
            return entry.put(hull(theirs, range), kernel);
        }
        let all = Range { data: DataId(NO_DATA), start: 0, bytes: u64::MAX };
        if let Some(first) = self.entries.first() {
            first.put(all, kernel);
        }
    }

    fn recount(self) {
        let count = self.entries.iter().filter(|entry| entry.get().is_some()).count();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        match (self.count.swap(count, Relaxed), count) {
            (0, 1..) => _ = self.failures.fetch_add(1, AcqRel),
            (1.., 0) => _ = self.failures.fetch_sub(1, AcqRel),
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

    fn range(data: u32, start: u64, bytes: u64) -> Range {
        Range { data: DataId(data), start, bytes }
    }

    struct Words(Vec<Broken>, [AtomicU32; 2], Lock);

    impl Words {
        fn new() -> Self {
            Self((0..256).map(|_| Broken::default()).collect(), Default::default(), Lock::default())
        }

        fn undone(&self) -> Undone<'_> {
            let [count, failures] = &self.1;
            Undone { entries: &self.0, count, failures, lock: &self.2 }
        }
    }

    #[test]
    fn what_is_undone_stays_so_until_it_is_written_anew() {
        let words = Words::new();
        let undone = words.undone();
        assert_eq!(undone.of(range(0, 0, 8)), None);
        undone.add(range(0, 0, 100), 7);
        undone.add(range(1, 0, 8), 9);
        assert_eq!(undone.of(range(0, 99, 8)), Some((range(0, 0, 100), 7)));
        assert_eq!(undone.of(range(0, 100, 8)), None);
        // A hole, then its edges.
        undone.mend(range(0, 40, 20));
        assert_eq!(undone.of(range(0, 40, 20)), None);
        assert_eq!(undone.of(range(0, 0, 41)), Some((range(0, 0, 40), 7)));
        assert_eq!(undone.of(range(0, 59, 2)), Some((range(0, 60, 40), 7)));
        undone.mend(range(0, 0, 1000));
        assert_eq!(words.1[1].load(Relaxed), 1, "of other data");
        undone.mend(range(1, 0, 8));
        assert!(undone.is_empty());
        assert_eq!(words.1[1].load(Relaxed), 0);
    }

    #[test]
    fn neighbours_are_one_range_and_too_many_ranges_lose_none() {
        let words = Words::new();
        let undone = words.undone();
        (0..10_000).for_each(|piece| undone.add(range(0, piece * 8, 8), 1));
        assert_eq!(undone.of(range(0, 5, 1)), Some((range(0, 0, 80_000), 1)));
        undone.mend(range(0, 0, 80_000));
        // Apart from one another, of one piece of data and then of many.
        (0..1000).for_each(|piece| undone.add(range(0, piece * 16, 8), 1));
        assert!((0..1000).all(|piece| undone.of(range(0, piece * 16, 8)).is_some()));
        (1..1000).for_each(|data| undone.add(range(data, 0, 8), 1));
        assert!((0..1000).all(|data| undone.of(range(data, 0, 8)).is_some()));
    }
}
