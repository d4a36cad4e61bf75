//! One benchmark in one regime on a simulated machine: set up, run, counted.

use isochrone_machine::Machine;
use isochrone_sim::coherence::engine::Totals;
use isochrone_sim::coherence::{NumaSpec, Traffic};
use isochrone_tasks::simulated::{Choices, Coherent, Costs, Plan, Simulation, Spent};
use isochrone_tasks::{Capacity, Placement, Policy, Report, Schedule, Setup, TaskError, Tasks};

use super::models::{Passes, kernels};
use super::size::{Bench, Size};
use crate::dataflow::FirstTouch;
use crate::dataflow::{cholesky, histogram, jacobi, matrix, smi, streamcluster};

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The program and its input.
    pub size: Size,
    /// How tasks are scheduled.
    pub policy: Policy,
    /// Where memory lies.
    pub placement: Placement,
    /// How many workers.
    pub threads: usize,
    /// Who touches the data first.
    pub touch: FirstTouch,
    /// Where passes come from.
    pub passes: Passes,
    /// Registering a task, ns.
    pub spawn_ns: u64,
    /// Whether the scheduler sees measured latencies instead of firmware distances.
    pub measured_costs: bool,
    /// Whether queues for each region are wanted for interleaved memory.
    pub ablation: bool,
    /// Whether each switch passes no more than its part of what the machine file gives for all.
    pub switch_roof: bool,
    /// Whether streamcluster's tasks declare what those of its public port do, and not all that they touch.
    pub port: bool,
    /// Whether each of the port's blocks has whole pages of its own.
    pub whole_pages: bool,
    /// Choices of the machine.
    pub choices: Choices,
    /// Seed of every random choice.
    pub seed: u64,
    /// Whether the schedule is kept.
    pub record: bool,
    /// A schedule to follow instead of scheduling.
    pub follow: Option<Schedule>,
}

/// Tasks of all workers together that a record has room for: several times those of the largest input.
const RECORDED_MAX: usize = 1 << 23;

/// Registering a task: the serial cost that StarPU's documentation implies (tasks of 128 microseconds keep
/// their efficiency to 30 to 36 cores).
pub const SPAWN_NS: u64 = 3_600;

