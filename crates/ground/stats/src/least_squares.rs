//! Ordinary least squares with intervals, for the handful of columns that cost models have.
//!
//! Householder QR of the scaled columns, never the normal equations (they square the condition
//! number). It does not choose columns, and a model's constant is a column of ones that the
//! caller writes.

use alloc::vec::Vec;

use crate::moments::mean_unchecked;
use crate::number::{all_finite, real};
use crate::special::t_975;

/// More columns than this are not a cost model, and unpivoted QR is not the tool for them.
const COLUMNS_MAX: usize = 8;

/// A column whose part not explained by those before it is this small, as a share of its length,
/// is a combination of them: its coefficient would be rounding noise.
const COLLINEAR: f64 = 1e-9;

/// A linear model fitted by least squares.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Coefficient of each column.
    pub coef: Vec<f64>,
    /// 95 % interval of each coefficient, by Student's t.
    pub ci95: Vec<(f64, f64)>,
    /// Share of the variance of `y` explained, about its mean (below 0 if a model without a
    /// constant does worse than the mean). NaN if `y` is constant.
    pub r2: f64,
    /// Standard deviation of the residuals, with `dof` as divisor.
    pub residual_sd: f64,
    /// Degrees of freedom left: rows less columns.
    pub dof: usize,
}

/// Fits `y[i] = sum over j of coef[j] * rows[i][j]`.
///
/// `None` if there are no columns or more than 8, not more rows than columns (nothing would be
/// left to judge the fit by), rows of different lengths, a value that is not finite, or a column
/// that is a combination of the others.
#[must_use]
pub fn least_squares<R: AsRef<[f64]>>(rows: &[R], y: &[f64]) -> Option<Fit> {
    let (n, p) = (rows.len(), rows.first()?.as_ref().len());
    let shaped = rows.iter().all(|row| row.as_ref().len() == p && all_finite(row.as_ref()));
    if n != y.len() || p == 0 || p > COLUMNS_MAX || n <= p || !shaped || !all_finite(y) {
        return None;
    }
    let columns: Vec<Vec<f64>> =
        (0..p).map(|j| rows.iter().map(|row| row.as_ref()[j]).collect()).collect();
    let triangle = Triangle::of(columns, y.to_vec())?;
    let coef = triangle.solve();
    let residuals: Vec<f64> = rows
        .iter()
        .zip(y)
        .map(|(row, y)| y - row.as_ref().iter().zip(&coef).map(|(x, c)| x * c).sum::<f64>())
        .collect();
    let squares: f64 = residuals.iter().map(|e| e * e).sum();
    let dof = n - p;
    let residual_sd = libm::sqrt(squares / real(dof));
    let reach = t_975(real(dof)) * residual_sd;
    let ci95 = coef
        .iter()
        .zip(triangle.unit_standard_errors())
        .map(|(c, unit)| (c - reach * unit, c + reach * unit))
        .collect();
    let centre = mean_unchecked(y);
    let total: f64 = y.iter().map(|v| (v - centre) * (v - centre)).sum();
    let constant = y.iter().all(|v| *v == y[0]);
    let r2 = if constant { f64::NAN } else { 1.0 - squares / total };
    Some(Fit { coef, ci95, r2, residual_sd, dof })
}

/// `R` and the first entries of `Q'y`, from the QR decomposition of the columns, each scaled to
/// length 1 (so that one threshold tells collinear columns whatever their units).
struct Triangle {
    /// `r[j][i]`, row `i` of column `j`, for `i <= j`.
    r: Vec<Vec<f64>>,
    rotated: Vec<f64>,
    scales: Vec<f64>,
}

impl Triangle {
    fn of(mut columns: Vec<Vec<f64>>, mut y: Vec<f64>) -> Option<Self> {
        let p = columns.len();
        let scales: Vec<f64> = columns.iter().map(|c| length(c)).collect();
        if scales.iter().any(|s| *s == 0.0 || !s.is_finite()) {
            return None;
        }
        for (column, scale) in columns.iter_mut().zip(&scales) {
            column.iter_mut().for_each(|v| *v /= scale);
        }
        for j in 0..p {
            let (done, rest) = columns.split_at_mut(j + 1);
            let pivot = &mut done[j];
            let size = length(&pivot[j..]);
            if size < COLLINEAR {
                return None;
            }
            // Reflect the rest of the pivot column onto its first entry, away from cancellation.
            let onto = -size.copysign(pivot[j]);
            let mut mirror = pivot[j..].to_vec();
            mirror[0] -= onto;
            let norm = length(&mirror);
            mirror.iter_mut().for_each(|v| *v /= norm);
            pivot[j] = onto;
            rest.iter_mut().for_each(|column| reflect(&mut column[j..], &mirror));
            reflect(&mut y[j..], &mirror);
        }
        columns.iter_mut().for_each(|column| column.truncate(p));
        y.truncate(p);
        Some(Self { r: columns, rotated: y, scales })
    }

