//! Machines with a known layout, shuffled and disturbed: what is found must be what was built.

use super::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A machine: the true cell of every core, and the latencies between them.
pub(super) struct Truth {
    shape: Shape,
    pub(super) cells: Vec<usize>,
    pub(super) labels: Vec<String>,
    hop: (f64, f64),
    noise: f64,
    rng: Xoshiro256PlusPlus,
}

impl Truth {
    /// Cores on `used` cells of a shape in random order; `noise` is the standard deviation of a
    /// latency as a share of the whole spread.
    fn new(shape: Shape, used: &[usize], noise: f64, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut cells = used.to_vec();
        cells.shuffle(&mut rng);
        let labels = (0..cells.len()).map(|core| format!("core {core}")).collect();
        Self { shape, cells, labels, hop: (2.0, 2.0), noise, rng }
    }

    pub(super) fn full(shape: Shape, noise: f64, seed: u64) -> Self {
        Self::new(shape, &(0..shape.cells()).collect::<Vec<_>>(), noise, seed)
    }

    fn distance(&self, a: usize, b: usize) -> f64 {
        let (x, y) = self.shape.hops(a, b);
        x * self.hop.0 + y * self.hop.1
    }

    fn spread(&self) -> f64 {
        let all = self.cells.iter().flat_map(|&a| self.cells.iter().map(move |&b| (a, b)));
        let apart = all.filter(|(a, b)| a != b).map(|(a, b)| self.distance(a, b));
        apart.clone().fold(0.0, f64::max) - apart.fold(f64::INFINITY, f64::min)
    }

    fn error(&mut self) -> f64 {
        // The sum of twelve uniform numbers is close to normal, with a variance of one.
        let sum: f64 = (0..12).map(|_| self.rng.random_range(0.0..1.0)).sum();
        (sum - 6.0) * self.noise * self.spread()
    }

    pub(super) fn pairs(&mut self) -> PairLatencies {
        let n = self.cells.len();
        let mut cells = vec![None; n * n];
        for a in 0..n {
            for b in a + 1..n {
                let (here, there) = (self.cells[a], self.cells[b]);
                // Tile mates share a cache: they are faster than no hops at all.
                let base = if here == there { 25.0 } else { 40.0 };
                let latency = base + self.distance(here, there) + self.error();
                cells[a * n + b] = Some(latency);
            }
        }
        PairLatencies::new(n, &cells).unwrap()
    }

    pub(super) fn columns(&mut self, at: &[usize]) -> ColumnLatencies {
        let names = (0..at.len()).map(|k| format!("slice {k}")).collect();
        let mut cells = Vec::new();
        for core in 0..self.cells.len() {
            for &cell in at {
                let latency = 60.0 + self.distance(self.cells[core], cell) + self.error();
                cells.push(Some(latency));
            }
        }
        ColumnLatencies::new(self.cells.len(), names, cells).unwrap()
    }

    /// Asserts that the controller in the cell of a core is found there, on a machine of this shape.
    pub(super) fn finds_controller(&mut self, cell: usize, name: &str) {
        let (pairs, columns) = (self.pairs(), self.columns(&[cell]));
        let observed = Observed {
            cores: &self.labels,
            pairs: Some(&pairs),
            columns: Some(&columns),
            places: None,
        };
        let found = infer(&observed, 1).unwrap();
        told(&found, name);
        let core = self.cells.iter().position(|&at| at == cell).unwrap();
        let best = found.best.as_ref().unwrap();
        let place = best.shape.place(best.cell_of_core[core]);
        assert_eq!(found.controllers[0].best, Some(place), "{}", found.controllers[0].summary);
    }

    pub(super) fn found(&mut self) -> Findings {
        let pairs = self.pairs();
        let observed = Observed { cores: &self.labels, pairs: Some(&pairs), ..Observed::default() };
        infer(&observed, 7).unwrap()
    }

