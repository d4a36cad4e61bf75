//! Levels: what all lines cost on average. How many codes are right is asked in `block/tests.rs`.

use isochrone_probe::block::rounds::{RoundsPlan, time_rounds};
use isochrone_probe::synthetic::SyntheticTarget;
use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
use isochrone_units::{CoreId, Level, PageAddr};

use crate::runs::share;

const RUNS: u64 = 400;
/// Relative difference of a level that counts as the same: the clock of these machines swings by as much.
const SAME_LEVEL: f64 = 0.01;

fn target(pages: u64, taken: f64, seed: u64) -> SyntheticTarget {
    let spec = SyntheticSpec::emerald_rapids_like(5).with_pages(pages).with_cores(2);
    let mut spec = spec.with_neighbours([CoreId(0), CoreId(1)], taken);
    // A fifth of a millisecond between two batches, so that a run meets many slices.
    spec.costs.batch_cycles = 0.2e-3 * spec.timer.hz;
    SyntheticTarget::new(SyntheticMemory::new(SyntheticSpec { seed, ..spec }).unwrap())
}

/// Mean latency of a level, cycles.
fn level_cycles(level: Level, taken: f64, seed: u64) -> f64 {
    let pages: Vec<PageAddr> = (0..16).map(PageAddr).collect();
    let plan =
        RoundsPlan { core: CoreId(0), level, rounds: 16, max_rounds: 48, max_seconds: 1e9, seed };
    let rounds = time_rounds(&mut target(16, taken, seed), &pages, &plan, &|| true).unwrap();
    rounds.stretches[0].level()
}

#[test]
fn levels_beside_others_are_those_of_a_quiet_machine() {
    for level in Level::ALL {
        let all = |taken| (0..RUNS).map(move |seed| level_cycles(level, taken, seed));
        let quiet = isochrone_stats::median(&all(0.0).collect::<Vec<_>>()).unwrap();
        for taken in [0.1, 0.5, 0.9] {
            let same = |cycles: &f64| (cycles / quiet - 1.0).abs() < SAME_LEVEL;
            let right = share(all(taken).filter(same).count(), 400);
            println!("{level} {taken}: {right:.3} of the levels within {SAME_LEVEL}");
            assert!(right >= 0.9, "{level} {taken}: {right:.3}");
        }
    }
}
