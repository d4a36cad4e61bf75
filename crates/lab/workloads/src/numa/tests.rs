//! Small inputs on the paper's machine: the same seed gives the same run, data out is data in, and regimes
//! differ as they must.

use isochrone_sim::coherence::{Direction, NumaSpec};
use isochrone_tasks::{Regime, Schedule};

use super::{Bench, Case, Outcome, Size, Variant, run};
use crate::dataflow::histogram::Image;
use crate::dataflow::jacobi::Grid;
use crate::dataflow::streamcluster::Parameters;

fn outcome(size: Size, regime: Regime, threads: usize) -> Outcome {
    followed(size, regime, threads, None)
}

/// A run that keeps its schedule, and follows one if there is one.
fn followed(size: Size, regime: Regime, threads: usize, follow: Option<Schedule>) -> Outcome {
    let machine = isochrone_host::find_machine("bullion-s-16s").expect("bundled");
    let spec = NumaSpec::of(&machine).expect("possible");
    let new = Case::new(size.bench(), regime, threads, 1);
    let case = Case { size, record: true, follow, ..new };
    run(&machine, &spec, &case).expect("a plan that makes sense")
}

fn bytes(outcome: &Outcome) -> u64 {
    outcome.traffic.iter().map(|one| one.lines(Direction::In)).sum()
}

#[test]
fn one_seed_is_one_run_and_data_out_is_data_in() {
    let size = Size::Cholesky { tiles: 10, tile: 768 };
    for regime in [Regime::Dft, Regime::Di, Regime::Naft] {
        let first = outcome(size, regime, 48);
        assert_eq!(first, outcome(size, regime, 48), "{regime}");
        let out: u64 = first.traffic.iter().map(|one| one.lines(Direction::Out)).sum();
        assert_eq!(bytes(&first), out, "{regime}");
        assert!(first.seconds > 0.0 && first.touches > 10_000);
    }
}

#[test]
fn a_stencil_scheduled_where_its_data_are_moves_halos_only() {
    let size = Size::Jacobi { grid: Grid { blocks: 160, ..Grid::PAPER }, sweeps: 2 };
    let (di, naft) = (outcome(size, Regime::Di, 96), outcome(size, Regime::Naft, 96));
    assert!(bytes(&naft) * 100 < bytes(&di), "{} {}", bytes(&naft), bytes(&di));
    assert!(naft.seconds < di.seconds, "{} {}", naft.seconds, di.seconds);
    assert_eq!(size.bench(), Bench::Jacobi);
}

#[test]
fn following_a_schedule_gives_the_identical_outcome() {
    for bench in Bench::ALL {
        let size = match Size::small(bench) {
            Size::Cholesky { tile, .. } => Size::Cholesky { tiles: 8, tile },
            Size::Smi { tile, .. } => Size::Smi { tiles: 5, tile },
            Size::Jacobi { grid, .. } => {
                Size::Jacobi { grid: Grid { blocks: 64, ..grid }, sweeps: 2 }
            }
            Size::Inthist { image } => Size::Inthist { image: Image { blocks: 8, ..image } },
            Size::Streamcluster { parameters } => Size::Streamcluster {
                parameters: Parameters { points: 4000, chunk: 4000, ..parameters },
            },
        };
        // One queue for all, and queues by region with stealing and costs.
        for regime in [Regime::Dft, Regime::Isochrone] {
            let mut first = outcome(size, regime, 40);
            let mut again = followed(size, regime, 40, first.schedule.clone());
            // How often rates were asked for is the simulator's own affair.
            (again.solved, first.solved) = (0, 0);
            assert_eq!(again, first, "{bench} {regime}");
        }
    }
}

/// A short stream under a change, with the port's declarations.
fn stream(regime: Regime, change: Option<Variant>) -> Outcome {
    let machine = isochrone_host::find_machine("bullion-s-16s").expect("bundled");
    let mut spec = NumaSpec::of(&machine).expect("possible");
    let mut case = Case::new(Bench::Streamcluster, regime, 96, 1);
    case.size = Size::small(Bench::Streamcluster);
    if let Some(change) = change {
        change.apply(&mut case, &mut spec);
    }
    run(&machine, &spec, &case).expect("a plan that makes sense")
}

#[test]
fn the_runtimes_own_lines_take_time_and_pass_the_switches_and_the_default_has_none() {
    let [none, ours, nanos] = [None, Some(Variant::RuntimeOurs), Some(Variant::RuntimeNanos)]
        .map(|change| stream(Regime::Di, change));
    let each = |outcome: &Outcome| outcome.spent.runtime_ns / outcome.report.tasks as f64;
    assert!(none.spent.runtime_ns.abs() < f64::EPSILON);
    // A queue's line from another module alone takes 416 ns; a table of ranges under one lock takes several.
    assert!(
        each(&ours) > 100.0 && each(&nanos) > 2.0 * each(&ours),
        "{} {}",
        each(&ours),
        each(&nanos)
    );
    assert_eq!(none.report.tasks, nanos.report.tasks);
    // Nanos++ has the default's times beside its lines.
    assert!(nanos.seconds > none.seconds, "{} {}", nanos.seconds, none.seconds);
    assert!(bytes(&nanos) > bytes(&none), "{} {}", bytes(&nanos), bytes(&none));
}
