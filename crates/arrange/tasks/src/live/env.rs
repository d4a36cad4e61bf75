//! This machine as a worker sees it: the clock, running a task's kernel, and resting: first with an eye
//! on one word, then in the kernel.

use core::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use isochrone_os::affinity::ThreadId;
use isochrone_os::clock::{cpu_ns_of, monotonic_ns};
use isochrone_os::{race, stack};

use super::guard;
use super::mem::Mem;
use super::shared::Shared;
use super::table::Table;
use super::watch::{Sight, Watch};
use crate::arena::{Token, seat};
use crate::driver::{Env, Until};
use crate::failure::Failure;
use crate::scheduler::rest::Asleep;
use crate::scheduler::worker::Worker;
use crate::scheduler::{How, Scheduler};
use crate::sync::{AtomicU32, Ordering, sleep, spin_loop};

/// Looks at a word between two looks at the clock.
const LOOKS: u32 = 64;

/// Pauses between two looks at the clock of a worker that will look for work very soon.
const LINGER_LOOKS: u32 = 2;

/// How often a worker that sleeps looks whether other processes still live.
const LOOK_NS: u64 = 100_000_000;

impl Shared {
    /// Sleeps until somebody wakes the worker, or it sees work that those who are awake on its core do not get to.
    fn sleep(&self, worker: &Worker, state: &AtomicU32) {
        let sight = Of { scheduler: &self.scheduler, worker };
        let sharers = self.scheduler.sharers(worker.seat);
        let mut watch = sharers.map(|(seats, cores)| Watch::new(seats, cores, self.now(), &sight));
        let looks = self.team.as_ref().map(|_| LOOK_NS);
        while state.load(Ordering::Acquire) == seat::ASLEEP {
            let most = looks.into_iter().chain(watch.as_ref().map(Watch::apart_ns)).min();
            sleep(state, seat::ASLEEP, most, self.scope);
            self.look_after_others(worker.seat);
            if watch.as_mut().is_some_and(|watch| watch.sees_work(self.now(), &sight)) {
                return;
            }
        }
    }
}

/// What a worker of a scheduler sees.
struct Of<'a> {
    scheduler: &'a Scheduler,
    worker: &'a Worker,
}

impl Sight for Of<'_> {
    fn work(&self) -> bool {
        self.scheduler.sees_left(self.worker)
    }

    fn begun(&self) -> u64 {
        self.scheduler.begun_on(self.worker.queue)
    }

    fn is_awake(&self, seat: u32) -> bool {
        self.scheduler.arena.is_awake(seat)
    }

    fn cpu_ns(&self, seat: u32) -> Option<u64> {
        let thread = self.scheduler.arena.seats[seat as usize].thread.load(Ordering::Relaxed);
        cpu_ns_of(ThreadId(i32::try_from(thread).ok()?))
    }
}

impl Env for Shared {
    #[inline]
    fn now(&self) -> u64 {
        monotonic_ns()
    }

    async fn run(&self, worker: &RefCell<Worker>, task: u32) -> u32 {
        run_task(self, worker, task, How::Queued)
    }

    async fn pause(&self, worker: &RefCell<Worker>, until: Until) {
        let worker = &*worker.borrow();
        if !worker.resting {
            // It found something while it lay down, or will look for some again very soon.
            if let Until::Time(time) = until {
                while self.now() < time {
                    (0..LINGER_LOOKS).for_each(|_| spin_loop());
                }
            }
            return;
        }
        let state = &self.scheduler.arena.seats[worker.seat as usize].state;
        let begin = self.now();
        let end = match until {
            Until::Time(time) => time.min(begin.saturating_add(self.spin_ns)),
            Until::Woken => begin.saturating_add(self.spin_ns),
        };
        // Who shares the core with somebody awake sleeps at once.
        while self.scheduler.may_watch(worker.seat) {
            for _ in 0..LOOKS {
                if state.load(Ordering::Acquire) == seat::AWAKE {
                    return;
                }
                spin_loop();
            }
            if self.now() >= end {
                break;
            }
        }
        if self.scheduler.sees_posted() {
            return;
        }
        match until {
            Until::Time(time) => {
                let left = time.saturating_sub(self.now());
                if left > 0 && self.scheduler.doze(worker) == Asleep::Yes {
                    sleep(state, seat::DOZING, Some(left), self.scope);
                }
            }
            Until::Woken => {
                if self.scheduler.fall_asleep(worker, self) == Asleep::Yes {
                    self.sleep(worker, state);
                }
            }
        }
    }
}

/// What a task fails with that would be too deep inside of others.
const NO_STACK: &str = "it would be too deep inside of other tasks for its thread's stack: let fewer tasks wait inside \
                        of one another, or raise ulimit -s before the program begins";

/// Runs a task's kernel; how many children it registered.
pub(super) fn run_task(shared: &Shared, worker: &RefCell<Worker>, task: u32, how: How) -> u32 {
    let arena = &shared.scheduler.arena;
    let slot = arena.slot(task);
    let Some(kind) = arena.kernel(slot.kernel.load(Ordering::Relaxed)) else { return 0 };
    // SAFETY: tasks of a live run are registered by `register::enter` alone, which names them by `Table::kind`.
    let table = unsafe { Table::of(kind) };
    // SAFETY: whoever registered the task put arguments of this kernel here, and the slot is free for
    // others only after the task has ended.
    let held = unsafe { slot.arguments.held() };
    let mem = Mem::new(shared, worker, task, kind.name);
    let outer = {
        let own = &mut *worker.borrow_mut();
        own.depth += 1;
        let at_once = core::mem::replace(&mut own.at_once, how == How::AtOnce);
        (core::mem::replace(&mut own.task, task), at_once)
    };
    let running = &arena.seats[worker.borrow().seat as usize].running;
    let outer_kernel = running.load(Ordering::Relaxed);
    if shared.team.is_some() {
        running.store(slot.kernel.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    arena.prepare_end(task);
    // After all that it waited for.
    race::acquire(&slot.pending);
    tell_of_tokens(&shared.scheduler, task, race::acquire);
    let is_too_deep = worker.borrow().stack_last.contains(&stack::here());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if is_too_deep {
            arena.discard(task);
            return Err(Failure::new(NO_STACK));
        }
        if shared.guarded {
            guard::only(&shared.scheduler.arena, &shared.memory, task)?;
        }
        (table.run)(table, &held, &mem)
    }));
    if shared.guarded
        && let Err(error) = guard::all(&shared.scheduler.arena, &shared.memory, true)
    {
        shared.scheduler.fail(task, &Failure::new(error.to_string()));
    }
    if shared.team.is_some() {
        running.store(outer_kernel, Ordering::Relaxed);
    }
    {
        let own = &mut *worker.borrow_mut();
        own.depth -= 1;
        (own.task, own.at_once) = outer;
    }
    let failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(Failure::new(words(&*panic))),
    };
    if let Some(failure) = failure {
        shared.scheduler.fail(task, &failure);
    }
    tell_of_tokens(&shared.scheduler, task, race::release);
    mem.end()
}

/// Tells a race detector, if there is one, of the tokens that a task has while it runs.
#[inline]
fn tell_of_tokens(scheduler: &Scheduler, task: u32, tell: fn(&Token)) {
    if race::is_there() {
        let accesses = scheduler.arena.accesses(task);
        accesses.filter_map(|access| scheduler.token(access.token)).for_each(tell);
    }
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.unwrap_or_default())
}
