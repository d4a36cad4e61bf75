//! Runs a multi-line plan on a stage, and fits equation (1) of the CLa paper to the copies.
//!
//! A cell is a median over places of means over samples, of repeats that nobody interrupted; what the cores do not
//! allow is a cell without a value and with the reason.

use isochrone_atlas_store::contents::{Interaction, MultiLineFit};
use isochrone_stats::{derive_seed, least_squares, median, rng, shuffle};

use super::plan::{Item, Measure, MultilinePlan};
use crate::target::{TargetClock, TargetError};
use crate::transfer::plan::WARM_REPEATS;
use crate::transfer::scene::{Act, Part, Samples, Scene, Stage};
use crate::transfer::series::{INTERRUPTED, cell, quickest_s, whole_means_ns};

/// How often a scene is tried again when its thread was moved.
const MOVES_MAX: u32 = 3;

/// What the experiment found.
#[derive(Clone, Debug, PartialEq)]
pub struct MultilineReport {
    /// The fit of T = q + oN + cnN; `None` where too few cells could be measured.
    pub fit: Option<MultiLineFit>,
    /// Interactions, measured and missing.
    pub interactions: Vec<Interaction>,
    /// What could not be measured, and why, in one line each.
    pub missing: Vec<String>,
    /// Batches done again because a thread was moved.
    pub moves: u32,
    /// Whether all rounds were measured (false if the caller stopped it).
    pub complete: bool,
    /// Of what the cores allow, how much has not even one round.
    pub left_out: usize,
}

/// Share of the copies that were tried that a fit needs: with fewer its interval says little.
const POINTS_MIN: f64 = 0.75;

/// `[round][scene][participant that timed]` of one cell.
type Series = Vec<Vec<Vec<Samples>>>;

/// Runs the plan. `stop` is asked before each scene of a cell; whole cells before that are kept.
///
/// # Errors
/// What the stage says.
pub fn run(
    stage: &mut dyn Stage,
    plan: &MultilinePlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<MultilineReport, TargetError> {
    let mut series: Vec<Series> = vec![Vec::new(); plan.items.len()];
    let mut moves = 0;
    let mut complete = true;
    'rounds: for round in 0..plan.options.rounds {
        let mut order: Vec<usize> = (0..plan.items.len()).collect();
        shuffle(&mut order, &mut rng(derive_seed(plan.options.seed, u64::from(round))));
        for at in order {
            match measure(stage, plan, plan.items[at], &mut moves, stop) {
                Err(TargetError::Stopped) => {
                    complete = false;
                    break 'rounds;
                }
                measured => series[at].push(measured?),
            }
        }
    }
    let left_out = series.iter().filter(|rounds| rounds.is_empty()).count();
    let clock = stage.clock();
    let found: Vec<Found> = series.iter().map(|of| found(of, &clock)).collect();
    Ok(MultilineReport {
        fit: fit(plan, &found),
        interactions: interactions(plan, &found),
        missing: missing(plan),
        moves,
        complete,
        left_out,
    })
}

/// What was found of one cell.
struct Found {
    /// One value a place, nanoseconds: the median over rounds that count.
    places: Vec<f64>,
    /// It was measured, be it in vain.
    tried: bool,
}

fn found(rounds: &Series, clock: &TargetClock) -> Found {
    let quickest_s = quickest_s(rounds.iter().flatten().flatten());
    let mut places: Vec<Vec<f64>> = Vec::new();
    for round in rounds {
        let values = round.iter().flat_map(|scene| mean_over_parts(scene, clock, quickest_s));
        for (place, value) in values.enumerate() {
            if place == places.len() {
                places.push(Vec::new());
            }
            places[place].extend(value);
        }
    }
    Found {
        places: places.iter().filter_map(|values| median(values)).collect(),
        tried: !rounds.is_empty(),
    }
}

