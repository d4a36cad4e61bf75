//! A simulated machine as a worker sees it: whatever takes time suspends, and one thread goes on with
//! whoever's time comes next.

use core::cell::{Cell, RefCell};
use core::cmp::Reverse;
use core::future::poll_fn;
use core::task::Poll;
use std::collections::BinaryHeap;

use isochrone_units::CoreId;

use super::costs::Costs;
use super::hardware::{Hardware, Job, Step};
use crate::arena::slot::TaskRef;
use crate::driver::{Env, Until};
use crate::footprint::{Access, Footprint};
use crate::scheduler::rest::Asleep;
use crate::scheduler::worker::Worker;
use crate::scheduler::{Scheduler, Wake};
use crate::sync::Ordering;

/// Orders of workers that are held until a schedule has them begin lie below this.
const HELD: u64 = 1 << 32;

/// What a worker suspends for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Nothing: it goes on when it is polled.
    No,
    /// An event of this number.
    For(u64),
}

/// Virtual time, and what will happen in it.
#[derive(Debug)]
struct Clock {
    now: u64,
    /// Time, order among those of that time, worker, number of what it waits for.
    events: BinaryHeap<Reverse<(u64, u64, u32, u64)>>,
    entered: u64,
    waits: Vec<Waits>,
}

/// The machine.
#[derive(Debug)]
pub(super) struct Machine<H> {
    pub(super) scheduler: Scheduler,
    pub(super) hardware: RefCell<H>,
    clock: RefCell<Clock>,
    pub(super) cores: Vec<CoreId>,
    costs: Costs,
    footprint: RefCell<Footprint>,
    /// Whether the runtime's own steps cost something.
    counts: bool,
    /// What each worker has done as the runtime and not spent yet, ns.
    owed: Vec<Cell<u64>>,
    /// The worker whose turn it is.
    pub(super) turn: Cell<u32>,
}

impl<H: Hardware> Machine<H> {
    pub(super) fn new(scheduler: Scheduler, hardware: H, cores: Vec<CoreId>, costs: Costs) -> Self {
        let workers = scheduler.seats.len();
        Self {
            // Times that are kept have it in them.
            counts: hardware.counts_runtime() && !scheduler.keeps_times(),
            owed: vec![Cell::new(0); workers],
            scheduler,
            hardware: RefCell::new(hardware),
            clock: RefCell::new(Clock {
                now: 0,
                events: BinaryHeap::new(),
                entered: 0,
                waits: vec![Waits::No; workers],
            }),
            cores,
            costs,
            footprint: RefCell::new(Footprint::new()),
            turn: Cell::new(0),
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.clock.borrow().now
    }

    /// Lets a worker go on at `time`, if it still waits for what it waits for now.
    fn at(&self, time: u64, seat: u32) {
        let clock = &mut *self.clock.borrow_mut();
        clock.entered += 1;
        let number = clock.entered;
        clock.waits[seat as usize] = Waits::For(number);
        clock.events.push(Reverse((time.max(clock.now), HELD + number, seat, number)));
    }

    /// As [`Self::at`], before all others of that time but those with a smaller `order`.
    fn at_in_order(&self, time: u64, order: u32, seat: u32) {
        let clock = &mut *self.clock.borrow_mut();
        clock.entered += 1;
        let number = clock.entered;
        clock.waits[seat as usize] = Waits::For(number);
        clock.events.push(Reverse((time, u64::from(order), seat, number)));
    }

    /// The worker waits until it is woken.
    fn until_woken(&self, seat: u32) {
        let clock = &mut *self.clock.borrow_mut();
        clock.entered += 1;
        clock.waits[seat as usize] = Waits::For(clock.entered);
    }

    /// Suspends until what the worker waits for has come.
    async fn suspend(&self, seat: u32) {
        poll_fn(|_| match self.clock.borrow().waits[seat as usize] {
            Waits::No => Poll::Ready(()),
            Waits::For(_) => Poll::Pending,
        })
        .await;
    }

    /// Lets a worker spend so long.
    async fn spend(&self, seat: u32, ns: u64) {
        if ns > 0 {
            self.at(self.now_ns() + ns, seat);
            self.suspend(seat).await;
        }
    }

    /// Puts a task's footprint into `footprint`, and tells its kernel's name.
    fn declare(&self, task: u32) -> Option<&'static str> {
        let slot = self.scheduler.arena.slot(task);
        let kind = self.scheduler.arena.kernel(slot.kernel.load(Ordering::Relaxed))?;
        // SAFETY: whoever registered the task put arguments of this kernel here, and the slot is free
        // for others only after the task has ended.
        let held = unsafe { slot.arguments.held() };
        let footprint = &mut *self.footprint.borrow_mut();
        footprint.clear();
        (kind.declare)(&held, footprint);
        Some(kind.name)
    }

