//! How alike two patterns are: Pearson's correlation, and Spearman's of their ranks.
//!
//! A constant pattern correlates with nothing, and is answered `None`: 0 would claim a finding.

use crate::number::{all_finite, real};
use crate::rank::ranks;

/// Pearson's correlation; `None` if the lengths differ, there are fewer than two pairs, a value
/// is not finite, or one side is constant.
#[must_use]
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let pairs = x.iter().copied().zip(y.iter().copied());
    (x.len() == y.len()).then(|| correlate(pairs, x.len())).flatten()
}

/// [`pearson`] of single-precision patterns, summed in double precision.
#[must_use]
pub fn pearson_f32(x: &[f32], y: &[f32]) -> Option<f64> {
    let pairs = x.iter().map(|v| f64::from(*v)).zip(y.iter().map(|v| f64::from(*v)));
    (x.len() == y.len()).then(|| correlate(pairs, x.len())).flatten()
}

/// Spearman's rank correlation, ties at their average rank; `None` as for [`pearson`].
#[must_use]
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    if x.len() != y.len() || !all_finite(x) || !all_finite(y) {
        return None;
    }
    pearson(&ranks(x).of, &ranks(y).of)
}

fn correlate(pairs: impl Iterator<Item = (f64, f64)> + Clone, n: usize) -> Option<f64> {
    let (x0, y0) = pairs.clone().next()?;
    // Compared by value: the rounded mean of a constant need not equal the constant.
    if pairs.clone().all(|(x, _)| x == x0) || pairs.clone().all(|(_, y)| y == y0) {
        return None;
    }
    // Shifting by the first pair keeps a small pattern on a large level exact.
    let shifted = pairs.map(|(x, y)| (x - x0, y - y0));
    let (sum_x, sum_y) = shifted.clone().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let (mean_x, mean_y) = (sum_x / real(n), sum_y / real(n));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in shifted {
        let (x, y) = (x - mean_x, y - mean_y);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    let r = xy / (libm::sqrt(xx) * libm::sqrt(yy));
    // Not finite where a value was not, or where squares left the range of an f64.
    r.is_finite().then(|| r.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_scipy() {
        // scipy 1.17.1: pearsonr, spearmanr.
        let p = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5];
        let q = [2.1, 3.9, 6.2, 7.8, 10.1, 30.0, 15.2];
        assert!((pearson(&p, &q).unwrap() - 0.750_574_834_930_716_3).abs() < 1e-14);
        let x = [125.0, 115.0, 130.0, 140.0, 140.0, 115.0, 140.0, 125.0, 140.0, 135.0];
        let y = [110.0, 122.0, 125.0, 120.0, 140.0, 124.0, 123.0, 137.0, 135.0, 145.0];
        assert!((spearman(&x, &y).unwrap() - 0.226_576_473_614_808_3).abs() < 1e-14);
    }

    #[test]
    fn a_constant_correlates_with_nothing() {
        assert_eq!(pearson(&[0.1; 3], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[7.0; 3]), None);
        assert_eq!(pearson_f32(&[0.1; 7], &[1.0; 7]), None);
    }

    #[test]
    fn no_answer_where_there_is_none() {
        assert_eq!(pearson(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(pearson(&[], &[]), None);
        assert_eq!(pearson(&[1.0], &[1.0]), None);
        assert_eq!(pearson(&[1.0, f64::NAN, 2.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN, 2.0], &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn a_small_pattern_on_a_large_level_is_seen() {
        let pattern = [0.0, 3.0, 1.0, 2.0, 5.0, 4.0];
        let lifted: Vec<f64> = pattern.iter().map(|v| v + 1e12).collect();
        assert!((pearson(&lifted, &pattern).unwrap() - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn scale_and_level_do_not_matter(
            pairs in prop::collection::vec((-100i16..100, -100i16..100), 3..60),
            scale in 0.1..10.0f64,
            level in -1e3..1e3f64,
        ) {
            let x: Vec<f64> = pairs.iter().map(|p| f64::from(p.0)).collect();
            let y: Vec<f64> = pairs.iter().map(|p| f64::from(p.1)).collect();
            let moved: Vec<f64> = x.iter().map(|v| v * scale + level).collect();
            match (pearson(&x, &y), pearson(&moved, &y)) {
                (Some(r), Some(s)) => {
                    prop_assert!((r - s).abs() < 1e-9 && r.abs() <= 1.0);
                    let negated: Vec<f64> = x.iter().map(|v| -v).collect();
                    prop_assert!((pearson(&negated, &y).unwrap() + r).abs() < 1e-9);
                    prop_assert!((pearson(&y, &x).unwrap() - r).abs() < 1e-9);
                    let x: Vec<f32> = pairs.iter().map(|p| f32::from(p.0)).collect();
                    let y: Vec<f32> = pairs.iter().map(|p| f32::from(p.1)).collect();
                    prop_assert!((pearson_f32(&x, &y).unwrap() - r).abs() < 1e-9);
                }
                (None, None) => {}
                other => prop_assert!(false, "{other:?}"),
            }
        }

        #[test]
        fn only_the_order_matters_to_spearman(
            pairs in prop::collection::vec((-50i8..50, -50i8..50), 3..60),
        ) {
            let x: Vec<f64> = pairs.iter().map(|p| f64::from(p.0)).collect();
            let y: Vec<f64> = pairs.iter().map(|p| f64::from(p.1)).collect();
            let bent: Vec<f64> = x.iter().map(|v| v * v * v).collect();
            prop_assert_eq!(spearman(&x, &y), spearman(&bent, &y));
        }
    }
}
