//! A run: workers on their cores, data, and the program that registers tasks.

use core::cell::RefCell;
use core::fmt::Debug;
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use isochrone_os::affinity::CoreSet;
use isochrone_os::futex::Scope;
use isochrone_os::{race, stack};
use isochrone_units::{CoreId, Reading, RegionId};

use super::hold::{Hold, own_cores, settle};
use super::mem::Mem;
use super::memory::Memory;
use super::register::{register, register_fn, report, wait_children, wait_range, wait_task};
use super::shared::{Shared, block_on};
use super::shared_tables::SharedTables;
use super::task::Task;
use crate::arena::objects::Home;
use crate::arena::{Heap, object};
use crate::driver::work;
use crate::error::TaskError;
use crate::failure::Failure;
use crate::footprint::{Footprint, Mode};
use crate::kernel::Kernel;
use crate::policy::{Placement, Regime};
use crate::range::{Data, DataId, Element, Part, Range};
use crate::report::Report;
use crate::schedule::Schedule;
use crate::scheduler::crowd::Cores;
use crate::scheduler::worker::Worker;
use crate::scheduler::{Children, Goal, refused};
use crate::session::Tasks;
use crate::setup::Setup;
use crate::sync::Ordering;
use crate::topology::Topology;
use crate::trace::Trace;

/// Children that a task may have before it must wait once.
const CHILDREN_MAX: u32 = 1 << 30;

/// How a run is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// What a simulated run takes as well. Times of a schedule that is followed are not kept, and workers must be
    /// threads then; the first worker is the program's own thread.
    pub setup: Setup,
    /// Cores to choose from, spread evenly over their regions; those that this thread may use, where
    /// nothing is said. Cpusets and control groups are respected that way.
    pub cores: Option<Vec<CoreId>>,
    /// Whether each worker is pinned to one core.
    pub pin: bool,
    /// Whether workers are processes, forked from this one, which must have one thread. Data and tasks lie
    /// in memory that all share; closures cannot be tasks then.
    pub processes: bool,
    /// Addresses for all data of the run where workers are processes, which have them from the start: so many bytes,
    /// or, where nothing is said, 1 TiB or as many as can be had. Only what is touched takes memory. Threads take
    /// addresses as data come.
    pub data_bytes: Option<usize>,
    /// How long an idle worker watches for work before it sleeps. One that shares its core with a worker that is awake
    /// sleeps at once.
    pub spin_ns: u64,
    /// Whether a kernel that touches a page of data which its task did not declare is killed by SIGSEGV.
    /// Slow, and for one worker: for tests of what kernels declare.
    pub check_footprint: bool,
}

