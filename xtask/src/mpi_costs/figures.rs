//! What the program's times come to, and whether goals are met.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use isochrone_stats::{Interval, bootstrap_median_ci, bootstrap_paired_ratio_ci};
use serde::Serialize;
use serde_json::json;

use crate::ci::say;

const RESAMPLES: usize = 1000;
const LEVEL: f64 = 0.95;
const SEED: u64 = 22;

/// What a communicator that is left to the MPI may cost more than plain, us.
const LEFT_MOST_US: f64 = 1.0;
/// What one may cost that is taken over, beside two allreduces of the MPI's on it, us.
const TAKEN_MOST_US: f64 = 10.0;
/// Memory of a communicator of two ranks at most, KiB; of one of 128.
const MEMORY_MOST_KIB: f64 = 64.0;
const LARGE_MOST_KIB: f64 = 1024.0;
const LARGE_RANKS: u32 = 128;
/// What a communicator that is gone may have left, bytes.
const GROWTH_MOST: f64 = 1.0;
/// Plain's time over the library's at least, in jobs of more ranks than cores.
const CROWD_LEAST: f64 = 0.9;

/// Times of one round in ns: by the library, plain, plain again, and one of plain's calls.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Round {
    name: String,
    bytes: u32,
    ours: f64,
    plain: f64,
    again: f64,
    call: f64,
}

impl Round {
    /// Those that a job's text has.
    pub(super) fn all(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::of).collect()
    }

    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (name, bytes) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let mut number = || words.next()?.parse().ok();
        let (ours, plain, again, call) = (number()?, number()?, number()?, number()?);
        Some(Self { name, bytes, ours, plain, again, call })
    }
}

/// A collective and size with plain's times over the library's.
#[derive(Debug)]
pub(super) struct Kind {
    name: String,
    ratio: Interval,
    control: Interval,
}

impl Kind {
    pub(super) fn all(text: &str) -> Vec<Self> {
        let mut cells: BTreeMap<(String, u32), Vec<Round>> = BTreeMap::new();
        for round in Round::all(text) {
            cells.entry((round.name.clone(), round.bytes)).or_default().push(round);
        }
        let kind = |((name, bytes), rounds): ((String, u32), Vec<Round>)| {
            let of = |time: fn(&Round) -> f64| rounds.iter().map(time).collect::<Vec<f64>>();
            let (ours, plain, again) = (of(|r| r.ours), of(|r| r.plain), of(|r| r.again));
            let ratio = |of: &[f64]| bootstrap_paired_ratio_ci(&plain, of, RESAMPLES, LEVEL, SEED);
            let name = format!("{name} {bytes}");
            Some(Self { name, ratio: ratio(&ours)?, control: ratio(&again)? })
        };
        cells.into_iter().filter_map(kind).collect()
    }
}

/// A goal, and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Goal {
    what: String,
    wanted: String,
    found: String,
    /// The same of plain against itself.
    control: String,
    met: Option<bool>,
}

/// The median of something of each round, us.
fn median_us(rounds: &[Round], ns: impl Fn(&Round) -> f64) -> Option<Interval> {
    let us: Vec<f64> = rounds.iter().map(|round| ns(round) / 1000.0).collect();
    bootstrap_median_ci(&us, RESAMPLES, LEVEL, SEED)
}

/// What rounds take beyond plain, us: by the library, and plain again.
fn beyond_plain(rounds: &[Round]) -> [Option<Interval>; 2] {
    let more: [fn(&Round) -> f64; 2] = [|r| r.ours - r.plain, |r| r.again - r.plain];
    more.map(|more| median_us(rounds, more))
}

fn us(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "nothing".to_owned(),
        |Interval { median, lo, hi }| format!("{median:.2} us [{lo:.2}, {hi:.2}]"),
    )
}

/// Whether all of it is at most so much, or all of it is more.
fn at_most(interval: Option<Interval>, most: f64) -> Option<bool> {
    let Interval { lo, hi, .. } = interval?;
    if hi <= most { Some(true) } else { (lo > most).then_some(false) }
}

