//! The experiment against machines whose truth is known.

use isochrone_sim::synthetic::{Scheduled, SyntheticMemory, SyntheticSpec, Transfer, When};
use isochrone_units::{CoreId, LineState};

mod many;

use super::model::ModelStage;
use super::plan::{Kind, Options, Schedule, TransferPlan};
use super::run::{TransferReport, run};
use super::scene::{Operation, Stage};

const CORES: u16 = 5;

fn spec() -> SyntheticSpec {
    SyntheticSpec::ring_e5_2660(3).with_pages(1024)
}

fn load(state: LineState) -> Kind {
    Kind::Timed(state, Operation::Load)
}

fn plan(stage: &ModelStage, cores: u16, options: Options) -> TransferPlan {
    let cores: Vec<CoreId> = (0..cores).map(CoreId).collect();
    TransferPlan::new(&cores, stage.lines(), options).unwrap()
}

fn measure(spec: SyntheticSpec, cores: u16, options: Options) -> (TransferReport, ModelStage) {
    let mut stage = ModelStage::new(SyntheticMemory::new(spec).unwrap());
    let plan = plan(&stage, cores, options);
    let report = run(&mut stage, &plan, &mut || false).unwrap();
    (report, stage)
}

fn quick(kind: Kind) -> Options {
    Options { repeats: 24, sweeps_max: 5, budget_s: 1e9, ..Options::new(kind, 5) }
}

/// The largest relative error of a cell against the truth of its own lines.
fn worst_error(report: &TransferReport, stage: &ModelStage, state: LineState) -> f64 {
    let hz = stage.memory().timer().hz;
    let error = |pair: &super::PairSeries| {
        let of = |line| Transfer { owner: pair.owner, asker: pair.asker, line, state };
        let truths =
            pair.lines.iter().map(|&line| stage.memory().truth_transfer(of(line)).unwrap());
        let truth = isochrone_stats::median(&truths.collect::<Vec<_>>()).unwrap() * 1e9 / hz;
        let found = isochrone_stats::median(&pair.line_ns()).unwrap();
        (found / truth - 1.0).abs()
    };
    report.series.iter().map(error).fold(0.0, f64::max)
}

#[test]
fn the_matrix_of_every_state_is_recovered() {
    for state in LineState::ALL {
        let (report, stage) = measure(spec(), CORES, quick(load(state)));
        let error = worst_error(&report, &stage, state);
        assert!(error < 0.02, "{state}: {error}");
        let cells = &report.map.latency_ns.cells;
        for (at, cell) in cells.iter().enumerate() {
            let diagonal = at / usize::from(CORES) == at % usize::from(CORES);
            assert_eq!(cell.is_none(), diagonal, "{state}: cell {at}");
        }
        assert!(report.complete && report.missing.is_empty() && report.agreement.agrees);
        // With five cores a shared line's sharer comes from the only other pair.
        assert_eq!(report.agreement.checks.is_empty(), state == LineState::Shared);
        assert!(report.drift.is_empty(), "{:?}", report.drift);
    }
}

#[test]
fn the_best_line_is_the_nearest_of_the_truth() {
    let (report, stage) = measure(spec().noiseless(), 2, quick(load(LineState::Modified)));
    let pair = &report.series[0];
    let state = LineState::Modified;
    let truths = pair.lines.iter().map(|&line| {
        let transfer = Transfer { owner: pair.owner, asker: pair.asker, line, state };
        stage.memory().truth_transfer(transfer).unwrap()
    });
    let best = truths.fold(f64::INFINITY, f64::min) * 1e9 / stage.memory().timer().hz;
    let found = report.map.best_line_ns[1].unwrap();
    assert!((found / best - 1.0).abs() < 0.01, "{found} against {best}");
}

#[test]
fn interference_between_parallel_pairs_is_caught_and_the_matrix_measured_serially() {
    let mut noisy = spec();
    noisy.transfers.parallel_cycles = 8.0;
    let kind = load(LineState::Exclusive);
    let (report, stage) = measure(noisy.clone(), CORES, quick(kind));
    assert!(!report.agreement.agrees, "{:?}", report.agreement);
    assert!(report.agreement.sentence().contains("one at a time"));
    let error = worst_error(&report, &stage, LineState::Exclusive);
    assert!(error < 0.02, "{error}");
    // Without the check the same machine gives wrong cells: the check is not idle.
    let mut stage = ModelStage::new(SyntheticMemory::new(noisy).unwrap());
    let parallel = plan(&stage, CORES, quick(kind));
    let leg = parallel.rounds[0][0].clone();
    let scenes: Vec<_> = leg.iter().map(|exchange| parallel.scene(exchange)).collect();
    let together = stage.play(&scenes, 32).unwrap();
    let alone = stage.play(&scenes[..1], 32).unwrap();
    let sum = |s: &super::Samples| s.raw.iter().map(|c| f64::from(c.0)).sum::<f64>();
    assert!(sum(&together[0][0]) > sum(&alone[0][0]) * 1.02);
}