    /// Lets the hardware begin a task; false if there is none.
    fn begin(&self, seat: u32, region: usize, task: u32) -> bool {
        let Some(kernel) = self.declare(task) else { return false };
        let footprint = &*self.footprint.borrow();
        let core = self.cores[seat as usize];
        let job = Job { worker: seat, core, region, kernel, footprint };
        self.hardware.borrow_mut().begin(self.now_ns(), job);
        true
    }

    /// What a step of the runtime takes a worker.
    fn runtime_ns(&self, seat: u32, step: Step<'_>) -> u64 {
        let region = self.scheduler.seats[seat as usize].1;
        self.hardware.borrow_mut().runtime_ns(self.now_ns(), region, step)
    }

    /// The worker whose turn it is has done a step, and spends its time before what it does next.
    fn owe(&self, step: Step<'_>) {
        if self.counts {
            let seat = self.turn.get();
            let owed = &self.owed[seat as usize];
            owed.set(owed.get() + self.runtime_ns(seat, step));
        }
    }

    /// What a worker has to spend for steps that it has done.
    pub(super) fn owed(&self, seat: u32) -> u64 {
        self.owed[seat as usize].take()
    }

    /// The program registered a task.
    pub(super) fn registered(&self, task: u32, accesses: &[Access], before: &[TaskRef]) {
        if self.counts {
            // Without ranges nobody was looked for.
            let before: &[TaskRef] = if accesses.is_empty() { &[] } else { before };
            let before: Vec<u32> = before.iter().map(|task| task.slot).collect();
            self.owe(Step::Registered { task, accesses, before: &before });
        }
    }

    /// What taking a task costs its worker, with what it owes.
    fn taken_ns(&self, worker: &Worker, task: u32) -> u64 {
        let queue = self.scheduler.taken_from(worker, task);
        self.owed(worker.seat) + self.runtime_ns(worker.seat, Step::Taken { task, queue })
    }

    /// What the end of a task costs its worker before those that wait for it are ready.
    fn ended_ns(&self, seat: u32, task: u32) -> u64 {
        self.declare(task);
        let after: Vec<u32> = self.scheduler.arena.followers(task).collect();
        let footprint = self.footprint.borrow();
        let accesses = footprint.accesses();
        self.runtime_ns(seat, Step::Ended { task, accesses, after: &after })
    }

    /// The time of whatever comes next.
    pub(super) fn next_time(&self) -> Option<u64> {
        let end = self.hardware.borrow_mut().next_end().map(|(time, _)| time);
        let event = self.clock.borrow().events.peek().map(|Reverse((time, ..))| *time);
        [end, event].into_iter().flatten().min()
    }

    /// Makes time go on to `time`, at which nothing happens.
    pub(super) fn pass(&self, time: u64) {
        let clock = &mut *self.clock.borrow_mut();
        clock.now = clock.now.max(time);
    }

