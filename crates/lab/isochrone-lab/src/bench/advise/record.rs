//! What `bench advise` found, as it is written.

use std::collections::BTreeMap;

use isochrone_console::turns::{Ratio, Series};
use serde::Serialize;

use super::score::{ALPHA, FORMULA, Judged, OfLever, Scores, of_lever, scores};

/// A watched run may take so many times as long as a plain one.
pub(super) const AT_MOST: f64 = 1.03;

/// All of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::bench) struct Figures {
    /// How many times as long a program may take that is watched, by the upper end of its interval.
    pub(super) at_most: f64,
    /// Whether that holds for every program that was run; `null` where one of them does not say.
    pub(super) holds: Option<bool>,
    /// By program; `null` for those that are not there or failed.
    pub(super) programs: BTreeMap<String, Option<OfProgram>>,
    /// How predictions are judged, and at which level.
    pub(super) score: &'static str,
    pub(super) alpha: f64,
    /// By lever, over all programs.
    pub(super) levers: BTreeMap<String, OfLever>,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct OfProgram {
    /// Seconds that it took by itself: the median of its runs.
    pub(super) plain_s: Option<f64>,
    /// How many times as long it took where it was watched.
    pub(super) overhead: Option<Ratio>,
    /// How many times as long it took the second time in a block, by itself.
    pub(super) aa_control: Option<Ratio>,
    /// The same of its processor time, which other work on the machine changes little.
    pub(super) processor_overhead: Option<Ratio>,
    pub(super) processor_aa_control: Option<Ratio>,
    /// Whether the upper end of the overhead is at most that; `null` where there are too few blocks, or the interval
    /// holds it.
    pub(super) holds: Option<bool>,
    /// Seconds of the command before the program began and when it had ended: the median.
    pub(super) around_s: Option<f64>,
    /// What the first watched run said, beside what levers gained.
    pub(super) predictions: Vec<Prediction>,
    pub(super) series: Series,
}

/// What a watched run said of a lever, beside what it gained.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Prediction {
    pub(super) lever: String,
    /// `at_most`, `about`, `nothing`, `unknown`, `not_applicable`.
    pub(super) says: String,
    /// The upper end of what the lever takes off the run's time, as a share of it; `null` where nothing is predicted.
    pub(super) at_most: Option<f64>,
    /// What it takes off as it was counted and reckoned, as such a share; `null` where there is no number.
    pub(super) about: Option<f64>,
    /// Its name for `advise --try`; `null` where that does not try it.
    pub(super) tried_as: Option<&'static str>,
    /// The share that it took off in runs by turns.
    pub(super) gain: Option<Share>,
    /// That by which the plain program was faster than itself.
    pub(super) control: Option<Share>,
    pub(super) scores: Option<Scores>,
    /// Why there is no score.
    pub(super) why: Option<String>,
}

/// A share of a run's time with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Share {
    pub(super) median: f64,
    pub(super) lo: f64,
    pub(super) hi: f64,
}

impl OfProgram {
    /// Whether a ratio keeps within what is allowed.
    pub(super) fn verdict(overhead: Option<Ratio>) -> Option<bool> {
        let ratio = overhead.filter(Ratio::has_interval)?;
        if ratio.hi <= AT_MOST { Some(true) } else { (ratio.lo > AT_MOST).then_some(false) }
    }
}

impl Prediction {
    /// The ends of what was predicted.
    pub(super) fn predicted(&self) -> Option<(f64, f64)> {
        let number = self.about.map(|about| (about, about));
        number.or_else(|| Some((0.0, self.at_most?)))
    }

    /// What is judged, where there are both a prediction and a measurement.
    fn judged(&self) -> Option<Judged> {
        let (gain, control) = (self.gain?, self.control?);
        let noise = control.lo.abs().max(control.hi.abs());
        Some(Judged { predicted: self.predicted()?, gain: gain.median, noise })
    }
}

impl Figures {
    /// All programs together.
    pub(super) fn of(mut programs: BTreeMap<String, Option<OfProgram>>, seed: u64) -> Self {
        let mut by_lever: BTreeMap<String, Vec<&mut Prediction>> = BTreeMap::new();
        let predictions = programs.values_mut().flatten().flat_map(|of| &mut of.predictions);
        for prediction in predictions.filter(|of| of.judged().is_some()) {
            by_lever.entry(prediction.lever.clone()).or_default().push(prediction);
        }
        let mut levers = BTreeMap::new();
        for (lever, predictions) in by_lever {
            let judged: Vec<Judged> = predictions.iter().filter_map(|of| of.judged()).collect();
            levers.insert(lever, of_lever(&judged, seed));
            for (prediction, scores) in predictions.into_iter().zip(scores(&judged)) {
                prediction.scores = scores;
                if scores.is_none() {
                    prediction.why = Some("no other program's gain is known".to_owned());
                }
            }
        }
        let found: Vec<Option<bool>> = programs.values().flatten().map(|of| of.holds).collect();
        let holds = match found.as_slice() {
            [] => None,
            all if all.contains(&Some(false)) => Some(false),
            all => (!all.contains(&None)).then_some(true),
        };
        Self { at_most: AT_MOST, holds, programs, score: FORMULA, alpha: ALPHA, levers }
    }
}
