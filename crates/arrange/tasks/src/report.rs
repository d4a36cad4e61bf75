//! What a run did: tasks, bytes by distance, steals.

use core::fmt;

use crate::scheduler::Scheduler;
use crate::scheduler::counts::{Count, RINGS};

/// Sums over all workers since the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tasks run.
    pub tasks: u64,
    /// Of these, tasks that a worker ran at once because it had made them ready itself.
    pub successors: u64,
    /// Tasks left out because another had failed.
    pub left_out: u64,
    /// Time of all workers between taking tasks and asking for more.
    pub busy_ns: u64,
    /// Tasks by worker.
    pub tasks_of: Vec<u64>,
    /// Bytes of ranges by distance between the worker's region and theirs: the region itself, its
    /// nearest neighbours, and so on; the last number has all that is farther.
    pub bytes: Vec<u64>,
    /// Bytes of ranges that are interleaved over all regions.
    pub spread_bytes: u64,
    /// Bytes of ranges that were read before anybody had touched them.
    pub untouched_bytes: u64,
    /// Tasks taken from other regions, by distance as for `bytes`.
    pub steals: Vec<u64>,
}

impl Report {
    pub(crate) fn of(scheduler: &Scheduler) -> Self {
        let seats = 0..scheduler.seats.len();
        let sum = |what: Count| seats.clone().map(|seat| scheduler.counted(seat, what)).sum();
        Self {
            tasks: sum(Count::Tasks),
            successors: sum(Count::Successors),
            left_out: sum(Count::LeftOut),
            busy_ns: sum(Count::BusyNs),
            tasks_of: seats.clone().map(|seat| scheduler.counted(seat, Count::Tasks)).collect(),
            bytes: (0..RINGS).map(|ring| sum(Count::Bytes(ring))).collect(),
            spread_bytes: sum(Count::SpreadBytes),
            untouched_bytes: sum(Count::FreshBytes),
            steals: (0..RINGS).map(|ring| sum(Count::Steals(ring))).collect(),
        }
    }

    /// Bytes in the worker's own region.
    #[must_use]
    pub fn local_bytes(&self) -> u64 {
        self.bytes.first().copied().unwrap_or(0)
    }

    /// Bytes in other regions.
    #[must_use]
    pub fn remote_bytes(&self) -> u64 {
        self.bytes.iter().skip(1).sum()
    }
}

impl fmt::Display for Report {
    /// A table of a few lines; numbers by distance go from the region itself to the farthest ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_distance = |numbers: &[u64]| {
            let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
            words.join(" ")
        };
        let beside = [("spread over all", self.spread_bytes), ("untouched", self.untouched_bytes)];
        let beside: String = beside
            .iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(what, bytes)| format!(", {bytes} {what}"))
            .collect();
        writeln!(f, "tasks      {} ({} as successors)", self.tasks, self.successors)?;
        if self.left_out > 0 {
            writeln!(f, "left out   {}", self.left_out)?;
        }
        writeln!(f, "ns a task  {}", self.busy_ns / self.tasks.max(1))?;
        writeln!(f, "bytes      {} by distance{beside}", by_distance(&self.bytes))?;
        write!(f, "steals     {} by distance", by_distance(&self.steals))
    }
}
