//! A program that registers tasks, written once: it runs here, and it is simulated.

use core::fmt::Debug;

use isochrone_units::Reading;

use crate::error::TaskError;
use crate::kernel::Kernel;
use crate::range::{Data, Element, Part, Range};
use crate::report::Report;

/// What a program does with tasks. [`crate::live::Runtime`] runs them on this machine,
/// [`crate::simulated::Simulation`] in virtual time on a modelled one, where there is no memory behind
/// data: so a program reads what tasks computed through [`Tasks::value`] only.
pub trait Tasks {
    /// Where numbers about the run come from.
    fn reading(&self) -> Reading;

    /// How many workers there are.
    fn workers(&self) -> usize;

    /// The time in nanoseconds: of this machine's clock, or virtual.
    fn now_ns(&self) -> u64;

    /// Registers an array of `len` zeroes that nobody has touched yet.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room for it.
    fn data<T: Element>(&mut self, len: usize) -> Result<Data<T>, TaskError>;

    /// Frees data when the tasks that use them are over.
    ///
    /// # Errors
    /// [`TaskError`] where a task failed before.
    fn free<T: Element>(&mut self, data: Data<T>) -> Result<(), TaskError>;

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

    /// Waits until tasks that write `range` are over.
    ///
    /// # Errors
    /// As [`Self::wait`].
    fn wait_on(&mut self, range: impl Into<Range>) -> Result<(), TaskError>;

    /// A computed element that decides how the program goes on, when the tasks that write it are over.
    /// A simulated run takes `assumed`, and says so.
    ///
    /// # Errors
    /// As [`Self::wait`].
    fn value<T: Element + Debug>(
        &mut self,
        data: Data<T>,
        index: usize,
        assumed: T,
    ) -> Result<T, TaskError>;

    /// As [`Self::value`] for all elements of a part; element `i` of it is assumed to be `assumed(i)`.
    ///
    /// # Errors
    /// As [`Self::wait`].
    fn values<T: Element + Debug>(
        &mut self,
        part: Part<T>,
        assumed: impl FnMut(usize) -> T,
    ) -> Result<Vec<T>, TaskError>;

    /// The program's own thread writes a part, when the tasks that use it are over. A simulated run has
    /// no memory to write to, and charges nothing: this is for the few values that a decision takes.
    ///
    /// # Errors
    /// As [`Self::wait`], and where the part is not inside of its data.
    fn store<T: Element>(
        &mut self,
        part: Part<T>,
        write: impl FnOnce(&mut [T]),
    ) -> Result<(), TaskError>;

    /// What the run did so far.
    fn report(&self) -> Report;
}
