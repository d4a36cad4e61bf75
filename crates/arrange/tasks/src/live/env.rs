//! This machine as a worker sees it: the clock, running a task's kernel, and resting: first with an eye
//! on one word, then in the kernel.

use core::cell::RefCell;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::panic::{AssertUnwindSafe, catch_unwind};

use isochrone_os::affinity::{ThreadId, gettid};
use isochrone_os::clock::{cpu_ns_of, monotonic_ns};
use isochrone_os::futex::Scope;
use isochrone_os::{race, stack};

use super::guard;
use super::mem::Mem;
use super::memory::Memory;
use super::team::Team;
use super::watch::{Sight, Watch};
use crate::arena::{Token, seat};
use crate::driver::{Env, Until};
use crate::error::TaskError;
use crate::kernel::Failure;
use crate::scheduler::rest::Asleep;
use crate::scheduler::worker::Worker;
use crate::scheduler::{How, Scheduler, Wake};
use crate::sync::{AtomicU32, Ordering, rouse, sleep, spin_loop};

/// Looks at a word between two looks at the clock.
const LOOKS: u32 = 64;

/// Pauses between two looks at the clock of a worker that will look for work very soon.
const LINGER_LOOKS: u32 = 2;

/// Of a thread's stack, what is left to a task itself when tasks are inside of one another: kernels of C have buffers
/// there. A quarter at most.
const STACK_LEFT: usize = 256 << 10;

/// How often a worker that sleeps looks whether other processes still live.
const LOOK_NS: u64 = 100_000_000;

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
    fn look_after_others(&self, seat: u32) {
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
        let table = running.checked_sub(1).and_then(|kernel| self.scheduler.arena.kernel(kernel));
        Some(TaskError::WorkerDied {
            worker: lost.seat,
            how: lost.to_string(),
            kernel: table.map_or("nothing", |table| table.name).to_owned(),
        })
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

impl Wake for Shared {
    fn wake(&self, seat: u32, asleep: bool) {
        if asleep {
            rouse(&self.scheduler.arena.seats[seat as usize].state, self.scope);
        }
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
    let Some(table) = arena.kernel(slot.kernel.load(Ordering::Relaxed)) else { return 0 };
    // SAFETY: whoever registered the task put arguments of this kernel here, and the slot is free for
    // others only after the task has ended.
    let held = unsafe { slot.arguments.held() };
    let mem = Mem::new(shared, worker, task, table.name);
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
            guard::only(shared, task)?;
        }
        (table.run)(table, &held, &mem)
    }));
    if shared.guarded
        && let Err(error) = guard::all(shared, true)
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
