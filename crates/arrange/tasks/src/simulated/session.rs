//! A simulated run: a program that registers tasks, and workers in virtual time.

use core::cell::RefCell;
use core::fmt::Debug;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::AtomicU16;
use core::task::{Context, Waker};
use std::rc::Rc;

use isochrone_units::{CoreId, Reading};

use super::costs::Costs;
use super::env::Machine;
use super::hardware::Hardware;
use crate::arena::objects::Home;
use crate::arena::pieces::pieces;
use crate::arena::slot::CHILDREN;
use crate::arena::{Heap, ROOT, object};
use crate::driver::{Stuck, work};
use crate::error::TaskError;
use crate::footprint::{Footprint, Mode};
use crate::kernel::{Kernel, KindOf};
use crate::policy::{Placement, Regime};
use crate::range::{Data, DataId, Element, Part, Range};
use crate::report::Report;
use crate::schedule::{Schedule, Wait};
use crate::scheduler::counts::Count;
use crate::scheduler::worker::Worker;
use crate::scheduler::{Children, Goal, How, Submitted};
use crate::session::Tasks;
use crate::setup::Setup;
use crate::sync::Ordering;
use crate::topology::Topology;
use crate::trace::Trace;

/// Assumed values that are kept in words.
pub const ASSUMED_SHOWN: usize = 64;

/// How a simulated run is set up.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What a run on this machine takes as well.
    pub setup: Setup,
    /// What the runtime itself costs.
    pub costs: Costs,
}

impl Plan {
    /// A run in one of the regimes, by a runtime that costs nothing: so there are no outboxes.
    #[must_use]
    pub fn new(regime: Regime, workers: usize, topology: Topology) -> Self {
        let mut setup = Setup::new(regime, workers, topology);
        setup.policy = setup.policy.without_outboxes();
        Self { setup, costs: Costs::default() }
    }
}

type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A run in virtual time.
pub struct Simulation<H: Hardware + 'static> {
    machine: Rc<Machine<H>>,
    worker: Rc<RefCell<Worker>>,
    children: Children,
    /// Work of all workers but the first, which works when the program waits.
    others: Vec<Work<'static, Result<(), Stuck>>>,
    homes: Vec<Box<[AtomicU16]>>,
    placement: Placement,
    costs: Costs,
    assumed: Vec<String>,
    assumptions: u64,
    /// The program's waits so far.
    waits: Vec<Wait>,
}

impl<H: Hardware + 'static> Debug for Simulation<H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "simulated run of {} workers", self.machine.cores.len())
    }
}

