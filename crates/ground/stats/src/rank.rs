//! Rank tests: whether one series is larger than another, without assuming a distribution.
//!
//! p-values are exact for small samples without ties (the distribution is counted), otherwise
//! normal approximations with continuity and tie correction. A p-value says only how surprising
//! the samples would be; how large a difference is, `bootstrap` says.

use alloc::vec::Vec;

use crate::number::{all_finite, real};
use crate::special::normal_two_sided_p;

/// Both samples at most this long: C(40, 20) arrangements are counted exactly in an `i64`.
const EXACT_MAX_EACH: usize = 20;

/// At most this many pairs: 2^50 sign patterns are counted exactly.
const EXACT_MAX_PAIRS: usize = 50;

/// Ranks from 1, ties at the average of the ranks they take up.
pub(crate) struct Ranks {
    /// Rank of each value, in the order of the values.
    pub(crate) of: Vec<f64>,
    /// Sum over groups of equal values of t^3 - t; 0 without ties.
    pub(crate) ties: f64,
}

/// Ranks finite values.
pub(crate) fn ranks(values: &[f64]) -> Ranks {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut of = alloc::vec![0.0; values.len()];
    let mut ties = 0.0;
    let mut before = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let t = real(group.len());
        let rank = real(before) + 0.5 * (t + 1.0);
        group.iter().for_each(|place| of[*place] = rank);
        ties += t * t * t - t;
        before += group.len();
    }
    Ranks { of, ties }
}

/// Result of [`mann_whitney_u`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the value of `a` is the larger one, equal ones counted half.
    pub u: f64,
    /// Standardised `u`, with tie and continuity correction; positive where `a` is larger.
    pub z: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether `p` was counted exactly rather than derived from `z`.
    pub exact: bool,
}

/// Tests whether values of `a` tend to be larger or smaller than those of `b` (Mann and Whitney,
/// Ann. Math. Stat. 18, 1947). `None` if one is empty or a value is not finite.
#[must_use]
pub fn mann_whitney_u(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    if a.is_empty() || b.is_empty() || !all_finite(a) || !all_finite(b) {
        return None;
    }
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = ranks(&all);
    let (m, n) = (real(a.len()), real(b.len()));
    let u = ranks.of[..a.len()].iter().sum::<f64>() - 0.5 * m * (m + 1.0);
    let total = m + n;
    // With ties: Lehmann, Nonparametrics, 1975, section 1.4.
    let variance = m * n / 12.0 * ((total + 1.0) - ranks.ties / (total * (total - 1.0)));
    let z = standardise(u - 0.5 * m * n, variance);
    let exact = ranks.ties == 0.0 && a.len().max(b.len()) <= EXACT_MAX_EACH;
    let p = if exact {
        two_sided(&arrangements_by_u(a.len(), b.len()), u.max(m * n - u))
    } else {
        normal_two_sided_p(z)
    };
    Some(MannWhitney { u, z, p, exact })
}

/// Result of [`wilcoxon_signed_rank`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of the pairs in which `a` is larger.
    pub w_plus: f64,
    /// Standardised `w_plus`, with tie and continuity correction; positive where `a` is larger.
    pub z: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Pairs that differ; equal ones are left out, as Wilcoxon did.
    pub n: usize,
    /// Whether `p` was counted exactly rather than derived from `z`.
    pub exact: bool,
}

/// Tests whether the differences of pairs lie around 0 (Wilcoxon, Biometrics Bulletin 1, 1945).
/// `None` if the lengths differ, there are no pairs, or a value is not finite. Pairs that are
/// all equal are no evidence of a difference: p is 1.
#[must_use]
pub fn wilcoxon_signed_rank(a: &[f64], b: &[f64]) -> Option<SignedRank> {
    if a.len() != b.len() || a.is_empty() || !all_finite(a) || !all_finite(b) {
        return None;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).filter(|d| *d != 0.0).collect();
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let ranks = ranks(&sizes);
    let w_plus: f64 =
        ranks.of.iter().zip(&differences).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    let count = differences.len();
    let n = real(count);
    let whole = 0.5 * n * (n + 1.0);
    // With ties: Lehmann, Nonparametrics, 1975, section 3.2.
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ranks.ties / 48.0;
    let z = standardise(w_plus - 0.5 * whole, variance);
    let exact = ranks.ties == 0.0 && count == a.len() && count <= EXACT_MAX_PAIRS;
    let p = if exact {
        two_sided(&sign_patterns_by_sum(count), w_plus.max(whole - w_plus))
    } else {
        normal_two_sided_p(z)
    };
    Some(SignedRank { w_plus, z, p, n: count, exact })
}

