//! Runs a line-transfer plan on a stage: sweeps over all rounds in shuffled order until the cells
//! are sure enough, with the reference measured between the rounds.
//!
//! Rounds across which the reference jumped are done again once, and the jump is told. How much is measured of a pair
//! follows from what plays take here ([`super::effort`]), and nothing begins once the time is over: what was measured
//! until then is kept, and what its spread says of the rest is told ([`super::strata`]). Knows
//! nothing of threads; how cores play a scene is the stage's part.

use std::borrow::Cow;

use isochrone_atlas_store::contents::{Cell, DriftEvent, Matrix, TransferMap};
use isochrone_stats::median;
use isochrone_units::CoreId;

use super::agreement::{self, Agreement, Untried};
use super::crowd;
use super::effort::{Effort, Fit, Pace, ROUNDS_FEW, Tried, with_effort, without_rounds};
use super::plan::{Exchange, Schedule, TransferPlan};
use super::runner::{Ending, Runner, places};
use super::scene::Stage;
use super::series::{PairSeries, cell};
use super::strata::{sentence, strata};
use crate::target::TargetError;

/// Legs of a serial plan that are tried.
const LEGS_TRIED: usize = 16;

/// Of the time, what a trial of legs may take, but for the last leg.
const TRIAL_SHARE: f64 = 0.1;

/// Of the time, what the comparison of parallel and serial may take.
const CHECK_SHARE: f64 = 0.3;

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

/// Runs the plan. `stop` is asked before all that cores play; once it says yes, or the plan's time is over, the whole
/// rounds before are kept.
///
/// # Errors
/// What the stage says, after [`TargetError::Moved`] was met a few times in a row.
pub fn run(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<TransferReport, TargetError> {
    let begun = stage.seconds();
    let mut ending = Ending::of(&plan.options, begun, stop);
    let (plan, agreement) = match settle(stage, plan, &mut ending) {
        Err(TargetError::Stopped) => (Cow::Borrowed(plan), Agreement::trivial()),
        settled => settled?,
    };
    let mut runner = Runner::new(stage, &plan, &mut ending);
    match runner.sweeps() {
        Err(TargetError::Stopped) => {}
        ended => ended?,
    }
    let (dead, half_width) = (runner.dead(), runner.widest());
    let Runner { series, drift, sweeps, refused, .. } = runner;
    let is_vain = series.iter().all(|pair| pair.sweeps_ns.is_empty());
    if let Some(refused) = refused.clone().filter(|_| is_vain) {
        return Err(refused);
    }
    let complete = !ending.stopped && (sweeps > 0 || plan.rounds.is_empty());
    let map = map(&plan, &series);
    let mut lacks = missing(&plan, &map, &agreement, complete);
    let state = plan.options.kind.state_name();
    let dead = dead.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let line = |error| match dead.as_str() {
        "" => format!("line transfers ({state}): some pairs were refused: {error}"),
        cores => format!("line transfers ({state}): {cores} were left out: {error}"),
    };
    lacks.extend(refused.map(line));
    Ok(TransferReport {
        map,
        half_width,
        series,
        drift,
        agreement,
        missing: lacks,
        complete,
        seconds: stage.seconds() - begun,
    })
}

/// The plan as far as time allows it, and whether pairs may be measured together.
fn settle<'p>(
    stage: &mut dyn Stage,
    plan: &'p TransferPlan,
    ending: &mut Ending<'_>,
) -> Result<(Cow<'p, TransferPlan>, Agreement), TargetError> {
    if plan.options.schedule == Schedule::Serial || plan.missing.is_some() {
        return Ok((fit(stage, Cow::Borrowed(plan), ending)?, Agreement::trivial()));
    }
    if crowd::is_in_vain(stage, plan, ending)? {
        let agreement = Agreement { agrees: false, ..Agreement::untried(Untried::TooLong) };
        return Ok((fit(stage, Cow::Owned(plan.serial()), ending)?, agreement));
    }
    let parallel = fit(stage, Cow::Borrowed(plan), ending)?;
    let now_s = stage.seconds();
    let check_end_s = now_s + CHECK_SHARE * ending.left_s(now_s);
    let mut ends = |now_s| ending.is_before(now_s, check_end_s);
    let agreement = match agreement::check(stage, &parallel, &mut ends) {
        Err(TargetError::System { .. }) => Agreement::untried(Untried::Refused),
        checked => checked?,
    };
    if agreement.agrees {
        return Ok((parallel, agreement));
    }
    Ok((fit(stage, Cow::Owned(plan.serial()), ending)?, agreement))
}

/// A plan as far as it fits into the time that is left, by what plays take: the widest leg of a tournament, or legs
/// from all over a serial plan, since near pairs are quicker than far ones.
fn fit<'p>(
    stage: &mut dyn Stage,
    plan: Cow<'p, TransferPlan>,
    ending: &mut Ending<'_>,
) -> Result<Cow<'p, TransferPlan>, TargetError> {
    let rounds = plan.rounds.len();
    if rounds <= ROUNDS_FEW {
        return Ok(plan);
    }
    let serial = plan.options.schedule == Schedule::Serial;
    let legs: Vec<&Vec<Exchange>> = if serial {
        plan.rounds.iter().step_by(rounds.div_ceil(LEGS_TRIED)).filter_map(|r| r.first()).collect()
    } else {
        plan.rounds.iter().flatten().max_by_key(|leg| leg.len()).into_iter().collect()
    };
    let Some(pace) = pace(stage, &plan, &legs, ending)? else {
        let [.., little] = Effort::all(&plan.options);
        return Ok(Cow::Owned(with_effort(&plan, little)));
    };
    let now_s = stage.seconds();
    let fit = Fit::new(&plan, pace, serial);
    let usual = Some(ending.left_s(now_s)).filter(|left_s| fit.holds(*left_s));
    Ok(Cow::Owned(fit.fitted(usual.unwrap_or_else(|| ending.most_left_s(now_s)))))
}

