//! More cores than are searched: a sample of them tells what there is to tell.

use super::synthetic_tests::{Truth, told};
use super::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Of more cores than are searched a sample tells the shape, and the others are placed by it.
#[test]
fn large_rings_and_grids_are_exact_without_noise_and_near_with_it() {
    for (shape, name) in
        [(Shape::Ring { stops: 96 }, "ring"), (Shape::Grid { columns: 12, rows: 10 }, "grid")]
    {
        let mut truth = Truth::full(shape, 0.0, 4);
        let found = truth.found();
        told(&found, name);
        assert!(truth.exact(&found), "{shape}: {}", found.placement.reason);
        assert_eq!(found.placement.places.len(), shape.cells());
        let mut noisy = Truth::full(shape, 0.04, 4);
        let found = noisy.found();
        told(&found, name);
        let agreement = noisy.agreement(&found);
        assert!(agreement >= 0.95, "{shape}: {agreement}");
    }
}

#[test]
fn many_cores_without_a_layout_have_none() {
    let n = 128;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut refused = |latency: &mut dyn FnMut(usize, usize, f64) -> f64| {
        let cells: Vec<Option<f64>> = (0..n * n)
            .map(|at| Some(latency(at / n, at % n, rng.random_range(0.0..2.0))))
            .collect();
        let upper: Vec<Option<f64>> =
            cells.iter().enumerate().map(|(at, c)| c.filter(|_| at / n < at % n)).collect();
        let labels: Vec<String> = (0..n).map(|core| core.to_string()).collect();
        let pairs = PairLatencies::new(n, &upper).unwrap();
        let observed = Observed { cores: &labels, pairs: Some(&pairs), ..Observed::default() };
        told(&infer(&observed, 1).unwrap(), "cannot tell");
    };
    // Noise alone; and complexes of eight, flat inside and out, in two sockets.
    refused(&mut |_, _, noise| 50.0 + 10.0 * noise);
    refused(&mut |a, b, noise| {
        let far = if a / 64 == b / 64 { 110.0 } else { 190.0 };
        if a / 8 == b / 8 { 25.0 + noise } else { far + noise }
    });
}

#[test]
fn too_few_latencies_between_many_cores_place_none() {
    let mut truth = Truth::full(Shape::Grid { columns: 12, rows: 10 }, 0.0, 4);
    let pairs = truth.pairs();
    // A tenth of the pairs.
    let cells: Vec<Option<f64>> = (0..120 * 120)
        .map(|at| (at / 120, at % 120))
        .map(|(a, b)| pairs.get(a, b).filter(|_| (a * b + a + b) % 10 == 0))
        .collect();
    let few = PairLatencies::new(120, &cells).unwrap();
    let observed = Observed { cores: &truth.labels, pairs: Some(&few), ..Observed::default() };
    told(&infer(&observed, 1).unwrap(), "cannot tell");
}

#[test]
fn a_controller_among_many_cores_is_found() {
    let shape = Shape::Grid { columns: 12, rows: 10 };
    Truth::full(shape, 0.01, 6).finds_controller(14, "grid");
}