    /// Spearman correlation of found and true distances.
    pub(super) fn agreement(&self, found: &Findings) -> f64 {
        let best = found.best.as_ref().unwrap();
        let (mut there, mut here) = (Vec::new(), Vec::new());
        for a in 0..self.cells.len() {
            for b in a + 1..self.cells.len() {
                there.push(self.distance(self.cells[a], self.cells[b]));
                let (x, y) = best.shape.hops(best.cell_of_core[a], best.cell_of_core[b]);
                here.push(x * best.hop_x + y * best.hop_y);
            }
        }
        isochrone_stats::spearman(&there, &here).unwrap()
    }

    /// Whether all distances in hops are the true ones: the layout is exact up to its images.
    pub(super) fn exact(&self, found: &Findings) -> bool {
        let best = found.best.as_ref().unwrap();
        let n = self.cells.len();
        let pairs = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        pairs.clone().all(|(a, b)| {
            let (x, y) = best.shape.hops(best.cell_of_core[a], best.cell_of_core[b]);
            let here = x * best.hop_x + y * best.hop_y;
            (here - self.distance(self.cells[a], self.cells[b])).abs() < 1e-3
        })
    }
}

pub(super) fn told(found: &Findings, shape: &str) {
    assert_eq!(found.placement.shape, shape, "{}", found.placement.reason);
}

fn untold(found: &Findings, words: &str) {
    told(found, "cannot tell");
    assert!(found.placement.reason.contains(words), "{}", found.placement.reason);
}

#[test]
fn rings_are_exact_without_noise() {
    for stops in [8, 11, 16, 24, 40, 60] {
        let mut truth = Truth::full(Shape::Ring { stops }, 0.0, stops as u64);
        let found = truth.found();
        told(&found, "ring");
        assert!(truth.exact(&found), "{stops} stops");
    }
}

#[test]
fn rings_with_noise_keep_their_neighbourhoods() {
    for (stops, noise) in [(8, 0.05), (12, 0.05), (20, 0.03), (36, 0.05), (60, 0.05)] {
        let mut truth = Truth::full(Shape::Ring { stops }, noise, stops as u64);
        let found = truth.found();
        told(&found, "ring");
        let agreement = truth.agreement(&found);
        assert!(agreement >= 0.9, "{stops} stops: {agreement}");
    }
}

#[test]
fn stops_without_cores_are_found_on_a_ring() {
    let used: Vec<usize> = (0..20).filter(|s| ![3, 9, 10, 16].contains(s)).collect();
    let mut truth = Truth::new(Shape::Ring { stops: 20 }, &used, 0.0, 2);
    let found = truth.found();
    told(&found, "ring");
    assert!(truth.exact(&found), "{}", found.placement.reason);
}

#[test]
fn grids_are_exact_without_noise() {
    for (columns, rows) in [(4, 4), (5, 4), (6, 6), (9, 4), (8, 3)] {
        let mut truth = Truth::full(Shape::Grid { columns, rows }, 0.0, 5);
        let found = truth.found();
        told(&found, "grid");
        assert!(truth.exact(&found), "{columns} x {rows}: {}", found.placement.reason);
        assert_eq!(found.best.unwrap().images, if columns == rows { 8 } else { 4 });
    }
}

#[test]
fn grids_with_holes_and_noise_keep_their_neighbourhoods() {
    for (columns, rows, holes, noise) in
        [(4, 4, 0, 0.05), (5, 5, 3, 0.03), (7, 6, 8, 0.05), (9, 4, 4, 0.05), (6, 6, 2, 0.0)]
    {
        let shape = Shape::Grid { columns, rows };
        let mut cells: Vec<usize> = (0..shape.cells()).collect();
        cells.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(holes));
        let used = &cells[usize::try_from(holes).unwrap()..];
        let mut truth = Truth::new(shape, used, noise, 11);
        let found = truth.found();
        told(&found, "grid");
        let agreement = truth.agreement(&found);
        assert!(agreement >= 0.9, "{columns} x {rows} less {holes}: {agreement}");
        assert!(noise > 0.0 || truth.exact(&found));
    }
}

