//! A large coherent machine under tasks: what a footprint moves is worked out by the coherence engine of
//! `sim`, and how long that takes by the roofs that all running tasks share.

use isochrone_machine::Machine;
use isochrone_sim::coherence::engine::{Engine, Placed, RegionId, Touch};
use isochrone_sim::coherence::{Fluid, Legs, Need, NumaSpec, Roofs};
use isochrone_stats::{Xoshiro256PlusPlus, derive_seed, rng, uniform};

use super::hardware::{Hardware, Job, Step};
use super::runtime::{Place, Runtime, RuntimeLines};
use crate::footprint::Access;
use crate::policy::Placement;
use crate::range::DataId;
use crate::topology::Topology;

/// What a kernel does beside what it declares.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelModel {
    /// The kernel's name.
    pub name: &'static str,
    /// Operations that one core does in a nanosecond.
    pub flops_per_ns: f64,
    /// How often it goes through each of its ranges, as the last-level cache sees it, in the order in which
    /// they are declared; what is missing is 1.
    pub passes: Vec<f32>,
    /// What it keeps for itself and cannot hold in the caches.
    pub scratch: Option<Scratch>,
}

/// Memory of the worker's own that a kernel packs data into. It lies as all memory of the program does: with
/// the worker, or interleaved where the program runs under an interleaving policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scratch {
    /// Its bytes.
    pub bytes: u64,
    /// How often all of it comes from memory to be written, and goes back.
    pub written: f32,
    /// How often it comes to be read.
    pub read: f32,
}

/// How memory of new data is got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The program asks the system for each block as it registers the task that writes it first.
    PerBlock,
    /// The program asked once, for all.
    Once,
}

/// How compute and memory time make a task's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Composition {
    /// The longer of both: prefetchers run ahead of the arithmetic.
    Overlap,
    /// Both, one after the other.
    Add,
}

/// From so many bytes on `malloc` asks the system for a block of its own (mallopt(3), `M_MMAP_THRESHOLD`);
/// smaller blocks come out of memory that the program has already.
const MMAP_THRESHOLD: u64 = 128 << 10;

/// Choices beside the machine's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// Bytes of a chunk.
    pub chunk: u64,
    /// What bounds each switch each way beside its links, GB/s.
    pub switch_limit: Option<f64>,
    /// How compute and memory time add up.
    pub composition: Composition,
    /// How memory is got.
    pub allocation: Allocation,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// A page fault, with the page cleared, ns.
    pub fault_ns: f64,
    /// A call to the system for memory, ns.
    pub allocation_ns: f64,
    /// What a worker's look at a queue is late by, at most, ns: an idle worker of Nanos++ gives its core up
    /// between looks, and a call of `sched_yield` takes about so long.
    pub poll_ns: f64,
    /// Taking a task from a queue and giving its end back, ns.
    pub task_ns: f64,
    /// Lines that the runtime itself changes; without, they cost nothing beside the times above.
    pub runtime: Option<RuntimeLines>,
    /// Whether running tasks hold each other up; without it times are those of a machine without roofs.
    pub contention: bool,
    /// Whether lines wait behind others before roofs that are not full.
    pub queues: bool,
    /// Kernels; others go through each range once, at a scalar rate.
    pub kernels: Vec<KernelModel>,
    /// Seed of whoever comes first among equals.
    pub seed: u64,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            chunk: isochrone_sim::coherence::engine::CHUNK_BYTES,
            switch_limit: None,
            composition: Composition::Overlap,
            allocation: Allocation::PerBlock,
            page_bytes: 2 << 20,
            fault_ns: 250_000.0,
            allocation_ns: 2_000.0,
            poll_ns: 1_000.0,
            task_ns: 1_000.0,
            runtime: None,
            contention: true,
            queues: false,
            kernels: Vec::new(),
            seed: 1,
        }
    }
}

/// The machine.
#[derive(Debug)]
pub struct Coherent {
    engine: Engine,
    roofs: Roofs,
    fluid: Fluid,
    legs: Legs,
    runtime: Option<Runtime>,
    choices: Choices,
    scalar: f64,
    data: Vec<Option<RegionId>>,
    /// Scratch memory by worker, and where it is put.
    scratch: Vec<Option<RegionId>>,
    placed: Placed,
    random: Xoshiro256PlusPlus,
    /// Workers whose tasks touch memory for the first time.
    faulting: Vec<u32>,
    /// Time of all tasks: arithmetic, waiting for lines without others, and in all.
    spent: Spent,
}