impl Config {
    /// A run in one of the regimes.
    #[must_use]
    pub fn new(regime: Regime, workers: usize, topology: Topology) -> Self {
        Self {
            setup: Setup::new(regime, workers, topology),
            cores: None,
            pin: true,
            processes: false,
            data_bytes: None,
            spin_ns: 20_000,
            check_footprint: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), TaskError> {
        let config = |text: &str| Err(TaskError::Config(text.to_owned()));
        self.setup.check()?;
        if self.processes && self.check_footprint {
            return config("footprints are checked in one process; set Config::processes to false");
        }
        if self.processes && self.setup.follow.is_some() {
            return config("processes follow no schedule; set Config::processes to false");
        }
        if self.check_footprint && self.setup.workers > 1 {
            return config("footprints are checked with one worker; set Setup::workers to 1");
        }
        Ok(())
    }
}

/// What all workers of a run share, and where they sit. Nobody is made yet.
pub(super) fn prepare(
    config: Config,
    before: &CoreSet,
    memory: Memory,
) -> Result<(Shared, Vec<(CoreId, usize)>), TaskError> {
    let allowed = config.cores.unwrap_or_else(|| before.iter().collect());
    let places = config.setup.places(&allowed)?;
    let scheduler = match config.processes {
        true => config.setup.scheduler(&places, Reading::Measured, &mut SharedTables::default())?,
        false => config.setup.scheduler(&places, Reading::Measured, &mut Heap)?,
    };
    let shared = Shared {
        scheduler,
        memory,
        spin_ns: config.spin_ns,
        scope: if config.processes { Scope::Shared } else { Scope::Process },
        team: None,
        guarded: config.check_footprint,
    };
    Ok((shared, places))
}

/// A run on this machine. The thread that made it is worker 0: it registers tasks, and runs some while
/// it waits.
#[derive(Debug)]
pub struct Runtime {
    pub(super) shared: Arc<Shared>,
    worker: RefCell<Worker>,
    children: Children,
    threads: Vec<JoinHandle<()>>,
    placement: Placement,
    /// Pieces of data so far.
    pub(super) data: u32,
    /// Where those that were not freed lie: their ends, by where they begin.
    pieces: BTreeMap<usize, (usize, DataId)>,
    hold: Option<Hold>,
    places: Vec<(CoreId, usize)>,
}

impl Runtime {
    /// Starts the workers.
    ///
    /// # Errors
    /// [`TaskError`] for a configuration that makes no sense, and where the system refuses.
    pub fn start(config: Config) -> Result<Self, TaskError> {
        config.check()?;
        race::look();
        let own = own_cores()?;
        let memory = match config.processes {
            true => Memory::shared(config.data_bytes)?,
            false => Memory::growing(),
        };
        let (pinned, processes, seed) = (config.pin, config.processes, config.setup.seed);
        let placement = config.setup.placement;
        let (mut shared, places) = prepare(config, &own, memory)?;
        let on: Vec<CoreId> = places.iter().map(|place| place.0).collect();
        shared.scheduler.seat_on(if pinned { Cores::Pinned(&on) } else { Cores::Free(own.len()) });
        let free = (!pinned).then_some(own);
        if processes {
            shared.fork_workers(&places, free.as_ref(), seed)?;
        }
        let mut runtime = Self::first(Arc::new(shared), places, placement, seed);
        if pinned {
            runtime.hold = Some(Hold::on(runtime.places[0].0)?);
        }
        if !processes {
            runtime.start_threads(free.as_ref(), seed)?;
        }
        Ok(runtime)
    }

    /// The first worker, which is the program, beside others that are made already or still to be made.
    pub(super) fn first(
        shared: Arc<Shared>,
        places: Vec<(CoreId, usize)>,
        placement: Placement,
        seed: u64,
    ) -> Self {
        shared.take_seat(0);
        let worker = shared.worker(0, seed);
        let children = shared.scheduler.program();
        Self {
            shared,
            worker,
            children,
            threads: Vec::new(),
            placement,
            data: 0,
            pieces: BTreeMap::new(),
            hold: None,
            places,
        }
    }

