//! What all workers of a run share, and how one of them is woken.

use core::cell::RefCell;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use isochrone_os::affinity::gettid;
use isochrone_os::futex::Scope;
use isochrone_os::stack;

use super::memory::Memory;
use super::team::Team;
use crate::error::TaskError;
use crate::scheduler::worker::Worker;
use crate::scheduler::{Scheduler, Wake};
use crate::sync::{Ordering, rouse};

/// Of a thread's stack, what is left to a task itself when tasks are inside of one another: kernels of C have buffers
/// there. A quarter at most.
const STACK_LEFT: usize = 256 << 10;

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) scheduler: Scheduler,
    pub(crate) memory: Memory,
    /// How long a worker without work watches before it sleeps.
    pub(crate) spin_ns: u64,
    pub(crate) scope: Scope,
    /// The processes, where workers are processes.
    pub(crate) team: Option<Team>,
    /// Whether a task can use only the pages that it declared.
    pub(crate) guarded: bool,
}

/// Runs a future whose every operation blocks: it is ready after one poll.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut context) {
            return out;
        }
    }
}

impl Shared {
    /// Whoever waits for a process that is gone goes on, and is told so.
    pub(super) fn look_after_others(&self, seat: u32) {
        if self.team.as_ref().is_some_and(Team::is_orphan) {
            // There is nothing left to do, and whoever made this worker wants it back.
            self.scheduler.arena.run().stop.store(1, Ordering::SeqCst);
            self.scheduler.wake_seat(seat, self);
        }
        if let Some(team) = &self.team
            && team.look().is_some()
        {
            self.scheduler.arena.run().deadlock.store(seat + 1, Ordering::SeqCst);
            self.scheduler.wake_seat(seat, self);
        }
    }

    /// This thread is the worker in a seat from now on.
    pub(super) fn take_seat(&self, seat: u32) {
        let thread = u32::try_from(gettid().0).unwrap_or(0);
        self.scheduler.arena.seats[seat as usize].thread.store(thread, Ordering::Relaxed);
    }

    /// A worker on this thread's stack.
    pub(super) fn worker(&self, seat: u32, seed: u64) -> RefCell<Worker> {
        let mut worker = self.scheduler.worker(seat, seed);
        if let Some((lowest, bytes)) = stack::own() {
            worker.stack_last = lowest..lowest + STACK_LEFT.min(bytes / 4);
        }
        RefCell::new(worker)
    }

    /// The error that says which worker is gone, if one is.
    pub(super) fn lost(&self) -> Option<TaskError> {
        let lost = self.team.as_ref()?.lost()?;
        let running =
            self.scheduler.arena.seats[lost.seat as usize].running.load(Ordering::Relaxed);
        let kind = running.checked_sub(1).and_then(|kernel| self.scheduler.arena.kernel(kernel));
        Some(TaskError::WorkerDied {
            worker: lost.seat,
            how: lost.to_string(),
            kernel: kind.map_or("nothing", |kind| kind.name).to_owned(),
        })
    }
}

impl Wake for Shared {
    fn wake(&self, seat: u32, asleep: bool) {
        if asleep {
            rouse(&self.scheduler.arena.seats[seat as usize].state, self.scope);
        }
    }
}
