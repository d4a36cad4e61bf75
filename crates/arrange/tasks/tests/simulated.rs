//! Tasks in virtual time: the same seed gives the same run, regimes do what the paper says, and no
//! memory is needed.
#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_tasks::simulated::{Flat, Plan, Simulation};
use isochrone_tasks::{
    Data, Failure, Footprint, Kernel, Mem, Mode, Part, Regime, Report, TaskError, Tasks, Topology,
};

const BLOCKS: usize = 64;
const BLOCK: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Touch {
    part: Part<u8>,
    first: bool,
}

impl Kernel for Touch {
    const NAME: &'static str = "touch";

    fn declare(&self, footprint: &mut Footprint) {
        if self.first {
            footprint.output(self.part);
        } else {
            footprint.inout(self.part);
        }
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(Failure::new("a simulated task is not run"))
    }
}

fn bullion() -> Topology {
    Topology::regular(16, 18, |a, b| match (a == b, a / 2 == b / 2) {
        (true, _) => 10.0,
        (_, true) => 15.0,
        _ => 40.0,
    })
}

/// Ten sweeps over blocks: much data, no dependence between blocks. Each sweep has its own order, as
/// otherwise equal tasks would come to equal workers by the mere regularity of virtual time.
fn sweeps<T: Tasks>(tasks: &mut T) -> Result<(), TaskError> {
    let data: Data<u8> = tasks.data(BLOCKS * BLOCK)?;
    for sweep in 0..10 {
        for turn in 0..BLOCKS {
            let block = (turn * (2 * sweep + 1) + 11 * sweep) % BLOCKS;
            tasks.spawn(Touch { part: data.part(block * BLOCK, BLOCK), first: sweep == 0 })?;
        }
        tasks.wait()?;
    }
    Ok(())
}

fn simulate(regime: Regime, workers: usize, seed: u64) -> (u64, Report) {
    let mut plan = Plan::new(regime, workers, bullion());
    plan.setup.seed = seed;
    plan.costs.spawn_ns = 200;
    let mut simulation = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap();
    sweeps(&mut simulation).unwrap();
    (simulation.now_ns(), simulation.report())
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for regime in Regime::ALL {
        assert_eq!(simulate(regime, 32, 7), simulate(regime, 32, 7), "{regime}");
    }
}

#[test]
fn outboxes_are_an_option_of_a_simulated_run_too() {
    let run = |outboxes| {
        let mut plan = Plan::new(Regime::Dft, 16, bullion());
        plan.costs.spawn_ns = 200;
        plan.setup.policy.outboxes = outboxes;
        let mut simulation = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap();
        // The end of one task makes all others of a sweep ready at once.
        let data: Data<u8> = simulation.data(BLOCKS * BLOCK).unwrap();
        for sweep in 0..3 {
            simulation.spawn(Touch { part: data.all(), first: sweep == 0 }).unwrap();
            for block in 0..BLOCKS {
                let part = data.part(block * BLOCK, BLOCK);
                simulation.spawn(Touch { part, first: false }).unwrap();
            }
        }
        simulation.wait().unwrap();
        (simulation.now_ns(), simulation.report())
    };
    let (with, without) = (run(true), run(false));
    assert_eq!(with, run(true), "the same seed gives the same run");
    assert_eq!((with.1.tasks, with.1.left_out), (3 * (1 + BLOCKS as u64), 0));
    assert_ne!(with, without, "tasks that go through outboxes come to other workers");
    let plan = Plan::new(Regime::Dft, 16, bullion());
    assert!(!plan.setup.policy.outboxes, "a plan leaves them out");
}

/// A flag, and a block that is declared or only touched.
#[derive(Clone, Copy)]
struct Flagged {
    flag: Part<u8>,
    block: Part<u8>,
    declared: bool,
}

impl Kernel for Flagged {
    const NAME: &'static str = "flagged";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.inout(self.flag);
        if self.declared {
            footprint.input(self.block);
        } else {
            footprint.touched(self.block, Mode::In);
        }
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(Failure::new("a simulated task is not run"))
    }
}

