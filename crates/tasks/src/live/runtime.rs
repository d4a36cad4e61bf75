//! A run: workers on their cores, data, and the program that registers tasks.

use core::cell::RefCell;
use core::fmt::Debug;
use std::sync::Arc;
use std::thread::JoinHandle;

use isochrone_os::affinity::{CoreSet, pin, restore};
use isochrone_os::futex::Scope;
use isochrone_units::{CoreId, Reading, RegionId};

use super::env::{Shared, block_on};
use super::memory::Memory;
use crate::arena::objects::{Home, piece_shift, pieces};
use crate::arena::slot::CHILDREN;
use crate::arena::{Arena, Capacity, Heap, ROOT, object};
use crate::driver::{Stuck, work};
use crate::error::TaskError;
use crate::footprint::Mode;
use crate::kernel::{Erased, Kernel};
use crate::policy::{Placement, Policy, Rank, Regime};
use crate::range::{Data, DataId, Element, Part, Range};
use crate::report::Report;
use crate::scheduler::worker::Worker;
use crate::scheduler::{Children, Goal, Scheduler, Submitted};
use crate::session::Tasks;
use crate::sync::Ordering;
use crate::topology::Topology;

/// Children that a task may have before it must wait once.
const CHILDREN_MAX: u32 = 1 << 30;
/// Address space for data, of which only what is touched takes memory.
const RESERVED_BYTES: usize = 1 << 40;

/// How a run is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many workers; the program's own thread is the first of them.
    pub workers: usize,
    /// Cores to choose from, spread evenly over their regions; those that this thread may use, where
    /// nothing is said. Cpusets and control groups are respected that way.
    pub cores: Option<Vec<CoreId>>,
    /// Whether each worker is pinned to one core.
    pub pin: bool,
    /// The machine.
    pub topology: Topology,
    /// How tasks are scheduled.
    pub policy: Policy,
    /// Where memory lies.
    pub placement: Placement,
    /// Whether interleaved memory with queues for each region is wanted all the same.
    pub ablation: bool,
    /// How much the arena holds.
    pub capacity: Capacity,
    /// How long an idle worker watches for work before it sleeps.
    pub spin_ns: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Whether a kernel that touches a page of data which its task did not declare is killed by SIGSEGV.
    /// Slow, and for one worker: for tests of what kernels declare.
    pub check_footprint: bool,
}

impl Config {
    /// A run in one of the regimes.
    #[must_use]
    pub fn new(regime: Regime, workers: usize, topology: Topology) -> Self {
        let (policy, placement) = regime.parts();
        Self {
            workers,
            cores: None,
            pin: true,
            topology,
            policy,
            placement,
            ablation: false,
            capacity: Capacity::default(),
            spin_ns: 20_000,
            seed: 1,
            check_footprint: false,
        }
    }

    fn check(&self) -> Result<(), TaskError> {
        let config = |text: &str| Err(TaskError::Config(text.to_owned()));
        if self.workers == 0 {
            return config("a run needs one worker at least");
        }
        if self.check_footprint && self.workers > 1 {
            return config("footprints are checked with one worker; set Config::workers to 1");
        }
        if self.placement == Placement::Interleaved
            && self.policy.rank != Rank::Oblivious
            && !self.ablation
        {
            return Err(TaskError::Conflict);
        }
        Ok(())
    }
}

/// A run on this machine. The thread that made it is worker 0: it registers tasks, and runs some while
/// it waits.
#[derive(Debug)]
pub struct Runtime {
    shared: Arc<Shared>,
    worker: RefCell<Worker>,
    children: Children,
    threads: Vec<JoinHandle<()>>,
    placement: Placement,
    data: u32,
    cores_before: Option<CoreSet>,
    places: Vec<(CoreId, usize)>,
}