#[test]
fn a_grid_with_dear_rows_has_two_hop_costs() {
    let mut truth = Truth::full(Shape::Grid { columns: 6, rows: 5 }, 0.01, 3);
    truth.hop = (1.0, 2.0);
    let found = truth.found();
    told(&found, "grid");
    assert!(truth.agreement(&found) >= 0.98);
    let best = found.best.unwrap();
    let ratio = best.hop_y / best.hop_x;
    assert!((ratio - 2.0).abs() < 0.1 || (ratio - 0.5).abs() < 0.05, "{ratio}");
    assert_eq!(best.images, 4);
}

#[test]
fn tile_mates_share_a_place() {
    let shape = Shape::Grid { columns: 6, rows: 6 };
    let mut truth = Truth::full(shape, 0.02, 8);
    let tiles = truth.cells.clone();
    truth.cells = tiles.iter().flat_map(|&cell| [cell, cell]).collect();
    truth.labels = (0..72).map(|core| format!("core {core}")).collect();
    let found = truth.found();
    told(&found, "grid");
    assert_eq!(found.tiles.len(), 36);
    assert_eq!(found.placement.places.len(), 72);
    let at = |core: usize| (found.placement.places[core].1, found.placement.places[core].2);
    assert_eq!(at(10), at(11));
    assert!(truth.agreement(&found) >= 0.95);
}

#[test]
fn random_latencies_have_no_layout() {
    for (cores, seed) in [(6, 1), (8, 2), (12, 3), (16, 4), (30, 5), (60, 6)] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let cells: Vec<Option<f64>> =
            (0..cores * cores).map(|_| Some(rng.random_range(40.0..60.0))).collect();
        let upper: Vec<Option<f64>> =
            cells.iter().enumerate().map(|(at, c)| c.filter(|_| at / cores < at % cores)).collect();
        let labels: Vec<String> = (0..cores).map(|core| core.to_string()).collect();
        let pairs = PairLatencies::new(cores, &upper).unwrap();
        let observed = Observed { cores: &labels, pairs: Some(&pairs), ..Observed::default() };
        told(&infer(&observed, 1).unwrap(), "cannot tell");
        // The same numbers in both directions disagree as much as they spread.
        let noisy = PairLatencies::new(cores, &cells).unwrap();
        let observed = Observed { cores: &labels, pairs: Some(&noisy), ..Observed::default() };
        told(&infer(&observed, 1).unwrap(), "cannot tell");
    }
}

#[test]
fn slow_cores_are_no_layout() {
    let n = 20;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let slow: Vec<f64> = (0..n).map(|_| rng.random_range(0.0..20.0)).collect();
    let cells: Vec<Option<f64>> = (0..n * n)
        .map(|at| {
            let (a, b) = (at / n, at % n);
            (a < b).then(|| 50.0 + slow[a] + slow[b] + rng.random_range(0.0..1.0))
        })
        .collect();
    let labels: Vec<String> = (0..n).map(|core| core.to_string()).collect();
    let pairs = PairLatencies::new(n, &cells).unwrap();
    let observed = Observed { cores: &labels, pairs: Some(&pairs), ..Observed::default() };
    told(&infer(&observed, 1).unwrap(), "cannot tell");
}

#[test]
fn groups_without_order_are_no_layout() {
    // Eight complexes of eight cores, flat inside and out, as on a Zen 2 socket.
    let n = 64;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let cells: Vec<Option<f64>> = (0..n * n)
        .map(|at| {
            let near = at / n / 8 == at % n / 8;
            Some(if near { 25.0 } else { 110.0 } + rng.random_range(0.0..2.0))
        })
        .collect();
    let labels: Vec<String> = (0..n).map(|core| core.to_string()).collect();
    let pairs = PairLatencies::new(n, &cells).unwrap();
    let observed = Observed { cores: &labels, pairs: Some(&pairs), ..Observed::default() };
    told(&infer(&observed, 1).unwrap(), "cannot tell");
}