/// What tasks spent their time on, ns over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Arithmetic, as if data were at hand.
    pub compute_ns: f64,
    /// Lines, if nobody else had used the machine.
    pub lines_ns: f64,
    /// First touches.
    pub fault_ns: f64,
    /// Everything, the wait for others on shared roofs included.
    pub task_ns: f64,
    /// Lines of the runtime itself and waits for its locks, which no task's time has.
    pub runtime_ns: f64,
}

impl Coherent {
    /// A machine.
    #[must_use]
    pub fn new(spec: &NumaSpec, choices: Choices) -> Self {
        let roofs = Roofs::of(spec, choices.switch_limit);
        let limits = match choices.contention {
            true => roofs.limits(),
            false => vec![f64::MAX; roofs.limits().len()],
        };
        let fluid = Fluid::new(limits);
        Self {
            engine: Engine::new(spec, choices.chunk),
            fluid: if choices.queues { fluid.with_queues() } else { fluid },
            roofs,
            legs: Legs::of(spec),
            runtime: choices.runtime.map(Runtime::new),
            scalar: spec.rates.scalar,
            data: Vec::new(),
            scratch: Vec::new(),
            placed: Placed::FirstTouch,
            random: rng(derive_seed(choices.seed, 0x706f_6c6c)),
            faulting: Vec::new(),
            spent: Spent::default(),
            choices,
        }
    }

    /// The topology of the machine that a scheduler sees: its latencies and bandwidths where `measured`, else
    /// the firmware's distances. A core's bandwidth is its share where all cores of its region ask at once.
    #[must_use]
    pub fn topology(machine: &Machine, spec: &NumaSpec, measured: bool) -> Topology {
        let topology = Topology::of(machine);
        if !measured {
            return topology;
        }
        let legs = Legs::of(spec);
        let nodes = u8::try_from(spec.nodes.len()).unwrap_or(u8::MAX);
        let pairs = || (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
        let topology = topology.with_costs(pairs().map(|(a, b)| legs.read_ns(a, b)).collect());
        let share = |(a, b): (u8, u8)| {
            let (a, b) = (usize::from(a), usize::from(b));
            let together = spec.bandwidth.triad[spec.distance(a, b) as usize]?;
            Some(together / spec.nodes[a].cores.len() as f64)
        };
        let shares: Option<Vec<f64>> = pairs().map(share).collect();
        match shares {
            Some(gb_per_s) => topology.with_bandwidths(&gb_per_s),
            None => topology,
        }
    }

    /// The coherence engine, to ask what it counted.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What tasks spent their time on.
    #[must_use]
    pub const fn spent(&self) -> Spent {
        self.spent
    }

    /// How often rates were worked out.
    #[must_use]
    pub const fn solved(&self) -> u64 {
        self.fluid.solved()
    }

    /// Goes through a worker's scratch memory.
    fn use_scratch(&mut self, worker: u32, node: u8, scratch: Scratch) {
        let at = worker as usize;
        self.scratch.resize(self.scratch.len().max(at + 1), None);
        let region = match self.scratch[at] {
            Some(region) => region,
            None => self.engine.register(scratch.bytes, self.placed),
        };
        self.scratch[at] = Some(region);
        self.engine.stream(node, region, scratch.bytes, Touch::Write, scratch.written);
        self.engine.stream(node, region, scratch.bytes, Touch::Read, scratch.read);
    }

    /// Goes through a range. One of data that is not registered costs nothing, nor does one that is only declared.
    fn touch(&mut self, node: u8, access: &Access, passes: f32) {
        let Some(region) = self.region(access.range.data).filter(|_| passes > 0.0) else { return };
        let touch = if access.mode.writes() { Touch::Write } else { Touch::Read };
        self.engine.touch(node, region, access.range.start, access.range.bytes, touch, passes);
    }

    fn region(&self, data: DataId) -> Option<RegionId> {
        self.data.get(data.0 as usize).copied().flatten()
    }
}

#[allow(clippy::cast_precision_loss, reason = "times of a run are far below 2^53 ns")]
fn real(ns: u64) -> f64 {
    ns as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time that is not negative; it saturates"
)]
fn whole(ns: f64) -> u64 {
    ns.ceil() as u64
}

impl Hardware for Coherent {
    fn register(&mut self, data: DataId, bytes: u64, placement: Placement) {
        let placed = match placement {
            Placement::FirstTouch => Placed::FirstTouch,
            Placement::Interleaved => Placed::Interleaved,
        };
        self.placed = placed;
        let at = data.0 as usize;
        self.data.resize(self.data.len().max(at + 1), None);
        self.data[at] = Some(self.engine.register(bytes, placed));
    }

