//! What the probe learnt beside the oracle: medians over seeds, and whether the goal is met.

use isochrone_stats::Interval;
use isochrone_workloads::figure4::{Arm, Beside, BesideCurve, Knowledge, Learning, Measure};

/// The part of the oracle's gain that placement should have.
pub(super) const GOAL: f64 = 0.9;
/// What is compared, in words of sentences.
const MEASURES: [(Measure, &str); 2] =
    [(Measure::NearShare, "the share of near nodes"), (Measure::Time, "time")];

/// Whether a part of the oracle's gain reaches the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All of its interval does.
    Met,
    /// None of its interval does.
    Missed,
    /// The interval holds the goal.
    Open,
}

impl Verdict {
    /// Of a part of the oracle's gain.
    pub(super) fn of(part: Interval) -> Self {
        match (part.lo >= GOAL, part.hi < GOAL) {
            (true, _) => Self::Met,
            (_, true) => Self::Missed,
            _ => Self::Open,
        }
    }

    /// In a word.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Open => "open",
        }
    }
}

/// The part of the oracle's gain that what was learnt has, with its verdict.
pub(super) fn part(point: &Beside, measure: Measure) -> Option<(Interval, Verdict)> {
    point.of_oracle(measure, Arm::Learnt).map(|part| (part, Verdict::of(part)))
}

/// What was found, in sentences: what was learnt, and for each shape what it is worth.
pub(super) fn sentences(
    learning: &Learning,
    shape: impl Fn(&BesideCurve) -> String,
) -> Vec<String> {
    let of = |curve: &BesideCurve| {
        let parts = MEASURES.map(|(measure, what)| {
            let goal = in_words(curve, measure)?;
            Some(format!("in {what} {goal}"))
        });
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let parts = match parts.is_empty() {
            true => "the oracle gains nothing".to_owned(),
            false => {
                format!("of the oracle's gain, what the probe learnt has {}", parts.join(", "))
            }
        };
        format!("{}, simulated: {parts}.", shape(curve))
    };
    let known = known(&learning.knowledge).into_iter();
    known.chain(learning.curves.iter().map(of)).collect()
}

/// The worst that was learnt over the seeds.
fn known(knowledge: &[Knowledge]) -> Option<String> {
    let least = |of: fn(&Knowledge) -> f64| knowledge.iter().map(of).reduce(f64::min);
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let bases = knowledge.iter().map(|known| known.bases);
    Some(format!(
        "Learnt of the modelled memory, the least over seeds: {} of the cores have a base ({} to {} \
         bases for all of them), {} of the pages a code, {} of the pages the right one.",
        percent(least(|known| known.cores)?),
        bases.clone().min()?,
        bases.max()?,
        percent(least(|known| known.decoded)?),
        percent(least(|known| known.right)?),
    ))
}

/// From which part to which, and at which numbers of cores the goal is met.
fn in_words(curve: &BesideCurve, measure: Measure) -> Option<String> {
    let parts: Vec<(u16, Interval, Verdict)> = curve
        .points
        .iter()
        .filter_map(|point| part(point, measure).map(|(part, said)| (point.cores, part, said)))
        .collect();
    let medians = || parts.iter().map(|(_, part, _)| part.median);
    let at = |wanted: Verdict| {
        let cores: Vec<String> = parts
            .iter()
            .filter(|(_, _, said)| *said == wanted)
            .map(|(cores, ..)| cores.to_string())
            .collect();
        (!cores.is_empty()).then(|| format!("{} at {}", wanted.as_str(), cores.join(", ")))
    };
    let goal = [Verdict::Met, Verdict::Missed, Verdict::Open].into_iter().filter_map(at);
    Some(format!(
        "{:.2} to {:.2} (goal {GOAL} {} cores)",
        medians().reduce(f64::min)?,
        medians().reduce(f64::max)?,
        goal.collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goal_is_met_by_a_whole_interval() {
        let of = |lo, hi| Verdict::of(Interval { median: 0.5 * (lo + hi), lo, hi }).as_str();
        assert_eq!((of(0.9, 1.0), of(0.8, 0.89), of(0.89, 0.91)), ("met", "missed", "open"));
    }
}