/// Measures a cell once: of each scene what those timed that timed anything.
fn measure(
    stage: &mut dyn Stage,
    plan: &MultilinePlan,
    item: Item,
    moves: &mut u32,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<Samples>>, TargetError> {
    let mut scenes = Vec::new();
    for scene in plan.scenes(item) {
        if stop() {
            return Err(TargetError::Stopped);
        }
        let repeats = plan.options.repeats + WARM_REPEATS;
        let mut tries = 0;
        let played = loop {
            match stage.play_until(std::slice::from_ref(&scene), repeats, &mut |_| stop()) {
                Err(TargetError::Moved { .. }) if tries < MOVES_MAX => {
                    tries += 1;
                    *moves += 1;
                }
                other => break other?,
            }
        };
        scenes.push(timed(&scene, &played[0]));
    }
    Ok(scenes)
}

/// The samples of the parts that timed something.
fn timed(scene: &Scene, played: &[Samples]) -> Vec<Samples> {
    let times = |(part, samples): (&Part, &Samples)| {
        let any = part.acts.iter().any(|act| Act::samples(act) > 0);
        any.then(|| samples.after(WARM_REPEATS as usize))
    };
    scene.parts.iter().zip(played).filter_map(times).collect()
}

/// Means over the participants, one a timed thing; nothing of a scene in which one was interrupted too often.
fn mean_over_parts(scene: &[Samples], clock: &TargetClock, quickest_s: f64) -> Vec<Option<f64>> {
    let things = scene.iter().map(|samples| samples.per_repeat).min().unwrap_or(0);
    let means = scene.iter().map(|samples| whole_means_ns(samples, clock, quickest_s));
    let Some(means) = means.collect::<Option<Vec<_>>>() else { return vec![None; things] };
    let parts: f64 = means.iter().map(|_| 1.0).sum();
    (0..things).map(|k| Some(means.iter().map(|m| m[k]).sum::<f64>() / parts)).collect()
}

/// Fits T = q + oN + cnN (equation (1) of the CLa paper) to the medians of all copies.
fn fit(plan: &MultilinePlan, found: &[Found]) -> Option<MultiLineFit> {
    let copies = || {
        let all = plan.items.iter().zip(found).filter(|(_, found)| found.tried);
        all.filter(|(item, _)| matches!(item.measure, Measure::Copy { .. }))
    };
    let points: Vec<(u32, u32, f64)> = copies()
        .filter_map(|(item, found)| match item.measure {
            Measure::Copy { lines } => Some((lines, item.n, median(&found.places)?)),
            _ => None,
        })
        .collect();
    let tried: f64 = copies().map(|_| 1.0).sum();
    if points.iter().map(|_| 1.0).sum::<f64>() < POINTS_MIN * tried {
        return None;
    }
    let readers = points.iter().map(|point| point.1).max()?;
    let congested = points.iter().any(|point| point.1 != points[0].1);
    let row = |&(lines, n, _): &(u32, u32, f64)| {
        let (lines, n) = (f64::from(lines), f64::from(n));
        if congested { vec![1.0, lines, n * lines] } else { vec![1.0, lines] }
    };
    let rows: Vec<Vec<f64>> = points.iter().map(row).collect();
    let times: Vec<f64> = points.iter().map(|point| point.2).collect();
    let fitted = least_squares(&rows, &times)?;
    let with = |at: usize| {
        let (lo, hi) = *fitted.ci95.get(at)?;
        Some((*fitted.coef.get(at)?, lo, hi))
    };
    let what = if readers == 1 {
        format!("{} -> {}", plan.cores[0], plan.cores[1])
    } else {
        format!("{} -> up to {readers} readers", plan.cores[0])
    };
    let c_ns = if congested { with(2) } else { None };
    Some(MultiLineFit { what, q_ns: with(0)?, o_ns: with(1)?, c_ns, r2: fitted.r2, points })
}

/// All interactions of the plan, measured or not, in the order of the table.
fn interactions(plan: &MultilinePlan, found: &[Found]) -> Vec<Interaction> {
    let one = |item: &Item, found: Option<&Found>| {
        let ns = found.and_then(|found| cell(&found.places));
        let in_vain = ns.is_none() && found.is_some_and(|found| found.tried);
        let what = item.measure.what();
        let note = if in_vain {
            format!("{what}: {INTERRUPTED}")
        } else {
            note(plan, *item, ns.is_some())
        };
        (*item, Interaction { kind: item.measure.name().to_owned(), n: item.n, ns, note })
    };
    let measured = plan.items.iter().zip(found).map(|(item, found)| one(item, Some(found)));
    let missing = plan.missing.iter().map(|item| one(item, None));
    let mut all: Vec<_> = measured
        .chain(missing)
        .filter(|(item, _)| !matches!(item.measure, Measure::Copy { .. }))
        .collect();
    all.sort_by_key(|(item, _)| *item);
    all.into_iter().map(|(_, interaction)| interaction).collect()
}

fn note(plan: &MultilinePlan, item: Item, measured: bool) -> String {
    let what = item.measure.what();
    if measured {
        return what.to_owned();
    }
    let (needed, there) = (item.n + 1, plan.cores.len());
    if there < needed as usize {
        format!("{what}: needs {needed} cores, {there} may be used")
    } else {
        format!("{what}: stopped before it was measured")
    }
}

fn missing(plan: &MultilinePlan) -> Vec<String> {
    let most = plan.missing.iter().map(|item| item.n).max();
    let least = plan.missing.iter().map(|item| item.n).min();
    match (least, most) {
        (Some(least), Some(most)) => vec![format!(
            "multi-line transfers and interactions of {least} to {most} participants need {} to {} \
             cores and {} may be used",
            least + 1,
            most + 1,
            plan.cores.len()
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiline::plan::MultilineOptions;
    use crate::transfer::model::ModelStage;
    use isochrone_sim::synthetic::{Interaction as Kind, SyntheticMemory, SyntheticSpec};
    use isochrone_units::CoreId;

    fn measure(cores: u16) -> (MultilineReport, SyntheticMemory) {
        let mut spec = SyntheticSpec::ring_e5_2660(3).with_pages(1024);
        let multi = &mut spec.transfers.multi_line;
        (multi.q_cycles, multi.o_cycles, multi.c_cycles) = (140.0, 24.0, 6.0);
        let interactions = &mut spec.transfers.interactions;
        interactions.contention_cycles = 5.0;
        interactions.congestion_cycles = 3.0;
        interactions.reader_cycles = 40.0;
        interactions.writer_cycles = 60.0;
        let memory = SyntheticMemory::new(spec.clone()).unwrap();
        let mut stage = ModelStage::new(SyntheticMemory::new(spec).unwrap());
        let cores: Vec<CoreId> = (0..cores).map(CoreId).collect();
        let options = MultilineOptions {
            places: 8,
            rounds: 3,
            participants: vec![1, 2, 4],
            ..MultilineOptions::new(9)
        };
        let plan = MultilinePlan::new(&cores, stage.lines(), options).unwrap();
        (run(&mut stage, &plan, &mut || false).unwrap(), memory)
    }

    #[test]
    fn the_fit_recovers_start_up_line_and_congestion_costs() {
        let (report, memory) = measure(5);
        let fit = report.fit.unwrap();
        let ns = 1e9 / memory.timer().hz;
        let close = |found: (f64, f64, f64), truth: f64, off: f64| {
            assert!((found.0 - truth * ns).abs() < off * ns, "{found:?} against {}", truth * ns);
            assert!(found.1 <= found.0 && found.0 <= found.2);
        };
        close(fit.q_ns, 140.0, 6.0);
        close(fit.o_ns, 24.0, 0.5);
        close(fit.c_ns.unwrap(), 6.0, 0.2);
        assert!(fit.r2 > 0.99 && fit.points.len() == 8 * 3);
    }

    #[test]
    fn one_reader_gives_no_congestion_cost() {
        let (report, memory) = measure(2);
        let fit = report.fit.unwrap();
        let ns = 1e9 / memory.timer().hz;
        assert_eq!(fit.c_ns, None);
        // With one reader the model cannot tell o from c: their sum is the slope.
        assert!((fit.o_ns.0 - 30.0 * ns).abs() < 0.5 * ns, "{:?}", fit.o_ns);
        assert_eq!(fit.what, "core 0 -> core 1");
        assert!(report.missing[0].contains("2 may be used"), "{:?}", report.missing);
        for one in &report.interactions {
            assert_eq!(one.ns.is_some(), one.n == 1, "{one:?}");
            assert_eq!(one.note.contains("needs"), one.n > 1, "{one:?}");
        }
    }

    #[test]
    fn interactions_cost_what_the_machine_says() {
        let (report, memory) = measure(5);
        let ns = 1e9 / memory.timer().hz;
        let truth = |name: &str, n: u32| {
            let kind = match name {
                "contention" => Kind::Contention,
                "congestion" => Kind::Congestion,
                "n-readers" => Kind::Readers,
                "n-writers" => Kind::Writers,
                _ => Kind::RfoShared,
            };
            memory.spec().transfers.interactions.cycles(kind, n) * ns
        };
        assert_eq!(report.interactions.len(), 5 * 3);
        for one in report.interactions.iter().filter(|one| one.n > 1) {
            let found = one.ns.unwrap().median;
            let expected = truth(&one.kind, one.n);
            assert!((found / expected - 1.0).abs() < 0.05, "{one:?} against {expected}");
        }
    }
}
