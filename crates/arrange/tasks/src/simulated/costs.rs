//! What the runtime costs on a simulated machine.

/// What the runtime itself costs on the simulated machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Registering a task, of the program's time.
    pub spawn_ns: u64,
    /// Taking a task, of the worker's time.
    pub task_ns: u64,
    /// From the moment a worker is woken until it looks for work.
    pub wake_ns: u64,
}
