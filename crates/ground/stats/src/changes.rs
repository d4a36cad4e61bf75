//! Where the mean of a series changes: a vCPU that moved, a frequency step, a drifting reference.
//!
//! Segments of constant mean are fitted by least squares with a penalty for each change, and the
//! best segmentation is found exactly, by PELT (Killick, Fearnhead and Eckley, "Optimal Detection
//! of Changepoints With a Linear Computational Cost", JASA 107(500), 2012). Squares are not
//! robust: one wild value is a segment of its own, so clip or drop outliers before. It does not
//! decide what a change means.

use alloc::vec::Vec;

use crate::location::{MAD_TO_SD, mad};
use crate::moments::mean_unchecked;
use crate::number::{all_finite, real};

/// The penalty of the Bayesian information criterion for a series of `n` values: a change adds
/// two parameters, its place and a mean, at ln(n) each.
#[must_use]
pub fn bic_penalty(n: usize) -> f64 {
    2.0 * libm::log(real(n.max(2)))
}

/// The standard deviation of the noise of a series, blind to its changes of mean: from the
/// differences of neighbours, of which only a change itself holds a jump.
///
/// Their median absolute deviation is used; where that is 0 (a coarse clock makes most
/// neighbours equal), their root mean square, which jumps make larger, never smaller. `None` for
/// fewer than two values or one not finite.
#[must_use]
pub fn noise_sd_from_differences(values: &[f64]) -> Option<f64> {
    if values.len() < 2 || !all_finite(values) {
        return None;
    }
    let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let robust = MAD_TO_SD * mad(&steps)?;
    let root_mean_square = libm::sqrt(steps.iter().map(|s| s * s).sum::<f64>() / real(steps.len()));
    let sd_of_difference = if robust > 0.0 { robust } else { root_mean_square };
    // A difference carries the noise of two values.
    Some(sd_of_difference * core::f64::consts::FRAC_1_SQRT_2)
}

/// The places where the mean changes, ascending: each is the index of the first value of a new
/// segment. The noise is estimated by [`noise_sd_from_differences`].
///
/// `penalty` is what one change must improve the fit by, in units of the noise variance
/// ([`bic_penalty`], or more to be surer). Empty if nothing changes, if a value is not finite,
/// or if the penalty is not positive.
#[must_use]
pub fn change_points(values: &[f64], penalty: f64) -> Vec<usize> {
    noise_sd_from_differences(values)
        .map_or_else(Vec::new, |sd| change_points_with_sd(values, sd, penalty))
}

/// [`change_points`] where the standard deviation of the noise is known. Empty also if it is not
/// positive: without noise there is no scale to judge a change by.
#[must_use]
pub fn change_points_with_sd(values: &[f64], noise_sd: f64, penalty: f64) -> Vec<usize> {
    let usable = noise_sd > 0.0 && noise_sd.is_finite() && penalty > 0.0 && penalty.is_finite();
    if values.len() < 2 || !usable || !all_finite(values) {
        return Vec::new();
    }
    let costs = SegmentCosts::new(values, noise_sd);
    let last_change = pelt(&costs, values.len(), penalty);
    let mut changes = Vec::new();
    let mut end = last_change[values.len()];
    while end > 0 {
        changes.push(end);
        end = last_change[end];
    }
    changes.reverse();
    changes
}

/// Sums of the standardised values and of their squares up to each place, so that the squared
/// error of any segment around its mean costs two subtractions.
struct SegmentCosts {
    sums: Vec<(f64, f64)>,
}

impl SegmentCosts {
    fn new(values: &[f64], noise_sd: f64) -> Self {
        // Centred first: a level far above the noise would eat the digits of the squares.
        let centre = mean_unchecked(values);
        let mut sums = Vec::with_capacity(values.len() + 1);
        let mut sum = (0.0, 0.0);
        sums.push(sum);
        for value in values {
            let z = (value - centre) / noise_sd;
            sum = (sum.0 + z, sum.1 + z * z);
            sums.push(sum);
        }
        Self { sums }
    }

    /// Squared error of `from..to` around its mean, in noise variances.
    fn of(&self, from: usize, to: usize) -> f64 {
        let (a, b) = (self.sums[from], self.sums[to]);
        let sum = b.0 - a.0;
        (b.1 - a.1 - sum * sum / real(to - from)).max(0.0)
    }
}

