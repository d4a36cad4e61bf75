//! Kernels of other languages: functions that are known when the program runs, with plain arguments and
//! with ranges that are said for each task.

use super::accumulator::Accumulator;
use super::mem::Mem;
use super::register::{Task, register_foreign};
use super::runtime::Runtime;
use crate::error::TaskError;
use crate::footprint::{Footprint, Mode};
use crate::kernel::{ARGUMENT_BYTES, Failure, Held, Table};
use crate::range::Data;
use crate::reduce::Reducible;

/// What such a kernel does with its context, a task's arguments and its memory.
pub type ForeignRun = fn(usize, &[u8; ARGUMENT_BYTES], &Mem<'_>) -> Result<(), Failure>;

/// What is behind such a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// What it does.
    pub run: ForeignRun,
    /// What ends the arguments of a task that was left out, where they own something: of a task that ran `run` did.
    pub discard: Option<fn(&[u8; ARGUMENT_BYTES])>,
    /// What `run` is given first.
    pub context: usize,
}

/// A kernel whose function is known at run time only. Where workers are processes it must be made before the
/// run starts: what is made later they do not have.
#[derive(Clone, Copy, Debug)]
pub struct ForeignKernel(pub(super) &'static Table);

/// Arguments in a slot.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bytes(pub(super) [u8; ARGUMENT_BYTES]);

impl ForeignKernel {
    /// A kernel. Tasks know it by its address, so it is never freed: make each once.
    #[must_use]
    pub fn new(name: &str, foreign: Foreign) -> Self {
        Self(Box::leak(Box::new(Table {
            name: Box::leak(name.to_owned().into_boxed_str()),
            bytes: ARGUMENT_BYTES,
            run: call,
            // Its ranges are said when a task is registered; such tasks are not simulated.
            declare: |_, _| (),
            discard: foreign.discard.map(|_| discard as fn(&Table, &Held<'_>)),
            foreign: Some(foreign),
        })))
    }

    /// What errors and traces call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

fn call(table: &Table, held: &Held<'_>, mem: &Mem<'_>) -> Result<(), Failure> {
    let Some(Foreign { run, context, .. }) = table.foreign else {
        return Err(Failure::new("it has no function"));
    };
    run(context, &held.copied::<Bytes>().0, mem)
}

fn discard(table: &Table, held: &Held<'_>) {
    if let Some(discard) = table.foreign.and_then(|foreign| foreign.discard) {
        discard(&held.copied::<Bytes>().0);
    }
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