#[test]
fn what_is_only_touched_costs_and_draws_no_task_to_it() {
    const FLAG: usize = 64;
    let run = |declared| {
        let plan = Plan::new(Regime::Naft, 32, bullion());
        let mut simulation = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap();
        let blocks: Data<u8> = simulation.data(BLOCKS * BLOCK).unwrap();
        let flags: Data<u8> = simulation.data(BLOCKS * FLAG).unwrap();
        let (block, flag) = (|at| blocks.part(at * BLOCK, BLOCK), |at| flags.part(at * FLAG, FLAG));
        // Both are dealt out in turn, and flags the other way round: none lies with its block.
        for at in 0..BLOCKS {
            simulation.spawn(Touch { part: block(at), first: true }).unwrap();
        }
        for at in (0..BLOCKS).rev() {
            simulation.spawn(Touch { part: flag(at), first: true }).unwrap();
        }
        simulation.wait().unwrap();
        let (begin, before) = (simulation.now_ns(), simulation.report());
        for at in 0..BLOCKS {
            let (flag, block) = (flag(at), block(at));
            simulation.spawn(Flagged { flag, block, declared }).unwrap();
        }
        simulation.wait().unwrap();
        let (end, after) = (simulation.now_ns(), simulation.report());
        let seen = |report: &Report| report.local_bytes() + report.remote_bytes();
        (end - begin, seen(&after) - seen(&before))
    };
    let ((declared_ns, declared_bytes), (touched_ns, touched_bytes)) = (run(true), run(false));
    assert_eq!(declared_bytes, (BLOCKS * (BLOCK + FLAG)) as u64);
    assert_eq!(touched_bytes, (BLOCKS * FLAG) as u64, "the scheduler counts what it sees");
    // A block costs 10 where it lies and 40 almost everywhere else.
    assert!(touched_ns > 3 * declared_ns, "{touched_ns} ns, declared {declared_ns} ns");
}

#[test]
fn numa_aware_scheduling_keeps_bytes_local_and_interleaving_spreads_them() {
    let bytes = (10 * BLOCKS * BLOCK) as u64;
    let (dft_ns, dft) = simulate(Regime::Dft, 32, 1);
    let (_, di) = simulate(Regime::Di, 32, 1);
    let (naft_ns, naft) = simulate(Regime::Naft, 32, 1);
    assert_eq!((di.spread_bytes, di.local_bytes()), (bytes, 0));
    assert_eq!(naft.local_bytes() + naft.remote_bytes(), bytes);
    assert!(naft.local_bytes() * 10 > bytes * 9, "{naft:?}");
    assert!(dft.remote_bytes() * 2 > bytes, "{dft:?}");
    assert!(naft_ns * 2 < dft_ns, "{naft_ns} ns against {dft_ns} ns");
    assert_eq!(naft.steals[2] + naft.steals[3], 0, "only the nearest region may be stolen from");
}

#[test]
fn time_is_that_of_the_slowest_and_more_workers_take_less() {
    let alone = simulate(Regime::Naft, 1, 1).0;
    let many = simulate(Regime::Naft, 64, 1).0;
    assert!(many * 8 < alone, "{many} {alone}");
    // 640 MiB at 0.1 ns a byte, by one worker in one region.
    assert!((67_000_000..68_000_000).contains(&alone), "{alone}");
}

#[test]
fn computed_values_are_assumed_and_said_so() {
    let plan = Plan::new(Regime::Naft, 4, bullion());
    let mut simulation = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap();
    let data: Data<u8> = simulation.data(BLOCK).unwrap();
    simulation.spawn(Touch { part: data.all(), first: true }).unwrap();
    assert_eq!(simulation.value(data, 3, 9).unwrap(), 9);
    assert_eq!(simulation.assumed().0, ["element 3 of data 0 is 9"]);
    assert_eq!(simulation.assumed().1, 1);
    assert!(simulation.now_ns() > 100_000, "it waited for the task");
}

