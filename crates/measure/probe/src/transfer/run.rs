//! Runs a line-transfer plan on a stage: sweeps over all rounds in shuffled order until the cells
//! are sure enough, with the reference measured after every round.
//!
//! A round across which the reference jumped is done again once, and the jump is told. Knows
//! nothing of threads; how cores play a scene is the stage's part.

use isochrone_atlas_store::contents::{DriftEvent, Matrix, TransferMap};
use isochrone_stats::{derive_seed, median, rng, shuffle};
use isochrone_units::CoreId;

use super::agreement::{self, Agreement};
use super::plan::{Exchange, Schedule, TransferPlan, WARM_REPEATS};
use super::scene::{Scene, Stage};
use super::series::{PairSeries, cell, means_ns};
use super::watch::{LEARN, Verdict, Watch};
use crate::target::TargetError;

/// How often a batch is tried again when its thread was moved.
const MOVES_MAX: u32 = 3;

/// What the experiment found.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferReport {
    /// The matrix, as an atlas holds it.
    pub map: TransferMap,
    /// What stands behind it: the mean of every line in every sweep.
    pub series: Vec<PairSeries>,
    /// Jumps of the reference and threads that were moved, at seconds of the stage.
    pub drift: Vec<DriftEvent>,
    /// Whether parallel may stand for serial.
    pub agreement: Agreement,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    /// The widest relative 95 % half-width of a pair's median at the end.
    pub half_width: Option<f64>,
    /// Whether the last sweep was whole (false if the caller stopped it).
    pub complete: bool,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Runs the plan. `stop` is asked before all that cores play; once it says yes, the whole rounds before are kept.
///
/// # Errors
/// What the stage says, after [`TargetError::Moved`] was met a few times in a row.
pub fn run(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<TransferReport, TargetError> {
    let begun = stage.seconds();
    let mut serial = None;
    let mut agreement = Agreement::trivial();
    if plan.options.schedule == Schedule::Parallel && plan.missing.is_none() {
        match agreement::check(stage, plan, stop) {
            // Then there will be no round to be measured in parallel either.
            Err(TargetError::Stopped) => {}
            checked => agreement = checked?,
        }
        if !agreement.agrees {
            serial = Some(plan.serial());
        }
    }
    let plan = serial.as_ref().unwrap_or(plan);
    let mut runner = Runner::new(stage, plan, stop);
    let complete = match runner.sweeps(begun) {
        Err(TargetError::Stopped) => false,
        ended => ended.map(|()| true)?,
    };
    let (series, drift) = (runner.series, runner.drift);
    let half_width = widest(&series);
    Ok(TransferReport {
        map: map(plan, &series),
        series,
        drift,
        agreement,
        missing: plan.missing.iter().cloned().collect(),
        half_width,
        complete,
        seconds: stage.seconds() - begun,
    })
}

struct Runner<'a> {
    stage: &'a mut dyn Stage,
    plan: &'a TransferPlan,
    stop: &'a mut dyn FnMut() -> bool,
    watch: Option<Watch>,
    series: Vec<PairSeries>,
    drift: Vec<DriftEvent>,
    /// How often the reference changed for good.
    epoch: u32,
}

impl<'a> Runner<'a> {
    fn new(
        stage: &'a mut dyn Stage,
        plan: &'a TransferPlan,
        stop: &'a mut dyn FnMut() -> bool,
    ) -> Self {
        let series = plan.rounds.iter().flatten().flatten().map(|exchange| PairSeries {
            owner: exchange.owner,
            asker: exchange.asker,
            lines: plan.lanes[exchange.lane].clone(),
            sweeps_ns: Vec::new(),
            epochs: Vec::new(),
        });
        let series = series.collect();
        Self { stage, plan, stop, watch: None, series, drift: Vec::new(), epoch: 0 }
    }