/// `deviation` in standard deviations, moved by 1/2 towards 0 for continuity; 0 where nothing
/// varies.
fn standardise(deviation: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 0.0;
    }
    ((deviation.abs() - 0.5).max(0.0) / libm::sqrt(variance)).copysign(deviation)
}

/// Twice the share of arrangements at or beyond `extreme` (the upper one of a symmetric pair).
fn two_sided(counts: &[i64], extreme: f64) -> f64 {
    let all: i64 = counts.iter().sum();
    let beyond: i64 = counts
        .iter()
        .enumerate()
        .filter(|(statistic, _)| real(*statistic) >= extreme)
        .map(|(_, count)| count)
        .sum();
    (2.0 * beyond as f64 / all as f64).min(1.0)
}

/// How many of the C(m+n, m) orders of two samples have each value of U: the coefficients of the
/// Gaussian binomial, the product over i of (1 - q^(n+i)) / (1 - q^i).
fn arrangements_by_u(m: usize, n: usize) -> Vec<i64> {
    let len = m * n + 1;
    let mut counts = alloc::vec![0_i64; len];
    counts[0] = 1;
    for i in 1..=m {
        for u in (n + i..len).rev() {
            counts[u] -= counts[u - n - i];
        }
        for u in i..len {
            counts[u] += counts[u - i];
        }
    }
    counts
}

