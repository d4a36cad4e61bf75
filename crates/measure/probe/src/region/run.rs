//! Runs a region plan: every core chases through every region's buffer, in rounds of shuffled
//! order, until the cells are sure enough. Where there is no time for all cores, some stand for the others.
//!
//! A cell is the median over chases of nanoseconds a load, of those in which nobody took the core away. Generic over
//! [`RegionTarget`], so the same code runs on real regions and on modelled ones.

use isochrone_atlas_store::contents::{DriftEvent, RegionMap};
use isochrone_stats::{Summary, derive_seed, rng, shuffle, unlengthened};
use isochrone_units::{CoreId, RegionId};

use super::plan::{Mode, Pace, RegionOptions, RegionPlan};
use crate::seats::Seats;
use crate::target::{TargetClock, TargetError};
use crate::transfer::series::{INTERRUPTED, cell};

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

    /// Whether the `region`-th region has a buffer; where it has none, its cells have no number.
    fn has_buffer(&self, _region: usize) -> bool {
        true
    }

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
    /// Cores that there was no time for, and cells that could not be measured and why, in one line each.
    pub missing: Vec<String>,
    /// Whether every cell was measured as planned (false if the caller stopped it, or time was over in the first
    /// round).
    pub complete: bool,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Runs the plan. `stop` is asked before every chase; once it says yes, or the plan's time is over, what was measured
/// is kept. A cell that cannot be measured has no number, and the others are measured all the same.
///
/// # Errors
/// What the target says, where no cell can be measured.
pub fn run(
    target: &mut dyn RegionTarget,
    plan: &RegionPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<RegionReport, TargetError> {
    let begun = target.seconds();
    let mut runner = Runner::new(target, plan, stop, begun);
    let ended = runner.begin().and_then(|()| runner.rounds());
    match ended {
        Ok(()) | Err(TargetError::Stopped) => {}
        Err(error) => return Err(error),
    }
    runner.report(begun)
}

struct Runner<'a> {
    target: &'a mut dyn RegionTarget,
    plan: &'a RegionPlan,
    stop: &'a mut dyn FnMut() -> bool,
    end_s: f64,
    /// The end of the first round.
    latest_s: f64,
    stopped: bool,
    cores: Vec<CoreId>,
    /// Loads of a chase.
    steps: u64,
    /// Cores that there is time for, by their places.
    held: Vec<usize>,
    series_ns: Vec<Vec<Vec<f64>>>,
    /// `[core][region]`: it cannot be measured.
    given_up: Vec<Vec<bool>>,
    /// Why, by the cells.
    refused: Vec<Refused>,
    drift: Vec<DriftEvent>,
    /// Whole rounds.
    rounds: u32,
}

/// A reason for which cells have no number.
struct Refused {
    error: TargetError,
    first: (CoreId, RegionId),
    cells: usize,
}

impl<'a> Runner<'a> {
    fn new(
        target: &'a mut dyn RegionTarget,
        plan: &'a RegionPlan,
        stop: &'a mut dyn FnMut() -> bool,
        begun_s: f64,
    ) -> Self {
        let RegionOptions { budget_s, patience_s, .. } = plan.options;
        let cores = target.cores().to_vec();
        let regions = target.regions().len();
        let lacks: Vec<bool> = (0..regions).map(|region| !target.has_buffer(region)).collect();
        Self {
            stop,
            end_s: begun_s + budget_s,
            latest_s: begun_s + budget_s.max(patience_s),
            stopped: false,
            steps: plan.options.steps,
            held: (0..cores.len()).collect(),
            series_ns: vec![vec![Vec::new(); regions]; cores.len()],
            given_up: vec![lacks; cores.len()],
            refused: Vec::new(),
            drift: Vec::new(),
            rounds: 0,
            cores,
            target,
            plan,
        }
    }

    /// Tries what chases take where there are many cells, and sees what fits.
    fn begin(&mut self) -> Result<(), TargetError> {
        let Some(&first) = spread(self.plan, &self.cores).first() else { return Ok(()) };
        let regions: Vec<usize> =
            (0..self.given_up[first].len()).filter(|r| !self.given_up[first][*r]).collect();
        if RegionPlan::is_small(self.cores.len() * regions.len()) {
            return Ok(());
        }
        let (whole, least) = (self.plan.options.steps, self.plan.least_steps());
        let mut took_s = Vec::new();
        // The first one brings the thread there.
        for steps in [least, least, whole] {
            let before_s = self.target.seconds();
            self.steps = steps;
            for &region in &regions {
                self.chase(first, region)?;
            }
            took_s.push((self.target.seconds() - before_s) / regions.len() as f64);
        }
        let pace = Pace { least_s: took_s[1], whole_s: took_s[2] };
        let left_s = self.end_s - self.target.seconds();
        let fit = self.plan.fit(self.cores.len(), regions.len(), pace, left_s);
        self.steps = fit.steps;
        self.held = spread(self.plan, &self.cores);
        self.held.truncate(fit.cores);
        Ok(())
    }