    /// Starts all workers but the first; each on its core, or all on the cores of `free`.
    fn start_threads(&mut self, free: Option<&CoreSet>, seed: u64) -> Result<(), TaskError> {
        for (seat, (core, _)) in (0_u32..).zip(self.places.clone()).skip(1) {
            let (shared, free) = (Arc::clone(&self.shared), free.cloned());
            let mut thread = std::thread::Builder::new().name(format!("task worker {seat}"));
            // As deep as in any thread of a program in C; Rust's own have a quarter.
            if let Some(bytes) = stack::usual() {
                thread = thread.stack_size(bytes);
            }
            let thread = thread
                .spawn(move || {
                    settle(core, free.as_ref());
                    shared.take_seat(seat);
                    let worker = shared.worker(seat, seed);
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
            TaskError::Config(format!(
                "no address space is left for {bytes} bytes of data: register less, raise ulimit -v, or, where \
                 workers are processes, Config::data_bytes"
            ))
        })?;
        let regions = self.shared.scheduler.topology.regions();
        let homes = if regions > 1 { piece.homes } else { 0 };
        if !self.shared.scheduler.arena.enter_object(id, piece.base, bytes as u64, homes) {
            return Err(TaskError::TooManyData);
        }
        self.data += 1;
        self.pieces.insert(piece.base, (piece.base + bytes, id));
        if regions > 1 {
            // A kernel without huge pages refuses, and needs no telling. What is known of homes is by page.
            let _ = self.shared.memory.small_pages(piece.base, bytes);
        }
        if self.placement == Placement::Interleaved && regions > 1 {
            self.interleave(id, piece.base, bytes)?;
        }
        Ok(Data::new(id, len))
    }

    /// Registers an array that the program has already, where it lies: tasks work on it in place. Its pages stay where
    /// they are.
    ///
    /// # Errors
    /// [`TaskError`] for no elements, addresses that are not aligned for them, memory of which some is data of the run
    /// already, and where workers are processes, which may not have it.
    ///
    /// # Safety
    /// `len` elements from `first` on are readable and writable, and nobody else reads or writes them, until the data
    /// are freed or the run has ended; but for the program itself, by [`Self::read`] and [`Self::write`].
    pub unsafe fn adopt<T: Element>(
        &mut self,
        first: NonNull<T>,
        len: usize,
    ) -> Result<Data<T>, TaskError> {
        let config = |words: &str| TaskError::Config(words.to_owned());
        if self.shared.scope == Scope::Shared {
            return Err(config(
                "workers that are processes may not have this memory: copy it to data of the run",
            ));
        }
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or_else(|| config("data need one byte at least"))?;
        if !first.is_aligned() || first.addr().get().checked_add(bytes).is_none() {
            return Err(config(
                "an array lies at a multiple of its elements' alignment, and ends below the last address",
            ));
        }
        let id = DataId(self.data);
        let base = first.expose_provenance().get();
        if let Some(other) = self.piece_in(base, base + bytes) {
            return Err(TaskError::Config(format!(
                "some of these {bytes} bytes are data {} already, and tasks would not wait for one another: use a \
                 range of those, or free them first",
                other.0
            )));
        }
        let several = self.shared.scheduler.topology.regions() > 1;
        let homes = if several { self.shared.memory.homes(bytes) } else { Some(0) };
        let homes = homes.ok_or_else(|| config("no address space is left for an array's pages"))?;
        if !self.shared.scheduler.arena.enter_object(id, base, bytes as u64, homes) {
            return Err(TaskError::TooManyData);
        }
        self.data += 1;
        self.pieces.insert(base, (base + bytes, id));
        Ok(Data::new(id, len))
    }

    /// A piece of data with bytes between two addresses. Pieces do not overlap, so the last that begins below the end
    /// has some, if any has.
    fn piece_in(&self, start: usize, end: usize) -> Option<DataId> {
        let (_, (theirs, id)) = self.pieces.range(..end).next_back()?;
        (*theirs > start).then_some(*id)
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
        self.address(data.all().range())?;
        self.wait_for(data.all().range(), Mode::InOut)?;
        self.shared.scheduler.arena.undone().mend(data.all().range());
        let object = &self.shared.scheduler.arena.objects[data.id().0 as usize];
        let bytes = usize::try_from(object.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        object.state.store(object::FREED, Ordering::Release);
        self.children.domain.forget(data.id());
        let base = object.base.load(Ordering::Relaxed);
        self.pieces.remove(&base);
        self.shared.memory.release(base, bytes)?;
        Ok(())
    }

    /// Registers a task.
    ///
    /// # Errors
    /// [`TaskError`] for a range that cannot be used.
    #[inline]
    pub fn spawn<K: Kernel>(&mut self, kernel: K) -> Result<(), TaskError> {
        self.with_children(|shared, worker, children| {
            register(shared, worker, children, kernel, false)
        })
        .map(drop)
    }

    /// Registers something as a child of the program.
    #[inline]
    pub(super) fn with_children(
        &mut self,
        register: impl FnOnce(&Shared, &RefCell<Worker>, &mut Children) -> Result<Task, TaskError>,
    ) -> Result<Task, TaskError> {
        if self.children.spawned >= CHILDREN_MAX {
            self.wait()?;
        }
        if self.children.spawned == 0 {
            self.shared.scheduler.arena.run().busy.store(1, Ordering::Relaxed);
        }
        let outcome = register(&self.shared, &self.worker, &mut self.children);
        if self.children.spawned == 0 {
            self.shared.scheduler.is_over();
        }
        outcome
    }

    /// As [`Self::spawn`]; the result can be waited for, by this program and by other tasks.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_task<K: Kernel>(&mut self, kernel: K) -> Result<Task, TaskError> {
        self.with_children(|shared, worker, children| {
            register(shared, worker, children, kernel, true)
        })
    }

    /// Registers a closure as a task, with the ranges that `declare` says. For kernels that come often,
    /// [`Kernel`] costs less: a closure is boxed.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_fn<F>(
        &mut self,
        declare: impl FnOnce(&mut Footprint),
        run: F,
    ) -> Result<Task, TaskError>
    where
        F: FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static,
    {
        self.with_children(|shared, worker, children| {
            register_fn(shared, worker, children, declare, run)
        })
    }

