//! Runs a plan of terms on a stage.
//!
//! Both scenes of a term are played right after one another, in an order that changes from round to round,
//! and a line's term is the median over rounds of their difference: so what is common to both (the timer,
//! the instruction, the core's clock at that moment) is not in it.
//!
//! A core that is taken away between two steps loses the lines that it was to hand over, and what is timed then is
//! memory. Such a repeat takes much longer than it needs, and is left out.

use isochrone_atlas_store::contents::CostTerm;
use isochrone_stats::{derive_seed, median, rng, shuffle};

use super::plan::{Term, TermsPlan};
use crate::target::{TargetClock, TargetError};
use crate::transfer::plan::WARM_REPEATS;
use crate::transfer::scene::{Samples, Scene, Stage};
use crate::transfer::series::{INTERRUPTED, cell, quickest_s, whole_means_ns};

/// How often a scene is tried again when its thread was moved.
const MOVES_MAX: u32 = 3;

/// What the experiment found.
#[derive(Clone, Debug, PartialEq)]
pub struct TermsReport {
    /// All terms, measured and missing, in the order of [`Term::ALL`].
    pub terms: Vec<CostTerm>,
    /// What could not be measured, and why, in one line each.
    pub missing: Vec<String>,
    /// Scenes played again because a thread was moved.
    pub moves: u32,
    /// Whether all rounds were measured (false if the caller stopped it).
    pub complete: bool,
    /// Of what the cores allow, how much has not even one round.
    pub left_out: usize,
}

/// `[with, without][round]` of one term.
type Series = [Vec<Samples>; 2];

/// Runs the plan. `stop` is asked before each scene; terms whose scenes were both played are kept.
///
/// # Errors
/// What the stage says.
pub fn run(
    stage: &mut dyn Stage,
    plan: &TermsPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<TermsReport, TargetError> {
    let mut series: Vec<Series> = vec![Series::default(); plan.items.len()];
    let mut moves = 0;
    let mut complete = true;
    'rounds: for round in 0..plan.options.rounds {
        let mut random = rng(derive_seed(plan.options.seed, u64::from(round)));
        let mut order: Vec<usize> = (0..plan.items.len()).collect();
        shuffle(&mut order, &mut random);
        for at in order {
            let scenes = plan.scenes(plan.items[at]);
            let mut arms = [0, 1];
            shuffle(&mut arms, &mut random);
            for arm in arms {
                match measure(stage, plan, &scenes[arm], &mut moves, stop) {
                    Err(TargetError::Stopped) => {
                        complete = false;
                        break 'rounds;
                    }
                    measured => series[at][arm].push(measured?),
                }
            }
        }
    }
    let of = |term: Term| plan.items.iter().position(|&item| item == term).map(|at| &series[at]);
    let clock = stage.clock();
    let terms = Term::ALL.map(|term| record(plan, term, of(term), &clock));
    let missing =
        plan.missing.iter().map(|(term, why)| format!("{}: {why}", term.name())).collect();
    let left_out = series.iter().filter(|arms| arms.iter().any(Vec::is_empty)).count();
    Ok(TermsReport { terms: terms.to_vec(), missing, moves, complete, left_out })
}

