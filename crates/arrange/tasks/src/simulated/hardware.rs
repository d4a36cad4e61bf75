//! What a simulated machine must tell: when tasks end. How it finds out is its own affair.

use isochrone_units::CoreId;

use crate::footprint::{Access, Footprint};
use crate::policy::Placement;
use crate::range::DataId;
use crate::topology::Topology;

/// A task on a core.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its name among running tasks: the worker's number, since a worker runs one task.
    pub worker: u32,
    /// The core.
    pub core: CoreId,
    /// The core's region, by the topology's number.
    pub region: usize,
    /// The kernel.
    pub kernel: &'static str,
    /// What the task does with memory.
    pub footprint: &'a Footprint,
}

/// What the runtime itself does for a task. Tasks go by their place among those at hand.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// It is registered, with those that it waits for.
    Registered {
        /// Its place.
        task: u32,
        /// What it declares.
        accesses: &'a [Access],
        /// Places of those that it waits for.
        before: &'a [u32],
    },
    /// It goes to a queue.
    Pushed {
        /// The queue's number.
        queue: usize,
    },
    /// A worker takes it.
    Taken {
        /// Its place.
        task: u32,
        /// From where; `None` if the worker made it ready and kept it.
        queue: Option<usize>,
    },
    /// It is over.
    Ended {
        /// Its place.
        task: u32,
        /// What it declared.
        accesses: &'a [Access],
        /// Places of those that wait for it.
        after: &'a [u32],
    },
}

/// A machine in virtual time. Times are nanoseconds; calls come in the order of time.
///
/// How long a task takes may depend on what else runs, so nobody asks for a duration: the driver begins
/// tasks, and asks which of those that run ends first if nothing else begins before.
pub trait Hardware {
    /// Data were registered.
    fn register(&mut self, data: DataId, bytes: u64, placement: Placement);

    /// Data were freed.
    fn free(&mut self, data: DataId);

    /// A task begins.
    fn begin(&mut self, now: u64, job: Job<'_>);

    /// The running task that ends first, and when, as long as none begins or ends before.
    fn next_end(&mut self) -> Option<(u64, u32)>;

    /// A task ends, at the time that [`Self::next_end`] told.
    fn end(&mut self, now: u64, worker: u32);

    /// What registering a task costs the program beside the runtime's own time. `fresh` are the bytes of
    /// each range that this task is the first to write, so that its memory has to be asked for.
    fn spawn_ns(&mut self, now: u64, fresh: &[u64]) -> u64 {
        let _ = (now, fresh);
        0
    }

    /// Whether the runtime's own steps cost something here.
    fn counts_runtime(&self) -> bool {
        false
    }

    /// What a step of the runtime takes on a core of `region`, ns.
    fn runtime_ns(&mut self, now: u64, region: usize, step: Step<'_>) -> u64 {
        let _ = (now, region, step);
        0
    }

    /// How long after a worker of region `from` made a task ready an idle worker of region `to` sees it.
    fn reach_ns(&mut self, from: usize, to: usize) -> u64 {
        let _ = (from, to);
        0
    }
}

/// The simplest machine: a byte costs what the topology says, whoever else asks for it, and nothing is
/// cached. Data live where they were written first.
#[derive(Clone, Debug)]
pub struct Flat {
    topology: Topology,
    /// Nanoseconds for a byte at cost 1.
    ns_per_byte: f64,
    flops_per_ns: f64,
    placements: Vec<Placement>,
    /// Region that wrote a range of data first: data, first byte, bytes, region.
    homes: Vec<(crate::range::Range, usize)>,
    running: Vec<(u64, u32)>,
}

impl Flat {
    /// A machine whose cores do so many operations in a nanosecond and take so long for a byte.
    #[must_use]
    pub const fn new(topology: Topology, ns_per_byte: f64, flops_per_ns: f64) -> Self {
        Self {
            topology,
            ns_per_byte,
            flops_per_ns,
            placements: Vec::new(),
            homes: Vec::new(),
            running: Vec::new(),
        }
    }

    fn cost(&self, region: usize, range: crate::range::Range) -> f64 {
        let spread = self.placements.get(range.data.0 as usize) == Some(&Placement::Interleaved);
        if spread {
            let regions = self.topology.regions();
            let sum: f64 = (0..regions).map(|to| self.topology.cost(region, to)).sum();
            return sum / regions as f64;
        }
        let home = self.homes.iter().find(|(known, _)| known.overlaps(range));
        self.topology.cost(region, home.map_or(region, |(_, home)| *home))
    }
}

impl Hardware for Flat {
    fn register(&mut self, data: DataId, _: u64, placement: Placement) {
        let at = data.0 as usize;
        self.placements.resize(self.placements.len().max(at + 1), Placement::FirstTouch);
        self.placements[at] = placement;
    }

    fn free(&mut self, data: DataId) {
        self.homes.retain(|(range, _)| range.data != data);
    }

    fn begin(&mut self, now: u64, job: Job<'_>) {
        let mut ns = job.footprint.total_flops() / self.flops_per_ns;
        for access in job.footprint.accesses().iter().chain(job.footprint.unseen()) {
            let known = self.homes.iter().any(|(range, _)| range.overlaps(access.range));
            if access.mode.writes() && !known {
                self.homes.push((access.range, job.region));
            }
            let bytes = access.range.bytes as f64 * f64::from(access.passes);
            ns += bytes * self.ns_per_byte * self.cost(job.region, access.range);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration")]
        let ns = ns.max(1.0) as u64;
        self.running.push((now + ns, job.worker));
    }

    fn next_end(&mut self) -> Option<(u64, u32)> {
        self.running.iter().min().copied()
    }

    fn end(&mut self, _: u64, worker: u32) {
        self.running.retain(|(_, running)| *running != worker);
    }
}
