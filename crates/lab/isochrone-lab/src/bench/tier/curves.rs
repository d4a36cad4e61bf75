//! The stencil with half of its data in fast memory, over all of them in memory, from little arithmetic
//! for a page to much.

use anyhow::Result;
use isochrone_console::turns::{Costs, Ratio, Series};
use isochrone_stats::Spread;
use serde::Serialize;

use super::arm::{Extent, Runner};
use crate::bench::rounds::Cell;
use crate::bench::setting::Setting;
use crate::tier::request::{Answer, Grid, Policy, Program, Request, Tables};

/// Sweeps of the paper.
pub(super) const ITERATIONS: u32 = 25;
/// Where synchronous faults are counted, they may differ from 25 P / N by this part.
const FORMULA: f64 = 0.02;

/// A ratio of times beside that of an arm with itself.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Controlled {
    #[serde(flatten)]
    pub(super) ratio: Ratio,
    pub(super) control: Option<Ratio>,
    /// More workers and movers than cores: the ratio says little.
    pub(super) oversubscribed: bool,
}

/// One amount of arithmetic.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Point {
    pub(super) radius: usize,
    pub(super) workers: u16,
    /// Microseconds of arithmetic for a page.
    pub(super) t_compute: f64,
    /// Over the time to replace one page alone, and in batches.
    pub(super) intensity: f64,
    pub(super) intensity_batched: f64,
    /// Times over all data in memory.
    pub(super) regular: Option<Controlled>,
    pub(super) pspt: Option<Controlled>,
    pub(super) pspt_movers: Option<Controlled>,
    /// With movers, measured, over a predicted bound: the larger of arithmetic and pages times the batched time to
    /// replace one.
    pub(super) movers_over_bound: Option<Controlled>,
    pub(super) prefetch: Option<Prefetching>,
    pub(super) series: Series,
}

/// What prefetching reached, over all runs with movers.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Prefetching {
    /// Marked pages that a worker touched before they left, of all; the middle page of each window is one.
    pub(super) accuracy: Option<f64>,
    /// Pages that no worker had to fetch itself, of those that it needed.
    pub(super) coverage: f64,
    /// Pages that a worker waited for while a mover fetched them, of those that it needed.
    pub(super) lateness: f64,
}

/// Faults of the paper's order, counted.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Formula {
    /// 25 P, over all workers.
    pub(super) expected: f64,
    pub(super) seen: f64,
    pub(super) within: bool,
}

/// The serpentine sweep beside the paper's order.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Serpentine {
    /// Pages fetched, over those of the paper's order.
    pub(super) fetched: f64,
    /// How many times faster.
    pub(super) faster: Option<Controlled>,
}

/// What a page costs to replace, microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) single: f64,
    pub(super) batched: f64,
}

/// A grid of two times `pages`.
pub(super) const fn grid(pages: usize, radius: usize, iterations: u32) -> Grid {
    Grid { rows: pages / 2, columns: 512, radius, iterations, serpentine: false }
}

fn pages(grid: Grid) -> f64 {
    (2 * grid.rows * grid.columns) as f64 / 512.0
}

/// Sweeps, so that a run is neither over at once nor for ever.
const fn iterations(radius: usize) -> u32 {
    match radius {
        0..=2 => 12,
        3..=5 => 8,
        _ => 4,
    }
}

/// One amount of arithmetic, under way.
pub(super) struct Curve {
    radius: usize,
    workers: u16,
    grid: Grid,
    arms: Vec<Request>,
    seed: u64,
    series: Series,
    /// Of all runs with movers.
    moved: Vec<Answer>,
}

/// The arm that all others are over, the same again, and the arms with half of the data in fast memory.
const ARMS: [&str; 5] = ["in memory", "in memory again", "regular", "pspt", "pspt and movers"];
/// Which of them has movers.
const MOVERS: usize = 4;

impl Curve {
    pub(super) fn new(
        runner: &Runner,
        radius: usize,
        workers: u16,
        extent: Extent,
        setting: &mut Setting<'_>,
    ) -> Self {
        let grid = grid(extent.pages, radius, iterations(radius));
        let program = Program::Stencil(grid);
        let half = runner.request(program.clone(), workers, 0.5);
        let memory = runner.request(program, workers, 1.0);
        let regular = Request { tables: Tables::Shared, policy: Policy::Fifo, ..half.clone() };
        let movers = runner.with_movers(half.clone());
        Self {
            radius,
            workers,
            grid,
            arms: vec![memory.clone(), memory, regular, half, movers],
            seed: setting.seed(),
            series: Series::new(&ARMS.map(str::to_owned), "s"),
            moved: Vec::new(),
        }
    }

