//! Order statistics: quantiles, the median, and a summary whose interval assumes no distribution.
//!
//! Latencies are skewed and have outliers, so a table shows medians with an interval made of two
//! order statistics: it is valid for any continuous distribution of independent samples. It never
//! removes a value; robust means are in `location`.

use alloc::vec::Vec;

use crate::moments::{mean_unchecked, variance};
use crate::number::{all_finite, index, real, sorted};

/// 97.5 % quantile of the standard normal distribution.
pub(crate) const Z_975: f64 = 1.959_963_984_540_054;

/// Up to this many values the binomial distribution is summed; 2^-1000 is still a normal `f64`.
const EXACT_MAX: usize = 1000;

/// The quantile `q` of values that are already in ascending order, by linear interpolation
/// between the two neighbouring order statistics (type 7 of Hyndman and Fan, "Sample Quantiles
/// in Statistical Packages", The American Statistician 50(4), 1996; the default of R and NumPy).
///
/// `None` if there are no values, if they are not finite, or if `q` is not between 0 and 1.
#[must_use]
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    debug_assert!(
        sorted.is_sorted_by(|a, b| a.total_cmp(b).is_le()),
        "quantile of unsorted values"
    );
    let (first, last) = (sorted.first()?, sorted.last()?);
    // Ascending order puts whatever is not finite at an end.
    if !(first.is_finite() && last.is_finite() && (0.0..=1.0).contains(&q)) {
        return None;
    }
    let place = real(sorted.len() - 1) * q;
    let below = index(place).min(sorted.len() - 1);
    let above = (below + 1).min(sorted.len() - 1);
    let (lo, hi) = (sorted[below], sorted[above]);
    Some((lo + (place - real(below)) * (hi - lo)).clamp(lo, hi))
}

/// The median of values in any order; `None` if there are none or one is not finite.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || !all_finite(values) {
        return None;
    }
    Some(median_in_place(&mut values.to_vec()))
}

/// The median of a non-empty scratch buffer of finite values, which it reorders. Linear time.
pub(crate) fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    lower + 0.5 * (upper - lower)
}

/// A few values in three numbers: so few that no interval says more.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// The middle one; of two the mean.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of values in any order; `None` if there are none or one is not finite.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = sorted(&values.into_iter().collect::<Vec<f64>>())?;
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self { median: quantile(&values, 0.5)?, least, most })
    }
}

/// A sample in ten numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Median; half of the values lie below.
    pub median: f64,
    /// Lower end of the confidence interval of the median.
    pub lo: f64,
    /// Upper end of the confidence interval of the median.
    pub hi: f64,
    /// How often such an interval covers the true median: at least 0.95 from 6 values on. Fewer
    /// values cannot promise that; the interval is then their range and covers `1 - 2^(1-n)`.
    pub coverage: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 10th percentile.
    pub p10: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; NaN for a single value.
    pub sd: f64,
    /// How many values.
    pub n: usize,
}

impl Summary {
    /// Summarises values in any order; `None` if there are none or one is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let values: Vec<f64> = sorted(values)?;
        let n = values.len();
        let (rank, coverage) = median_interval_rank(n);
        let at = |q| quantile(&values, q);
        Some(Self {
            median: at(0.5)?,
            lo: values[rank - 1],
            hi: values[n - rank],
            coverage,
            p5: at(0.05)?,
            p10: at(0.1)?,
            p90: at(0.9)?,
            p95: at(0.95)?,
            mean: mean_unchecked(&values),
            sd: variance(&values).map_or(f64::NAN, libm::sqrt),
            n,
        })
    }
}

/// The rank `r` (from 1) for which the r-th smallest and the r-th largest of `n` values are the
/// closest pair that still covers the median in 95 % of samples, and the coverage reached.
///
/// The number of values below the true median is binomial(n, 1/2), so the pair misses it with
/// probability `2 P(B < r)` (David and Nagaraja, Order Statistics, 3rd ed., section 7.1).
fn median_interval_rank(n: usize) -> (usize, f64) {
    if n <= EXACT_MAX { exact_rank(n) } else { normal_rank(n) }
}

fn exact_rank(n: usize) -> (usize, f64) {
    // term = P(B = k), below = P(B <= k); the widest pair stands even where it covers too little.
    let mut term = libm::exp2(-real(n));
    let mut below = term;
    let mut chosen = (1, 1.0 - 2.0 * below);
    for k in 1..n.div_ceil(2) {
        term *= real(n - k + 1) / real(k);
        below += term;
        if below > 0.025 {
            break;
        }
        chosen = (k + 1, 1.0 - 2.0 * below);
    }
    (chosen.0, chosen.1.max(0.0))
}