impl Goal {
    /// Communicators whose calls stay the MPI's.
    pub(super) fn left_alone(rounds: &[Round]) -> Self {
        let [more, control] = beyond_plain(rounds);
        let plain = median_us(rounds, |round| round.plain);
        Self {
            what: "left to the MPI: duplicate, 9 allreduces, free; more than plain".to_owned(),
            wanted: format!("{LEFT_MOST_US} us at most"),
            found: format!("{} of {}", us(more), us(plain)),
            control: us(control),
            met: at_most(more, LEFT_MOST_US),
        }
    }

    /// Communicators that are taken over at their first call.
    pub(super) fn taken_over(rounds: &[Round]) -> Self {
        let [more, control] = beyond_plain(rounds);
        let beside = median_us(rounds, |round| round.ours - round.plain - 2.0 * round.call);
        Self {
            what: "taken over: duplicate, 1 allreduce, free; more than plain".to_owned(),
            wanted: format!("two of plain's allreduces and {TAKEN_MOST_US} us at most"),
            found: format!("{}; beside two allreduces {}", us(more), us(beside)),
            control: us(control),
            met: at_most(beside, TAKEN_MOST_US),
        }
    }

    /// Memory of further communicators that are there at once.
    #[allow(clippy::cast_precision_loss, reason = "bytes of an arena of 256 MiB")]
    pub(super) fn memory(ranks: u32, few: u64, many: u64, further: u32) -> Self {
        let each = many.saturating_sub(few) as f64 / f64::from(further) / 1024.0;
        let most = if ranks <= 8 { MEMORY_MOST_KIB } else { LARGE_MOST_KIB };
        let held = ranks <= LARGE_RANKS && few > 0;
        Self {
            what: format!("memory of a communicator of {ranks} ranks"),
            wanted: format!("{most} KiB at most"),
            found: format!("{each:.0} KiB"),
            control: String::new(),
            met: held.then_some(each <= most),
        }
    }

    /// What communicators leave that are gone.
    pub(super) fn growth(with: &[f64], without: &[f64], communicators: u32) -> Self {
        let grown = |kib: &[f64]| Some(kib.last()? - kib.first()?);
        let found = grown(with).zip(grown(without));
        let each =
            found.map(|(with, without)| (with - without) * 1024.0 / f64::from(communicators));
        Self {
            what: format!("growth over {communicators} communicators that come and go"),
            wanted: "nothing".to_owned(),
            found: found.map_or_else(String::new, |(with, _)| format!("{with} KiB")),
            control: found.map_or_else(String::new, |(_, without)| format!("{without} KiB")),
            met: each.map(|each| each < GROWTH_MOST),
        }
    }

    /// Collectives of jobs of more ranks than cores.
    pub(super) fn crowd(ranks: u32, kinds: &[Kind]) -> Self {
        let worst = kinds.iter().min_by(|a, b| a.ratio.hi.total_cmp(&b.ratio.hi));
        let below = kinds.iter().filter(|kind| kind.ratio.hi < CROWD_LEAST).count();
        let control = kinds.iter().min_by(|a, b| a.control.hi.total_cmp(&b.control.hi));
        let words = |kind: Option<&Kind>, of: fn(&Kind) -> Interval| {
            kind.map_or_else(String::new, |kind| {
                let Interval { median, lo, hi } = of(kind);
                format!("{}: {median:.2} [{lo:.2}, {hi:.2}]", kind.name)
            })
        };
        Self {
            what: format!("{ranks} ranks: plain over ours, collectives on new communicators"),
            wanted: format!("none wholly below {CROWD_LEAST}"),
            found: format!(
                "{below} of {} below; worst {}",
                kinds.len(),
                words(worst, |kind| kind.ratio)
            ),
            control: words(control, |kind| kind.control),
            met: (!kinds.is_empty()).then_some(below == 0),
        }
    }
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) goals: Vec<(String, u32, Goal)>,
}

