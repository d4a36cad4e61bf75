//! What passes between a scheduler and who drives it.

/// How a driver wakes a seat's worker.
pub(crate) trait Wake {
    /// Worker `seat` was resting and shall look again; `asleep` if the system must be told.
    fn wake(&self, seat: u32, asleep: bool);

    /// Which of several seats that rest is woken for a task that any of them may take.
    fn choose(&self, resting: &mut dyn Iterator<Item = u32>) -> Option<u32> {
        resting.next()
    }

    /// A task was appended to a queue.
    fn pushed(&self, queue: usize) {
        let _ = queue;
    }

    /// Time that this thread has run, ns: to tell what a partition costs. The scheduler itself reads no clock.
    fn thread_ns(&self) -> u64 {
        0
    }
}

/// What a worker shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the task in this slot.
    Run(u32),
    /// Rest until woken or until this time, then ask again.
    RetryAt(u64),
    /// Rest until woken.
    Sleep,
    /// What the worker was to work for is reached.
    Reached,
}

/// What a worker works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The end of the run.
    Stop,
    /// All children of the task in this slot, so many, have finished.
    Children(u32, u32),
    /// The sentinel in this slot waits for nothing.
    Ready(u32),
    /// The worker ran something, or there was nothing to run: one more turn than so many.
    Turn(u64),
    /// The worker's own queue has no more than so many tasks.
    Backlog(usize),
}
