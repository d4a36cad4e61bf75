//! Tasks of a task's own: registering them, and waiting for them.

use core::cell::RefCell;

use super::mem::Mem;
use super::register::{register, register_fn, report, wait_children, wait_range, wait_task};
use super::shared::Shared;
use super::task::Task;
use crate::arena::slot::Stored;
use crate::error::TaskError;
use crate::failure::Failure;
use crate::footprint::{Footprint, Mode};
use crate::kernel::Kernel;
use crate::range::Range;
use crate::scheduler::Children;
use crate::scheduler::worker::Worker;

impl Mem<'_> {
    /// Registers a task of this task's own. It may use what this task declared, no more; this task ends
    /// when all its own have.
    ///
    /// # Errors
    /// [`TaskError`] where a range is not covered by this task's, or cannot be used.
    pub fn spawn<K: Kernel>(&self, kernel: K) -> Result<(), TaskError> {
        self.spawn_task(kernel).map(drop)
    }

    /// As [`Self::spawn`]; the result can be waited for.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_task<K: Kernel>(&self, kernel: K) -> Result<Task, TaskError> {
        let mut footprint = Footprint::new();
        kernel.declare(&mut footprint);
        self.with_children(K::NAME, &footprint, |shared, worker, children| {
            register(shared, worker, children, kernel, true)
        })
    }

    /// As [`Self::spawn`], for a closure with the ranges that `declare` says.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_fn<F>(&self, declare: impl Fn(&mut Footprint), run: F) -> Result<Task, TaskError>
    where
        F: FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static,
    {
        let mut footprint = Footprint::new();
        declare(&mut footprint);
        self.with_children("closure", &footprint, |shared, worker, children| {
            register_fn(shared, worker, children, declare, run)
        })
    }

    pub(super) fn with_children(
        &self,
        kernel: &'static str,
        footprint: &Footprint,
        register: impl FnOnce(&Shared, &RefCell<Worker>, &mut Children) -> Result<Task, TaskError>,
    ) -> Result<Task, TaskError> {
        self.check_cover(kernel, footprint)?;
        let mut children = self.children.borrow_mut();
        let children = children.get_or_insert_with(|| Box::new(Children::of(self.task)));
        children.domain.ordered = self.holds_token();
        register(self.shared, self.worker, children)
    }

    /// Waits until one task is over, whoever registered it.
    ///
    /// # Errors
    /// [`TaskError`] if one of this task's own failed, and if nothing can go on, as when that task waits for this one.
    pub fn wait_task(&self, task: Task) -> Result<(), TaskError> {
        wait_task(self.shared, self.worker, task, self.kernel)?;
        let mut children = self.children.borrow_mut();
        let Some(children) = children.as_mut() else { return Ok(()) };
        report(self.shared, self.worker, children, self.kernel)
    }

    fn holds_token(&self) -> bool {
        self.stored().any(|access| access.token != 0)
    }

    fn check_cover(&self, kernel: &'static str, footprint: &Footprint) -> Result<(), TaskError> {
        for access in footprint.accesses() {
            let covers = |mine: Stored| {
                mine.range.contains(access.range)
                    && (!access.mode.writes() || mine.mode.writes())
                    && !matches!(mine.mode, Mode::Reduce(_))
            };
            let covered = self.stored().any(covers);
            let clash = |(shown, writes): &(Range, bool)| {
                (*writes || access.mode.writes()) && shown.overlaps(access.range)
            };
            if !covered || self.shown.borrow().iter().any(clash) {
                return Err(TaskError::NotCovered { kernel, range: access.range });
            }
        }
        Ok(())
    }

    /// Waits until all tasks of this task's own are over; the worker runs others meanwhile.
    ///
    /// # Errors
    /// [`TaskError`] if one failed, or nothing can go on.
    pub fn wait(&self) -> Result<(), TaskError> {
        let mut children = self.children.borrow_mut();
        let Some(children) = children.as_mut() else { return Ok(()) };
        wait_children(self.shared, self.worker, children, self.kernel)
    }

    /// Waits until those tasks of this task's own are over that write `range`.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_on(&self, range: impl Into<Range>) -> Result<(), TaskError> {
        let mut children = self.children.borrow_mut();
        let Some(children) = children.as_mut() else { return Ok(()) };
        wait_range(self.shared, self.worker, children, range.into(), Mode::In, self.kernel)
    }
}