#[test]
fn a_trace_adds_up_to_the_report() {
    let mut plan = Plan::new(Regime::Naft, 32, bullion());
    plan.setup.capacity.trace = 1000;
    let mut simulation = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap();
    let data: Data<u8> = simulation.data(BLOCKS * BLOCK).unwrap();
    simulation.spawn(Touch { part: data.all(), first: true }).unwrap();
    for block in 0..BLOCKS {
        simulation.spawn(Touch { part: data.part(block * BLOCK, BLOCK), first: false }).unwrap();
    }
    simulation.wait().unwrap();
    let (trace, report) = (simulation.trace(), simulation.report());
    assert_eq!((trace.events.len() as u64, trace.left_out), (report.tasks, 0));
    let sum = |of: fn(&isochrone_tasks::TaskEvent) -> u64| trace.events.iter().map(of).sum::<u64>();
    assert_eq!(sum(|event| event.local_bytes), report.local_bytes());
    assert_eq!(sum(|event| event.remote_bytes), report.remote_bytes());
    let stolen = sum(|event| u64::from(event.stolen_from.is_some()));
    assert_eq!(stolen, report.steals.iter().sum::<u64>());
    assert!(stolen > 0, "all was in one region");
    let last = trace.events.iter().map(|event| event.start_ns + event.ns).max();
    assert_eq!(last, Some(simulation.now_ns()));
}

fn followed(schedule: Option<isochrone_tasks::Schedule>, regime: Regime) -> Simulation<Flat> {
    let mut plan = Plan::new(regime, 24, bullion());
    plan.costs.spawn_ns = 200;
    plan.setup.capacity.trace = 1000;
    plan.setup.follow = schedule;
    let mut simulation = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap();
    sweeps(&mut simulation).unwrap();
    simulation
}

#[test]
fn following_a_simulated_schedule_gives_the_identical_report() {
    for regime in Regime::ALL {
        let first = followed(None, regime);
        let schedule = first.schedule().unwrap();
        assert_eq!(schedule.tasks.len() as u64, first.report().tasks);
        let again = followed(Some(schedule.clone()), regime);
        assert_eq!(again.report(), first.report(), "{regime}");
        assert_eq!(again.now_ns(), first.now_ns(), "{regime}");
        assert_eq!(again.schedule().unwrap(), schedule, "{regime}");
    }
}

#[test]
fn a_live_schedule_keeps_workers_and_orders_and_not_times() {
    let mut schedule = followed(None, Regime::Naft).schedule().unwrap();
    schedule.reading = isochrone_units::Reading::Measured;
    // Ten times slower, and backwards: what a machine elsewhere did.
    schedule.tasks.iter_mut().for_each(|turn| turn.start_ns *= 10);
    for turn in &mut schedule.tasks {
        turn.worker = schedule.workers - 1 - turn.worker;
    }
    let again = followed(Some(schedule.clone()), Regime::Naft);
    let found = again.schedule().unwrap();
    let workers = |of: &isochrone_tasks::Schedule| -> Vec<u32> {
        of.tasks.iter().map(|turn| turn.worker).collect()
    };
    assert_eq!(workers(&found), workers(&schedule));
    for worker in 0..schedule.workers {
        let order = |of: &isochrone_tasks::Schedule| {
            let mut own: Vec<(u64, usize)> = Vec::new();
            let turns = of.tasks.iter().enumerate().filter(|(_, turn)| turn.worker == worker);
            own.extend(turns.map(|(number, turn)| (turn.start_ns, number)));
            own.sort_unstable();
            own.into_iter().map(|(_, number)| number).collect::<Vec<_>>()
        };
        assert_eq!(order(&found), order(&schedule), "worker {worker}");
    }
}

#[test]
fn a_schedule_of_another_program_or_team_is_refused() {
    let mut schedule = followed(None, Regime::Dft).schedule().unwrap();
    let mut plan = Plan::new(Regime::Dft, 8, bullion());
    plan.setup.follow = Some(schedule.clone());
    let refused = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap_err();
    assert!(refused.to_string().contains("24 workers"), "{refused}");
    schedule.tasks.truncate(100);
    let mut plan = Plan::new(Regime::Dft, 24, bullion());
    plan.setup.follow = Some(schedule);
    let mut simulation = Simulation::new(plan, Flat::new(bullion(), 0.01, 10.0)).unwrap();
    let refused = sweeps(&mut simulation).unwrap_err();
    assert!(refused.to_string().contains("more tasks"), "{refused}");
}
