//! A straight line that a quarter of wild points cannot bend.
//!
//! Theil's estimator (Proc. Kon. Ned. Akad. Wet. 53, 1950) with the interval of Sen (JASA
//! 63(324), 1968): the median of the slopes between pairs of points. Use it to see a drift; for
//! several columns and well-behaved noise there is `least_squares`.

use alloc::vec::Vec;

use crate::number::{all_finite, index, real};
use crate::order::{Z_975, median_in_place, quantile};

/// Slopes computed at most: 16 MiB of them. Above 2048 points, pairs are taken at evenly spaced
/// distances in the order of x, so that every point still takes part in the same number.
const PAIRS_MAX: usize = 1 << 21;

/// A line through points, with an interval of its slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Median slope.
    pub slope: f64,
    /// Median of `y - slope * x`.
    pub intercept: f64,
    /// Lower end of the 95 % interval of the slope.
    pub slope_lo: f64,
    /// Upper end of the 95 % interval of the slope.
    pub slope_hi: f64,
}

/// Fits a line robustly. `None` if the lengths differ, a value is not finite, or no two points
/// differ in x.
#[must_use]
pub fn theil_sen(x: &[f64], y: &[f64]) -> Option<Line> {
    if x.len() != y.len() || !all_finite(x) || !all_finite(y) {
        return None;
    }
    let mut points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut slopes = pair_slopes(&points);
    if slopes.is_empty() || !all_finite(&slopes) {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = quantile(&slopes, 0.5)?;
    let mut rests: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    let (lo, hi) = interval_places(&points, y, slopes.len());
    Some(Line {
        slope,
        intercept: median_in_place(&mut rests),
        slope_lo: slopes[lo],
        slope_hi: slopes[hi],
    })
}

/// Slopes between pairs of points (in ascending order of x) that differ in x.
fn pair_slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let n = points.len();
    let pairs = n * n.saturating_sub(1) / 2;
    let step = pairs.div_ceil(PAIRS_MAX).max(1);
    let mut slopes = Vec::with_capacity(pairs.min(PAIRS_MAX + n));
    for distance in (1..n).step_by(step) {
        for (a, b) in points.iter().zip(&points[distance..]) {
            if b.0 > a.0 {
                slopes.push((b.1 - a.1) / (b.0 - a.0));
            }
        }
    }
    slopes
}

/// Places of the ends of the 95 % interval among `count` sorted slopes: section 2.3 of Sen, with
/// the variance of Kendall's statistic from his equation (2.6). Where only some pairs were taken,
/// the places are scaled to them.
fn interval_places(points: &[(f64, f64)], y: &[f64], count: usize) -> (usize, usize) {
    let kendall = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let pairs = |t: f64| 0.5 * t * (t - 1.0);
    let xs: Vec<f64> = points.iter().map(|p| p.0).collect();
    let mut ys = y.to_vec();
    ys.sort_unstable_by(f64::total_cmp);
    let n = real(points.len());
    let variance = (kendall(n) - over_ties(&xs, kendall) - over_ties(&ys, kendall)) / 18.0;
    let share = real(count) / (pairs(n) - over_ties(&xs, pairs));
    let reach = Z_975 * libm::sqrt(variance.max(0.0)) * share;
    let lo = libm::rint(0.5 * (real(count) - reach)) - 1.0;
    let hi = libm::rint(0.5 * (real(count) + reach));
    (index(lo).min(count - 1), index(hi).min(count - 1))
}

/// The sum of `term` over the sizes of the groups of equal values.
fn over_ties(sorted: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    sorted.chunk_by(|a, b| a == b).map(|group| term(real(group.len()))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{normal, rng};
    use proptest::prelude::*;

    fn assert_line(line: Line, known: [f64; 4]) {
        let found = [line.slope, line.intercept, line.slope_lo, line.slope_hi];
        for (f, k) in found.iter().zip(known) {
            assert!((f - k).abs() < 1e-12, "{found:?} for {known:?}");
        }
    }

    #[test]
    fn agrees_with_scipy() {
        // scipy 1.17.1: theilslopes(y, x, method="joint").
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5];
        let y = [2.1, 3.9, 6.2, 7.8, 10.1, 30.0, 15.2];
        assert_line(theil_sen(&x, &y).unwrap(), [2.05, -0.15, 1.9, 6.525]);
        let x = [1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0];
        let y = [10.0, 12.0, 11.0, 15.0, 15.0, 18.0, 20.0, 40.0];
        let known = [2.583_333_333_333_333, 7.333_333_333_333_334, 1.5, 7.25];
        assert_line(theil_sen(&x, &y).unwrap(), known);
    }

    #[test]
    fn wild_points_do_not_bend_the_line() {
        let mut rng = rng(6);
        let x: Vec<f64> = (0..200).map(f64::from).collect();
        let y: Vec<f64> = x
            .iter()
            .map(|x| {
                let wild = if libm::fmod(*x, 5.0) == 0.0 { 1e6 } else { 0.0 };
                3.0 + 0.5 * x + 0.1 * normal(&mut rng) + wild
            })
            .collect();
        let line = theil_sen(&x, &y).unwrap();
        assert!((line.slope - 0.5).abs() < 0.01 && line.slope_lo <= 0.5 && 0.5 <= line.slope_hi);
        assert!((line.intercept - 3.0).abs() < 0.5, "{line:?}");
    }

    #[test]
    fn many_points_take_some_of_the_pairs() {
        let mut rng = rng(7);
        let x: Vec<f64> = (0..2500).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 40.0 - 0.002 * x + normal(&mut rng)).collect();
        let points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
        assert!(pair_slopes(&points).len() <= PAIRS_MAX + points.len());
        let line = theil_sen(&x, &y).unwrap();
        // Standard error of the slope: 1 / sqrt(sum (x - mean)^2) = 2.8e-5.
        assert!((line.slope + 0.002).abs() < 1.2e-4, "{line:?}");
        let width = line.slope_hi - line.slope_lo;
        assert!((0.9e-4..1.5e-4).contains(&width), "{line:?}");
    }

    #[test]
    fn no_answer_where_there_is_none() {
        assert_eq!(theil_sen(&[], &[]), None);
        assert_eq!(theil_sen(&[1.0], &[1.0]), None);
        assert_eq!(theil_sen(&[2.0, 2.0], &[1.0, 5.0]), None);
        assert_eq!(theil_sen(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(theil_sen(&[1.0, 2.0], &[1.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn adding_a_line_adds_its_slope(
            points in prop::collection::vec((-50i16..50, -50i16..50), 2..50),
            slope in -8i8..8,
        ) {
            let x: Vec<f64> = points.iter().map(|p| f64::from(p.0)).collect();
            let y: Vec<f64> = points.iter().map(|p| f64::from(p.1)).collect();
            let tilted: Vec<f64> =
                x.iter().zip(&y).map(|(x, y)| y + f64::from(slope) * x).collect();
            match (theil_sen(&x, &y), theil_sen(&x, &tilted)) {
                (Some(a), Some(b)) => {
                    prop_assert!((b.slope - a.slope - f64::from(slope)).abs() < 1e-9);
                    prop_assert!((b.intercept - a.intercept).abs() < 1e-9);
                    prop_assert!(a.slope_lo <= a.slope && a.slope <= a.slope_hi);
                }
                (None, None) => prop_assert!(x.iter().all(|v| *v == x[0])),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
