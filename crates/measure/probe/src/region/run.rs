//! Runs a region plan: every core chases through every region's buffer, in rounds of shuffled
//! order, until the cells are sure enough.
//!
//! A cell is the median over chases of nanoseconds a load, of those in which nobody took the core away. Generic over
//! [`RegionTarget`], so the same code runs on real regions and on modelled ones.

use isochrone_atlas_store::contents::{DriftEvent, RegionMap};
use isochrone_stats::{Summary, derive_seed, rng, shuffle, unlengthened};
use isochrone_units::{CoreId, RegionId};

use super::plan::{Mode, RegionPlan};
use crate::target::{TargetClock, TargetError};
use crate::transfer::series::cell;

/// How often a chase is tried again when its thread was moved.
const MOVES_MAX: u32 = 3;

/// Chases that nothing lengthened, at least, for a cell to have a number; of fewer than twice as many, half.
const UNDISTURBED_MIN: usize = 6;

/// Chases that nothing lengthened lie so close together: a core that is taken away lengthens one by a millisecond
/// or more, several times what it takes.
const TOGETHER: f64 = 0.03;

/// Buffers in memory regions, linked as a plan says, that cores can chase through.
pub trait RegionTarget {
    /// The cores that can chase, in ascending order.
    fn cores(&self) -> &[CoreId];

    /// The regions that have a buffer, in the order of the plan.
    fn regions(&self) -> &[RegionId];

    /// The clock behind the cycles.
    fn clock(&self) -> TargetClock;

    /// Follows `steps` links in the buffer of the `region`-th region from where the last chase
    /// there ended, and returns the raw cycles that took. With `flush`, the lines are first put
    /// out of all caches.
    ///
    /// # Errors
    /// [`TargetError::Moved`] when the thread did not stay on `core`; others as they come.
    fn chase(
        &mut self,
        core: CoreId,
        region: usize,
        steps: u64,
        flush: bool,
    ) -> Result<u64, TargetError>;

    /// Seconds since the target was made.
    fn seconds(&mut self) -> f64;
}

/// What the experiment found.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionReport {
    /// The matrix, as an atlas holds it.
    pub map: RegionMap,
    /// `[core][region][round]`, nanoseconds a load.
    pub series_ns: Vec<Vec<Vec<f64>>>,
    /// Threads that were moved, at seconds of the target.
    pub drift: Vec<DriftEvent>,
    /// The widest relative half-width of a cell's interval at the end; `None` before the second
    /// round.
    pub half_width: Option<f64>,
    /// Whether every cell was measured as planned (false if the caller stopped it).
    pub complete: bool,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Runs the plan. `stop` is asked before every chase; what was measured is kept.
///
/// # Errors
/// What the target says, after [`TargetError::Moved`] was met a few times in a row.
pub fn run(
    target: &mut dyn RegionTarget,
    plan: &RegionPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<RegionReport, TargetError> {
    let options = &plan.options;
    let begun = target.seconds();
    let cores = target.cores().to_vec();
    let regions = target.regions().len();
    let mut report_drift = Vec::new();
    let mut series = vec![vec![Vec::new(); regions]; cores.len()];
    let mut complete = true;
    'rounds: for round in 0..options.rounds_max {
        let mut order: Vec<(usize, usize)> =
            (0..cores.len()).flat_map(|core| (0..regions).map(move |r| (core, r))).collect();
        shuffle(&mut order, &mut rng(derive_seed(options.seed, u64::from(round))));
        for (core, region) in order {
            if stop() {
                complete = false;
                break 'rounds;
            }
            let value = chase_ns(target, plan, cores[core], region, &mut report_drift)?;
            series[core][region].push(value);
        }
        let sure = widest(&series).is_some_and(|width| width < options.half_width);
        let spent = target.seconds() - begun > options.budget_s;
        if spent || sure && round + 1 >= options.rounds_min {
            break;
        }
    }
    Ok(RegionReport {
        map: map(plan, &cores, target.regions(), &series),
        half_width: widest(&series),
        series_ns: series,
        drift: report_drift,
        complete,
        seconds: target.seconds() - begun,
    })
}

/// One chase, nanoseconds a load.
fn chase_ns(
    target: &mut dyn RegionTarget,
    plan: &RegionPlan,
    core: CoreId,
    region: usize,
    drift: &mut Vec<DriftEvent>,
) -> Result<f64, TargetError> {
    let steps = plan.options.steps;
    let mut moves = 0;
    let cycles = loop {
        match target.chase(core, region, steps, plan.options.flush) {
            Err(TargetError::Moved { asked, found }) if moves < MOVES_MAX => {
                moves += 1;
                drift.push(DriftEvent {
                    at_s: target.seconds(),
                    core: asked,
                    kind: "thread moved".to_owned(),
                    what: format!(
                        "the chasing thread of core {asked} was found on core {found}; the chase \
                         was done again"
                    ),
                    dropped_samples: steps,
                    repaired_ms: None,
                });
            }
            other => break other?,
        }
    };
    let clock = target.clock();
    Ok((real(cycles) - clock.overhead) / real(steps) * 1e9 / clock.hz)
}

/// The widest relative half-width of a median's interval; `None` while a cell has one value.
fn widest(series: &[Vec<Vec<f64>>]) -> Option<f64> {
    series.iter().flatten().try_fold(0.0_f64, |most, values| {
        let kept = undisturbed(values);
        let summary = Summary::of(&kept).filter(|s| s.n > 1 && s.median > 0.0)?;
        Some(most.max((summary.hi - summary.lo) / 2.0 / summary.median))
    })
}

/// The chases of a cell in which nobody took the core away.
fn undisturbed(values: &[f64]) -> Vec<f64> {
    unlengthened(values, values.len().div_ceil(2).min(UNDISTURBED_MIN), TOGETHER)
}

fn map(
    plan: &RegionPlan,
    cores: &[CoreId],
    regions: &[RegionId],
    series: &[Vec<Vec<f64>>],
) -> RegionMap {
    let mode = &plan.options.mode;
    let cells = series.iter().flatten().map(|values| cell(&undisturbed(values))).collect();
    let (cores, regions) = (cores.iter().copied(), regions.iter().copied());
    RegionMap {
        stride_bytes: if let Mode::Stride { bytes } = mode { Some(*bytes) } else { None },
        ..RegionMap::of_chase(mode.name(), plan.options.buffer_bytes, cores, regions, cells)
    }
}

/// Cycles or steps as a number; both are far below 2^53, where this is exact.
#[allow(clippy::cast_precision_loss, reason = "counts of one chase are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}