impl Runtime {
    /// Starts the workers.
    ///
    /// # Errors
    /// [`TaskError`] for a configuration that makes no sense, and where the system refuses.
    pub fn start(config: Config) -> Result<Self, TaskError> {
        config.check()?;
        let before = CoreSet::of_this_thread()?;
        let allowed: Vec<CoreId> = match &config.cores {
            Some(cores) => cores.clone(),
            None => before.iter().collect(),
        };
        let places = config.topology.spread(&allowed, config.workers);
        if places.is_empty() {
            return Err(TaskError::Config(
                "none of the cores is part of the machine that the topology describes".to_owned(),
            ));
        }
        let regions: Vec<usize> = places.iter().map(|place| place.1).collect();
        let queues = Scheduler::queues(&config.policy, &config.topology, &regions);
        let arena = Arena::new(&mut Heap, config.capacity, places.len(), queues);
        let scheduler = Scheduler::new(arena, config.policy, config.topology, &regions);
        let shared = Arc::new(Shared {
            scheduler,
            memory: Memory::new(RESERVED_BYTES, false)?,
            spin_ns: config.spin_ns,
            scope: Scope::Process,
            guarded: config.check_footprint,
        });
        let worker = RefCell::new(shared.scheduler.worker(0, config.seed));
        let mut runtime = Self {
            shared,
            worker,
            children: Children::of(ROOT),
            threads: Vec::new(),
            placement: config.placement,
            data: 0,
            cores_before: config.pin.then_some(before),
            places,
        };
        runtime.start_threads(config.pin, config.seed)?;
        Ok(runtime)
    }

    fn start_threads(&mut self, pinned: bool, seed: u64) -> Result<(), TaskError> {
        for (seat, (core, _)) in (0_u32..).zip(self.places.clone()) {
            if seat == 0 {
                if pinned {
                    pin(core)?;
                }
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new()
                .name(format!("task worker {seat}"))
                .spawn(move || {
                    // A core that has gone away meanwhile costs locality, not the run.
                    let _ = pinned.then(|| pin(core));
                    let worker = RefCell::new(shared.scheduler.worker(seat, seed));
                    let _ = block_on(work(&shared.scheduler, &*shared, &worker, Goal::Stop));
                })
                .map_err(|error| {
                    TaskError::Config(format!("cannot start worker {seat}: {error}"))
                })?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Cores and regions of the workers.
    #[must_use]
    pub fn places(&self) -> &[(CoreId, usize)] {
        &self.places
    }

    /// Registers an array of `len` zeroes whose memory nobody has touched yet.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room for it.
    pub fn data<T: Element>(&mut self, len: usize) -> Result<Data<T>, TaskError> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes > 0);
        let bytes =
            bytes.ok_or_else(|| TaskError::Config("data need one byte at least".to_owned()))?;
        let id = DataId(self.data);
        let piece = self.shared.memory.take(bytes);
        let piece = piece.ok_or_else(|| {
            TaskError::Config(format!("no address space is left for {bytes} bytes of data"))
        })?;
        let regions = self.shared.scheduler.topology.regions();
        let homes = if regions > 1 { piece.homes } else { 0 };
        if !self.shared.scheduler.arena.enter_object(id, piece.base, bytes as u64, homes) {
            return Err(TaskError::TooManyData);
        }
        self.data += 1;
        if self.placement == Placement::Interleaved && regions > 1 {
            self.interleave(id, piece.base, bytes)?;
        }
        Ok(Data::new(id, len))
    }

    fn interleave(&self, id: DataId, base: usize, bytes: usize) -> Result<(), TaskError> {
        let topology = &self.shared.scheduler.topology;
        let all: Vec<RegionId> = (0..topology.regions()).map(|r| topology.region_id(r)).collect();
        self.shared.memory.interleave(base, bytes, &all)?;
        self.shared.scheduler.arena.settle(id, |_| Home::Spread);
        Ok(())
    }

    /// Frees data when the tasks that use them are over. Later uses are errors.
    ///
    /// # Errors
    /// [`TaskError`] where a task failed before.
    pub fn free<T: Element>(&mut self, data: Data<T>) -> Result<(), TaskError> {
        self.wait_for(data.all().range(), Mode::InOut)?;
        let object = &self.shared.scheduler.arena.objects[data.id().0 as usize];
        let bytes = usize::try_from(object.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        object.state.store(object::FREED, Ordering::Release);
        self.children.domain.forget(data.id());
        self.shared.memory.release(object.base.load(Ordering::Relaxed), bytes)?;
        Ok(())
    }

    /// Registers a task.
    ///
    /// # Errors
    /// [`TaskError`] for a range that cannot be used.
    #[inline]
    pub fn spawn<K: Kernel>(&mut self, kernel: K) -> Result<(), TaskError> {
        if self.children.spawned >= CHILDREN_MAX {
            self.wait()?;
        }
        register(&self.shared, &self.worker, &mut self.children, kernel)
    }

    /// Waits until all tasks are over; this thread runs some of them.
    ///
    /// # Errors
    /// [`TaskError`] if one failed; those that had not begun were left out.
    pub fn wait(&mut self) -> Result<(), TaskError> {
        wait_children(&self.shared, &self.worker, &mut self.children, "the program")
    }

    /// Waits until tasks that write `range` are over.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_on(&mut self, range: impl Into<Range>) -> Result<(), TaskError> {
        self.wait_for(range.into(), Mode::In)
    }

    fn wait_for(&mut self, range: Range, mode: Mode) -> Result<(), TaskError> {
        wait_range(&self.shared, &self.worker, &mut self.children, range, mode, "the program")
    }

    /// Elements to read, when the tasks that write them are over.
    ///
    /// # Errors
    /// As [`Self::wait`], and where the part is not inside of its data.
    pub fn read<T: Element>(&mut self, part: Part<T>) -> Result<&[T], TaskError> {
        self.wait_for(part.range(), Mode::In)?;
        let first = self.address(part.range())?;
        // SAFETY: the part lies in registered memory that lives as long as the run, aligned for `T`
        // since it begins at a page; no task that writes it runs, and none can be registered while the
        // result borrows the run. `T` is valid for any bytes.
        Ok(unsafe { core::slice::from_raw_parts(first.cast::<T>(), part.len()) })
    }

    /// Elements to read and write, when the tasks that use them are over.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn write<T: Element>(&mut self, part: Part<T>) -> Result<&mut [T], TaskError> {
        self.wait_for(part.range(), Mode::InOut)?;
        let first = self.address(part.range())?;
        self.shared.scheduler.arena.touch(part.range(), self.worker.borrow().region);
        // SAFETY: as in `read`, and no task that reads the part runs.
        Ok(unsafe { core::slice::from_raw_parts_mut(first.cast::<T>(), part.len()) })
    }