#[test]
fn serial_and_parallel_plans_agree_on_a_machine_without_interference() {
    let serial = Options { schedule: Schedule::Serial, ..quick(load(LineState::Modified)) };
    let (one, stage) = measure(spec(), CORES, serial);
    assert!(worst_error(&one, &stage, LineState::Modified) < 0.02);
    assert!(one.agreement.checks.is_empty());
}

#[test]
fn a_core_that_moves_is_noticed_and_the_round_is_done_again() {
    let kind = load(LineState::Modified);
    let (steady, _) = measure(spec(), 2, quick(kind));
    let early = When::Seconds(steady.seconds * 0.6);
    let moved = spec().with_events([Scheduled::core_moves(early, CoreId(1), 6)]);
    let (report, stage) = measure(moved, 2, quick(kind));
    let event = report.drift.first().expect("the move is told");
    assert_eq!((event.kind.as_str(), report.drift.len()), ("base changed", 1));
    assert!(event.dropped_samples > 0 && event.repaired_ms.is_some());
    // What was measured before the move is kept apart: the cells are those of the new place.
    assert!(report.series.iter().all(|pair| pair.epochs.contains(&0) && pair.epochs.contains(&1)));
    assert!(worst_error(&report, &stage, LineState::Modified) < 0.02);
}

#[test]
fn a_thread_that_was_moved_costs_one_batch() {
    let kind = load(LineState::Modified);
    let mut stage = ModelStage::new(
        SyntheticMemory::new(
            spec().with_events([Scheduled::thread_moves(When::Seconds(1e-4), CoreId(3))]),
        )
        .unwrap(),
    );
    let plan = plan(&stage, 2, Options { schedule: Schedule::Serial, ..quick(kind) });
    let report = run(&mut stage, &plan, &mut || false).unwrap();
    assert_eq!(report.drift.len(), 1, "{:?}", report.drift);
    assert_eq!(report.drift[0].kind, "thread moved");
    assert!(worst_error(&report, &stage, LineState::Modified) < 0.02);
}

#[test]
fn compare_and_swap_gives_a_symmetric_matrix_of_half_round_trips() {
    let (report, stage) =
        measure(spec(), 4, Options { repeats: 8, ..quick(Kind::Cas { trips: 10 }) });
    let cells = &report.map.latency_ns.cells;
    for a in 0..4 {
        for b in 0..4 {
            assert_eq!(cells[a * 4 + b], cells[b * 4 + a]);
        }
    }
    assert!(worst_error(&report, &stage, LineState::Modified) < 0.02);
}

#[test]
fn what_cannot_be_measured_is_missing_and_said() {
    let (report, _) = measure(spec(), 2, quick(load(LineState::Shared)));
    assert!(report.map.latency_ns.cells.iter().all(Option::is_none));
    assert!(report.missing[0].contains("needs 3 cores"), "{:?}", report.missing);
    assert!(report.map.what.contains("not measured"));
    // What two cores do show of the shared state: an RFO of a line that both hold.
    let rfo = Kind::Timed(LineState::Shared, Operation::Rfo);
    let (report, _) = measure(spec(), 2, quick(rfo));
    assert!(report.map.latency_ns.cells[1].is_some());
}

#[test]
fn stopping_keeps_what_was_measured() {
    let mut stage = ModelStage::new(SyntheticMemory::new(spec()).unwrap());
    let plan = plan(&stage, CORES, quick(load(LineState::Modified)));
    // How often it is asked in all, and what is there when it says yes before that.
    let mut found = |most: u32| {
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked > most
        };
        let report = run(&mut stage, &plan, &mut stop).unwrap();
        (report.complete, report.map.latency_ns.cells.iter().flatten().count(), asked)
    };
    let (complete, whole, asked) = found(u32::MAX);
    assert!(complete && whole == usize::from(CORES) * usize::from(CORES - 1));
    let mut before = 0;
    for most in [0, 1, asked / 8, asked / 4, asked / 2, asked - 1] {
        let (complete, measured, _) = found(most);
        assert!(!complete && measured >= before, "{measured} cells after {most} plays");
        assert_eq!(measured % (2 * 2), 0, "whole rounds of two pairs, both directions");
        before = measured;
    }
    assert!(before > 0);
}

#[test]
fn one_seed_gives_the_same_report() {
    let one = || measure(spec(), 4, quick(load(LineState::Exclusive))).0;
    assert_eq!(one(), one());
}