    /// Sweeps until it is enough.
    fn sweeps(&mut self, begun: f64) -> Result<(), TargetError> {
        let options = &self.plan.options;
        if self.plan.rounds.is_empty() {
            return Ok(());
        }
        self.learn()?;
        for sweep in 0..options.sweeps_max {
            let mut order: Vec<usize> = (0..self.plan.rounds.len()).collect();
            shuffle(&mut order, &mut rng(derive_seed(options.seed, u64::from(sweep))));
            for round in order {
                self.round(round, sweep % 2 == 1)?;
            }
            let spent = self.stage.seconds() - begun > options.budget_s;
            let sure = widest(&self.series).is_some_and(|width| width < options.half_width);
            if spent || sure && sweep + 1 >= options.sweeps_min {
                break;
            }
        }
        Ok(())
    }

    /// Measures one round, again if the reference jumped across it, and keeps the result.
    fn round(&mut self, round: usize, backward: bool) -> Result<(), TargetError> {
        let mut measured = self.legs(round, backward)?;
        if let Some(event) = self.judge(&measured)? {
            let done_again = measured.iter().map(|(_, lines)| lines.len() as u64).sum::<u64>();
            let dropped_samples = done_again * u64::from(self.plan.options.repeats);
            self.drift.push(DriftEvent { dropped_samples, ..event });
            measured = self.legs(round, backward)?;
        }
        for (exchange, lines) in measured {
            let series = &mut self.series;
            let found = series
                .iter_mut()
                .find(|pair| pair.owner == exchange.owner && pair.asker == exchange.asker);
            if let Some(pair) = found {
                pair.push(self.epoch, lines);
            }
        }
        Ok(())
    }

    /// Both directions of a round, line means by exchange.
    fn legs(
        &mut self,
        round: usize,
        backward: bool,
    ) -> Result<Vec<(Exchange, Vec<f64>)>, TargetError> {
        let plan = self.plan;
        let mut legs: Vec<_> = plan.rounds[round].iter().collect();
        if backward {
            legs.reverse();
        }
        let mut measured = Vec::new();
        for leg in legs {
            measured.extend(leg.iter().copied().zip(self.measure(leg)?));
        }
        Ok(measured)
    }

    /// Plays exchanges at once; means by line of each.
    fn measure(&mut self, exchanges: &[Exchange]) -> Result<Vec<Vec<f64>>, TargetError> {
        if (self.stop)() {
            return Err(TargetError::Stopped);
        }
        let scenes: Vec<Scene> = exchanges.iter().map(|e| self.plan.scene(e)).collect();
        let repeats = self.plan.options.repeats + WARM_REPEATS;
        let mut moves = 0;
        let played = loop {
            match self.stage.play(&scenes, repeats) {
                Err(TargetError::Moved { asked, found }) if moves < MOVES_MAX => {
                    moves += 1;
                    let event = self.moved(asked, found, &scenes);
                    self.drift.push(event);
                }
                other => break other?,
            }
        };
        let clock = self.stage.clock();
        let divisor = self.plan.options.kind.divisor();
        let means = |samples| means_ns(samples, &clock, WARM_REPEATS as usize, divisor);
        Ok(played.iter().map(|parts| means(&parts[0]).unwrap_or_default()).collect())
    }

    /// The event of a thread that was moved in the middle of a batch.
    fn moved(&mut self, asked: u16, found: u16, scenes: &[Scene]) -> DriftEvent {
        let acts = scenes.iter().flat_map(|scene| &scene.parts).flat_map(|part| &part.acts);
        let samples: usize = acts.map(super::scene::Act::samples).sum();
        DriftEvent {
            at_s: self.stage.seconds(),
            core: asked,
            kind: "thread moved".to_owned(),
            what: format!(
                "the thread of core {asked} was found on core {found}; it was pinned again and \
                 the batch done again"
            ),
            dropped_samples: samples as u64 * u64::from(self.plan.options.repeats),
            repaired_ms: None,
        }
    }

    /// Learns what is usual for the reference.
    fn learn(&mut self) -> Result<(), TargetError> {
        let first = (0..LEARN).map(|_| self.reference()).collect::<Result<Vec<_>, _>>()?;
        self.watch = Watch::learn(&first);
        Ok(())
    }

