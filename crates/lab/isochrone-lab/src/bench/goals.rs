//! Goals of comparisons, and when one is met: a verdict takes an interval.

use isochrone_console::turns::{Ratio, Verdict};
use serde::Serialize;

/// A ratio, and its control.
pub(crate) type Beside = (Ratio, Option<Ratio>);

/// A goal and whether it was met.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Goal {
    goal: String,
    wanted: f64,
    got: Option<f64>,
    /// The ratio of which `got` is the median.
    ratio: Option<Ratio>,
    /// Null where it is not known: of too few blocks, or where the ratio is not as far from what is wanted as an arm
    /// may be from itself.
    pub(crate) met: Option<bool>,
}

impl Goal {
    /// Ours is to be so many times faster.
    pub(crate) fn new(words: &str, wanted: f64, found: Option<Beside>) -> Self {
        let met = found.and_then(|(ratio, control)| {
            let part = |end: f64| end / wanted;
            let beside = Ratio { lo: part(ratio.lo), hi: part(ratio.hi), ..ratio };
            match beside.verdict(control) {
                Verdict::Gain => Some(true),
                Verdict::Loss => Some(false),
                Verdict::NoDifference | Verdict::TooFew => None,
            }
        });
        let ratio = found.map(|(ratio, _)| ratio);
        Self { goal: words.to_owned(), wanted, got: ratio.map(|ratio| ratio.median), ratio, met }
    }

    /// In one line.
    pub(crate) fn words(&self) -> String {
        let got = self.ratio.map_or_else(|| "?".to_owned(), |ratio| ratio.to_string());
        let met = match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not known",
        };
        let wanted = (self.wanted * 1000.0).round() / 1000.0;
        format!("goal: {}: at least {wanted}: {got}, {met}", self.goal)
    }
}

#[cfg(test)]
mod tests {
    use isochrone_units::{Reading, Readings};

    use super::*;

    fn ratio(median: f64, blocks: usize) -> Ratio {
        let readings = Readings::One(Reading::Measured);
        Ratio { median, lo: median * 0.95, hi: median * 1.05, blocks, readings }
    }

    #[test]
    fn a_goal_is_met_or_missed_by_an_interval_and_never_by_few_blocks() {
        let wide = Ratio { lo: 0.5, hi: 2.0, ..ratio(1.0, 20) };
        let met = |found, control| Goal::new("x", 4.0, Some((found, control))).met;
        assert_eq!(met(ratio(5.0, 20), None), Some(true));
        assert_eq!(met(ratio(3.0, 20), None), Some(false));
        assert_eq!(met(ratio(4.1, 20), None), None, "4 lies in the interval");
        assert_eq!(met(ratio(3.0, 20), Some(wide)), None, "an arm is as far from itself");
        for few in [ratio(0.01, 1), ratio(100.0, 4)] {
            let goal = Goal::new("the worst cell", 0.9, Some((few, None)));
            assert_eq!((goal.met, goal.got), (None, Some(few.median)));
            assert!(goal.words().ends_with("), not known"), "{}", goal.words());
        }
        assert_eq!(Goal::new("x", 4.0, None).words(), "goal: x: at least 4: ?, not known");
        assert_eq!(
            Goal::new("x", 2.0 / 3.0, None).words(),
            "goal: x: at least 0.667: ?, not known"
        );
    }
}
