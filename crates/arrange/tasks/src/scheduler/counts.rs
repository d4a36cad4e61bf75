//! What workers count: written by the worker alone, summed by whoever reports.

use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::{Begun, COUNTS, Came};
use crate::sync::Ordering;

/// Rings of regions whose bytes and steals are told apart; farther ones are counted with the last.
pub(crate) const RINGS: usize = 4;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Tasks run.
    Tasks,
    /// Tasks left out because another had failed.
    LeftOut,
    /// Time between taking tasks and asking again.
    BusyNs,
    /// Tasks run at once as a successor of the one before.
    Successors,
    /// Ranges whose exact match was found by one look, and others.
    Bytes(usize),
    /// Bytes of ranges spread over all regions.
    SpreadBytes,
    /// Bytes of ranges that nobody had touched.
    FreshBytes,
    /// Tasks taken from another region's queue.
    Steals(usize),
}

impl Count {
    fn index(self) -> usize {
        match self {
            Self::Tasks => 0,
            Self::LeftOut => 1,
            Self::BusyNs => 2,
            Self::Successors => 3,
            Self::SpreadBytes => 4,
            Self::FreshBytes => 5,
            Self::Bytes(ring) => 8 + ring.min(RINGS - 1),
            Self::Steals(ring) => 8 + RINGS + ring.min(RINGS - 1),
        }
    }
}

const _: () = assert!(8 + 2 * RINGS <= COUNTS, "every count has a word");

impl Scheduler {
    /// Adds to a worker's count.
    #[inline]
    pub(crate) fn count(&self, worker: &Worker, what: Count, number: u64) {
        let word = &self.arena.seats[worker.seat as usize].counts[what.index()];
        // Nobody else writes, so no atomic addition is needed.
        word.store(word.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }

    /// A worker's count.
    pub(crate) fn counted(&self, seat: usize, what: Count) -> u64 {
        self.arena.seats[seat].counts[what.index()].load(Ordering::Relaxed)
    }

    /// Tasks that have begun on workers of the queue.
    pub(crate) fn begun_on(&self, queue: usize) -> u64 {
        let seats = self.members[queue].iter().map(|seat| *seat as usize);
        seats.map(|seat| self.counted(seat, Count::Tasks)).fold(0, u64::wrapping_add)
    }

    /// Counts a task that begins, and notes it for the trace, if there is one.
    #[inline]
    pub(crate) fn begin(
        &self,
        worker: &mut Worker,
        task: u32,
        now: impl FnOnce() -> u64,
    ) -> Option<Begun> {
        if self.arena.trace.is_empty() {
            self.account(worker, task);
            return None;
        }
        Some(self.begin_traced(worker, task, now()))
    }

    #[cold]
    fn begin_traced(&self, worker: &mut Worker, task: u32, now: u64) -> Begun {
        let seat = worker.seat as usize;
        let bytes = |rings: core::ops::Range<usize>| -> u64 {
            rings.map(|ring| self.counted(seat, Count::Bytes(ring))).sum()
        };
        let (local, remote) = (bytes(0..1), bytes(1..RINGS));
        self.account(worker, task);
        if self.followed.is_some() && self.number(task).is_some() {
            worker.followed += 1;
            self.count_as_recorded(worker, task);
        }
        Begun {
            start_ns: now,
            order: self.arena.run().begun.fetch_add(1, Ordering::Relaxed),
            number: self.number(task),
            kernel: self.arena.slot(task).kernel.load(Ordering::Relaxed),
            local: bytes(0..1) - local,
            remote: bytes(1..RINGS) - remote,
            came: self.came(worker, task),
        }
    }

    /// Successors and steals of the run that was recorded, since a worker that follows it has none.
    fn count_as_recorded(&self, worker: &Worker, task: u32) {
        match self.came(worker, task) {
            Came::Queued => {}
            Came::Successor => self.count(worker, Count::Successors, 1),
            Came::Stolen(region) => {
                let from = self.topology.region_index(region).unwrap_or(worker.region);
                self.count(worker, Count::Steals(self.ring(worker.region, from)), 1);
            }
        }
    }

    /// Counts a task that begins: where its bytes are from here, and whether it is the first to touch
    /// some.
    #[inline]
    fn account(&self, worker: &Worker, task: u32) {
        self.count(worker, Count::Tasks, 1);
        if self.arena.slot(task).accesses.load(Ordering::Relaxed) == 0 {
            return;
        }
        for access in self.arena.accesses(task) {
            if self.topology.regions() == 1 {
                self.count(worker, Count::Bytes(0), access.range.bytes);
                continue;
            }
            if access.mode.writes() && self.arena.is_open(access.range) {
                self.arena.touch(access.range, worker.region);
            }
            self.account_range(worker, access.range);
        }
    }

    fn account_range(&self, worker: &Worker, range: crate::range::Range) {
        use crate::arena::objects::Home;
        self.arena.homes_of(range, |home, bytes| {
            let what = match home {
                Home::Unknown => Count::FreshBytes,
                Home::Spread => Count::SpreadBytes,
                Home::Region(region) => Count::Bytes(self.ring(worker.region, region)),
            };
            self.count(worker, what, bytes);
        });
    }
}