    /// Rounds until it is enough.
    fn rounds(&mut self) -> Result<(), TargetError> {
        let options = &self.plan.options;
        let regions = self.target.regions().len();
        for round in 0..options.rounds_max {
            let mut order: Vec<(usize, usize)> =
                self.held.iter().flat_map(|&core| (0..regions).map(move |r| (core, r))).collect();
            shuffle(&mut order, &mut rng(derive_seed(options.seed, u64::from(round))));
            for (core, region) in order {
                let value = self.chase(core, region)?;
                self.series_ns[core][region].extend(value);
            }
            self.rounds += 1;
            let sure = self.widest().is_some_and(|width| width < options.half_width);
            let spent = self.target.seconds() > self.end_s;
            if spent || sure && round + 1 >= options.rounds_min {
                break;
            }
        }
        Ok(())
    }

    /// One chase, nanoseconds a load; nothing of a cell that was given up.
    fn chase(&mut self, core: usize, region: usize) -> Result<Option<f64>, TargetError> {
        if self.given_up[core][region] {
            return Ok(None);
        }
        self.stopped |= (self.stop)();
        let end_s = if self.rounds == 0 { self.latest_s } else { self.end_s };
        if self.stopped || self.target.seconds() > end_s {
            return Err(TargetError::Stopped);
        }
        let (steps, asked) = (self.steps, self.cores[core]);
        match chase_ns(self.target, self.plan, steps, asked, region, &mut self.drift) {
            Err(error) if error != TargetError::Stopped => {
                self.given_up[core][region] = true;
                self.refuse(error, (self.cores[core], self.target.regions()[region]));
                Ok(None)
            }
            value => value.map(Some),
        }
    }

    fn refuse(&mut self, error: TargetError, cell: (CoreId, RegionId)) {
        match self.refused.iter_mut().find(|refused| refused.error == error) {
            Some(refused) => refused.cells += 1,
            None => self.refused.push(Refused { error, first: cell, cells: 1 }),
        }
    }

    /// The widest relative half-width of a median's interval; `None` while a cell has one value.
    fn widest(&self) -> Option<f64> {
        let cells = self
            .held
            .iter()
            .flat_map(|&core| self.series_ns[core].iter().zip(&self.given_up[core]));
        let open = cells.filter(|(_, given_up)| !**given_up);
        open.map(|(values, _)| values).try_fold(0.0_f64, |most, values| {
            let kept = undisturbed(values);
            let summary = Summary::of(&kept).filter(|s| s.n > 1 && s.median > 0.0)?;
            Some(most.max((summary.hi - summary.lo) / 2.0 / summary.median))
        })
    }

    fn report(mut self, begun: f64) -> Result<RegionReport, TargetError> {
        let is_vain = self.series_ns.iter().flatten().all(Vec::is_empty);
        if is_vain && !self.refused.is_empty() {
            return Err(self.refused.swap_remove(0).error);
        }
        Ok(RegionReport {
            map: self.map(),
            half_width: self.widest(),
            missing: self.missing(),
            complete: !self.stopped && self.rounds > 0,
            seconds: self.target.seconds() - begun,
            series_ns: self.series_ns,
            drift: self.drift,
        })
    }

    fn map(&self) -> RegionMap {
        let mut is_held = vec![false; self.cores.len()];
        self.held.iter().for_each(|&at| is_held[at] = true);
        let left_out = self.cores.iter().zip(is_held).filter(|(_, is_held)| !is_held);
        RegionMap {
            left_out: left_out.map(|(core, _)| core.0).collect(),
            ..map(self.plan, &self.cores, self.target.regions(), &self.series_ns)
        }
    }

    fn missing(&self) -> Vec<String> {
        let mode = self.plan.options.mode.name();
        let (held, all) = (self.held.len(), self.cores.len());
        let sampled = (held < all).then(|| {
            format!(
                "region latency ({mode}): measured from {held} of {all} cores, those first that stand for a region or \
                 a last-level cache, since there was no time for all; the others have no number"
            )
        });
        let refused = self.refused.iter().map(|Refused { error, first, cells }| {
            let (core, region) = first;
            format!("region latency ({mode}): {cells} cells ({core} and {region} first): {error}")
        });
        let vain = self.series_ns.iter().flatten();
        let vain =
            vain.filter(|values| !values.is_empty() && undisturbed(values).is_empty()).count();
        let in_vain =
            (vain > 0).then(|| format!("region latency ({mode}): {vain} cells: {INTERRUPTED}"));
        sampled.into_iter().chain(in_vain).chain(refused).collect()
    }
}

/// The places of cores, those first that stand for most of the others.
fn spread(plan: &RegionPlan, cores: &[CoreId]) -> Vec<usize> {
    let seats = plan.options.seats.as_ref();
    let order = seats.map_or_else(Vec::new, Seats::spread);
    let place = |at: &usize| cores.binary_search(&seats?.all()[*at].core).ok();
    let mut places: Vec<usize> = order.iter().filter_map(place).collect();
    let mut known = vec![false; cores.len()];
    places.iter().for_each(|&at| known[at] = true);
    places.extend((0..cores.len()).filter(|at| !known[*at]));
    places
}

/// One chase, nanoseconds a load.
fn chase_ns(
    target: &mut dyn RegionTarget,
    plan: &RegionPlan,
    steps: u64,
    core: CoreId,
    region: usize,
    drift: &mut Vec<DriftEvent>,
) -> Result<f64, TargetError> {
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
