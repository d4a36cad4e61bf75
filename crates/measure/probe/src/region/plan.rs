//! What the region experiment does: through which lines of each region's buffer a core chases,
//! in which order, and when that is enough. Pure data.
//!
//! The modes are those of the poster's Latency Checker: a linked list of cache-line-sized elements
//! in order, randomised, or with a stride that stays on one memory channel; and, with an atlas, a
//! list of the lines of one class alone, which needs no guess at the stride.

use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{LINE_BYTES, LineAddr};

use crate::seats::Seats;

/// Bytes of a buffer unless told otherwise (as the Latency Checker).
pub const BUFFER_BYTES: u64 = 100 << 20;

/// Seconds of one order of lines at least, and for each cell: six rounds of the shortest chases, whose lines are put
/// out of all caches before, take 1.7 ms where a load takes 150 ns. A map with so many cells has three orders, and gives
/// them a sixth of its time (37 s of 4 min with 384 cores and 16 regions).
const BUDGET_S: f64 = 3.0;
const BUDGET_CELL_S: f64 = 0.002;
/// The same of a quick map, which has no more time for more cells.
const QUICK_BUDGET_S: f64 = 0.3;

/// Seconds that a map gives one order of lines, of so many cores times regions.
#[must_use]
pub fn budget_s(cells: usize, quick: bool) -> f64 {
    if quick { QUICK_BUDGET_S } else { BUDGET_S.max(BUDGET_CELL_S * cells as f64) }
}

/// Cells of which nothing is tried first: they fit any time.
const CELLS_FEW: usize = 64;
/// Rounds that have to fit into the time: with fewer, a cell that was disturbed twice has no number.
const ROUNDS_FIT: f64 = 6.0;
/// Of the time that is left, what they are planned to take.
const SHARE: f64 = 0.9;
/// By what the loads of a chase are divided where all cores do not fit with more.
const LESS: [u64; 3] = [1, 2, 4];

/// What chases take: seconds of the whole one, and of the one with the fewest loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// With the loads of the plan.
    pub whole_s: f64,
    /// With a quarter of them.
    pub least_s: f64,
}

/// What fits into the time: loads of a chase, and how many of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Loads in one chase.
    pub steps: u64,
    /// Cores that are measured; at least one.
    pub cores: usize,
}

/// Which lines are chased through, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every line, ascending. Prefetchers help: it is what a scan feels.
    InOrder,
    /// Every line, in random order.
    Random,
    /// One line every so many bytes, in random order (in ascending order a prefetcher would
    /// follow the stride).
    Stride {
        /// Bytes from one to the next.
        bytes: u64,
    },
    /// For each region the given lines, in random order.
    OneClass {
        /// By region, in the target's order.
        lines: Vec<Vec<LineAddr>>,
    },
}

impl Mode {
    /// Its name in an atlas.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InOrder => "in-order",
            Self::Random => "random",
            Self::Stride { .. } => "stride",
            Self::OneClass { .. } => "one-class",
        }
    }
}

/// How much is measured and when it is enough.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionOptions {
    /// Which lines in which order.
    pub mode: Mode,
    /// Bytes of each region's buffer.
    pub buffer_bytes: u64,
    /// Loads in one timed chase; a plan makes it no longer than once around.
    pub steps: u64,
    /// Rounds over all cores and regions at least.
    pub rounds_min: u32,
    /// Rounds at most.
    pub rounds_max: u32,
    /// Enough when the 95 % interval's half-width of every cell's median, over its median, is
    /// below this.
    pub half_width: f64,
    /// Seconds after which no further chase begins, even before [`Self::rounds_min`].
    pub budget_s: f64,
    /// The same in the first round: on a slow machine that may take longer. The budget where that is more.
    pub patience_s: f64,
    /// Where the cores sit: where there is no time for all of them, those that stand for most of the others are
    /// measured. Of cores of which nothing is said the first ones are.
    pub seats: Option<Seats>,
    /// Put the lines out of all caches before each chase. Without it the caches keep what fits,
    /// and a stride or a class through 100 MiB may fit.
    pub flush: bool,
    /// Seed of the order of lines and of rounds.
    pub seed: u64,
}

