//! What a kernel may touch: the ranges that its task declared, each checked when it is asked for, and
//! tasks of its own.

use core::cell::RefCell;
use core::fmt;
use core::ops::{Deref, DerefMut};

use super::accumulator::Accumulator;
use super::shared::Shared;
use crate::arena::slot::Stored;
use crate::failure::Failure;
use crate::footprint::Mode;
use crate::range::{Element, Part, Range};
use crate::reduce::Reducible;
use crate::scheduler::Children;
use crate::scheduler::worker::Worker;

/// A running task's memory.
pub struct Mem<'a> {
    pub(super) shared: &'a Shared,
    pub(super) worker: &'a RefCell<Worker>,
    pub(super) task: u32,
    pub(super) kernel: &'static str,
    /// Ranges that views of this task show now.
    pub(super) shown: RefCell<Vec<(Range, bool)>>,
    pub(super) children: RefCell<Option<Box<Children>>>,
}

impl fmt::Debug for Mem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory of a {}", self.kernel)
    }
}

impl<'a> Mem<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        worker: &'a RefCell<Worker>,
        task: u32,
        kernel: &'static str,
    ) -> Self {
        let shown = RefCell::new(core::mem::take(&mut worker.borrow_mut().shown));
        Self { shared, worker, task, kernel, shown, children: RefCell::new(None) }
    }

    /// Gives back what a task took of its worker; how many children were registered and not waited for.
    pub(crate) fn end(self) -> u32 {
        let mut shown = self.shown.take();
        shown.clear();
        self.worker.borrow_mut().shown = shown;
        self.children.borrow().as_ref().map_or(0, |children| children.spawned)
    }

    /// The number of the worker that runs the task.
    #[must_use]
    pub fn worker(&self) -> u32 {
        self.worker.borrow().seat
    }

    /// The region of that worker, by the topology's number.
    #[must_use]
    pub fn region(&self) -> usize {
        self.worker.borrow().region
    }

    /// Elements to read.
    ///
    /// # Errors
    /// [`Failure`] where the task did not declare the range, shows it for writing already, or has
    /// children that write it.
    pub fn read<T: Element>(&self, part: Part<T>) -> Result<View<'_, T>, Failure> {
        let range = part.range();
        let first = self.claim(range, false)?;
        // SAFETY: the range lies in registered memory, aligned for `T` as its data are (`claim` checks
        // both); its task declared it, so no task that writes it runs now, and of this task's views
        // none shows it for writing. `T` is valid for any bytes.
        let slice = unsafe { core::slice::from_raw_parts(first.cast::<T>(), part.len()) };
        Ok(View { slice, shown: Shown { shown: &self.shown, range, writes: false } })
    }

    /// Elements to read and write.
    ///
    /// # Errors
    /// [`Failure`] where the task did not declare that it writes the range, shows it already, or has
    /// children that use it.
    pub fn write<T: Element>(&self, part: Part<T>) -> Result<ViewMut<'_, T>, Failure> {
        let range = part.range();
        let first = self.claim(range, true)?;
        // SAFETY: as in `read`; the task declared that it writes the range, so no other task uses it
        // now, and none of this task's views shows it.
        let slice = unsafe { core::slice::from_raw_parts_mut(first.cast::<T>(), part.len()) };
        Ok(ViewMut { slice, shown: Shown { shown: &self.shown, range, writes: true } })
    }

    /// The task's ranges, in the order in which they were declared.
    pub(super) fn stored(&self) -> impl Iterator<Item = Stored> + '_ {
        self.shared.scheduler.arena.accesses(self.task)
    }

    /// Where a range of registered data begins.
    pub(super) fn address(&self, range: Range) -> *mut u8 {
        let object = &self.shared.scheduler.arena.objects[range.data.0 as usize];
        let base = object.base.load(crate::sync::Ordering::Relaxed);
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        core::ptr::with_exposed_provenance_mut(base.wrapping_add(start))
    }

    /// Values of this task's own for a range that it reduces; they are combined with the common ones when
    /// the result is dropped.
    ///
    /// # Errors
    /// [`Failure`] where the task did not declare that it reduces exactly this range.
    pub fn accumulate<T: Reducible>(&self, part: Part<T>) -> Result<Accumulator<'_, T>, Failure> {
        let range = part.range();
        let declared = self.stored().find_map(|access| match access.mode {
            Mode::Reduce(op) if access.range == range => Some((op, access.token)),
            _ => None,
        });
        let (op, token) = declared.ok_or_else(|| {
            Failure::new(format!(
                "{} reduces {range}, which it did not declare so; add it to Kernel::declare",
                self.kernel
            ))
        })?;
        self.check_live(range)?;
        let first = self.address(range).cast::<T>();
        Ok(Accumulator {
            own: vec![T::neutral(op); part.len()],
            part,
            op,
            token,
            scheduler: &self.shared.scheduler,
            first,
        })
    }

    /// Checks that the task may show a range, notes it, and gives its address.
    fn claim(&self, range: Range, writes: bool) -> Result<*mut u8, Failure> {
        let fits = |mode: Mode| match mode {
            Mode::In => !writes,
            Mode::Out | Mode::InOut | Mode::Commutative => true,
            Mode::Reduce(_) => false,
        };
        let declared = self.stored().any(|a| fits(a.mode) && a.range.contains(range));
        if !declared && range.bytes > 0 {
            let how = if writes { "writes" } else { "reads" };
            return Err(Failure::new(format!(
                "{} {how} {range}, which it did not declare so; add it to Kernel::declare",
                self.kernel
            )));
        }
        let clash = |(other, theirs): &(Range, bool)| (writes || *theirs) && other.overlaps(range);
        if self.shown.borrow().iter().any(clash) {
            return Err(Failure::new(format!(
                "{} asks for {range} while another view of it lives; drop that first",
                self.kernel
            )));
        }
        self.check_children(range, writes)?;
        self.check_live(range)?;
        self.shown.borrow_mut().push((range, writes));
        Ok(self.address(range))
    }

    fn check_live(&self, range: Range) -> Result<(), Failure> {
        let object = self.shared.scheduler.arena.object(range);
        object.map(drop).map_err(|_| Failure::new(format!("{range} is gone")))
    }

    fn check_children(&self, range: Range, writes: bool) -> Result<(), Failure> {
        let mut children = self.children.borrow_mut();
        let Some(children) = children.as_mut().filter(|children| children.spawned > 0) else {
            return Ok(());
        };
        let mut before = Vec::new();
        children.domain.look(range, if writes { Mode::InOut } else { Mode::In }, &mut before);
        if before.iter().any(|task| self.shared.scheduler.arena.is_live(*task)) {
            return Err(Failure::new(format!(
                "{} asks for {range} while its own tasks use it; wait for them first",
                self.kernel
            )));
        }
        Ok(())
    }

    /// Whether workers are processes, which share data and nothing else.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.shared.scope == isochrone_os::futex::Scope::Shared
    }

    /// Leaves out the tasks beside this one, of the same parent, that have not begun; who waits for them is told
    /// [`TaskError::Cancelled`](crate::TaskError::Cancelled).
    pub fn cancel(&self) {
        let scheduler = &self.shared.scheduler;
        let parent = scheduler.arena.slot(self.task).parent.load(crate::sync::Ordering::Relaxed);
        scheduler.cancel(parent);
    }

    /// Whether what this task does is of no use any more, since a task beside or above it failed or was cancelled:
    /// then it may return at once.
    #[must_use]
    pub fn is_in_vain(&self) -> bool {
        self.shared.scheduler.is_in_vain(self.task)
    }
}

/// A note that a view shows a range, taken back when it is dropped.
struct Shown<'m> {
    shown: &'m RefCell<Vec<(Range, bool)>>,
    range: Range,
    writes: bool,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let mut shown = self.shown.borrow_mut();
        let mine = |(range, writes): &(Range, bool)| *range == self.range && *writes == self.writes;
        if let Some(at) = shown.iter().rposition(mine) {
            shown.swap_remove(at);
        }
    }
}

/// Elements to read, for as long as it lives.
pub struct View<'m, T> {
    slice: &'m [T],
    #[allow(dead_code, reason = "dropping it is its use")]
    shown: Shown<'m>,
}

impl<T> Deref for View<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.slice
    }
}

impl<T: fmt::Debug> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice.fmt(f)
    }
}

/// Elements to read and write, for as long as it lives.
pub struct ViewMut<'m, T> {
    slice: &'m mut [T],
    #[allow(dead_code, reason = "dropping it is its use")]
    shown: Shown<'m>,
}

impl<T> Deref for ViewMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.slice
    }
}

impl<T> DerefMut for ViewMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.slice
    }
}

impl<T: fmt::Debug> fmt::Debug for ViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice.fmt(f)
    }
}