    fn reference(&mut self) -> Result<Vec<f64>, TargetError> {
        let Some(reference) = self.plan.reference else { return Ok(Vec::new()) };
        Ok(self.measure(&[reference])?.pop().unwrap_or_default())
    }

    /// Looks at the reference again, after a round that gave `measured`; an event if it jumped.
    fn judge(
        &mut self,
        measured: &[(Exchange, Vec<f64>)],
    ) -> Result<Option<DriftEvent>, TargetError> {
        // Where the reference is itself the only pair, the round has just measured it.
        let itself = measured.iter().find(|(exchange, _)| Some(*exchange) == self.plan.reference);
        let now = match itself {
            Some((_, lines)) => lines.clone(),
            None => self.reference()?,
        };
        let judge = |watch: &mut Option<Watch>, now: &[f64]| {
            watch.as_mut().map_or(Verdict::Steady, |watch| watch.judge(now))
        };
        let Verdict::Jumped { sigmas } = judge(&mut self.watch, &now) else { return Ok(None) };
        let noticed = self.stage.seconds();
        // A second look tells a lasting change from a passing disturbance.
        let again = self.reference()?;
        let lasting = judge(&mut self.watch, &again) != Verdict::Steady;
        if lasting {
            self.epoch += 1;
            self.learn()?;
        }
        let core = self.plan.reference.map_or(0, |reference| reference.asker.0);
        let (kind, then) = if lasting {
            ("base changed", "the new values were learnt and the round done again")
        } else {
            ("disturbed", "it came back, and the round was done again")
        };
        Ok(Some(DriftEvent {
            at_s: noticed,
            core,
            kind: kind.to_owned(),
            what: format!(
                "the reference pair's line latencies ({}) moved by {sigmas:.0} standard \
                 deviations; {then}",
                self.plan.options.kind.state_name()
            ),
            dropped_samples: 0,
            repaired_ms: lasting.then(|| (self.stage.seconds() - noticed) * 1e3),
        }))
    }
}

/// The widest relative half-width of all pairs; `None` while one has too few sweeps.
fn widest(series: &[PairSeries]) -> Option<f64> {
    series
        .iter()
        .map(PairSeries::half_width)
        .try_fold(0.0_f64, |most, width| Some(most.max(width?)))
}

/// The matrix over all ordered pairs.
fn map(plan: &TransferPlan, series: &[PairSeries]) -> TransferMap {
    let kind = plan.options.kind;
    let symmetric = matches!(kind, super::plan::Kind::Cas { .. });
    let lines_of = |owner: CoreId, asker: CoreId| {
        let is = |pair: &&PairSeries| {
            (pair.owner, pair.asker) == (owner, asker)
                || symmetric && (pair.owner, pair.asker) == (asker, owner)
        };
        series.iter().find(is).map(PairSeries::line_ns).unwrap_or_default()
    };
    let pairs = || plan.cores.iter().flat_map(|&o| plan.cores.iter().map(move |&a| (o, a)));
    let labels = || plan.cores.iter().map(ToString::to_string).collect::<Vec<_>>();
    TransferMap {
        state: kind.state_name().to_owned(),
        what: plan.missing.as_ref().map_or_else(
            || kind.cell_name().to_owned(),
            |why| format!("{}: not measured, {why}", kind.cell_name()),
        ),
        lines: plan.options.lines,
        latency_ns: Matrix {
            what: format!("line transfer, {}, median over lines, ns", kind.state_name()),
            rows: labels(),
            columns: labels(),
            cells: pairs().map(|(owner, asker)| cell(&lines_of(owner, asker))).collect(),
        },
        best_line_ns: pairs()
            .map(|(owner, asker)| lines_of(owner, asker).into_iter().reduce(f64::min))
            .collect(),
    }
}

/// The median over all pairs and lines, in nanoseconds; `None` if nothing was measured.
#[must_use]
pub fn median_ns(report: &TransferReport) -> Option<f64> {
    median(&report.series.iter().flat_map(PairSeries::line_ns).collect::<Vec<_>>())
}