/// What plays of these legs take; `None` where the system refuses one: the run will find out by whom.
fn pace(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    legs: &[&Vec<Exchange>],
    ending: &mut Ending<'_>,
) -> Result<Option<Pace>, TargetError> {
    let bare = without_rounds(plan);
    let mut trial = |effort| tried(stage, &with_effort(&bare, effort), legs, effort, ending);
    let [much, .., little] = Effort::all(&plan.options);
    // The first one only wakes the cores.
    let (Some(_), Some(little)) = (trial(little)?, trial(little)?) else { return Ok(None) };
    let most = Pace::at_most(little);
    if most.seconds(much) * legs.len() as f64 > plan.options.budget_s {
        return Ok(Some(most));
    }
    Ok(trial(much)?.map(|much| Pace::of(little, much)))
}

/// Plays legs, as many as a part of the time holds; what one took, or `None` where the system refuses one.
fn tried(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    legs: &[&Vec<Exchange>],
    effort: Effort,
    ending: &mut Ending<'_>,
) -> Result<Option<Tried>, TargetError> {
    let begun_s = stage.seconds();
    let enough_s = TRIAL_SHARE * ending.most_left_s(begun_s);
    let (mut played, mut seconds) = (0.0, 0.0);
    for leg in legs {
        match Runner::new(stage, plan, ending).measure(leg) {
            Err(TargetError::System { .. }) => return Ok(None),
            measured => measured?,
        };
        (played, seconds) = (played + 1.0, stage.seconds() - begun_s);
        if seconds > enough_s {
            break;
        }
    }
    Ok(Some(Tried { effort, seconds: seconds / f64::max(played, 1.0) }))
}

/// A line for each thing that could not be measured, and for what stands in for pairs that were not.
fn missing(
    plan: &TransferPlan,
    map: &TransferMap,
    agreement: &Agreement,
    complete: bool,
) -> Vec<String> {
    let state = plan.options.kind.state_name();
    let why = match (agreement.agrees, complete) {
        (true, true) => "one at a time",
        (false, true) if agreement.untried == Some(Untried::TooLong) => {
            "one at a time, since pairs that are measured together take too long"
        }
        (false, true) => "one at a time, since pairs that are measured together disturb each other",
        (_, false) => "since it was stopped or its time was over",
    };
    let unchecked = match agreement.untried {
        Some(Untried::Hurried) => Some("in its time"),
        Some(Untried::Refused) => Some("since some pairs were refused"),
        Some(Untried::TooLong) | None => None,
    };
    let unchecked = unchecked.map(|why| {
        format!(
            "line transfers ({state}): whether pairs disturb each other when they are measured together could not be \
             tried {why}"
        )
    });
    let left_out = sentence(state, why, &map.strata);
    plan.missing.iter().cloned().chain(unchecked).chain(left_out).collect()
}

/// The matrix over all ordered pairs.
fn map(plan: &TransferPlan, series: &[PairSeries]) -> TransferMap {
    let kind = plan.options.kind;
    let symmetric = matches!(kind, super::plan::Kind::Cas { .. });
    let places = places(series);
    let found: Vec<(Option<Cell>, Option<f64>)> = series
        .iter()
        .map(|pair| {
            let lines = pair.line_ns();
            (cell(&lines), lines.into_iter().reduce(f64::min))
        })
        .collect();
    let of = |owner: CoreId, asker: CoreId| {
        let other = || places.get(&(asker, owner)).filter(|_| symmetric);
        let place = places.get(&(owner, asker)).or_else(other);
        place.map_or((None, None), |at| found[*at])
    };
    let pairs = || plan.cores.iter().flat_map(|&o| plan.cores.iter().map(move |&a| (o, a)));
    let labels = || plan.cores.iter().map(ToString::to_string).collect::<Vec<_>>();
    let latency_ns = Matrix {
        what: format!("line transfer, {}, median over lines, ns", kind.state_name()),
        rows: labels(),
        columns: labels(),
        cells: pairs().map(|(owner, asker)| of(owner, asker).0).collect(),
    };
    TransferMap {
        state: kind.state_name().to_owned(),
        what: plan.missing.as_ref().map_or_else(
            || kind.cell_name().to_owned(),
            |why| format!("{}: not measured, {why}", kind.cell_name()),
        ),
        lines: plan.options.lines,
        strata: strata(&plan.seats, &latency_ns),
        latency_ns,
        best_line_ns: pairs().map(|(owner, asker)| of(owner, asker).1).collect(),
    }
}

/// The median over all pairs and lines, in nanoseconds; `None` if nothing was measured.
#[must_use]
pub fn median_ns(report: &TransferReport) -> Option<f64> {
    median(&report.series.iter().flat_map(PairSeries::line_ns).collect::<Vec<_>>())
}