impl Case {
    /// A benchmark of the paper's size in a regime, with nothing varied.
    #[must_use]
    pub fn new(bench: Bench, regime: isochrone_tasks::Regime, threads: usize, seed: u64) -> Self {
        let (policy, placement) = regime.parts();
        let size = Size::paper(bench);
        let choices = Choices { chunk: size.chunk(), seed, ..Choices::default() };
        Self {
            size,
            policy: policy.without_outboxes(),
            placement,
            threads,
            touch: FirstTouch::Blocks,
            passes: Passes::Traced,
            spawn_ns: SPAWN_NS,
            measured_costs: regime == isochrone_tasks::Regime::Isochrone,
            ablation: false,
            switch_roof: true,
            port: true,
            whole_pages: true,
            choices,
            seed,
            record: false,
            follow: None,
        }
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Setting the data up, s.
    pub setup_s: f64,
    /// The benchmark itself, s.
    pub seconds: f64,
    /// What passed the switches in the benchmark itself, module by module.
    pub traffic: Vec<Traffic>,
    /// Everything that was moved in the benchmark itself.
    pub moved: Totals,
    /// Lines of data by the node that has their memory.
    pub homes: Vec<u64>,
    /// Directory of each module: lines listed at the end, most lines, lines evicted.
    pub directories: Vec<(u64, u64, u64)>,
    /// What tasks spent their time on, setting up included.
    pub spent: Spent,
    /// What the scheduler did, setting up included.
    pub report: Report,
    /// Values that were assumed and not computed: the first of them, and how many.
    pub assumed: (Vec<String>, u64),
    /// Units touched, setting up included.
    pub touches: u64,
    /// Times that rates were worked out.
    pub solved: u64,
    /// Bytes of data that were simulated, and bytes of memory that their state took.
    pub bytes: (u64, usize),
    /// What partitions of the task graph took, s of one core of this machine: measured.
    pub partition_s: f64,
    /// Who ran what when, if that was asked for.
    pub schedule: Option<Schedule>,
}

/// Runs one case.
///
/// # Errors
/// [`TaskError`] for a plan that makes no sense.
pub fn run(machine: &Machine, spec: &NumaSpec, case: &Case) -> Result<Outcome, TaskError> {
    let spec = &NumaSpec { rates: spec.rates_of(case.threads), ..spec.clone() };
    let each = case.threads.div_ceil(spec.nodes.len()) as u64;
    let mut choices = case.choices.clone();
    if case.switch_roof && spec.modules() > 1 {
        let modules = u32::try_from(spec.modules()).unwrap_or(u32::MAX);
        choices.switch_limit = spec.bandwidth.controllers.map(|all| all / f64::from(modules));
    }
    choices.kernels.extend(kernels(spec, case.size.tile(), each, case.passes));
    let trace = if case.record { RECORDED_MAX / case.threads.max(1) } else { 0 };
    let trace = u32::try_from(trace).unwrap_or(u32::MAX);
    let setup = Setup {
        workers: case.threads,
        topology: Coherent::topology(machine, spec, case.measured_costs),
        policy: case.policy,
        placement: case.placement,
        ablation: case.ablation,
        capacity: Capacity { tasks: 1 << 17, edges: 1 << 20, trace, ..Capacity::default() },
        seed: case.seed,
        follow: case.follow.clone(),
    };
    let plan = Plan { setup, costs: Costs { spawn_ns: case.spawn_ns, task_ns: 0, wake_ns: 0 } };
    let mut simulation = Simulation::new(plan, Coherent::new(spec, choices))?;
    let mut start = None;
    program(&mut simulation, case, &mut |simulation| {
        start = Some((simulation.now_ns(), simulation.hardware(|h| h.engine().totals())));
    })?;
    let schedule = case.record.then(|| simulation.schedule()).transpose()?;
    Ok(Outcome { schedule, ..outcome(&simulation, start) })
}

fn outcome(simulation: &Simulation<Coherent>, start: Option<(u64, Totals)>) -> Outcome {
    let (start_ns, before) = start.unzip();
    let (start_ns, end_ns) = (start_ns.unwrap_or(0), simulation.now_ns());
    let mut moved = simulation.hardware(|h| h.engine().totals());
    let touches = moved.touches;
    if let Some(before) = before {
        moved = moved.since(&before);
    }
    let (assumed, count) = simulation.assumed();
    Outcome {
        setup_s: seconds(start_ns),
        seconds: seconds(end_ns - start_ns),
        traffic: moved.traffic.clone(),
        moved,
        homes: simulation.hardware(|h| h.engine().homes()),
        directories: simulation.hardware(|h| h.engine().directories().collect()),
        spent: simulation.hardware(Coherent::spent),
        report: simulation.report(),
        assumed: (assumed.to_vec(), count),
        touches,
        solved: simulation.hardware(Coherent::solved),
        bytes: simulation.hardware(|h| (h.engine().data_bytes(), h.engine().state_bytes())),
        partition_s: seconds(simulation.partition_ns()),
        schedule: None,
    }
}

#[allow(clippy::cast_precision_loss, reason = "a run is far below 2^53 ns")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The program: its data are set up, `ready` is told, and it computes.
fn program<T: Tasks>(
    tasks: &mut T,
    case: &Case,
    ready: &mut dyn FnMut(&T),
) -> Result<(), TaskError> {
    let (touch, seed) = (case.touch, case.seed);
    match case.size {
        Size::Cholesky { tiles, tile } | Size::Smi { tiles, tile } => {
            let matrix = matrix::Matrix::new(tasks, tiles, tile)?;
            matrix.fill(tasks, seed, touch)?;
            tasks.wait()?;
            ready(tasks);
            match case.size.bench() {
                Bench::Cholesky => cholesky::submit(tasks, matrix)?,
                _ => smi::submit(tasks, matrix)?,
            }
            tasks.wait()
        }
        Size::Jacobi { grid, sweeps } => {
            let grids = jacobi::Grids::new(tasks, grid, touch)?;
            tasks.wait()?;
            ready(tasks);
            grids.sweep(tasks, sweeps)
        }
        Size::Inthist { image } => {
            let integral = histogram::Integral::new(tasks, image, seed, touch)?;
            tasks.wait()?;
            ready(tasks);
            integral.submit(tasks)?;
            tasks.wait()
        }
        Size::Streamcluster { parameters } => {
            // Its steps load points anew; loading is part of the benchmark.
            ready(tasks);
            let mut chunk = streamcluster::tasks::OnTasks::new(tasks, &parameters, seed, touch)?;
            if case.port {
                chunk = chunk.with_port_declarations(case.whole_pages)?;
            }
            streamcluster::stream::cluster(&mut chunk, &parameters, seed)?;
            tasks.wait()
        }
    }
}
