//! How good predictions of a lever are, beside two that look at nothing: the interval score.
//!
//! Of an interval `[l, u]` that is to hold the truth `x` with probability `1 - alpha`, it is `u - l`, and besides
//! `2/alpha (l - x)` where `x` lies below, `2/alpha (x - u)` where it lies above (Winkler 1972; Gneiting and Raftery,
//! Strictly Proper Scoring Rules, 2007, section 6.2). Less is better: who says little pays by width, who is wrong by
//! the distance. All of it in shares of the run's time that the lever takes off. What is measured is off by
//! what the control is off, so all three intervals are wider by that on both sides.

use isochrone_stats::{below, derive_seed, median, quantile, rng};
use serde::Serialize;

/// The level of the score.
pub(super) const ALPHA: f64 = 0.05;
/// Programs that a verdict takes: of fewer even the least and the most hold a mean seldom enough.
pub(super) const LEAST: usize = 5;
/// Resamples of an interval.
const RESAMPLES: usize = 4000;
/// The formula, as it is written.
pub(super) const FORMULA: &str = "interval score of [l, u] and what was gained, x, in shares of the run's time: \
                                  (u - l) + 2/alpha max(0, l - x) + 2/alpha max(0, x - u); less is better";

/// What was predicted of a lever for a program, and what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judged {
    /// The ends of what was predicted: 0 and a bound, or twice the same number.
    pub(super) predicted: (f64, f64),
    /// The share of the run's time that the lever took off.
    pub(super) gain: f64,
    /// How far the plain program was from itself.
    pub(super) noise: f64,
}

/// Scores of the three predictions of one lever for one program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Scores {
    /// What the watched run said: from 0 to its bound, or its number.
    pub(super) advise: f64,
    /// "Nothing": 0.
    pub(super) nothing: f64,
    /// The median of what the same lever gained in all other programs.
    pub(super) median_gain: f64,
}

/// A mean over programs with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Mean {
    pub(super) mean: f64,
    pub(super) lo: f64,
    pub(super) hi: f64,
}

/// What all programs say of a lever's predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The mean score is less than that of both dull predictors, each by a whole interval.
    Better,
    /// It is not: such a predictor is to be removed.
    NoBetter,
    /// Of so few programs nothing is said.
    TooFew,
}

/// A lever over all programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct OfLever {
    /// Programs with a prediction and a measurement.
    pub(super) programs: usize,
    /// Of these, where the measured gain lies in the interval.
    pub(super) held: usize,
    pub(super) mean: Option<Scores>,
    /// Score less that of "nothing", and less that of "the median gain": below 0 it is better.
    pub(super) less_nothing: Option<Mean>,
    pub(super) less_median_gain: Option<Mean>,
    pub(super) verdict: Verdict,
}

/// The score of `[lo, hi]` where `x` was the truth.
pub(super) fn interval_score(lo: f64, hi: f64, x: f64) -> f64 {
    (hi - lo) + 2.0 / ALPHA * ((lo - x).max(0.0) + (x - hi).max(0.0))
}

/// Scores of all programs of a lever; nothing where there is no other program whose gain could be taken.
pub(super) fn scores(all: &[Judged]) -> Vec<Option<Scores>> {
    let one = |at: usize| {
        let Judged { predicted: (least, most), gain, noise } = all[at];
        let others: Vec<f64> = all
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, of)| of.gain)
            .collect();
        let usual = median(&others)?;
        let score = |lo: f64, hi: f64| interval_score(lo - noise, hi + noise, gain);
        Some(Scores {
            advise: score(least, most),
            nothing: score(0.0, 0.0),
            median_gain: score(usual, usual),
        })
    };
    (0..all.len()).map(one).collect()
}

/// All programs of a lever together.
pub(super) fn of_lever(all: &[Judged], seed: u64) -> OfLever {
    let found: Vec<Scores> = scores(all).into_iter().flatten().collect();
    let of = |value: fn(&Scores) -> f64| found.iter().map(value).collect::<Vec<f64>>();
    let mean_of = |value| mean(&of(value), seed).map(|mean| mean.mean);
    let scores = |value: [fn(&Scores) -> f64; 3]| -> Option<Scores> {
        let [advise, nothing, median_gain] = value.map(mean_of);
        Some(Scores { advise: advise?, nothing: nothing?, median_gain: median_gain? })
    };
    let less_nothing = mean(&of(|of| of.advise - of.nothing), seed);
    let less_median_gain = mean(&of(|of| of.advise - of.median_gain), seed);
    let is_below = |mean: Option<Mean>| mean.is_some_and(|mean| mean.hi < 0.0);
    let verdict = match found.len() {
        few if few < LEAST => Verdict::TooFew,
        _ if is_below(less_nothing) && is_below(less_median_gain) => Verdict::Better,
        _ => Verdict::NoBetter,
    };
    OfLever {
        programs: found.len(),
        held: all
            .iter()
            .filter(|of| {
                let (least, most) = of.predicted;
                (least - of.noise..=most + of.noise).contains(&of.gain)
            })
            .count(),
        mean: scores([|of| of.advise, |of| of.nothing, |of| of.median_gain]),
        less_nothing,
        less_median_gain,
        verdict,
    }
}