impl RegionOptions {
    /// What `isochrone map` uses unless told otherwise.
    #[must_use]
    pub fn new(mode: Mode, seed: u64) -> Self {
        Self {
            mode,
            buffer_bytes: BUFFER_BYTES,
            steps: 4096,
            rounds_min: 15,
            rounds_max: 400,
            half_width: 0.005,
            budget_s: 2.0,
            patience_s: 0.0,
            seats: None,
            flush: true,
            seed,
        }
    }
}

/// Everything that will be done.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionPlan {
    /// How much and when it is enough.
    pub options: RegionOptions,
    /// By region, the lines in the order of the chase.
    pub orders: Vec<Vec<LineAddr>>,
}

/// Why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionPlanError {
    /// The stride is no multiple of a cache line
    #[error("a stride of {bytes} bytes is no multiple of {LINE_BYTES}; use one that is")]
    Stride {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A region has too few lines to chase through
    #[error(
        "region {region} of the plan has {lines} lines to chase through; use a larger buffer or a \
         smaller stride"
    )]
    FewLines {
        /// Which region, in the target's order.
        region: usize,
        /// How many lines it has.
        lines: usize,
    },
    /// The classes are given for another number of regions
    #[error("lines are given for {given} regions and there are {regions}; give them for each")]
    Regions {
        /// Regions given.
        given: usize,
        /// Regions there.
        regions: usize,
    },
}

impl RegionPlan {
    /// Plans chases through `regions` buffers.
    ///
    /// # Errors
    /// [`RegionPlanError`] when the mode makes no chase.
    pub fn new(regions: usize, mut options: RegionOptions) -> Result<Self, RegionPlanError> {
        let count = options.buffer_bytes / LINE_BYTES as u64;
        let mut orders = match &options.mode {
            Mode::InOrder | Mode::Random => vec![strided(count, 1); regions],
            Mode::Stride { bytes } => {
                let lines = bytes / LINE_BYTES as u64;
                if lines == 0 || bytes % LINE_BYTES as u64 != 0 {
                    return Err(RegionPlanError::Stride { bytes: *bytes });
                }
                vec![strided(count, lines); regions]
            }
            Mode::OneClass { lines } if lines.len() != regions => {
                return Err(RegionPlanError::Regions { given: lines.len(), regions });
            }
            Mode::OneClass { lines } => lines.clone(),
        };
        for (region, order) in orders.iter_mut().enumerate() {
            // Two lines are the shortest ring; fewer than 8 would all be in flight at once.
            if order.len() < 8 {
                return Err(RegionPlanError::FewLines { region, lines: order.len() });
            }
            if options.mode != Mode::InOrder {
                shuffle(order, &mut rng(derive_seed(options.seed, region as u64)));
            }
        }
        // A chase that came round would find its first lines in the cache.
        let shortest = orders.iter().map(Vec::len).min().unwrap_or(0) as u64;
        options.steps = options.steps.clamp(1, shortest.max(1));
        Ok(Self { options, orders })
    }

    /// Whether all of so many cells fit into any time.
    #[must_use]
    pub const fn is_small(cells: usize) -> bool {
        cells <= CELLS_FEW
    }

    /// Loads of the shortest chase.
    #[must_use]
    pub fn least_steps(&self) -> u64 {
        (self.options.steps / LESS[LESS.len() - 1]).max(1)
    }