/// For each length of the series' beginning, where its last segment starts in the best
/// segmentation.
fn pelt(costs: &SegmentCosts, n: usize, penalty: f64) -> Vec<usize> {
    // best[t]: cost of the best segmentation of the first t values, less one penalty.
    let mut best = alloc::vec![-penalty; n + 1];
    let mut last_change = alloc::vec![0; n + 1];
    let mut candidates = alloc::vec![0_usize];
    let mut without_last: Vec<f64> = Vec::new();
    for t in 1..=n {
        without_last.clear();
        without_last.extend(candidates.iter().map(|s| best[*s] + costs.of(*s, t)));
        let mut least = f64::INFINITY;
        for (start, cost) in candidates.iter().zip(&without_last) {
            if *cost < least {
                least = *cost;
                last_change[t] = *start;
            }
        }
        best[t] = least + penalty;
        // Theorem 3.1 with K = 0: splitting a segment never makes the squares larger, so a start
        // that is worse than a change at t by more than the penalty can never become best.
        let mut cost = without_last.iter();
        candidates.retain(|_| cost.next().is_some_and(|c| *c <= best[t]));
        candidates.push(t);
    }
    last_change
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{normal, rng};
    use proptest::prelude::*;

    fn steps(levels: &[(f64, usize)], sd: f64, seed: u64) -> Vec<f64> {
        let mut rng = rng(seed);
        levels
            .iter()
            .flat_map(|(level, n)| core::iter::repeat_n(*level, *n))
            .map(|level| level + sd * normal(&mut rng))
            .collect()
    }

    /// The penalised cost of a segmentation, added up the plain way.
    fn cost(values: &[f64], changes: &[usize], penalty: f64) -> f64 {
        let mut ends = changes.to_vec();
        ends.push(values.len());
        let mut start = 0;
        let mut total = penalty * real(changes.len());
        for end in ends {
            let m = mean_unchecked(&values[start..end]);
            total += values[start..end].iter().map(|v| (v - m) * (v - m)).sum::<f64>();
            start = end;
        }
        total
    }

    #[test]
    fn a_moved_vcpu_is_found_where_it_moved() {
        let values = steps(&[(120.0, 300), (126.0, 150), (120.0, 50), (119.0, 400)], 2.0, 1);
        let found = change_points(&values, bic_penalty(values.len()));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].abs_diff(300) <= 2 && found[1].abs_diff(450) <= 2, "{found:?}");
        // The last step is half of the noise: it is found, but less sharply.
        assert!(found[2].abs_diff(500) <= 40, "{found:?}");
    }

    #[test]
    fn a_quiet_series_has_no_change() {
        let quiet = (0..200)
            .filter(|seed| {
                let values = steps(&[(360.0, 300)], 40.0, *seed);
                !change_points(&values, bic_penalty(300)).is_empty()
            })
            .count();
        // 2 ln n lets a few per cent of series without a change show one; 3 ln n nearly none.
        assert!(quiet <= 20, "{quiet} of 200");
        let sure = (0..200)
            .filter(|seed| {
                let values = steps(&[(360.0, 300)], 40.0, *seed);
                !change_points(&values, 1.5 * bic_penalty(300)).is_empty()
            })
            .count();
        assert!(sure <= 4, "{sure} of 200");
    }

    #[test]
    fn the_noise_estimate_is_blind_to_changes() {
        let values = steps(&[(100.0, 500), (400.0, 500), (50.0, 500)], 3.0, 2);
        let sd = noise_sd_from_differences(&values).unwrap();
        assert!((sd - 3.0).abs() < 0.3, "{sd}");
        // Mostly equal neighbours: the fallback is not 0.
        let coarse = [52.0, 52.0, 52.0, 52.0, 78.0, 52.0, 52.0, 52.0, 52.0];
        assert!(noise_sd_from_differences(&coarse).unwrap() > 5.0);
        assert_eq!(noise_sd_from_differences(&[1.0]), None);
    }

    #[test]
    fn a_large_level_does_not_blur_the_change() {
        let values: Vec<f64> =
            steps(&[(0.0, 50), (5.0, 50)], 0.5, 3).iter().map(|v| v + 1e9).collect();
        assert_eq!(change_points(&values, bic_penalty(100)), [50]);
    }

    #[test]
    fn what_cannot_be_judged_has_no_change() {
        assert!(change_points(&[], 10.0).is_empty());
        assert!(change_points(&[5.0; 50], 10.0).is_empty());
        assert!(change_points(&[1.0, f64::NAN, 9.0, 9.0], 1.0).is_empty());
        assert!(change_points(&[1.0, 1.1, 9.0, 9.1], f64::NAN).is_empty());
        assert!(change_points_with_sd(&[1.0, 1.1, 9.0, 9.1], 0.0, 1.0).is_empty());
        assert_eq!(change_points_with_sd(&[1.0, 1.1, 9.0, 9.1], 0.1, 5.0), [2]);
    }

    proptest! {
        /// Every segmentation of up to 11 values is tried.
        #[test]
        fn pelt_finds_the_best_segmentation(
            values in prop::collection::vec(-10.0..10.0f64, 2..12),
            penalty in 0.5..100.0f64,
        ) {
            let least = (0_u32..1 << (values.len() - 1))
                .map(|mask| {
                    let changes: Vec<usize> =
                        (1..values.len()).filter(|i| mask >> (i - 1) & 1 == 1).collect();
                    cost(&values, &changes, penalty)
                })
                .fold(f64::INFINITY, f64::min);
            let found = change_points_with_sd(&values, 1.0, penalty);
            prop_assert!(found.is_sorted_by(|a, b| a < b));
            prop_assert!(found.iter().all(|c| (1..values.len()).contains(c)));
            prop_assert!(cost(&values, &found, penalty) <= least + 1e-9 * (1.0 + least));
        }

        #[test]
        fn units_do_not_matter(
            values in prop::collection::vec(-10i16..10, 4..60),
            scale in prop::sample::select(std::vec![0.25, 2.0, 1024.0]),
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
            prop_assert_eq!(change_points(&values, 7.3), change_points(&scaled, 7.3));
        }
    }
}