/// A mean with the interval of resampled ones; nothing of no values.
fn mean(values: &[f64], seed: u64) -> Option<Mean> {
    let many = values.len();
    let drawn_from = isochrone_stats::mean(values)?;
    let mut draws = rng(derive_seed(seed, 1));
    let mut draw = || {
        let at = |_| usize::try_from(below(&mut draws, many as u64)).unwrap_or(0);
        let sum: f64 = (0..many).map(at).map(|at| values[at]).sum();
        sum / many as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
    means.sort_by(f64::total_cmp);
    Some(Mean { mean: drawn_from, lo: quantile(&means, 0.025)?, hi: quantile(&means, 0.975)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(all: &[(f64, f64)]) -> Vec<Judged> {
        let judged = |&(at_most, gain)| Judged { predicted: (0.0, at_most), gain, noise: 0.01 };
        all.iter().map(judged).collect()
    }

    #[test]
    fn the_score_is_width_and_distance() {
        assert_eq!(interval_score(0.0, 0.25, 0.1), 0.25);
        assert_eq!(interval_score(0.0, 0.25, 0.25), 0.25);
        assert!((interval_score(0.0, 0.25, 0.35) - (0.25 + 40.0 * 0.1)).abs() < 1e-12);
        assert!((interval_score(0.0, 0.25, -0.1) - (0.25 + 40.0 * 0.1)).abs() < 1e-12);
        // What is proper: an interval that is too narrow to hold the truth is worse than one that holds it.
        assert!(interval_score(0.0, 0.1, 0.2) > interval_score(0.0, 0.2, 0.2));
    }

    #[test]
    fn a_number_is_judged_by_its_distance() {
        let of = |about, gain| Judged { predicted: (about, about), gain, noise: 0.01 };
        let all = [of(0.2, 0.3), of(0.305, 0.3), of(0.3, 0.3), of(0.3, 0.3), of(0.3, 0.3)];
        let found = scores(&all);
        // [0.19, 0.21] against 0.3: a bound of 0.2 would be as far, and 0.2 wider.
        assert!((found[0].unwrap().advise - (0.02 + 40.0 * 0.09)).abs() < 1e-9, "{found:?}");
        assert!((found[1].unwrap().advise - 0.02).abs() < 1e-9, "noise covers it: {found:?}");
        let together = of_lever(&all, 1);
        assert_eq!((together.held, together.verdict), (4, Verdict::NoBetter), "{together:?}");
        // It follows gains that differ, which no median does.
        let gains = [0.0, 0.3, 0.02, 0.25, 0.0, 0.4];
        assert_eq!(of_lever(&gains.map(|gain| of(gain, gain)), 1).verdict, Verdict::Better);
    }

    #[test]
    fn the_median_gain_is_that_of_the_others() {
        let all = scores(&judged(&[(0.2, 0.1), (0.2, 0.3), (0.2, 0.3), (0.2, 0.3)]));
        let first = all[0].unwrap();
        // [0.29, 0.31] against 0.1; [-0.01, 0.01] against 0.1; [-0.01, 0.21] holds it.
        assert!((first.median_gain - (0.02 + 40.0 * 0.19)).abs() < 1e-9, "{first:?}");
        assert!((first.nothing - (0.02 + 40.0 * 0.09)).abs() < 1e-9, "{first:?}");
        assert!((first.advise - 0.22).abs() < 1e-9, "{first:?}");
        assert_eq!(scores(&judged(&[(0.2, 0.1)])), [None], "nobody else is there");
    }

    #[test]
    fn bounds_that_follow_what_is_gained_are_better_and_others_are_not() {
        let gains = [0.0, 0.3, 0.02, 0.25, 0.0, 0.4, 0.1, 0.35];
        let all: Vec<(f64, f64)> = gains.iter().map(|gain| (gain + 0.02, *gain)).collect();
        let good = of_lever(&judged(&all), 1);
        assert_eq!((good.verdict, good.programs, good.held), (Verdict::Better, 8, 8), "{good:?}");
        assert!(good.less_nothing.unwrap().hi < 0.0 && good.less_median_gain.unwrap().hi < 0.0);
        // A bound that is high where nothing is gained pays for its width.
        let wide: Vec<(f64, f64)> = gains.iter().map(|_| (0.5, 0.0)).collect();
        let wide = of_lever(&judged(&wide), 1);
        assert_eq!((wide.verdict, wide.held), (Verdict::NoBetter, 8), "{wide:?}");
        // What says nothing is as good as "nothing", and no better.
        let none: Vec<(f64, f64)> = gains.iter().map(|_| (0.0, 0.0)).collect();
        let none = of_lever(&judged(&none), 1);
        assert_eq!((none.verdict, none.less_nothing.unwrap().mean), (Verdict::NoBetter, 0.0));
        let few = of_lever(&judged(&all[..4]), 1);
        assert_eq!(few.verdict, Verdict::TooFew);
        assert_eq!(of_lever(&[], 1).mean, None);
    }
}