    /// What came out, given what a page costs to replace; nothing without a block.
    pub(super) fn point(self, moving: Moving, setting: &mut Setting<'_>) -> Option<Point> {
        let Self { radius, workers, grid, arms, series, moved, .. } = self;
        if series.blocks.is_empty() {
            return None;
        }
        let (seed, crowded) = (setting.seed(), arms[MOVERS].oversubscribed);
        let over = |arm: &str| Ratio::of(&series, ARMS[0], arm, seed);
        let control = over(ARMS[1]);
        let one = |arm: &str, oversubscribed| {
            over(arm).map(|ratio| Controlled { ratio, control, oversubscribed })
        };
        let total = pages(grid) * f64::from(grid.iterations);
        let mean = |arm: usize| Spread::of(series.block_means(arm)).map_or(f64::NAN, |s| s.median);
        let t_compute = mean(0) * 1e6 * f64::from(workers) / total;
        let moves = total * moving.batched / f64::from(workers) / 1e6;
        let bounds: Vec<f64> =
            series.block_means(0).iter().map(|memory| memory.max(moves)).collect();
        // What ran, over what would be if nothing but the larger of the two took time.
        let with_movers = series.block_means(MOVERS);
        let over_bound =
            Ratio::paired(Costs::measured(&with_movers), Costs::predicted(&bounds), seed);
        let over_bound =
            over_bound.map(|ratio| Controlled { ratio, control, oversubscribed: crowded });
        Some(Point {
            radius,
            workers,
            t_compute,
            intensity: t_compute / moving.single,
            intensity_batched: t_compute / moving.batched,
            regular: one("regular", false),
            pspt: one("pspt", false),
            pspt_movers: one("pspt and movers", crowded),
            movers_over_bound: over_bound,
            prefetch: prefetching(&moved, total),
            series,
        })
    }
}

impl Cell<Runner> for Curve {
    fn what(&self) -> String {
        format!("radius {} on {} workers", self.radius, self.workers)
    }

    fn blocks(&self) -> usize {
        self.series.blocks.len()
    }

    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let what = self.what();
        let (arms, moved) = (&self.arms, &mut self.moved);
        setting.block(&mut self.series, self.seed, &what, &mut |arm| {
            let answer = runner.run(&arms[arm])?;
            let seconds = answer.ns as f64 / 1e9;
            if arm == MOVERS {
                moved.push(answer);
            }
            Ok(seconds)
        })?;
        Ok(())
    }
}

fn prefetching(all: &[Answer], needed: f64) -> Option<Prefetching> {
    if all.is_empty() {
        return None;
    }
    let sum = |of: fn(&Answer) -> u64| all.iter().map(of).sum::<u64>() as f64;
    let marked = sum(|a| a.markers_touched) + sum(|a| a.markers_wasted);
    let needed = needed * all.len() as f64;
    Some(Prefetching {
        accuracy: (marked > 0.0).then(|| sum(|a| a.markers_touched) / marked),
        coverage: 1.0 - sum(|a| a.missing) / needed,
        lateness: sum(|a| a.late) / needed,
    })
}

/// The paper's order and policy, one page at a time, no movers, on every core.
pub(super) fn formula(runner: &mut Runner, size: usize) -> Result<Formula> {
    let grid = grid(size, 1, ITERATIONS);
    let workers = u16::try_from(runner.cores().len()).unwrap_or(1);
    let mut request = runner.request(Program::Stencil(grid), workers, 0.5);
    (request.policy, request.batch) = (Policy::Fifo, 1);
    let seen = runner.run(&request)?.missing as f64;
    let expected = f64::from(ITERATIONS) * pages(grid);
    Ok(Formula { expected, seen, within: (seen / expected - 1.0).abs() <= FORMULA })
}

/// The serpentine sweep, under way.
pub(super) struct Sweeps {
    arms: [Request; 3],
    seed: u64,
    series: Series,
    fetched: [f64; 3],
}

impl Sweeps {
    pub(super) fn new(runner: &Runner, size: usize, setting: &mut Setting<'_>) -> Self {
        let order = |serpentine| {
            let grid = Grid { serpentine, ..grid(size, 1, ITERATIONS) };
            Request { policy: Policy::Fifo, ..runner.request(Program::Stencil(grid), 1, 0.5) }
        };
        let names = ["one direction", "again", "serpentine"].map(str::to_owned);
        Self {
            arms: [order(false), order(false), order(true)],
            seed: setting.seed(),
            series: Series::new(&names, "s"),
            fetched: [0.0; 3],
        }
    }

    /// What came out; nothing without a block.
    pub(super) fn serpentine(&self, setting: &mut Setting<'_>) -> Option<Serpentine> {
        if self.series.blocks.is_empty() {
            return None;
        }
        let seed = setting.seed();
        let control = Ratio::of(&self.series, "again", "one direction", seed);
        let faster = Ratio::of(&self.series, "serpentine", "one direction", seed);
        let faster = faster.map(|ratio| Controlled { ratio, control, oversubscribed: false });
        Some(Serpentine { fetched: self.fetched[2] / self.fetched[0], faster })
    }
}

impl Cell<Runner> for Sweeps {
    fn what(&self) -> String {
        "serpentine".to_owned()
    }

    fn blocks(&self) -> usize {
        self.series.blocks.len()
    }

    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let mut fetched = self.fetched;
        let arms = &self.arms;
        let whole = setting.block(&mut self.series, self.seed, "serpentine", &mut |arm| {
            let answer = runner.run(&arms[arm])?;
            fetched[arm] += answer.missing as f64;
            Ok(answer.ns as f64 / 1e9)
        })?;
        // Each arm as often as the others, or what little there is.
        if whole || self.fetched[2] == 0.0 {
            self.fetched = fetched;
        }
        Ok(())
    }
}