/// How many of the 2^n sign patterns have each sum of positive ranks.
fn sign_patterns_by_sum(n: usize) -> Vec<i64> {
    let mut counts = alloc::vec![0_i64; n * (n + 1) / 2 + 1];
    counts[0] = 1;
    for rank in 1..=n {
        for sum in (rank..counts.len()).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(found: f64, known: f64) -> bool {
        (found - known).abs() < 1e-12
    }

    #[test]
    fn mann_whitney_agrees_with_scipy() {
        // scipy 1.17.1: mannwhitneyu(a, b, method="exact") and method="asymptotic".
        let a = [86.1, 91.4, 88.0, 102.7, 95.2, 89.9];
        let b = [101.3, 99.0, 97.7, 110.4, 104.8, 93.5, 120.2];
        let t = mann_whitney_u(&a, &b).unwrap();
        assert!(t.exact && t.u == 5.0 && t.z < 0.0);
        assert!(close(t.p, 0.022_144_522_144_522_144));
        assert!(close(normal_two_sided_p(t.z), 0.026_809_130_715_595_843));
    }

    #[test]
    fn mann_whitney_with_ties_agrees_with_scipy() {
        // scipy 1.17.1: mannwhitneyu(a, b, method="asymptotic"); readings of a 26-cycle clock.
        let a = [52.0, 78.0, 78.0, 52.0, 78.0, 104.0, 52.0, 78.0];
        let b = [78.0, 104.0, 78.0, 104.0, 104.0, 52.0, 130.0, 104.0, 78.0];
        let t = mann_whitney_u(&a, &b).unwrap();
        assert!(!t.exact && t.u == 17.5);
        assert!(close(t.p, 0.067_065_351_221_238_85));
    }

    #[test]
    fn wilcoxon_agrees_with_scipy() {
        // scipy 1.17.1: wilcoxon(x, y, method="exact") and (method="approx", correction=True).
        let x = [125.0, 115.0, 130.0, 140.0, 140.5, 115.5, 140.25, 125.75, 140.75, 135.0];
        let y = [110.0, 122.0, 125.0, 120.0, 141.0, 124.0, 123.0, 137.0, 135.25, 145.0];
        let t = wilcoxon_signed_rank(&x, &y).unwrap();
        assert!(t.exact && t.n == 10 && t.w_plus == 55.0 - 23.0);
        assert!(close(t.p, 0.695_312_5));
        assert!(close(normal_two_sided_p(t.z), 0.683_480_902_201_425_7));
    }

    #[test]
    fn wilcoxon_with_ties_and_zeros_agrees_with_scipy() {
        // scipy 1.17.1: wilcoxon(x, y, zero_method="wilcox", method="approx", correction=True).
        let x = [125.0, 115.0, 130.0, 140.0, 140.0, 115.0, 140.0, 125.0, 140.0, 135.0];
        let y = [110.0, 122.0, 125.0, 120.0, 140.0, 124.0, 123.0, 137.0, 135.0, 145.0];
        let t = wilcoxon_signed_rank(&x, &y).unwrap();
        assert!(!t.exact && t.n == 9 && t.w_plus == 27.0);
        assert!(close(t.p, 0.635_289_318_835_206_9));
    }

    #[test]
    fn no_difference_is_no_evidence() {
        let same = [7.0; 30];
        let t = mann_whitney_u(&same, &same).unwrap();
        assert_eq!((t.u, t.z, t.p), (450.0, 0.0, 1.0));
        let w = wilcoxon_signed_rank(&same, &same).unwrap();
        assert_eq!((w.n, w.z, w.p), (0, 0.0, 1.0));
        assert_eq!(mann_whitney_u(&[], &same), None);
        assert_eq!(mann_whitney_u(&[f64::NAN], &same), None);
        assert_eq!(wilcoxon_signed_rank(&[1.0], &same), None);
        assert_eq!(wilcoxon_signed_rank(&[], &[]), None);
    }

    #[test]
    fn all_arrangements_are_counted() {
        // C(40, 20) and 2^50.
        assert_eq!(arrangements_by_u(20, 20).iter().sum::<i64>(), 137_846_528_820);
        assert_eq!(sign_patterns_by_sum(50).iter().sum::<i64>(), 1 << 50);
        assert_eq!(arrangements_by_u(2, 2), [1, 1, 2, 1, 1]);
        assert_eq!(sign_patterns_by_sum(3), [1, 1, 1, 2, 1, 1, 1]);
    }

    proptest! {
        #[test]
        fn u_counts_the_pairs(
            a in prop::collection::vec(0u8..20, 1..40),
            b in prop::collection::vec(0u8..20, 1..40),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) =
                (a.into_iter().map(f64::from).collect(), b.into_iter().map(f64::from).collect());
            let half_wins: u32 = a.iter()
                .flat_map(|x| b.iter().map(move |y| u32::from(x > y) + u32::from(x >= y)))
                .sum();
            let t = mann_whitney_u(&a, &b).unwrap();
            prop_assert_eq!(2.0 * t.u, f64::from(half_wins));
            let swapped = mann_whitney_u(&b, &a).unwrap();
            prop_assert_eq!(t.u + swapped.u, real(a.len() * b.len()));
            prop_assert!((t.p - swapped.p).abs() < 1e-12 && (0.0..=1.0).contains(&t.p));
            prop_assert!((t.z + swapped.z).abs() < 1e-12);
        }

        #[test]
        fn signs_flip_with_the_sides(pairs in prop::collection::vec((0i8..30, 0i8..30), 1..80)) {
            let a: Vec<f64> = pairs.iter().map(|p| f64::from(p.0)).collect();
            let b: Vec<f64> = pairs.iter().map(|p| f64::from(p.1)).collect();
            let (t, s) = (wilcoxon_signed_rank(&a, &b).unwrap(), wilcoxon_signed_rank(&b, &a).unwrap());
            prop_assert_eq!(t.w_plus + s.w_plus, real(t.n * (t.n + 1)) / 2.0);
            prop_assert!((t.z + s.z).abs() < 1e-12 && (t.p - s.p).abs() < 1e-12);
        }
    }
}
