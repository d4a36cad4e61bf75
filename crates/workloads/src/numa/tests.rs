//! Small inputs on the paper's machine: the same seed gives the same run, data out is data in, and regimes
//! differ as they must.

use isochrone_sim::coherence::{Direction, NumaSpec};
use isochrone_tasks::Regime;

use super::{Bench, Case, Outcome, Size, run};
use crate::dataflow::jacobi::Grid;

fn outcome(size: Size, regime: Regime, threads: usize) -> Outcome {
    let machine = isochrone_host::find_machine("bullion-s-16s").expect("bundled");
    let spec = NumaSpec::of(&machine).expect("possible");
    let case = Case { size, ..Case::new(size.bench(), regime, threads, 1) };
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