    fn free(&mut self, data: DataId) {
        if let Some(region) = self.region(data) {
            self.engine.free(region);
        }
    }

    fn begin(&mut self, now: u64, job: Job<'_>) {
        let node = u8::try_from(job.region).unwrap_or(0);
        let model = self.choices.kernels.iter().position(|model| model.name == job.kernel);
        self.engine.begin_task();
        for (operand, access) in job.footprint.accesses().iter().enumerate() {
            let passes = model.and_then(|at| self.choices.kernels[at].passes.get(operand).copied());
            self.touch(node, access, passes.unwrap_or(access.passes));
        }
        for access in job.footprint.unseen() {
            self.touch(node, access, access.passes);
        }
        if let Some(scratch) = model.and_then(|at| self.choices.kernels[at].scratch) {
            self.use_scratch(job.worker, node, scratch);
        }
        let rate = model.map_or(self.scalar, |at| self.choices.kernels[at].flops_per_ns);
        let compute = job.footprint.total_flops() / rate;
        let tally = self.engine.tally();
        let touched = tally.first_touched * 64;
        let mut demands = self.fluid.list();
        let floor = self.roofs.ask(usize::from(node), tally, &mut demands);
        let faults = real(touched.div_ceil(self.choices.page_bytes)) * self.choices.fault_ns;
        // What comes before the first line and after the last is neither shortened nor held up by others.
        let beside = faults + self.choices.task_ns;
        let before_lines = match self.choices.composition {
            Composition::Overlap => beside,
            Composition::Add => beside + compute,
        };
        let need = Need {
            arithmetic_ns: beside + compute,
            waiting_ns: before_lines + floor.lines_ns,
            window: floor.window,
        };
        if touched > 0 {
            self.faulting.push(job.worker);
        }
        self.spent.compute_ns += compute;
        self.spent.lines_ns += floor.lines_ns;
        self.spent.fault_ns += faults;
        self.spent.task_ns -= real(now);
        self.fluid.begin(real(now), job.worker, demands, need);
    }

    fn next_end(&mut self) -> Option<(u64, u32)> {
        self.fluid.next_end().map(|(time, worker)| (whole(time), worker))
    }

    fn end(&mut self, now: u64, worker: u32) {
        self.fluid.end(real(now), worker);
        self.spent.task_ns += real(now);
        self.faulting.retain(|other| *other != worker);
    }

    /// New memory is got under a lock that page faults share and allocations hold alone. An allocation
    /// waits for the faults under way, as long as these take on memory that all of them clear, and those
    /// that come later wait for it: so while blocks are allocated one by one, each faulting worker gets
    /// through one page for each allocation. A block below [`MMAP_THRESHOLD`] needs none.
    fn spawn_ns(&mut self, _: u64, fresh: &[u64]) -> u64 {
        let calls = fresh.iter().filter(|bytes| **bytes >= MMAP_THRESHOLD).count();
        if calls == 0 || self.choices.allocation == Allocation::Once {
            return 0;
        }
        let fluid = &mut self.fluid;
        let slowest = self.faulting.iter().filter_map(|worker| fluid.slowdown(*worker));
        let wait = slowest.fold(0.0, f64::max) * self.choices.fault_ns;
        whole(real(calls as u64) * (self.choices.allocation_ns + wait))
    }

    fn counts_runtime(&self) -> bool {
        self.runtime.is_some()
    }

    fn runtime_ns(&mut self, now: u64, region: usize, step: Step<'_>) -> u64 {
        let Some(runtime) = &mut self.runtime else { return 0 };
        let node = u8::try_from(region).unwrap_or(0);
        let (engine, roofs, placed) = (&mut self.engine, &self.roofs, self.placed);
        let ns = runtime.step(&mut Place { engine, roofs, node, placed }, real(now), step);
        self.spent.runtime_ns += ns;
        whole(ns)
    }

    /// Idle workers look at their queue again and again, from their own cache, until somebody writes to
    /// it; then the line comes to each of them as far as it is.
    fn reach_ns(&mut self, from: usize, to: usize) -> u64 {
        let node = |region: usize| u8::try_from(region).unwrap_or(0);
        let late = uniform(&mut self.random) * self.choices.poll_ns;
        whole(self.legs.read_ns(node(to), node(from)) + late)
    }
}