impl Table {
    pub(super) fn add(&mut self, mpi: &str, run: u32, goal: Goal) {
        say(&line(mpi, run, &goal));
        self.goals.push((mpi.to_owned(), run, goal));
    }

    pub(super) fn say(&self) {
        let of = |met| self.goals.iter().filter(|(_, _, goal)| goal.met == met).count();
        let (met, missed, open) = (of(Some(true)), of(Some(false)), of(None));
        say(&format!("{met} met, {missed} missed, {open} not known"));
    }

    /// Writes it as JSON, where a place is given.
    pub(super) fn write(&self, path: Option<&Path>) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let goals: Vec<_> = self
            .goals
            .iter()
            .map(|(mpi, run, goal)| json!({ "mpi": mpi, "run": run, "goal": goal }))
            .collect();
        std::fs::write(path, serde_json::to_string_pretty(&json!({ "goals": goals }))? + "\n")
            .with_context(|| path.display().to_string())
    }
}

fn line(mpi: &str, run: u32, goal: &Goal) -> String {
    let met = match goal.met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "not known",
    };
    let Goal { what, wanted, found, control, .. } = goal;
    let control = if control.is_empty() { String::new() } else { format!(" (plain {control})") };
    format!("{mpi} run {run}: {what}: {found}{control}; {wanted}: {met}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(ours: f64) -> Vec<Round> {
        let text =
            |at: u32| format!("allreduce 8 {} 5{at:03} 5{at:03} 400\n", ours + f64::from(at));
        Round::all(&("done 0\n".to_owned() + &(100..130).map(text).collect::<String>()))
    }

    #[test]
    fn goals_are_held_against_whole_intervals() {
        assert_eq!(rounds(5500.0).len(), 30);
        assert_eq!(Goal::left_alone(&rounds(5500.0)).met, Some(true));
        assert_eq!(Goal::left_alone(&rounds(6500.0)).met, Some(false));
        assert_eq!(Goal::left_alone(&[]).met, None);
        // Two of plain's calls are 0.8 us.
        assert_eq!(Goal::taken_over(&rounds(15_700.0)).met, Some(true));
        assert_eq!(Goal::taken_over(&rounds(15_900.0)).met, Some(false));
        let mixed = [rounds(5000.0), rounds(8000.0)].concat();
        assert_eq!(Goal::left_alone(&mixed).met, None);
    }

    #[test]
    fn memory_and_growth_are_per_communicator() {
        let goal = |ranks: u32, many: u64| {
            Goal::memory(ranks, 128 << 10, (128 << 10) + (many << 10), 32).met
        };
        assert_eq!((goal(2, 64 * 32), goal(2, 65 * 32)), (Some(true), Some(false)));
        assert_eq!((goal(128, 1024 * 32), goal(128, 1025 * 32)), (Some(true), Some(false)));
        assert_eq!(Goal::memory(2, 0, 0, 32).met, None, "nothing was in lines");
        let growth = |with: f64| Goal::growth(&[9000.0, 9000.0 + with], &[8000.0, 8004.0], 90_000);
        assert_eq!((growth(8.0).met, growth(200.0).met), (Some(true), Some(false)));
        assert_eq!(Goal::growth(&[], &[], 1).met, None);
    }

    #[test]
    fn one_collective_that_is_slower_misses() {
        let text = |name: &str, ours: u32| -> String {
            (0..20)
                .map(|at| format!("{name} 8 {} {} {} 1\n", ours + at, 900 + at, 901 + at))
                .collect()
        };
        let kinds = Kind::all(&(text("bcast", 900) + &text("scan", 950)));
        assert_eq!((kinds.len(), Goal::crowd(8, &kinds).met), (2, Some(true)));
        let kinds = Kind::all(&(text("bcast", 900) + &text("scan", 1100)));
        let goal = Goal::crowd(8, &kinds);
        assert_eq!(goal.met, Some(false));
        assert!(goal.found.starts_with("1 of 2 below; worst scan 8: 0.8"), "{goal:?}");
        assert_eq!(Goal::crowd(8, &[]).met, None);
    }
}
