//! Bootstrap intervals of medians and of ratios: what two interleaved series are compared by.
//!
//! Percentile intervals (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13)
//! from a stated seed: the same samples and seed give the same interval, bit for bit. Samples
//! must be independent; a series that drifts belongs into the paired variant, taken in pairs that
//! were measured next to one another. No test of significance is made here.

use alloc::vec::Vec;

use crate::number::{all_finite, sorted};
use crate::order::{median, median_in_place, quantile};
use crate::random::{derive_seed, resample, rng};

/// More resamples than this refine nothing that a report could print.
const RESAMPLES_MAX: usize = 1_000_000;

/// A median, or a ratio of medians, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The quantity as the samples themselves give it.
    pub median: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// The median of `samples` with a bootstrap interval of confidence `level` (0.95, say).
///
/// `None` if there are no samples, one is not finite, `level` is not between 0 and 1, or the
/// resamples are too few to have one beyond each end: `resamples * (1 - level) / 2 >= 1` is
/// needed (40 for 0.95; 1000 or more give stable ends).
#[must_use]
pub fn bootstrap_median_ci(
    samples: &[f64],
    resamples: usize,
    level: f64,
    seed: u64,
) -> Option<Interval> {
    let median = median(samples)?;
    let mut draws = Resampler::new(samples, derive_seed(seed, 0))?;
    percentile_interval(median, resamples, level, || draws.median())
}

/// The ratio of the median of `a` to that of `b`, two series sampled independently of one
/// another; interval and `None` as for [`bootstrap_median_ci`], and `None` too unless all of `b`
/// is positive.
#[must_use]
pub fn bootstrap_ratio_ci(
    a: &[f64],
    b: &[f64],
    resamples: usize,
    level: f64,
    seed: u64,
) -> Option<Interval> {
    if b.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let ratio = median(a)? / median(b)?;
    let mut above = Resampler::new(a, derive_seed(seed, 0))?;
    let mut under = Resampler::new(b, derive_seed(seed, 1))?;
    percentile_interval(ratio, resamples, level, || above.median() / under.median())
}

/// The median of the ratios `a[i] / b[i]` of pairs measured next to one another (ABBA).
///
/// Whatever slows both of a pair alike (a drifting clock, a busy neighbour) cancels within the
/// pair before any median is taken. Where nothing drifts it estimates the same ratio as
/// [`bootstrap_ratio_ci`], up to the skew of the noise. `None` as there, and if the lengths
/// differ.
#[must_use]
pub fn bootstrap_paired_ratio_ci(
    a: &[f64],
    b: &[f64],
    resamples: usize,
    level: f64,
    seed: u64,
) -> Option<Interval> {
    if a.len() != b.len() || !all_finite(b) || b.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    bootstrap_median_ci(&ratios, resamples, level, seed)
}

/// Draws medians of resamples of one series.
struct Resampler {
    sorted: Vec<f64>,
    /// Scratch: positions drawn. The median of a resample stands at the median position.
    drawn: Vec<usize>,
    rng: crate::Xoshiro256PlusPlus,
}

impl Resampler {
    fn new(samples: &[f64], seed: u64) -> Option<Self> {
        let sorted = sorted(samples)?;
        Some(Self { drawn: alloc::vec![0; sorted.len()], sorted, rng: rng(seed) })
    }

    fn median(&mut self) -> f64 {
        let n = self.sorted.len();
        resample(&mut self.drawn, n, &mut self.rng);
        let (before, &mut upper, _) = self.drawn.select_nth_unstable(n / 2);
        let lower = if n.is_multiple_of(2) { before.iter().copied().max() } else { None };
        let mut middle = [self.sorted[lower.unwrap_or(upper)], self.sorted[upper]];
        median_in_place(&mut middle)
    }
}