    /// What fits into so many seconds of `cores` and `regions`: all cores with as many loads a chase as possible, or
    /// with the fewest loads as many cores as possible.
    #[must_use]
    pub fn fit(&self, cores: usize, regions: usize, pace: Pace, left_s: f64) -> Fit {
        let rounds_s = SHARE * left_s.max(0.0) / ROUNDS_FIT;
        let chase_s = |less: u64| {
            // Loads take time in proportion, and the rest of a chase does not.
            let share = (1.0 / less as f64 - 0.25) / 0.75;
            (pace.least_s + share * (pace.whole_s - pace.least_s).max(0.0)).max(1e-12)
        };
        let core_s = |less: u64| regions.max(1) as f64 * chase_s(less);
        let all = LESS.into_iter().find(|less| cores as f64 * core_s(*less) <= rounds_s);
        let least = LESS[LESS.len() - 1];
        let cores = match all {
            Some(_) => cores,
            None => {
                (1..=cores).take_while(|n| *n as f64 * core_s(least) <= rounds_s).count().max(1)
            }
        };
        Fit { steps: (self.options.steps / all.unwrap_or(least)).max(1), cores }
    }

    /// Bytes of the lines that are chased through, in the region with the fewest: what a cache
    /// would have to hold to spoil the measurement where lines are not flushed.
    #[must_use]
    pub fn footprint_bytes(&self) -> u64 {
        let lines = self.orders.iter().map(Vec::len).min().unwrap_or(0);
        lines as u64 * LINE_BYTES as u64
    }
}

fn strided(count: u64, step: u64) -> Vec<LineAddr> {
    (0..count / step).map(|k| LineAddr(k * step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn plan(mode: Mode) -> Result<RegionPlan, RegionPlanError> {
        RegionPlan::new(2, RegionOptions { buffer_bytes: 1 << 20, ..RegionOptions::new(mode, 7) })
    }

    #[test]
    fn each_mode_visits_its_lines_once_and_in_its_order() {
        let in_order = plan(Mode::InOrder).unwrap();
        assert!(in_order.orders[0].is_sorted() && in_order.orders[0].len() == 16384);
        let random = plan(Mode::Random).unwrap();
        assert!(!random.orders[0].is_sorted());
        let visited: BTreeSet<_> = random.orders[0].iter().collect();
        assert!(visited.len() == 16384 && random.orders[0] != random.orders[1]);
        let stride = plan(Mode::Stride { bytes: 4096 }).unwrap();
        assert!(stride.orders[0].iter().all(|line| line.0 % 64 == 0));
        assert_eq!((stride.orders[0].len(), stride.footprint_bytes()), (256, 256 * 64));
        let lines = vec![(0..10).map(LineAddr).collect(), (100..120).map(LineAddr).collect()];
        let class = plan(Mode::OneClass { lines }).unwrap();
        assert_eq!((class.orders[1].len(), class.footprint_bytes()), (20, 640));
        assert_eq!((random.options.steps, class.options.steps), (4096, 10), "once around");
    }

    #[test]
    fn with_more_cells_chases_become_shorter_and_then_cores_fewer() {
        let plan = plan(Mode::Random).unwrap();
        let pace = Pace { whole_s: 1e-3, least_s: 0.4e-3 };
        let fit = |cores, regions| plan.fit(cores, regions, pace, 6.0);
        assert_eq!(fit(16, 2), Fit { steps: 4096, cores: 16 });
        assert_eq!(fit(600, 2), Fit { steps: 2048, cores: 600 });
        assert_eq!(fit(1000, 2), Fit { steps: 1024, cores: 1000 });
        let some = fit(384, 16);
        assert_eq!(some.steps, 1024);
        // Six rounds of these take no more than nine tenths of the time.
        assert!((130..=141).contains(&some.cores), "{some:?}");
        assert_eq!(plan.fit(384, 16, pace, -1.0).cores, 1);
    }

    #[test]
    fn plans_that_chase_nothing_are_refused() {
        assert_eq!(plan(Mode::Stride { bytes: 100 }), Err(RegionPlanError::Stride { bytes: 100 }));
        assert_eq!(
            plan(Mode::Stride { bytes: 1 << 19 }),
            Err(RegionPlanError::FewLines { region: 0, lines: 2 })
        );
        assert_eq!(
            plan(Mode::OneClass { lines: vec![] }),
            Err(RegionPlanError::Regions { given: 0, regions: 2 })
        );
    }
}