/// The normal approximation with continuity correction: `P(B < r) = Phi((r - 1/2 - n/2) / sd)`.
fn normal_rank(n: usize) -> (usize, f64) {
    let half_sd = 0.5 * libm::sqrt(real(n));
    let rank = index(0.5 * real(n) + 0.5 - Z_975 * half_sd).max(1);
    let z = (real(rank) - 0.5 - 0.5 * real(n)) / half_sd;
    (rank, 1.0 - crate::special::normal_two_sided_p(z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: [f64; 11] =
        [86.0, 91.5, 88.0, 102.75, 95.25, 89.5, 300.0, 87.0, 90.0, 93.0, 94.5];

    #[test]
    fn summary_agrees_with_numpy() {
        // numpy 2.4.6: quantile(SAMPLE, q), mean, std(ddof=1).
        let s = Summary::of(&SAMPLE).unwrap();
        assert_eq!([s.p5, s.p10, s.median, s.p90, s.p95], [86.5, 87.0, 91.5, 102.75, 201.375]);
        assert!((s.mean - 110.681_818_181_818_19).abs() < 1e-12);
        assert!((s.sd - 62.964_880_182_238_38).abs() < 1e-12);
        assert_eq!(s.n, 11);
    }

    #[test]
    fn ranks_of_the_interval_agree_with_the_binomial_distribution() {
        // scipy 1.17.1: largest r with binom.cdf(r - 1, n, 0.5) <= 0.025, and the coverage.
        let known = [
            (6, 1, 0.968_75),
            (9, 2, 0.960_937_5),
            (12, 3, 0.961_425_781_25),
            (20, 6, 0.958_610_534_667_968_8),
            (25, 8, 0.956_714_749_336_242_7),
            (50, 18, 0.967_160_862_435_731_5),
            (100, 40, 0.964_799_799_782_299_5),
            (1000, 469, 0.953_708_802_639_501_9),
            (1001, 470, 0.950_015_476_497_245_6),
            (5000, 2431, 0.950_684_141_895_828_5),
            (100_001, 49_691, 0.950_075_113_987_905_5),
        ];
        for (n, rank, coverage) in known {
            let (r, c) = median_interval_rank(n);
            // The approximation of large n may be one rank wider, never narrower.
            let slack = usize::from(n > EXACT_MAX);
            assert!((rank - slack..=rank).contains(&r), "n = {n}: {r} for {rank}");
            let near = if r == rank { 1e-4 } else { 0.008 };
            assert!((c - coverage).abs() < near, "n = {n}: {c} for {coverage}");
        }
    }

    #[test]
    fn few_values_say_how_little_they_promise() {
        let one = Summary::of(&[5.0]).unwrap();
        assert_eq!((one.lo, one.hi, one.coverage), (5.0, 5.0, 0.0));
        assert!(one.sd.is_nan());
        let five = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((five.lo, five.hi, five.coverage), (1.0, 5.0, 0.9375));
    }

    #[test]
    fn the_middle_of_a_few_values_is_told_with_their_ends() {
        let of = |values: Vec<f64>| Spread::of(values).map(|it| (it.least, it.median, it.most));
        assert_eq!(of(Vec::from([3.0, 1.0, 2.0])), Some((1.0, 2.0, 3.0)));
        assert_eq!(of(Vec::from([4.0, 1.0])), Some((1.0, 2.5, 4.0)));
    }

    #[test]
    fn no_answer_without_finite_values() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[f64::INFINITY, 1.0]), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, 2.0], 1.01), None);
        assert_eq!(quantile(&[1.0, 2.0], f64::NAN), None);
        assert_eq!(quantile(&[1.0, f64::NAN], 0.0), None);
    }

    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        // 4000 exponential samples of 15: binom gives coverage 0.9648, sd of the share 0.003.
        let mut rng = crate::rng(11);
        let truth = core::f64::consts::LN_2;
        let covered = (0..4000)
            .filter(|_| {
                let draw: Vec<f64> =
                    (0..15).map(|_| -libm::log(1.0 - crate::uniform(&mut rng))).collect();
                let s = Summary::of(&draw).unwrap();
                s.lo <= truth && truth <= s.hi
            })
            .count();
        assert!((real(covered) / 4000.0 - 0.9648).abs() < 0.012, "{covered} of 4000");
    }

    proptest! {
        #[test]
        fn order_is_kept(values in prop::collection::vec(-1e9..1e9f64, 1..200)) {
            let s = Summary::of(&values).unwrap();
            let ladder = [s.p5, s.p10, s.median, s.p90, s.p95];
            prop_assert!(ladder.is_sorted());
            prop_assert!(s.lo <= s.median && s.median <= s.hi);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert!(least <= s.p5 && least <= s.lo);
        }

        #[test]
        fn median_halves_the_values(values in prop::collection::vec(-1e3..1e3f64, 1..99)) {
            let m = median(&values).unwrap();
            let below = values.iter().filter(|v| **v < m).count();
            let above = values.iter().filter(|v| **v > m).count();
            prop_assert!(2 * below <= values.len() && 2 * above <= values.len());
            prop_assert_eq!(Some(m), Summary::of(&values).map(|s| s.median));
        }

        #[test]
        fn quantile_is_monotone_and_hits_the_ends(
            values in prop::collection::vec(-1e9..1e9f64, 1..50),
            p in 0.0..=1.0f64,
            q in 0.0..=1.0f64,
        ) {
            let v = sorted(&values).unwrap();
            prop_assert!(quantile(&v, p.min(q)) <= quantile(&v, p.max(q)));
            prop_assert_eq!(quantile(&v, 0.0), v.first().copied());
            prop_assert_eq!(quantile(&v, 1.0), v.last().copied());
        }
    }
}