fn percentile_interval(
    median: f64,
    resamples: usize,
    level: f64,
    mut draw: impl FnMut() -> f64,
) -> Option<Interval> {
    let tail = 0.5 * (1.0 - level);
    let enough = crate::number::real(resamples) * tail >= 1.0 && resamples <= RESAMPLES_MAX;
    if !(level > 0.0 && level < 1.0 && enough && median.is_finite()) {
        return None;
    }
    let drawn: Vec<f64> = (0..resamples).map(|_| draw()).collect();
    let drawn = sorted(&drawn)?;
    Some(Interval { median, lo: quantile(&drawn, tail)?, hi: quantile(&drawn, 1.0 - tail)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Xoshiro256PlusPlus, normal};
    use proptest::prelude::*;

    fn noisy(centre: f64, sd: f64, n: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        (0..n).map(|_| centre + sd * normal(rng)).collect()
    }

    #[test]
    fn three_values_have_a_known_bootstrap_distribution() {
        // Of the 27 resamples of three values, 7 have the least as median, 13 the middle one and
        // 7 the greatest: an interval of level 0.4 (tails 0.3 > 7/27) is the middle one alone,
        // one of level 0.6 (tails 0.2) is the whole range.
        let s = [10.0, 20.0, 40.0];
        let narrow = bootstrap_median_ci(&s, 20_000, 0.4, 1).unwrap();
        assert_eq!((narrow.lo, narrow.median, narrow.hi), (20.0, 20.0, 20.0));
        let wide = bootstrap_median_ci(&s, 20_000, 0.6, 1).unwrap();
        assert_eq!((wide.lo, wide.median, wide.hi), (10.0, 20.0, 40.0));
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        let mut rng = rng(3);
        let covered = (0..400)
            .filter(|seed| {
                let a = noisy(120.0, 10.0, 41, &mut rng);
                let b = noisy(100.0, 10.0, 41, &mut rng);
                let i = bootstrap_ratio_ci(&a, &b, 400, 0.95, *seed).unwrap();
                i.lo <= 1.2 && 1.2 <= i.hi
            })
            .count();
        // Percentile intervals of medians are a little wide; 0.95 has standard error 0.011.
        assert!((368..=396).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn pairing_takes_out_what_both_share() {
        let mut rng = rng(4);
        let drift: Vec<f64> = (0..60).map(|i| 1.0 + f64::from(i) / 30.0).collect();
        let arm = |centre: f64, rng: &mut Xoshiro256PlusPlus| -> Vec<f64> {
            drift.iter().map(|d| d * (centre + normal(rng))).collect()
        };
        let (a, b) = (arm(105.0, &mut rng), arm(100.0, &mut rng));
        let paired = bootstrap_paired_ratio_ci(&a, &b, 1000, 0.95, 1).unwrap();
        let apart = bootstrap_ratio_ci(&a, &b, 1000, 0.95, 1).unwrap();
        assert!(paired.lo > 1.04 && paired.hi < 1.06, "{paired:?}");
        assert!(apart.hi - apart.lo > 10.0 * (paired.hi - paired.lo), "{apart:?}");
    }

    #[test]
    fn no_answer_where_there_is_none() {
        assert_eq!(bootstrap_median_ci(&[], 100, 0.95, 0), None);
        assert_eq!(bootstrap_median_ci(&[1.0, f64::NAN], 100, 0.95, 0), None);
        assert_eq!(bootstrap_median_ci(&[1.0], 39, 0.95, 0), None);
        assert!(bootstrap_median_ci(&[1.0], 40, 0.95, 0).is_some());
        assert_eq!(bootstrap_median_ci(&[1.0], 100, 1.0, 0), None);
        assert_eq!(bootstrap_median_ci(&[1.0], 100, f64::NAN, 0), None);
        assert_eq!(bootstrap_ratio_ci(&[1.0], &[0.0], 100, 0.95, 0), None);
        assert_eq!(bootstrap_paired_ratio_ci(&[1.0], &[1.0, 2.0], 100, 0.95, 0), None);
    }

    proptest! {
        #[test]
        fn a_seed_repeats_and_a_scale_passes_through(
            a in prop::collection::vec(1.0..1e3f64, 1..60),
            b in prop::collection::vec(1.0..1e3f64, 1..60),
            seed: u64,
        ) {
            let once = bootstrap_ratio_ci(&a, &b, 60, 0.9, seed).unwrap();
            prop_assert_eq!(Some(once), bootstrap_ratio_ci(&a, &b, 60, 0.9, seed));
            let doubled: Vec<f64> = a.iter().map(|v| 2.0 * v).collect();
            let twice = bootstrap_ratio_ci(&doubled, &b, 60, 0.9, seed).unwrap();
            prop_assert_eq!([twice.lo, twice.median, twice.hi],
                [2.0 * once.lo, 2.0 * once.median, 2.0 * once.hi]);
            let own = bootstrap_paired_ratio_ci(&a, &a, 60, 0.9, seed).unwrap();
            prop_assert_eq!([own.lo, own.median, own.hi], [1.0; 3]);
        }

        #[test]
        fn the_interval_stays_among_the_samples(
            a in prop::collection::vec(-1e3..1e3f64, 1..60),
            seed: u64,
        ) {
            let i = bootstrap_median_ci(&a, 100, 0.95, seed).unwrap();
            let least = a.iter().copied().fold(f64::INFINITY, f64::min);
            let most = a.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(least <= i.lo && i.lo <= i.hi && i.hi <= most);
        }
    }
}