    /// Lets what comes next happen; the worker that may go on by it.
    pub(super) fn step(&self) -> Option<u32> {
        let end = self.hardware.borrow_mut().next_end();
        let event = self.clock.borrow().events.peek().map(|Reverse((time, ..))| *time);
        match (end, event) {
            (Some((time, worker)), event) if event.is_none_or(|event| time <= event) => {
                self.pass(time);
                self.hardware.borrow_mut().end(time, worker);
                self.clock.borrow_mut().waits[worker as usize] = Waits::No;
                Some(worker)
            }
            (_, Some(_)) => {
                let clock = &mut *self.clock.borrow_mut();
                let Reverse((time, _, seat, number)) = clock.events.pop()?;
                clock.now = clock.now.max(time);
                if clock.waits[seat as usize] == Waits::For(number) {
                    clock.waits[seat as usize] = Waits::No;
                }
                Some(seat)
            }
            (_, None) => None,
        }
    }
}

impl<H: Hardware> Machine<H> {
    /// How long it takes until a worker sees what the worker whose turn it is did. Where recorded times are
    /// kept, it had seen that by then.
    fn reach_ns(&self, seat: u32) -> u64 {
        if self.scheduler.keeps_times() {
            return 0;
        }
        let region = |seat: u32| self.scheduler.seats[seat as usize].1;
        self.hardware.borrow_mut().reach_ns(region(self.turn.get()), region(seat))
    }

    /// Bytes of each range that a task of this footprint is the first to write.
    pub(super) fn fresh_bytes(&self, footprint: &Footprint) -> Vec<u64> {
        let writes = footprint.accesses().iter().filter(|access| access.mode.writes());
        let fresh = writes.filter(|access| self.scheduler.arena.is_fresh(access.range));
        fresh.map(|access| access.range.bytes).collect()
    }
}

impl<H: Hardware> Wake for Machine<H> {
    fn wake(&self, seat: u32, _: bool) {
        let wake_ns = if self.scheduler.keeps_times() { 0 } else { self.costs.wake_ns };
        self.at(self.now_ns() + wake_ns + self.reach_ns(seat), seat);
    }

    fn pushed(&self, queue: usize) {
        self.owe(Step::Pushed { queue });
    }

    fn thread_ns(&self) -> u64 {
        isochrone_os::clock::thread_cpu_ns()
    }

    /// The one that sees it first.
    fn choose(&self, resting: &mut dyn Iterator<Item = u32>) -> Option<u32> {
        resting.min_by_key(|seat| self.reach_ns(*seat))
    }
}

impl<H: Hardware> Env for Machine<H> {
    fn now(&self) -> u64 {
        self.now_ns()
    }

    async fn run(&self, worker: &RefCell<Worker>, task: u32) -> u32 {
        let (seat, region) = (worker.borrow().seat, worker.borrow().region);
        let taken = if self.counts { self.taken_ns(&worker.borrow(), task) } else { 0 };
        self.spend(seat, self.costs.task_ns + taken).await;
        if self.begin(seat, region, task) {
            self.until_woken(seat);
            self.suspend(seat).await;
        }
        let ended = if self.counts { self.ended_ns(seat, task) } else { 0 };
        self.spend(seat, ended).await;
        0
    }

    async fn pause(&self, worker: &RefCell<Worker>, until: Until) {
        let (seat, resting) = (worker.borrow().seat, worker.borrow().resting);
        if !resting {
            // It looks into outboxes again soon; nobody can wake it until then.
            if let Until::Time(time) = until
                && time > self.now_ns()
            {
                self.at(time, seat);
                self.suspend(seat).await;
            }
            return;
        }
        let rests = match until {
            Until::Time(_) => self.scheduler.doze(&worker.borrow()),
            Until::Woken => self.scheduler.fall_asleep(&worker.borrow(), self),
        };
        if rests == Asleep::Yes {
            match until {
                Until::Time(time) => self.at(time, seat),
                Until::Woken => self.until_woken(seat),
            }
            self.suspend(seat).await;
        }
    }

    async fn hold(&self, worker: &RefCell<Worker>, begins: (u64, u32)) {
        let (time, order) = begins;
        let (seat, now) = (worker.borrow().seat, self.now_ns());
        if now < time {
            self.at_in_order(time, order, seat);
            self.suspend(seat).await;
            // The worker has waited, and was not busy.
            worker.borrow_mut().taken_at += time - now;
        }
    }
}