impl<H: Hardware + 'static> Simulation<H> {
    /// Sets a run up.
    ///
    /// # Errors
    /// [`TaskError`] for a plan that makes no sense.
    pub fn new(plan: Plan, hardware: H) -> Result<Self, TaskError> {
        let Plan { setup, costs } = plan;
        setup.check()?;
        let (placement, seed) = (setup.placement, setup.seed);
        let all: Vec<CoreId> = setup.topology.cores().collect();
        let places = setup.places(&all)?;
        let scheduler = setup.scheduler(&places, Reading::Simulated, &mut Heap)?;
        let cores = places.iter().map(|place| place.0).collect();
        let machine = Rc::new(Machine::new(scheduler, hardware, cores, costs));
        let worker = Rc::new(RefCell::new(machine.scheduler.worker(0, seed)));
        let mut simulation = Self {
            others: Vec::new(),
            worker,
            children: machine.scheduler.program(),
            homes: Vec::new(),
            placement,
            costs,
            assumed: Vec::new(),
            assumptions: 0,
            waits: Vec::new(),
            machine,
        };
        for seat in 1..u32::try_from(places.len()).unwrap_or(u32::MAX) {
            simulation.add_worker(seat, seed);
        }
        Ok(simulation)
    }

    fn add_worker(&mut self, seat: u32, seed: u64) {
        let machine = Rc::clone(&self.machine);
        let mut work: Work<'static, _> = Box::pin(async move {
            let worker = RefCell::new(machine.scheduler.worker(seat, seed));
            work(&machine.scheduler, &*machine, &worker, Goal::Stop).await
        });
        // It finds nothing to do yet, and rests.
        let _ = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.others.push(work);
    }

    /// The hardware, to ask what it counted.
    pub fn hardware<R>(&self, ask: impl FnOnce(&H) -> R) -> R {
        ask(&self.machine.hardware.borrow())
    }

    /// Values that were assumed instead of computed, in the order in which the program asked: the first
    /// [`ASSUMED_SHOWN`] of them, and how many there were.
    #[must_use]
    pub fn assumed(&self) -> (&[String], u64) {
        (&self.assumed, self.assumptions)
    }

    /// What ran where and when, in virtual time, if [`Capacity::trace`](crate::Capacity::trace) asked for it.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.machine.scheduler.trace()
    }

    /// What partitions of the task graph took, ns of this thread: measured, not virtual.
    #[must_use]
    pub fn partition_ns(&self) -> u64 {
        self.machine.scheduler.partition_ns.load(Ordering::Relaxed)
    }

    /// The schedule of this run, if [`Capacity::trace`](crate::Capacity::trace) asked for it and all tasks had
    /// room there.
    ///
    /// # Errors
    /// [`TaskError::Schedule`] where it is not whole.
    pub fn schedule(&self) -> Result<Schedule, TaskError> {
        self.machine.scheduler.schedule(Reading::Simulated, &self.waits)
    }

    fn assume(&mut self, words: impl FnOnce() -> String) {
        self.assumptions += 1;
        if self.assumed.len() < ASSUMED_SHOWN {
            self.assumed.push(words());
        }
    }

    fn poll(&mut self, seat: u32) {
        let Some(at) = (seat as usize).checked_sub(1) else { return };
        self.machine.turn.set(seat);
        let _ = self.others[at].as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Lets the others work until `time`.
    fn run_until(&mut self, time: u64) {
        while self.machine.next_time().is_some_and(|next| next <= time) {
            if let Some(seat) = self.machine.step() {
                self.poll(seat);
            }
        }
        self.machine.pass(time);
        self.machine.turn.set(0);
    }

    /// Works as worker 0, while the others do, until the goal is reached.
    fn drive(&mut self, goal: Goal) -> Result<(), Stuck> {
        let (machine, worker) = (Rc::clone(&self.machine), Rc::clone(&self.worker));
        let mut own: Work<'_, _> =
            Box::pin(async move { work(&machine.scheduler, &*machine, &worker, goal).await });
        let mut turn = Some(0);
        loop {
            if turn == Some(0) {
                self.machine.turn.set(0);
                let polled = own.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                if let core::task::Poll::Ready(outcome) = polled {
                    return outcome;
                }
            } else if let Some(seat) = turn {
                self.poll(seat);
            }
            turn = self.machine.step();
            if turn.is_none() {
                // Nothing will ever happen again.
                return Err(Stuck);
            }
        }
    }

    /// Works until the goal of one of the program's waits is reached. Where recorded times are kept, the
    /// program goes on at its recorded time.
    fn wait_until(&mut self, goal: Goal) -> Result<(), Stuck> {
        let own =
            u32::try_from(self.machine.scheduler.counted(0, Count::Tasks)).unwrap_or(u32::MAX);
        match self.recorded_wait() {
            Some(wait) => {
                self.follow_until(wait.resumed_ns, |start, _| start < wait.resumed_ns)?;
                if !self.machine.scheduler.reached(goal, &self.worker.borrow()) {
                    return Err(Stuck);
                }
            }
            None => self.drive(goal)?,
        }
        self.waits.push(Wait { own, resumed_ns: self.machine.now_ns() });
        Ok(())
    }

    /// The wait that the program comes to next, where recorded times are kept.
    fn recorded_wait(&self) -> Option<Wait> {
        self.machine.scheduler.followed.as_ref()?.wait(self.waits.len())
    }

    /// Runs tasks as worker 0 as long as the one that a schedule has it begin next is `due`, by when it begins
    /// and how many there were before, and lets the others work until `time`.
    fn follow_until(&mut self, time: u64, due: impl Fn(u64, u32) -> bool) -> Result<(), Stuck> {
        let machine = Rc::clone(&self.machine);
        let Some(followed) = &machine.scheduler.followed else { return Ok(()) };
        loop {
            let begun = self.worker.borrow().followed;
            let next = followed.next_start(&self.worker.borrow());
            if !next.is_some_and(|start| due(start, begun)) {
                break;
            }
            let turns = self.worker.borrow().turns;
            self.drive(Goal::Turn(turns))?;
        }
        self.run_until(time);
        Ok(())
    }

    fn submit<K: Kernel>(&mut self, kernel: K) -> Result<Submitted, TaskError> {
        const { KindOf::<K>::FITS };
        let machine = Rc::clone(&self.machine);
        let scheduler = &machine.scheduler;
        let own = &mut *self.worker.borrow_mut();
        let Some(task) = scheduler.slot_for(own) else { return Ok(Submitted::Full) };
        // SAFETY: the slot was free and is this worker's now.
        unsafe { scheduler.arena.slot(task).arguments.put(kernel) };
        let mut footprint = core::mem::take(&mut own.footprint);
        footprint.clear();
        kernel.declare(&mut footprint);
        own.footprint = footprint;
        let kind = KindOf::<K>::LASTING;
        let outcome = scheduler.submit(own, &mut self.children, task, kind, How::Queued, &*machine);
        match outcome {
            Ok(Submitted::Short(before)) => Ok(Submitted::Short(before)),
            Ok(Submitted::Done) => {
                machine.registered(task, own.footprint.accesses(), &own.before);
                Ok(Submitted::Done)
            }
            Ok(Submitted::Full) | Err(_) => {
                scheduler.vacate(own, task, scheduler.arena.slot(task));
                outcome
            }
        }
    }

    /// Lets go what is held back.
    fn close_window(&mut self) {
        let machine = Rc::clone(&self.machine);
        let own = &mut *self.worker.borrow_mut();
        machine.scheduler.close_window(own, &mut self.children, &*machine);
    }

    /// Runs something, or lets time pass.
    fn turn(&mut self) -> Result<(), TaskError> {
        self.close_window();
        let turns = self.worker.borrow().turns;
        self.drive(Goal::Turn(turns)).map_err(|Stuck| self.stuck())
    }

    fn stuck(&self) -> TaskError {
        match self.machine.scheduler.followed {
            Some(_) => TaskError::Schedule(
                "it is of another program: tasks wait that it never lets begin".to_owned(),
            ),
            None => TaskError::Deadlock { kernel: "the program".to_owned() },
        }
    }

    fn wait_for(&mut self, range: Range, mode: Mode) -> Result<(), TaskError> {
        self.close_window();
        let mut before = Vec::new();
        self.children.domain.look(range, mode, &mut before);
        let machine = Rc::clone(&self.machine);
        before.retain(|task| machine.scheduler.arena.is_live(*task));
        if before.is_empty() {
            return Ok(());
        }
        let sentinel = loop {
            let slot = machine.scheduler.spare_slot(&mut self.worker.borrow_mut());
            match slot {
                Some(slot) => break slot,
                None => self.turn()?,
            }
        };
        loop {
            let submitted = {
                let own = &mut *self.worker.borrow_mut();
                own.before = before;
                machine.scheduler.sentinel(own, sentinel, &*machine)
            };
            match submitted {
                Submitted::Short(rest) => before = rest,
                Submitted::Done | Submitted::Full => break,
            }
            self.turn()?;
        }
        self.wait_until(Goal::Ready(sentinel)).map_err(|Stuck| self.stuck())?;
        machine.scheduler.retire(&mut self.worker.borrow_mut(), sentinel);
        Ok(())
    }
}