    fn address(&self, range: Range) -> Result<*mut u8, TaskError> {
        let object = self.shared.scheduler.arena.object(range);
        let object = object.map_err(|_| TaskError::UnknownData { kernel: "the program", range })?;
        let base = object.base.load(Ordering::Relaxed);
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        Ok(core::ptr::with_exposed_provenance_mut(base.wrapping_add(start)))
    }

    /// What the run did so far. Workers that are at work now have not counted everything.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::of(&self.shared.scheduler)
    }

    /// Asks the kernel in which region each page of `data` lives; `None` for one that nobody touched.
    ///
    /// # Errors
    /// [`TaskError`] where the kernel does not say.
    pub fn regions_of<T: Element>(
        &self,
        data: Data<T>,
    ) -> Result<Vec<Option<RegionId>>, TaskError> {
        let object = &self.shared.scheduler.arena.objects[data.id().0 as usize];
        let bytes = usize::try_from(object.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        let mut out = vec![None; bytes.div_ceil(isochrone_units::PAGE_BYTES)];
        self.shared.memory.regions_of(object.base.load(Ordering::Relaxed), &mut out)?;
        Ok(out)
    }

    /// Sets what the runtime knows of where `data` live to what the kernel says.
    ///
    /// # Errors
    /// As [`Self::regions_of`].
    pub fn ask_homes<T: Element>(&mut self, data: Data<T>) -> Result<(), TaskError> {
        let pages = self.regions_of(data)?;
        let scheduler = &self.shared.scheduler;
        let bytes = scheduler.arena.objects[data.id().0 as usize].bytes.load(Ordering::Relaxed);
        let each = 1_usize << (piece_shift(bytes) - 12);
        debug_assert!(pages.len() <= each * pieces(bytes), "pieces cover all pages");
        scheduler.arena.settle(data.id(), |piece| {
            let first = pages.get(piece * each).copied().flatten();
            let region = first.and_then(|id| scheduler.topology.region_index(id));
            region.map_or(Home::Unknown, Home::Region)
        });
        Ok(())
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Tasks that run use the memory: nobody goes before they are over.
        let _ = self.wait();
        let run = self.shared.scheduler.arena.run();
        run.stop.store(1, Ordering::SeqCst);
        for seat in 1..u32::try_from(self.places.len()).unwrap_or(u32::MAX) {
            self.shared.scheduler.wake_seat(seat, &*self.shared);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(before) = &self.cores_before {
            let _ = restore(before);
        }
    }
}

/// Registers a task; runs others first where there is no room, or more are ready than is good.
#[inline]
pub(super) fn register<K: Kernel>(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    kernel: K,
) -> Result<(), TaskError> {
    const { Erased::<K>::FITS };
    let scheduler = &shared.scheduler;
    loop {
        let mut own = worker.borrow_mut();
        let Some(task) = scheduler.slot_for(&mut own) else {
            drop(own);
            help(shared, worker, Goal::Room);
            continue;
        };
        // SAFETY: the slot was free and is this worker's now.
        unsafe { scheduler.arena.slot(task).arguments.put(kernel) };
        let mut footprint = core::mem::take(&mut own.footprint);
        footprint.clear();
        kernel.declare(&mut footprint);
        own.footprint = footprint;
        let outcome = scheduler.submit(&mut own, children, task, Erased::<K>::TABLE, shared);
        match outcome {
            Ok(Submitted::Done) => break,
            Ok(Submitted::Short(before)) => {
                drop(own);
                connect(shared, worker, task, before);
                break;
            }
            Ok(Submitted::Full) => {
                scheduler.vacate(&mut own, task, scheduler.arena.slot(task));
                drop(own);
                help(shared, worker, Goal::Room);
            }
            Err(error) => {
                scheduler.vacate(&mut own, task, scheduler.arena.slot(task));
                return Err(error);
            }
        }
    }
    let most = scheduler.backlog(&worker.borrow());
    if scheduler.arena.ready(worker.borrow().queue).len() > most {
        help(shared, worker, Goal::Backlog(most / 2));
    }
    Ok(())
}

/// Runs tasks until the goal is reached.
#[cold]
fn help(shared: &Shared, worker: &RefCell<Worker>, goal: Goal) {
    let _ = block_on(work(&shared.scheduler, shared, worker, goal));
}

/// Connects a task with those it waits for, when there are edges again.
#[cold]
fn connect(
    shared: &Shared,
    worker: &RefCell<Worker>,
    task: u32,
    mut before: Vec<crate::arena::slot::TaskRef>,
) {
    loop {
        help(shared, worker, Goal::Room);
        let mut own = worker.borrow_mut();
        own.before = before;
        match shared.scheduler.connect(&mut own, task, shared) {
            Submitted::Short(rest) => before = rest,
            Submitted::Done | Submitted::Full => return,
        }
    }
}

/// Waits for all children.
pub(super) fn wait_children(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    who: &'static str,
) -> Result<(), TaskError> {
    let scheduler = &shared.scheduler;
    let slot = scheduler.arena.slot(children.parent);
    if children.spawned > 0 {
        slot.waiter.store(worker.borrow().seat + 1, Ordering::SeqCst);
        slot.target.store(CHILDREN - children.spawned, Ordering::SeqCst);
        let goal = Goal::Children(children.parent, children.spawned);
        wait(shared, worker, goal, 1, who)?;
        slot.target.store(0, Ordering::SeqCst);
        slot.children.store(CHILDREN, Ordering::SeqCst);
        children.spawned = 0;
    }
    report(scheduler, children.parent)
}

/// Waits for those children that a use of `range` must wait for.
pub(super) fn wait_range(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    range: Range,
    mode: Mode,
    who: &'static str,
) -> Result<(), TaskError> {
    let scheduler = &shared.scheduler;
    let mut before = Vec::new();
    children.domain.look(range, mode, &mut before);
    before.retain(|task| scheduler.arena.is_live(*task));
    if !before.is_empty() {
        wait_tasks(shared, worker, before, 2, who)?;
    }
    report(scheduler, children.parent)
}

/// Waits until all of some tasks are over.
fn wait_tasks(
    shared: &Shared,
    worker: &RefCell<Worker>,
    before: Vec<crate::arena::slot::TaskRef>,
    doubt: u32,
    who: &'static str,
) -> Result<(), TaskError> {
    let scheduler = &shared.scheduler;
    let sentinel = loop {
        let slot = scheduler.slot_for(&mut worker.borrow_mut());
        match slot {
            Some(slot) => break slot,
            None => help(shared, worker, Goal::Room),
        }
    };
    let submitted = {
        let mut own = worker.borrow_mut();
        own.before = before;
        scheduler.sentinel(&mut own, sentinel, shared)
    };
    if let Submitted::Short(before) = submitted {
        connect(shared, worker, sentinel, before);
    }
    let outcome = wait(shared, worker, Goal::Ready(sentinel), doubt, who);
    if outcome.is_ok() {
        scheduler.retire(&mut worker.borrow_mut(), sentinel);
    }
    outcome
}

/// Works until a goal is reached, which may turn out never to be.
fn wait(
    shared: &Shared,
    worker: &RefCell<Worker>,
    goal: Goal,
    doubt: u32,
    who: &'static str,
) -> Result<(), TaskError> {
    let (seat, depth) = (worker.borrow().seat, worker.borrow().depth);
    let inside = &shared.scheduler.arena.seats[seat as usize].inside;
    let outer = inside.load(Ordering::Relaxed);
    if depth > 0 {
        inside.store(outer.max(doubt), Ordering::SeqCst);
    }
    let outcome = block_on(work(&shared.scheduler, shared, worker, goal));
    inside.store(outer, Ordering::SeqCst);
    outcome.map_err(|Stuck| {
        shared.scheduler.unstick();
        TaskError::Deadlock { kernel: who.to_owned() }
    })
}

/// The first failure among the children, once.
fn report(scheduler: &Scheduler, parent: u32) -> Result<(), TaskError> {
    match scheduler.take_failure(parent) {
        None => Ok(()),
        Some(first) => Err(TaskError::Failed {
            kernel: first.kernel.unwrap_or("of another waiter").to_owned(),
            text: first.text,
        }),
    }
}

impl Tasks for Runtime {
    fn reading(&self) -> Reading {
        Reading::Measured
    }

    fn workers(&self) -> usize {
        self.places.len()
    }

    fn now_ns(&self) -> u64 {
        isochrone_os::clock::monotonic_ns()
    }

    fn data<T: Element>(&mut self, len: usize) -> Result<Data<T>, TaskError> {
        Self::data(self, len)
    }

    fn free<T: Element>(&mut self, data: Data<T>) -> Result<(), TaskError> {
        Self::free(self, data)
    }

    #[inline]
    fn spawn<K: Kernel>(&mut self, kernel: K) -> Result<(), TaskError> {
        Self::spawn(self, kernel)
    }

    fn wait(&mut self) -> Result<(), TaskError> {
        Self::wait(self)
    }

    fn wait_on(&mut self, range: impl Into<Range>) -> Result<(), TaskError> {
        Self::wait_on(self, range)
    }

    fn value<T: Element + Debug>(
        &mut self,
        data: Data<T>,
        index: usize,
        _: T,
    ) -> Result<T, TaskError> {
        self.read(data.part(index, 1)).map(|values| values[0])
    }

    fn values<T: Element + Debug>(
        &mut self,
        part: Part<T>,
        _: impl FnMut(usize) -> T,
    ) -> Result<Vec<T>, TaskError> {
        self.read(part).map(<[T]>::to_vec)
    }

    fn store<T: Element>(
        &mut self,
        part: Part<T>,
        write: impl FnOnce(&mut [T]),
    ) -> Result<(), TaskError> {
        self.write(part).map(write)
    }

    fn report(&self) -> Report {
        Self::report(self)
    }
}
