//! What the runs of a trial say: of all levers, corrected for how many they are; and of the best one, by fresh runs.
//!
//! The lever that looks best of several looks better than it is, and one of several looks good by chance more often
//! than one alone. So the best one is judged by runs that had no part in choosing it, and as strictly as if all had
//! been judged by them: its p-value is multiplied by the number of levers, which is Holm's first step, and its interval
//! is as wide as holds for all of them together.

use isochrone_console::turns::{Ratio, Series, Verdict, p_value};
use isochrone_stats::holm;
use serde::Serialize;

use super::stages::{ALPHA, CONTROL, PLAIN, fresh_blocks};

/// What is said of a lever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// Faster, beyond the control and the correction.
    Gain,
    /// Slower, likewise.
    Loss,
    NoDifference,
    /// The time was enough for fewer blocks than it takes to say anything.
    TooFewRuns,
    /// The program failed under it, or wrote something else.
    Excluded,
    /// It cannot be used here, or with this program.
    NotApplicable,
}

/// A lever against the plain program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judged {
    /// How many times faster.
    pub(super) ratio: Ratio,
    /// The plain program against itself in the same blocks.
    pub(super) control: Option<Ratio>,
    /// How surprising the difference is by itself.
    pub(super) p: f64,
    /// The same, corrected for the number of levers.
    pub(super) p_holm: f64,
    pub(super) word: Word,
}

/// All levers of a series, judged together; nothing of those without a block.
pub(super) fn all(series: &Series, seed: u64) -> Vec<(String, Judged)> {
    let control = Ratio::of(series, CONTROL, PLAIN, seed);
    let levers = series.arms.iter().filter(|arm| *arm != PLAIN && *arm != CONTROL);
    let found: Vec<(String, Ratio, f64)> = levers
        .filter_map(|arm| {
            Some((arm.clone(), Ratio::of(series, arm, PLAIN, seed)?, p_value(series, arm, PLAIN)?))
        })
        .collect();
    let p: Vec<f64> = found.iter().map(|(.., p)| *p).collect();
    let adjusted = holm(&p).unwrap_or_else(|| vec![1.0; p.len()]);
    let judged = found.into_iter().zip(adjusted).map(|((name, ratio, p), p_holm)| {
        let word = word(ratio, control, p_holm);
        (name, Judged { ratio, control, p, p_holm, word })
    });
    judged.collect()
}

/// The lever that a trial goes on with: that of the largest median.
pub(super) fn best(of: &[(String, Judged)]) -> Option<&str> {
    let largest = of.iter().max_by(|a, b| a.1.ratio.median.total_cmp(&b.1.ratio.median));
    largest.map(|(name, _)| name.as_str())
}

/// One lever that was chosen of so many, by a series that had no part in the choice.
pub(super) fn fresh(series: &Series, lever: &str, levers: usize, seed: u64) -> Option<Judged> {
    let many = levers.max(1) as f64;
    let ratio = Ratio::of_at(series, lever, PLAIN, seed, 1.0 - ALPHA / many)?;
    let control = Ratio::of(series, CONTROL, PLAIN, seed);
    let p = p_value(series, lever, PLAIN)?;
    let p_holm = (many * p).min(1.0);
    // Of fewer blocks nothing could be said, however far apart they were.
    let few = series.blocks.len() < fresh_blocks(levers).least;
    let word = if few { Word::TooFewRuns } else { word(ratio, control, p_holm) };
    Some(Judged { ratio, control, p, p_holm, word })
}

fn word(ratio: Ratio, control: Option<Ratio>, p_holm: f64) -> Word {
    match ratio.verdict(control) {
        Verdict::TooFew => Word::TooFewRuns,
        Verdict::Gain if p_holm <= ALPHA => Word::Gain,
        Verdict::Loss if p_holm <= ALPHA => Word::Loss,
        Verdict::Gain | Verdict::Loss | Verdict::NoDifference => Word::NoDifference,
    }
}
