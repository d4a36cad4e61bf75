//! What ran where and when, task by task.

use isochrone_units::RegionId;

/// A task that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    /// Its kernel.
    pub kernel: &'static str,
    /// As which of the program's tasks it was registered, from 0; `None` for tasks of tasks.
    pub number: Option<u32>,
    /// How many tasks began before it.
    pub order: u32,
    /// The worker that ran it.
    pub worker: u32,
    /// The worker's region.
    pub region: RegionId,
    /// When it began, by the run's clock.
    pub start_ns: u64,
    /// How long it took, its own waits included.
    pub ns: u64,
    /// Bytes of its ranges in the worker's region.
    pub local_bytes: u64,
    /// Bytes of its ranges in other regions.
    pub remote_bytes: u64,
    /// The region whose queue it was taken from, where that is not the worker's.
    pub stolen_from: Option<RegionId>,
    /// Whether the worker had made it ready itself and ran it at once.
    pub successor: bool,
}

/// What a run did, task by task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Tasks in the order of their workers and, for each, of their ends.
    pub events: Vec<TaskEvent>,
    /// Tasks that found no room.
    pub left_out: u64,
}