    /// Solves `R x = b` from the last row up.
    fn back_substitute(&self, mut b: Vec<f64>) -> Vec<f64> {
        for j in (0..b.len()).rev() {
            b[j] /= self.r[j][j];
            let known = b[j];
            for (above, r) in b[..j].iter_mut().zip(&self.r[j]) {
                *above -= known * r;
            }
        }
        b
    }

    fn solve(&self) -> Vec<f64> {
        let scaled = self.back_substitute(self.rotated.clone());
        scaled.iter().zip(&self.scales).map(|(c, scale)| c / scale).collect()
    }

    /// Standard errors of the coefficients for residuals of standard deviation 1: the lengths of
    /// the rows of the inverse of `R`, since `(X'X)^-1 = R^-1 R^-1'`.
    fn unit_standard_errors(&self) -> Vec<f64> {
        let p = self.scales.len();
        let mut squares = alloc::vec![0.0; p];
        for j in 0..p {
            let mut unit = alloc::vec![0.0; p];
            unit[j] = 1.0;
            for (square, entry) in squares.iter_mut().zip(self.back_substitute(unit)) {
                *square += entry * entry;
            }
        }
        squares.iter().zip(&self.scales).map(|(s, scale)| libm::sqrt(*s) / scale).collect()
    }
}

fn length(v: &[f64]) -> f64 {
    libm::sqrt(v.iter().map(|x| x * x).sum())
}

