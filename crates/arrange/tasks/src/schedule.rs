//! Schedules: which worker ran which of the program's tasks, in which order and when. Recorded by a run, live
//! or simulated, and followed by another.

use isochrone_units::Reading;

use crate::arena::{Came, Capacity};
use crate::error::TaskError;
use crate::trace::Trace;

/// One task of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Who ran it.
    pub worker: u32,
    /// When it began, ns by the clock of the run.
    pub start_ns: u64,
    /// How many began before it: what was first of those that began in the same nanosecond.
    pub order: u32,
    /// How the worker came by it.
    pub came: Came,
}

/// A wait of the program that did not end at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// How many tasks the program's own worker had begun before.
    pub own: u32,
    /// When the program went on, ns by the clock of the run.
    pub resumed_ns: u64,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Of which run. A simulated run that follows a simulated schedule keeps its times as well; a live one, or
    /// one that follows a live schedule, keeps workers and orders.
    pub reading: Reading,
    /// How many workers there were.
    pub workers: u32,
    /// The program's tasks, in the order in which it registered them.
    pub tasks: Vec<Turn>,
    /// The program's waits, where the run was simulated.
    pub waits: Vec<Wait>,
}

impl Schedule {
    /// What a run of so many workers did.
    ///
    /// # Errors
    /// [`TaskError::Schedule`] where the run kept no trace, or not all of its tasks had room in it.
    pub(crate) fn of(
        trace: &Trace,
        workers: usize,
        reading: Reading,
        waits: &[Wait],
    ) -> Result<Self, TaskError> {
        if trace.left_out > 0 || trace.events.is_empty() {
            let left_out = trace.left_out;
            return Err(TaskError::Schedule(format!(
                "{left_out} tasks are not in the trace; raise Capacity::trace"
            )));
        }
        let numbered = trace.events.iter().filter_map(|event| {
            let came = match (event.successor, event.stolen_from) {
                (_, Some(region)) => Came::Stolen(region),
                (true, None) => Came::Successor,
                (false, None) => Came::Queued,
            };
            let (worker, start_ns, order) = (event.worker, event.start_ns, event.order);
            Some((event.number?, Turn { worker, start_ns, order, came }))
        });
        let mut tasks: Vec<(u32, Turn)> = numbered.collect();
        tasks.sort_unstable_by_key(|(number, _)| *number);
        if tasks.iter().zip(0..).any(|((number, _), at)| *number != at) {
            return Err(TaskError::Schedule("some tasks of the run did not begin".to_owned()));
        }
        let workers = u32::try_from(workers).unwrap_or(u32::MAX);
        let tasks = tasks.into_iter().map(|(_, turn)| turn).collect();
        Ok(Self { reading, workers, tasks, waits: waits.to_vec() })
    }

    /// An arena that has room for all tasks at once, so that none of them has to run before its turn, and
    /// numbers for them.
    pub(crate) fn capacity(&self, plan: Capacity) -> Capacity {
        // A quarter of the arena is spared.
        let all = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX / 2);
        let tasks = plan.tasks.max(all.saturating_add(all / 2).saturating_add(64));
        Capacity { tasks, trace: plan.trace.max(1), ..plan }
    }

    /// Whether this makes sense by itself.
    ///
    /// # Errors
    /// [`TaskError::Schedule`] if it names workers that there are not, or the plan has another number of them.
    pub(crate) fn check(&self, workers: usize) -> Result<(), TaskError> {
        let wrong = |text: String| Err(TaskError::Schedule(text));
        if self.workers as usize != workers {
            return wrong(format!("it is of {} workers, and the run has {workers}", self.workers));
        }
        match self.tasks.iter().position(|turn| turn.worker >= self.workers) {
            Some(at) => wrong(format!("task {at} was run by a worker that is not there")),
            None => Ok(()),
        }
    }
}
