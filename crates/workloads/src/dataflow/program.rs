//! What a benchmark needs of whoever runs its tasks: a live run, or a simulated machine that only reads
//! footprints.

use isochrone_tasks::live::Runtime;
use isochrone_tasks::{Data, Element, Kernel, Part, TaskError};

/// A run that takes data and tasks in program order.
pub trait Tasks {
    /// Registers an array of `len` zeroes that nobody has touched.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room.
    fn data<T: Element>(&mut self, len: usize) -> Result<Data<T>, TaskError>;

    /// Registers a task.
    ///
    /// # Errors
    /// [`TaskError`] for a range that cannot be used.
    fn spawn<K: Kernel>(&mut self, kernel: K) -> Result<(), TaskError>;

    /// Waits until all tasks are over.
    ///
    /// # Errors
    /// [`TaskError`] if one failed.
    fn wait(&mut self) -> Result<(), TaskError>;

    /// Computed values that the program decides by. Where nothing is computed, element `i` is
    /// `assumed(i)`, and the run says that it was assumed.
    ///
    /// # Errors
    /// [`TaskError`] if a task that computes them failed.
    fn values<T: Element>(
        &mut self,
        part: Part<T>,
        assumed: impl FnMut(usize) -> T,
    ) -> Result<Vec<T>, TaskError>;

    /// The program's own thread writes a part, as a serial first touch does.
    ///
    /// # Errors
    /// [`TaskError`] if a task that uses the part failed.
    fn store<T: Element>(
        &mut self,
        part: Part<T>,
        write: impl FnOnce(&mut [T]),
    ) -> Result<(), TaskError>;
}

impl Tasks for Runtime {
    fn data<T: Element>(&mut self, len: usize) -> Result<Data<T>, TaskError> {
        self.data(len)
    }

    fn spawn<K: Kernel>(&mut self, kernel: K) -> Result<(), TaskError> {
        self.spawn(kernel)
    }

    fn wait(&mut self) -> Result<(), TaskError> {
        self.wait()
    }

    fn values<T: Element>(
        &mut self,
        part: Part<T>,
        _assumed: impl FnMut(usize) -> T,
    ) -> Result<Vec<T>, TaskError> {
        self.read(part).map(<[T]>::to_vec)
    }

    fn store<T: Element>(
        &mut self,
        part: Part<T>,
        write: impl FnOnce(&mut [T]),
    ) -> Result<(), TaskError> {
        self.write(part).map(write)
    }
}

/// Who touches the data first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstTouch {
    /// One task for each tile or block, which is what NUMA-aware scheduling deals round.
    #[default]
    Blocks,
    /// One task for each column of tiles; for matrices only.
    Panels,
    /// The program's own thread: everything lies in its region.
    Serial,
}
