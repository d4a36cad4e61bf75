//! Many runs beside others, and what is asked of them.

use std::collections::BTreeMap;

use isochrone_atlas_store::contents::Cell;

const RUNS: u64 = 400;

/// What one run found, by name: a number with its interval, or none.
pub(crate) type Found = BTreeMap<String, Option<Cell>>;

/// One number of a run.
pub(crate) fn one(cell: Option<Cell>) -> Found {
    [(String::new(), cell)].into()
}

/// Cells of runs beside others.
#[derive(Debug)]
struct Runs(Vec<Option<Cell>>);

impl Runs {
    /// Share of cells without a number.
    fn nulls(&self) -> f64 {
        share(self.0.iter().filter(|cell| cell.is_none()).count(), self.0.len())
    }

    /// What they show in the middle; `None` where no run has a number.
    fn median(&self) -> Option<f64> {
        let medians: Vec<f64> = self.0.iter().flatten().map(|cell| cell.median).collect();
        isochrone_stats::median(&medians)
    }

    /// Median width of the intervals; 0 where no run has a number.
    fn width(&self) -> f64 {
        let widths: Vec<f64> = self.0.iter().flatten().map(|cell| cell.hi - cell.lo).collect();
        isochrone_stats::median(&widths).unwrap_or(0.0)
    }

    /// Share of the intervals that contain `truth`; all of none.
    fn covering(&self, truth: f64) -> f64 {
        let inside = |cell: &&Cell| (cell.lo..=cell.hi).contains(&truth);
        let all = self.0.iter().flatten().count();
        if all == 0 { 1.0 } else { share(self.0.iter().flatten().filter(inside).count(), all) }
    }
}

pub(crate) fn share(part: usize, of: usize) -> f64 {
    f64::from(u32::try_from(part).unwrap()) / f64::from(u32::try_from(of).unwrap())
}

/// Of each name the cells of so many runs with different seeds.
fn runs(run: impl Fn(u64) -> Found) -> BTreeMap<String, Runs> {
    let mut all: BTreeMap<String, Runs> = BTreeMap::new();
    for (name, cell) in (0..RUNS).flat_map(run) {
        all.entry(name).or_insert_with(|| Runs(Vec::new())).0.push(cell);
    }
    all
}

/// Runs without neighbours, and with some that take a tenth, half and nine tenths of each core: of the intervals at
/// least nine tenths contain what quiet runs show in the middle, they are at most three times as wide in the middle,
/// and there are not too many cells without one.
pub(crate) fn covers(run: impl Fn(f64, u64) -> Found) {
    let quiet = runs(|seed| run(0.0, seed));
    for (name, cells) in &quiet {
        let truth = cells.median().expect("a quiet machine has numbers");
        let said = format!("{name} quiet: {:.3} cover {truth:.2}", cells.covering(truth));
        assert!(cells.covering(truth) >= 0.9 && cells.nulls() <= 0.0, "{said}");
    }
    for (taken, nulls) in [(0.1, 0.02), (0.5, 0.3), (0.9, 1.0)] {
        for (name, found) in runs(|seed| run(taken, seed)) {
            let truth = quiet[&name].median().expect("a quiet machine has numbers");
            let (covering, width) = (found.covering(truth), found.width() / quiet[&name].width());
            let said = format!(
                "{name} {taken}: {covering:.3} of the intervals cover, {width:.2} times as wide, \
                 {:.3} null",
                found.nulls()
            );
            println!("{said}");
            assert!(covering >= 0.9 && width <= 3.0 && found.nulls() <= nulls, "{said}");
        }
    }
}
