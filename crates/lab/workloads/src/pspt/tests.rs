//! A small part of the paper's plan: what must hold at any size.

use super::*;

#[test]
fn a_small_plan_has_the_shape_of_the_paper() {
    let plan = Plan {
        rows: 1024,
        sweeps: 1,
        frames_of_a_worker: 256,
        window: 32,
        chunk: 16,
        most: 16,
        seed: 1,
    };
    let all = simulate(&plan).unwrap();
    let overhead = |mode, workers| all.overhead(mode, Smt::Off, workers).unwrap();
    assert!((overhead(Mode::Pspt, 8) - 0.38).abs() < 0.01, "the fitted cell");
    assert!((50_000.0..250_000.0).contains(&all.compute), "{}", all.compute);
    for workers in [2, 4, 8, 16] {
        assert!(overhead(Mode::Prefetch, workers) < overhead(Mode::Pspt, workers), "{workers}");
    }
    assert!(overhead(Mode::Regular, 16) > 2.0 * overhead(Mode::Pspt, 16));
    assert!(all.cells.iter().all(|cell| cell.outcome.stale == 0));
}
