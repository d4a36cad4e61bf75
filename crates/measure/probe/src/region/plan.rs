//! What the region experiment does: through which lines of each region's buffer a core chases,
//! in which order, and when that is enough. Pure data.
//!
//! The modes are those of the poster's Latency Checker: a linked list of cache-line-sized elements
//! in order, randomised, or with a stride that stays on one memory channel; and, with an atlas, a
//! list of the lines of one class alone, which needs no guess at the stride.

use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{LINE_BYTES, LineAddr};

/// Bytes of a buffer unless told otherwise (as the Latency Checker).
pub const BUFFER_BYTES: u64 = 100 << 20;

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
    /// Seconds after which no further round begins, even before [`Self::rounds_min`].
    pub budget_s: f64,
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