#[test]
fn two_cores_have_no_layout() {
    let labels = ["0".to_owned(), "1".to_owned()];
    let pairs = PairLatencies::new(2, &[None, Some(60.0), Some(61.0), None]).unwrap();
    let observed = Observed { cores: &labels, pairs: Some(&pairs), ..Observed::default() };
    untold(&infer(&observed, 1).unwrap(), "at least 4 are needed");
    untold(&infer(&Observed { cores: &labels, ..Observed::default() }, 1).unwrap(), "no latency");
}

#[test]
fn very_small_rings_prove_nothing() {
    // Six or ten latencies of two values: one shuffle in five, or in twenty, is a ring too.
    for stops in [4, 5] {
        let found = Truth::full(Shape::Ring { stops }, 0.0, 3).found();
        told(&found, "cannot tell");
        assert!(found.placement.places.is_empty());
    }
    told(&Truth::full(Shape::Ring { stops: 7 }, 0.0, 3).found(), "ring");
}

#[test]
fn columns_of_different_speed_are_no_layout() {
    // Two kinds of memory, 100 ns apart, and noise: the columns differ, the cores do not.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(13);
    let names = (0..8).map(|k| k.to_string()).collect();
    let cells = (0..24 * 8)
        .map(|at| Some(if at % 2 == 0 { 80.0 } else { 180.0 } + rng.random_range(0.0..5.0)))
        .collect();
    let columns = ColumnLatencies::new(24, names, cells).unwrap();
    let labels: Vec<String> = (0..24).map(|core| core.to_string()).collect();
    let observed = Observed { cores: &labels, columns: Some(&columns), ..Observed::default() };
    let found = infer(&observed, 1).unwrap();
    told(&found, "cannot tell");
    assert!(found.best.is_none_or(|best| best.heldout_r2 < 0.5));
}

#[test]
fn latencies_within_the_noise_have_no_layout() {
    let mut truth = Truth::full(Shape::Ring { stops: 16 }, 0.0, 1);
    let pairs = truth.pairs().with_noise(10.0);
    let observed = Observed { cores: &truth.labels, pairs: Some(&pairs), ..Observed::default() };
    untold(&infer(&observed, 1).unwrap(), "within the noise");
}

#[test]
fn one_memory_column_cannot_place_cores() {
    let mut truth = Truth::full(Shape::Grid { columns: 6, rows: 6 }, 0.0, 1);
    let columns = truth.columns(&[5]);
    let observed =
        Observed { cores: &truth.labels, columns: Some(&columns), ..Observed::default() };
    untold(&infer(&observed, 1).unwrap(), "1 memory column cannot place cores");
}

#[test]
fn many_slices_place_the_cores_and_themselves() {
    let shape = Shape::Grid { columns: 6, rows: 4 };
    let mut truth = Truth::full(shape, 0.02, 3);
    let slices: Vec<usize> = (0..24).collect();
    let columns = truth.columns(&slices);
    let observed =
        Observed { cores: &truth.labels, columns: Some(&columns), ..Observed::default() };
    let found = infer(&observed, 1).unwrap();
    told(&found, "grid");
    let agreement = truth.agreement(&found);
    assert!(agreement >= 0.9, "{agreement}");
}

#[test]
fn slow_rows_of_many_columns_are_no_layout() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
    let slow: Vec<f64> = (0..24).map(|_| rng.random_range(0.0..20.0)).collect();
    let names = (0..8).map(|k| k.to_string()).collect();
    let cells =
        (0..24 * 8).map(|at| Some(80.0 + slow[at / 8] + rng.random_range(0.0..1.0))).collect();
    let columns = ColumnLatencies::new(24, names, cells).unwrap();
    let labels: Vec<String> = (0..24).map(|core| core.to_string()).collect();
    let observed = Observed { cores: &labels, columns: Some(&columns), ..Observed::default() };
    told(&infer(&observed, 1).unwrap(), "cannot tell");
}