/// `v` mirrored at the plane across the unit vector `mirror`.
fn reflect(v: &mut [f64], mirror: &[f64]) {
    let along: f64 = v.iter().zip(mirror).map(|(a, b)| a * b).sum();
    for (value, m) in v.iter_mut().zip(mirror) {
        *value -= 2.0 * along * m;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{normal, rng};
    use proptest::prelude::*;

    fn near(found: f64, known: f64, share: f64) -> bool {
        (found - known).abs() <= share * known.abs()
    }

    #[test]
    fn norris_of_nist_is_met() {
        // NIST StRD, linear regression, Norris: certified values.
        let x = [
            0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6,
            775.5, 666.9, 338.0, 447.5, 11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8,
            339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5,
        ];
        let y = [
            0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1,
            778.1, 668.8, 339.3, 448.9, 10.8, 557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6,
            339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2,
        ];
        let rows: Vec<[f64; 2]> = x.iter().map(|x| [1.0, *x]).collect();
        let fit = least_squares(&rows, &y).unwrap();
        assert!(near(fit.coef[0], -0.262_323_073_774_029, 1e-11));
        assert!(near(fit.coef[1], 1.002_116_818_020_45, 1e-13));
        assert!(near(fit.residual_sd, 0.884_796_396_144_373, 1e-12));
        assert!(near(fit.r2, 0.999_993_745_883_712, 1e-13));
        // Certified standard errors, times scipy 1.17.1's t.ppf(0.975, 34).
        let t = 2.032_244_509_317_718_6;
        for (ci, se) in fit.ci95.iter().zip([0.232_818_234_301_152, 0.429_796_848_199_937e-3]) {
            assert!(near(0.5 * (ci.1 - ci.0), t * se, 1e-9));
        }
        assert_eq!(fit.dof, 34);
    }

    #[test]
    fn multi_line_transfers_agree_with_numpy() {
        // T = q + oN + cnN, equation (1) of the CLa paper (HPDC 2015). numpy 2.4.6 lstsq, and
        // scipy 1.17.1 t.ppf(0.975, 9) for the intervals.
        let lines = [1.0, 2.0, 4.0, 8.0];
        let rows: Vec<Vec<f64>> = [1.0, 2.0, 4.0]
            .iter()
            .flat_map(|n| lines.iter().map(move |l| std::vec![1.0, *l, n * l]))
            .collect();
        let t =
            [101.2, 117.9, 155.0, 228.4, 103.0, 124.1, 165.3, 244.2, 109.7, 135.2, 187.1, 290.5];
        let fit = least_squares(&rows, &t).unwrap();
        let known = [
            (83.175_362_318_840_63, 81.576_400_661_645_83, 84.774_323_976_035_42),
            (15.215_524_296_675_18, 14.702_937_573_753_449, 15.728_111_019_596_913),
            (2.655_210_084_033_619, 2.493_467_163_437_294, 2.816_953_004_629_944_2),
        ];
        for ((coef, ci), (c, lo, hi)) in fit.coef.iter().zip(&fit.ci95).zip(known) {
            assert!(near(*coef, c, 1e-12) && near(ci.0, lo, 1e-10) && near(ci.1, hi, 1e-10));
        }
        assert!(near(fit.r2, 0.999_569_103_072_850_3, 1e-12));
        assert!(near(fit.residual_sd, 1.424_017_610_360_366_8, 1e-10));
    }

    #[test]
    fn an_ill_conditioned_polynomial_is_solved() {
        // NIST StRD, Wampler1: y = 1 + x + ... + x^5 at x = 0..20; certified: all ones, exactly.
        let rows: Vec<Vec<f64>> = (0..21)
            .map(|x| (0..6).map(|p| libm::pow(f64::from(x), f64::from(p))).collect())
            .collect();
        let y: Vec<f64> = rows.iter().map(|row| row.iter().sum()).collect();
        let fit = least_squares(&rows, &y).unwrap();
        assert!(fit.coef.iter().all(|c| (c - 1.0).abs() < 1e-8), "{:?}", fit.coef);
    }

    #[test]
    fn no_answer_where_there_is_none() {
        let rows = [[1.0, 2.0], [1.0, 3.0], [1.0, 5.0]];
        assert!(least_squares(&rows, &[1.0, 2.0, 4.0]).is_some());
        assert_eq!(least_squares(&rows, &[1.0, 2.0]), None);
        assert_eq!(least_squares(&rows[..2], &[1.0, 2.0]), None);
        assert_eq!(least_squares(&rows, &[1.0, 2.0, f64::NAN]), None);
        assert_eq!(least_squares::<[f64; 2]>(&[], &[]), None);
        let collinear = [[1.0, 0.1], [2.0, 0.2], [3.0, 0.3], [7.0, 0.7]];
        assert_eq!(least_squares(&collinear, &[1.0, 2.0, 3.0, 4.0]), None);
        let zero = [[0.0], [0.0], [0.0]];
        assert_eq!(least_squares(&zero, &[1.0, 2.0, 3.0]), None);
        assert!(least_squares(&[[1.0], [1.0]], &[0.1, 0.1]).unwrap().r2.is_nan());
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        let mut rng = rng(8);
        let rows: Vec<[f64; 2]> = (0..8).map(|i| [1.0, f64::from(i)]).collect();
        let covered = (0..2000)
            .filter(|_| {
                let y: Vec<f64> =
                    rows.iter().map(|r| 5.0 + 3.0 * r[1] + normal(&mut rng)).collect();
                let (lo, hi) = least_squares(&rows, &y).unwrap().ci95[1];
                lo <= 3.0 && 3.0 <= hi
            })
            .count();
        // Standard error of the share 0.005.
        assert!((1860..=1940).contains(&covered), "{covered} of 2000");
    }

    proptest! {
        #[test]
        fn residuals_are_orthogonal_to_every_column(
            points in prop::collection::vec((-50.0..50.0f64, -50.0..50.0f64, -1e3..1e3f64), 6..40),
        ) {
            let rows: Vec<[f64; 3]> = points.iter().map(|p| [1.0, p.0, p.1]).collect();
            let y: Vec<f64> = points.iter().map(|p| p.2).collect();
            let fit = least_squares(&rows, &y);
            prop_assume!(fit.is_some());
            let fit = fit.unwrap();
            for column in 0..3 {
                let dot: f64 = rows.iter().zip(&y).map(|(row, y)| {
                    let e = y - row.iter().zip(&fit.coef).map(|(x, c)| x * c).sum::<f64>();
                    e * row[column]
                }).sum();
                prop_assert!(dot.abs() < 1e-5, "{dot}");
            }
            prop_assert!((-1e-9..=1.0 + 1e-9).contains(&fit.r2));
            prop_assert!(fit.coef.iter().zip(&fit.ci95).all(|(c, ci)| ci.0 <= *c && *c <= ci.1));
        }
    }
}