/// Plays a scene; what the first part timed.
fn measure(
    stage: &mut dyn Stage,
    plan: &TermsPlan,
    scene: &Scene,
    moves: &mut u32,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Samples, TargetError> {
    if stop() {
        return Err(TargetError::Stopped);
    }
    let repeats = plan.options.repeats + WARM_REPEATS;
    let mut tries = 0;
    let played = loop {
        match stage.play_until(std::slice::from_ref(scene), repeats, &mut |_| stop()) {
            Err(TargetError::Moved { .. }) if tries < MOVES_MAX => {
                tries += 1;
                *moves += 1;
            }
            other => break other?,
        }
    };
    Ok(played[0][0].after(WARM_REPEATS as usize))
}

/// Nanoseconds by line of each round of one scene; nothing of a round that was interrupted too often.
fn by_round(rounds: &[Samples], clock: &TargetClock) -> Vec<Vec<f64>> {
    let quickest_s = quickest_s(rounds);
    let means = |round: &Samples| whole_means_ns(round, clock, quickest_s).unwrap_or_default();
    rounds.iter().map(means).collect()
}

/// One value a line: the median over rounds that have any.
fn lines(rounds: &[Vec<f64>]) -> Vec<f64> {
    let some = || rounds.iter().filter(|round| !round.is_empty());
    let count = some().map(Vec::len).min().unwrap_or(0);
    let of = |line: usize| median(&some().map(|round| round[line]).collect::<Vec<_>>());
    (0..count).filter_map(of).collect()
}

fn record(plan: &TermsPlan, term: Term, series: Option<&Series>, clock: &TargetClock) -> CostTerm {
    let why = plan.missing.iter().find(|(lacking, _)| *lacking == term).map(|(_, why)| why.clone());
    let none = Series::default();
    let series = series.unwrap_or(&none);
    let [with, without] = series.each_ref().map(|rounds| by_round(rounds, clock));
    let less = |(with, without): (&Vec<f64>, &Vec<f64>)| -> Vec<f64> {
        with.iter().zip(without).map(|(a, b)| (a - b) / plan.divisor(term)).collect()
    };
    let differences: Vec<Vec<f64>> = with.iter().zip(&without).map(less).collect();
    let ns = cell(&lines(&differences));
    let in_vain = series.iter().all(|rounds| !rounds.is_empty());
    let unmeasured = if in_vain { INTERRUPTED } else { "stopped before it was measured" };
    CostTerm {
        name: term.name().to_owned(),
        what: term.what().to_owned(),
        with_ns: cell(&lines(&with)),
        without_ns: cell(&lines(&without)),
        ns,
        missing: why.or(ns.is_none().then(|| unmeasured.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::plan::{Remote, TermsOptions};
    use crate::transfer::model::ModelStage;
    use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec, TermCosts};
    use isochrone_units::CoreId;

    /// The terms of a machine with these costs and so many cores, in cycles by name; noise as it is.
    fn found(cores: u16, terms: TermCosts) -> Vec<(String, Option<f64>)> {
        let mut spec = SyntheticSpec::ring_e5_2660(3).with_pages(2048);
        spec.transfers.interactions.rfo_cycles = 21.0;
        spec.transfers.terms = terms;
        let mut stage = ModelStage::new(SyntheticMemory::new(spec).unwrap());
        let all: Vec<CoreId> = (0..cores).map(CoreId).collect();
        let remote = match all[..] {
            [owner, near, .., far] if cores > 2 => Ok(Remote { owner, near, far }),
            _ => Err("all are equally far".to_owned()),
        };
        let options = TermsOptions { places: 16, rounds: 5, ..TermsOptions::new(9) };
        let plan = TermsPlan::new(&all, remote, stage.lines(), options).unwrap();
        let report = run(&mut stage, &plan, &mut || false).unwrap();
        assert!(report.complete);
        let cycles = |term: &CostTerm| term.ns.map(|ns| ns.median * stage.clock().hz / 1e9);
        report.terms.iter().map(|term| (term.name.clone(), cycles(term))).collect()
    }

    fn truth() -> TermCosts {
        TermCosts {
            local_cycles: 20.0,
            adjacent_cycles: 17.0,
            pair_prefetch: true,
            left_shared_cycles: 55.0,
            left_read_cycles: 33.0,
            overlapped_cycles: 24.0,
            second_socket: Some(4),
            socket_cycles: 130.0,
            remote_reader_cycles: 88.0,
        }
    }

    #[test]
    fn the_truth_of_every_term_is_found_through_noise() {
        let truth_cycles = [88.0, 24.0, 21.0, 17.0, 55.0, 55.0, 33.0];
        for ((name, found), truth) in found(6, truth()).into_iter().zip(truth_cycles) {
            let found = found.unwrap_or_else(|| panic!("{name} is missing"));
            assert!((found - truth).abs() < 3.0, "{name}: {found} is not {truth}");
        }
    }

    #[test]
    fn a_machine_without_them_has_none() {
        let terms = TermCosts { local_cycles: 20.0, ..TermCosts::default() };
        for (name, found) in found(3, terms) {
            let truth = if name == "rfo-sharer" { 21.0 } else { 0.0 };
            let found = found.unwrap_or_else(|| panic!("{name} is missing"));
            assert!((found - truth).abs() < 3.0, "{name}: {found} is not {truth}");
        }
    }

    #[test]
    fn a_prefetcher_of_pairs_shows_in_the_next_write_alone() {
        let terms = TermCosts { pair_prefetch: false, adjacent_cycles: 0.0, ..truth() };
        let all = found(2, terms);
        let of = |name: &str| all.iter().find(|(n, _)| n == name).and_then(|(_, found)| *found);
        assert!(of("adjacent-write").unwrap().abs() < 3.0, "{all:?}");
        assert!((of("left-shared").unwrap() - 55.0).abs() < 3.0, "{all:?}");
    }

    #[test]
    fn what_two_cores_cannot_show_is_missing_with_its_reason() {
        let mut stage = ModelStage::new(
            SyntheticMemory::new(SyntheticSpec::ring_e5_2660(3).with_pages(2048)).unwrap(),
        );
        let cores = [CoreId(0), CoreId(1)];
        let options = TermsOptions { places: 4, rounds: 2, ..TermsOptions::new(9) };
        let plan = TermsPlan::new(&cores, Err("no".into()), stage.lines(), options).unwrap();
        let report = run(&mut stage, &plan, &mut || false).unwrap();
        for term in &report.terms {
            let three = ["first-remote-reader", "rfo-sharer"].contains(&term.name.as_str());
            assert_eq!(term.ns.is_none(), three, "{term:?}");
            assert_eq!(term.missing.is_some(), three, "{term:?}");
        }
        assert_eq!(report.missing.len(), 2);
        let mut asked = 0;
        let early = run(&mut stage, &plan, &mut || {
            asked += 1;
            asked > 2
        });
        let early = early.unwrap();
        assert!(!early.complete && early.terms.iter().any(|term| term.ns.is_some()));
        let stopped =
            |term: &CostTerm| term.missing.as_deref() == Some("stopped before it was measured");
        assert!(early.terms.iter().any(stopped), "{:?}", early.terms);
    }
}