#[test]
fn controllers_are_found_among_placed_cores() {
    let shape = Shape::Grid { columns: 6, rows: 5 };
    let mut truth = Truth::full(shape, 0.01, 6);
    let (pairs, columns) = (truth.pairs(), truth.columns(&[14, 29]));
    let observed = Observed {
        cores: &truth.labels,
        pairs: Some(&pairs),
        columns: Some(&columns),
        places: None,
    };
    let found = infer(&observed, 1).unwrap();
    told(&found, "grid");
    let best = found.best.as_ref().unwrap();
    for (fit, truly) in found.controllers.iter().zip([14, 29]) {
        let core = truth.cells.iter().position(|&cell| cell == truly).unwrap();
        let place = best.shape.place(best.cell_of_core[core]);
        assert_eq!(fit.best, Some(place), "{}", fit.summary);
    }
    assert_eq!(found.placement.places.len(), 32);
}

#[test]
fn a_controller_on_a_ring_is_at_its_stop() {
    let used: Vec<usize> = (0..24).filter(|s| s % 4 != 1).collect();
    let mut truth = Truth::new(Shape::Ring { stops: 24 }, &used, 0.005, 6);
    truth.finds_controller(7, "ring");
}

#[test]
fn missing_pairs_are_borne() {
    let mut truth = Truth::full(Shape::Grid { columns: 5, rows: 4 }, 0.02, 6);
    let pairs = truth.pairs();
    let mut cells: Vec<Option<f64>> = (0..400).map(|at| pairs.get(at / 20, at % 20)).collect();
    for _ in 0..80 {
        let (a, b) = (truth.rng.random_range(0..20), truth.rng.random_range(0..20));
        cells[a * 20 + b] = None;
        cells[b * 20 + a] = None;
    }
    let holey = PairLatencies::new(20, &cells).unwrap();
    let observed = Observed { cores: &truth.labels, pairs: Some(&holey), ..Observed::default() };
    let found = infer(&observed, 1).unwrap();
    told(&found, "grid");
    assert!(truth.agreement(&found) >= 0.9);
}

#[test]
fn the_same_seed_finds_the_same() {
    let mut truth = Truth::full(Shape::Grid { columns: 4, rows: 4 }, 0.05, 6);
    let pairs = truth.pairs();
    let observed = Observed { cores: &truth.labels, pairs: Some(&pairs), ..Observed::default() };
    assert_eq!(infer(&observed, 3).unwrap(), infer(&observed, 3).unwrap());
}

#[test]
fn parts_of_different_machines_are_refused() {
    let labels = ["0".to_owned()];
    let pairs = PairLatencies::new(2, &[None; 4]).unwrap();
    let observed = Observed { cores: &labels, pairs: Some(&pairs), ..Observed::default() };
    let error = infer(&observed, 1).unwrap_err();
    assert!(matches!(error, PlacementError::Cores { found: 2, expected: 1, .. }));
}

#[test]
fn a_search_that_is_stopped_tells_nothing() {
    use std::cell::Cell;
    let mut truth = Truth::full(Shape::Grid { columns: 5, rows: 4 }, 0.02, 6);
    let (pairs, columns) = (truth.pairs(), truth.columns(&[3, 8]));
    let observed = Observed {
        cores: &truth.labels,
        pairs: Some(&pairs),
        columns: Some(&columns),
        places: None,
    };
    let asked = Cell::new(0_u32);
    let stopped_after = |most: u32| {
        asked.set(0);
        let keep_going = || asked.replace(asked.get() + 1) < most;
        infer_while(&observed, 3, &keep_going).unwrap()
    };
    assert_eq!(stopped_after(u32::MAX), infer(&observed, 3).unwrap());
    let all = asked.get();
    for most in [0, 1, all / 4, all / 2, all - 1] {
        let found = stopped_after(most);
        told(&found, "cannot tell");
        assert!(found.placement.reason.contains("stopped") && found.controllers.is_empty());
    }
}
