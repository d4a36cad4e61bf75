//! Beside somebody else's work intervals still contain what a quiet machine shows, and what is too much
//! disturbed has no number.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_atlas_store::contents::Cell;
use isochrone_probe::region::{Mode, ModelRegions, RegionOptions, RegionPlan};
use isochrone_probe::transfer::{Kind, ModelStage, Operation, Options, TransferPlan};
use isochrone_probe::{region, transfer};
use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
use isochrone_units::{CoreId, LineState};

const RUNS: u64 = 400;

/// Cells of runs beside others.
#[derive(Debug)]
struct Runs(Vec<Option<Cell>>);

impl Runs {
    /// One cell a run, of so many with different seeds.
    fn of(run: impl Fn(u64) -> Option<Cell>) -> Self {
        Self((0..RUNS).map(run).collect())
    }

    /// Share of cells without a number.
    fn nulls(&self) -> f64 {
        share(self.0.iter().filter(|cell| cell.is_none()).count(), self.0.len())
    }

    /// What they show in the middle.
    fn median(&self) -> f64 {
        let medians: Vec<f64> = self.0.iter().flatten().map(|cell| cell.median).collect();
        isochrone_stats::median(&medians).expect("cells with numbers")
    }

    /// Median width of the intervals.
    fn width(&self) -> f64 {
        let widths: Vec<f64> = self.0.iter().flatten().map(|cell| cell.hi - cell.lo).collect();
        isochrone_stats::median(&widths).expect("cells with numbers")
    }

    /// Share of the intervals that contain `truth`.
    fn covering(&self, truth: f64) -> f64 {
        let inside = |cell: &&Cell| (cell.lo..=cell.hi).contains(&truth);
        share(self.0.iter().flatten().filter(inside).count(), self.0.iter().flatten().count())
    }
}

fn share(part: usize, of: usize) -> f64 {
    f64::from(u32::try_from(part).unwrap()) / f64::from(u32::try_from(of).unwrap())
}

fn cores() -> [CoreId; 2] {
    [CoreId(0), CoreId(1)]
}

fn transfers(share: f64, seed: u64) -> Option<Cell> {
    let spec = SyntheticSpec::ring_e5_2660(3).with_pages(1024).with_cores(2);
    let spec = SyntheticSpec { seed, ..spec.with_neighbours(cores(), share) };
    let mut stage = ModelStage::new(SyntheticMemory::new(spec).unwrap());
    let kind = Kind::Timed(LineState::Modified, Operation::Load);
    let options = Options { sweeps_max: 5, repeats: 32, ..Options::new(kind, seed) };
    let plan = TransferPlan::new(&cores(), 1 << 16, options).unwrap();
    let report = transfer::run(&mut stage, &plan, &mut || false).unwrap();
    report.map.latency_ns.cells[1]
}

fn regions(share: f64, seed: u64) -> Option<Cell> {
    let spec = SyntheticSpec::ring_e5_2660(2).with_pages(64).with_cores(1);
    let spec = SyntheticSpec { seed, ..spec.with_neighbours([CoreId(0)], share) };
    let memory = SyntheticMemory::new(spec).unwrap();
    let (regions, lines): (Vec<_>, Vec<_>) = ModelRegions::lines(&memory).into_iter().unzip();
    let options =
        RegionOptions { rounds_max: 60, ..RegionOptions::new(Mode::OneClass { lines }, seed) };
    let plan = RegionPlan::new(regions.len(), options).unwrap();
    let mut target = ModelRegions::new(memory, &regions, &plan.orders);
    region::run(&mut target, &plan, &mut || false).unwrap().map.latency_ns.cells[0]
}

/// Runs without neighbours, and with some that take a tenth, half and nine tenths of each core.
fn covers(run: impl Fn(f64, u64) -> Option<Cell>) {
    let quiet = Runs::of(|seed| run(0.0, seed));
    let truth = quiet.median();
    assert!(quiet.covering(truth) >= 0.9, "{}", quiet.covering(truth));
    for (share, nulls) in [(0.1, 0.02), (0.5, 0.3), (0.9, 1.0)] {
        let found = Runs::of(|seed| run(share, seed));
        let (covering, width) = (found.covering(truth), found.width() / quiet.width());
        let said = format!(
            "{share}: {covering:.3} of the intervals cover, {width:.2} times as wide, {:.3} null",
            found.nulls()
        );
        assert!(covering >= 0.9 && width <= 3.0 && found.nulls() <= nulls, "{said}");
    }
}

#[test]
fn transfers_beside_others_cover_the_quiet_truth() {
    covers(transfers);
}

#[test]
fn regions_beside_others_cover_the_quiet_truth() {
    covers(regions);
}
