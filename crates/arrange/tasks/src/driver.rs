//! What a worker does, written once: over a machine that lets it run tasks and rest. Live, every
//! operation blocks inside of the first poll; on a simulated machine it takes virtual time.

use core::cell::RefCell;

use crate::scheduler::worker::Worker;
use crate::scheduler::{Goal, Next, Scheduler, Wake};

/// Until when a worker rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Somebody wakes it, or this time comes.
    Time(u64),
    /// Somebody wakes it.
    Woken,
}

/// The machine as a worker sees it.
pub(crate) trait Env: Wake {
    /// The time in nanoseconds.
    fn now(&self) -> u64;
    /// Runs the task in `task`; how many children it registered.
    async fn run(&self, worker: &RefCell<Worker>, task: u32) -> u32;
    /// Rests until the worker is woken, or the time has come.
    async fn pause(&self, worker: &RefCell<Worker>, until: Until);
    /// Waits with a task in hand until the time when a schedule has it begin, as the one with this number
    /// among those that begin then. Only virtual time can be followed so.
    async fn hold(&self, worker: &RefCell<Worker>, begins: (u64, u32)) {
        let _ = (worker, begins);
    }
}

/// All tasks may not be over, but nothing can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stuck;

/// Works until the goal is reached.
pub(crate) async fn work<E: Env>(
    scheduler: &Scheduler,
    env: &E,
    worker: &RefCell<Worker>,
    goal: Goal,
) -> Result<(), Stuck> {
    loop {
        let at_hand = scheduler.at_hand(&mut worker.borrow_mut());
        let next = match at_hand {
            Some(task) => Next::Run(task),
            None => scheduler.next(&mut worker.borrow_mut(), goal, || env.now(), env),
        };
        match next {
            Next::Run(task) => {
                let spawned = if scheduler.is_void(task) {
                    scheduler.leave_out(&worker.borrow(), task);
                    0
                } else {
                    if let Some(begins) = scheduler.begins(task) {
                        env.hold(worker, begins).await;
                    }
                    let begun = scheduler.begin(&mut worker.borrow_mut(), task, || env.now());
                    let spawned = env.run(worker, task).await;
                    if let Some(begun) = begun {
                        begun.end(&scheduler.arena, worker.borrow().seat, env.now());
                    }
                    spawned
                };
                scheduler.finish(&mut worker.borrow_mut(), task, spawned, env);
            }
            Next::RetryAt(time) => env.pause(worker, Until::Time(time)).await,
            Next::Sleep => env.pause(worker, Until::Woken).await,
            Next::Reached => return Ok(()),
        }
        if scheduler.is_stuck(&worker.borrow()) {
            return Err(Stuck);
        }
    }
}
