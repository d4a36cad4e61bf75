//! Kernels of other languages: functions that are known when the program runs, with plain arguments and
//! with ranges that are said for each task.

use core::cell::RefCell;

use super::accumulator::Accumulator;
use super::mem::Mem;
use super::register::enter;
use super::runtime::Runtime;
use super::shared::Shared;
use super::table::{Foreign, Table};
use super::task::Task;
use crate::arena::arguments::Held;
use crate::arena::{ARGUMENT_BYTES, Bytes, Discard, KernelKind};
use crate::error::TaskError;
use crate::failure::Failure;
use crate::footprint::{Footprint, Mode};
use crate::range::Data;
use crate::reduce::Reducible;
use crate::scheduler::Children;
use crate::scheduler::worker::Worker;

/// A kernel whose function is known at run time only. Where workers are processes it must be made before the
/// run starts: what is made later they do not have.
#[derive(Clone, Copy, Debug)]
pub struct ForeignKernel(&'static Table);

impl ForeignKernel {
    /// A kernel. Tasks know it by its address, so it is never freed: make each once.
    #[must_use]
    pub fn new(name: &str, foreign: Foreign) -> Self {
        Self(Box::leak(Box::new(Table {
            kind: KernelKind {
                name: Box::leak(name.to_owned().into_boxed_str()),
                bytes: ARGUMENT_BYTES,
                // Its ranges are said when a task is registered; such tasks are not simulated.
                declare: |_, _| (),
                discard: foreign.discard.map(Discard::Bytes),
            },
            run: call,
            foreign: Some(foreign),
        })))
    }

    /// What errors and traces call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.kind.name
    }
}

fn call(table: &Table, held: &Held<'_>, mem: &Mem<'_>) -> Result<(), Failure> {
    let Some(Foreign { run, context, .. }) = table.foreign else {
        return Err(Failure::new("it has no function"));
    };
    run(context, &held.copied::<Bytes>().0, mem)
}

/// Registers a task of a kernel that is known at run time only.
fn register_foreign(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    kernel: ForeignKernel,
    arguments: [u8; ARGUMENT_BYTES],
    footprint: &Footprint,
) -> Result<Task, TaskError> {
    let declare = |out: &mut Footprint| out.assign(footprint);
    // SAFETY: the tables of such kernels run arguments of this type.
    unsafe { enter(shared, worker, children, declare, Bytes(arguments), true, kernel.0) }
}

impl Runtime {
    /// Registers a task of a kernel that is known at run time only, with the ranges of `footprint`.
    ///
    /// # Errors
    /// As [`Runtime::spawn`].
    pub fn spawn_foreign(
        &mut self,
        kernel: ForeignKernel,
        arguments: [u8; ARGUMENT_BYTES],
        footprint: &Footprint,
    ) -> Result<Task, TaskError> {
        self.with_children(|shared, worker, children| {
            register_foreign(shared, worker, children, kernel, arguments, footprint)
        })
    }
}

impl Mem<'_> {
    /// As [`Runtime::spawn_foreign`], for a task of this task's own.
    ///
    /// # Errors
    /// As [`Mem::spawn`].
    pub fn spawn_foreign(
        &self,
        kernel: ForeignKernel,
        arguments: [u8; ARGUMENT_BYTES],
        footprint: &Footprint,
    ) -> Result<Task, TaskError> {
        self.with_children(kernel.name(), footprint, |shared, worker, children| {
            register_foreign(shared, worker, children, kernel, arguments, footprint)
        })
    }

    /// Addresses of the task's ranges, in the order in which they were declared, for kernels of other
    /// languages: these vouch themselves for using each as it was declared. Null for a range that the task
    /// reduces: it has values of its own, [`Self::accumulate_at`].
    pub fn addresses(&self) -> impl Iterator<Item = *mut u8> + '_ {
        self.stored().map(|access| match access.mode {
            Mode::Reduce(_) => core::ptr::null_mut(),
            _ => self.address(access.range),
        })
    }

    /// As [`Mem::accumulate`], for the range that was declared as number `at`, from 0.
    ///
    /// # Errors
    /// [`Failure`] where the task does not reduce that range, or it holds no whole elements.
    pub fn accumulate_at<T: Reducible>(&self, at: usize) -> Result<Accumulator<'_, T>, Failure> {
        let unit = size_of::<T>() as u64;
        let found = self.stored().nth(at).filter(|access| matches!(access.mode, Mode::Reduce(_)));
        let range = found.map(|access| access.range);
        let range =
            range.ok_or_else(|| Failure::new(format!("range {at} is none that it reduces")))?;
        if !range.start.is_multiple_of(unit) || !range.bytes.is_multiple_of(unit) {
            return Err(Failure::new(format!("{range} holds no whole elements of {unit} bytes")));
        }
        let whole = |bytes: u64| usize::try_from(bytes / unit).unwrap_or(usize::MAX);
        let data = Data::<T>::new(range.data, whole(range.end()));
        self.accumulate(data.part(whole(range.start), whole(range.bytes)))
    }
}
