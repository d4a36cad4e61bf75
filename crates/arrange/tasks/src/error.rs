//! What can go wrong, with what to do about it.

use crate::range::Range;

/// Why something about tasks could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// A task failed
    #[error("task {kernel} failed: {text}")]
    Failed {
        /// Its kernel.
        kernel: String,
        /// What it said.
        text: String,
    },
    /// Tasks that had not begun were left out, since somebody asked for it
    #[error("cancelled: tasks that had not begun were left out")]
    Cancelled,
    /// A range that a task should have written, which failed
    #[error(
        "{range} is undone since task {kernel} failed: let a task write it that does not look at it, or write it \
         yourself"
    )]
    Undone {
        /// The kernel of the task that failed, or was left out.
        kernel: String,
        /// What it left.
        range: Range,
    },
    /// Tasks wait for one another
    #[error(
        "task {kernel} waits for what cannot happen before it ends itself, and nothing else can run: \
         do not wait inside of a task for tasks that depend on it"
    )]
    Deadlock {
        /// The kernel that waited.
        kernel: String,
    },
    /// A range is not inside of its data
    #[error("{kernel} uses {range}, which has {bytes} bytes; register more, or use less")]
    OutOfRange {
        /// The kernel, or what the program did itself.
        kernel: &'static str,
        /// The range.
        range: Range,
        /// Bytes of the data.
        bytes: u64,
    },
    /// A range of nothing
    #[error("{kernel} uses {range}, which this run has not registered")]
    UnknownData {
        /// The kernel, or what the program did itself.
        kernel: &'static str,
        /// The range.
        range: Range,
    },
    /// A range of data that is gone
    #[error(
        "{kernel} uses {range} after it was freed; free data after the last task that uses them"
    )]
    FreedData {
        /// The kernel, or what the program did itself.
        kernel: &'static str,
        /// The range.
        range: Range,
    },
    /// A child wants more than its parent has
    #[error("{kernel} uses {range}, which the task that registers it did not declare itself")]
    NotCovered {
        /// The child's kernel.
        kernel: &'static str,
        /// The range.
        range: Range,
    },
    /// A task's ranges do not fit
    #[error("a task with {ranges} ranges does not fit; raise Capacity::blocks")]
    TooManyRanges {
        /// How many.
        ranges: usize,
    },
    /// Tasks inside of tasks inside of tasks
    #[error("tasks are too deep inside of one another for the arena; raise Capacity::tasks")]
    TooDeep,
    /// Too many kinds of tasks
    #[error("a run has at most 1024 kernels; make differences arguments instead")]
    TooManyKernels,
    /// Too many registrations
    #[error("no number is left for another piece of data; raise Capacity::data")]
    TooManyData,
    /// Interleaved memory and NUMA-aware queues
    #[error("{}", crate::policy::CONFLICT)]
    Conflict,
    /// A schedule does not fit the program that is to follow it, or none was kept
    #[error("the schedule cannot be used: {0}")]
    Schedule(String),
    /// The configuration makes no sense
    #[error("{0}")]
    Config(String),
    /// The system refused
    #[error(transparent)]
    System(#[from] isochrone_os::OsError),
    /// A worker process is gone
    #[error("worker process {worker} ended ({how}) while it ran {kernel}")]
    WorkerDied {
        /// Its number.
        worker: u32,
        /// Signal or exit code.
        how: String,
        /// The kernel, as far as known.
        kernel: String,
    },
}