    /// Waits until one task is over, and its own tasks with it.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_task(&mut self, task: Task) -> Result<(), TaskError> {
        let scheduler = &self.shared.scheduler;
        scheduler.close_window(&mut self.worker.borrow_mut(), &mut self.children, &*self.shared);
        wait_task(&self.shared, &self.worker, task, "the program")?;
        report(&self.shared, &self.worker, &mut self.children, "the program")
    }

    /// Leaves out all tasks that have not begun, and tasks of their own that those which have begun go on to register;
    /// who waits for them is told [`TaskError::Cancelled`], once. Those that
    /// have begun may ask [`Mem::is_in_vain`]. What they all should have written is undone.
    pub fn cancel(&mut self) {
        self.shared.scheduler.cancel_all();
    }

    /// What cancels the same from any thread, as when a user asks for it.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.shared))
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
    /// As [`Self::wait`], where the range is not inside of registered data, and [`TaskError::Undone`] where a task
    /// that should have written some of it failed and nobody has written that anew.
    pub fn wait_on(&mut self, range: impl Into<Range>) -> Result<(), TaskError> {
        let range = range.into();
        self.address(range)?;
        self.wait_for(range, Mode::In)
    }

    fn wait_for(&mut self, range: Range, mode: Mode) -> Result<(), TaskError> {
        wait_range(&self.shared, &self.worker, &mut self.children, range, mode, "the program")
    }

    /// Elements to read, when the tasks that write them are over.
    ///
    /// # Errors
    /// As [`Self::wait_on`].
    pub fn read<T: Element>(&mut self, part: Part<T>) -> Result<&[T], TaskError> {
        let first = self.address(part.range())?;
        self.wait_for(part.range(), Mode::In)?;
        // SAFETY: the part lies in registered memory that lives as long as the run, aligned for `T`
        // since it begins at a page; no task that writes it runs, and none can be registered while the
        // result borrows the run. `T` is valid for any bytes.
        Ok(unsafe { core::slice::from_raw_parts(first.cast::<T>(), part.len()) })
    }

    /// Elements to read and write, when the tasks that use them are over. What was undone is the program's now.
    ///
    /// # Errors
    /// As [`Self::wait`], and where the part is not inside of its data.
    pub fn write<T: Element>(&mut self, part: Part<T>) -> Result<&mut [T], TaskError> {
        let first = self.address(part.range())?;
        self.wait_for(part.range(), Mode::InOut)?;
        self.shared.scheduler.arena.undone().mend(part.range());
        self.shared.scheduler.arena.touch(part.range(), self.worker.borrow().region);
        // SAFETY: as in `read`, and no task that reads the part runs.
        Ok(unsafe { core::slice::from_raw_parts_mut(first.cast::<T>(), part.len()) })
    }

    fn address(&self, range: Range) -> Result<*mut u8, TaskError> {
        let object = self.shared.scheduler.arena.object(range);
        let object = object.map_err(|why| refused(why, "the program", range))?;
        let base = object.base.load(Ordering::Relaxed);
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        Ok(core::ptr::with_exposed_provenance_mut(base.wrapping_add(start)))
    }

    /// What the run did so far. Workers that are at work now have not counted everything.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::of(&self.shared.scheduler)
    }

    /// What ran where and when, so far, if [`Capacity::trace`](crate::Capacity::trace) asked for it.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.shared.scheduler.trace()
    }

    /// The schedule of this run so far, if [`Capacity::trace`](crate::Capacity::trace) asked for it and all tasks
    /// had room there.
    ///
    /// # Errors
    /// [`TaskError::Schedule`] where it is not whole.
    pub fn schedule(&self) -> Result<Schedule, TaskError> {
        // When the program went on is nothing that another clock could keep.
        self.shared.scheduler.schedule(Reading::Measured, &[])
    }
}

/// Cancels what the program has registered, as [`Runtime::cancel`] does, from any thread. After
/// the run it does nothing.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<Shared>);

impl Canceller {
    /// Leaves out all tasks that have not begun.
    pub fn cancel(&self) {
        self.0.scheduler.cancel_all();
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
        if let Some(team) = &self.shared.team {
            team.finish();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.hold = None;
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