impl<H: Hardware + 'static> Tasks for Simulation<H> {
    fn reading(&self) -> Reading {
        Reading::Simulated
    }

    fn workers(&self) -> usize {
        self.machine.cores.len()
    }

    fn now_ns(&self) -> u64 {
        self.machine.now_ns()
    }

    fn data<T: Element>(&mut self, len: usize) -> Result<Data<T>, TaskError> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes > 0);
        let bytes =
            bytes.ok_or_else(|| TaskError::Config("data need one byte at least".to_owned()))?;
        let id = DataId(u32::try_from(self.homes.len()).unwrap_or(u32::MAX));
        let words: Box<[AtomicU16]> =
            (0..pieces(bytes as u64)).map(|_| AtomicU16::new(0)).collect();
        let scheduler = &self.machine.scheduler;
        let address = match scheduler.topology.regions() {
            1 => 0,
            _ => words.as_ptr().expose_provenance(),
        };
        if !scheduler.arena.enter_object(id, 0, bytes as u64, address) {
            return Err(TaskError::TooManyData);
        }
        self.homes.push(words);
        if self.placement == Placement::Interleaved {
            scheduler.arena.settle(id, |_| Home::Spread);
        }
        self.machine.hardware.borrow_mut().register(id, bytes as u64, self.placement);
        Ok(Data::new(id, len))
    }

    fn free<T: Element>(&mut self, data: Data<T>) -> Result<(), TaskError> {
        self.wait_for(data.all().range(), Mode::InOut)?;
        let object = &self.machine.scheduler.arena.objects[data.id().0 as usize];
        object.state.store(object::FREED, Ordering::Release);
        self.children.domain.forget(data.id());
        self.machine.hardware.borrow_mut().free(data.id());
        Ok(())
    }

    fn spawn<K: Kernel>(&mut self, kernel: K) -> Result<(), TaskError> {
        let now = self.machine.now_ns();
        let mut footprint = Footprint::new();
        kernel.declare(&mut footprint);
        let fresh = self.machine.fresh_bytes(&footprint);
        let more = self.machine.hardware.borrow_mut().spawn_ns(now, &fresh);
        self.run_until(now + self.costs.spawn_ns + more + self.machine.owed(0));
        loop {
            match self.submit(kernel)? {
                Submitted::Done => break,
                Submitted::Full => self.turn()?,
                Submitted::Short(_) => {
                    return Err(TaskError::Config(
                        "the tasks at hand need more edges; raise Capacity::edges".to_owned(),
                    ));
                }
            }
        }
        let scheduler = &self.machine.scheduler;
        if scheduler.keeps_times() {
            let now = self.machine.now_ns();
            // Others that begin now do so in the wait that comes next.
            let own = self.recorded_wait().map_or(0, |wait| wait.own);
            let due = |start, begun| start <= now && begun < own;
            return self.follow_until(now, due).map_err(|Stuck| self.stuck());
        }
        let most = scheduler.backlog(&self.worker.borrow());
        if scheduler.arena.ready(self.worker.borrow().queue).len() > most {
            self.drive(Goal::Backlog(most / 2)).map_err(|Stuck| self.stuck())?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), TaskError> {
        if self.children.spawned == 0 {
            return Ok(());
        }
        self.close_window();
        let machine = Rc::clone(&self.machine);
        let slot = machine.scheduler.arena.slot(ROOT);
        slot.waiter.store(1, Ordering::SeqCst);
        slot.target.store(CHILDREN - self.children.spawned, Ordering::SeqCst);
        let goal = Goal::Children(ROOT, self.children.spawned);
        self.wait_until(goal).map_err(|Stuck| self.stuck())?;
        slot.target.store(0, Ordering::SeqCst);
        slot.children.store(CHILDREN, Ordering::SeqCst);
        self.children.spawned = 0;
        Ok(())
    }

    fn wait_on(&mut self, range: impl Into<Range>) -> Result<(), TaskError> {
        self.wait_for(range.into(), Mode::In)
    }

    fn value<T: Element + Debug>(
        &mut self,
        data: Data<T>,
        index: usize,
        assumed: T,
    ) -> Result<T, TaskError> {
        self.wait_for(data.part(index, 1).range(), Mode::In)?;
        self.assume(|| format!("element {index} of {} is {assumed:?}", data.id()));
        Ok(assumed)
    }

    fn values<T: Element + Debug>(
        &mut self,
        part: Part<T>,
        assumed: impl FnMut(usize) -> T,
    ) -> Result<Vec<T>, TaskError> {
        self.wait_for(part.range(), Mode::In)?;
        let values: Vec<T> = (0..part.len()).map(assumed).collect();
        self.assume(|| format!("{} are {:?}, ...", part.range(), values.first()));
        Ok(values)
    }

    fn store<T: Element>(
        &mut self,
        part: Part<T>,
        _: impl FnOnce(&mut [T]),
    ) -> Result<(), TaskError> {
        self.wait_for(part.range(), Mode::InOut)
    }

    fn report(&self) -> Report {
        Report::of(&self.machine.scheduler)
    }
}
