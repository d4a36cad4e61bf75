//! Sums and straight lines as the fits of this folder need them in their inner loops, where single
//! points come and go. Statistics of whole series are in the crate for them.

/// Running sums from which a line `y = base + slope * x` and its quality follow.
///
/// Sums are plain fields so that a search can add and take off single points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Points, or their total weight.
    pub(super) n: f64,
    /// Sum of x.
    pub(super) x: f64,
    /// Sum of y.
    pub(super) y: f64,
    /// Sum of squares of x.
    pub(super) xx: f64,
    /// Sum of squares of y.
    pub(super) yy: f64,
    /// Sum of products.
    pub(super) xy: f64,
}

impl Sums {
    /// Adds a point.
    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.yy += y * y;
        self.xy += x * y;
    }

    /// Pearson's correlation; 0 where one side does not vary.
    pub(super) fn correlation(&self) -> f64 {
        let sxx = self.xx - self.x * self.x / self.n;
        let syy = self.yy - self.y * self.y / self.n;
        let sxy = self.xy - self.x * self.y / self.n;
        let scale = sxx * syy;
        if scale <= f64::MIN_POSITIVE || sxx <= 1e-12 * self.xx { 0.0 } else { sxy / scale.sqrt() }
    }

    /// The least-squares line as `(base, slope)`; flat where x does not vary.
    pub(super) fn line(&self) -> (f64, f64) {
        let sxx = self.xx - self.x * self.x / self.n;
        if self.n == 0.0 || sxx <= 1e-12 * self.xx {
            return (if self.n == 0.0 { 0.0 } else { self.y / self.n }, 0.0);
        }
        let slope = (self.xy - self.x * self.y / self.n) / sxx;
        ((self.y - slope * self.x) / self.n, slope)
    }
}

/// Arithmetic mean; 0 for nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Sum of squared distances from the mean.
pub(super) fn scatter(values: &[f64]) -> f64 {
    let m = mean(values);
    values.iter().map(|v| (v - m) * (v - m)).sum()
}

/// Share of the scatter of `values` that `predicted` explains; negative where the mean would have
/// been the better prediction.
pub(super) fn explained(values: &[f64], predicted: &[f64]) -> f64 {
    let total = scatter(values);
    let left: f64 = values.iter().zip(predicted).map(|(v, p)| (v - p) * (v - p)).sum();
    if total <= 0.0 { 0.0 } else { 1.0 - left / total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_recovered_from_its_sums() {
        let mut sums = Sums::default();
        for x in 0..10 {
            sums.add(f64::from(x), 3.0 + 2.0 * f64::from(x));
        }
        let (base, slope) = sums.line();
        assert!((base - 3.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
        assert!((sums.correlation() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_worse_prediction_than_the_mean_explains_less_than_nothing() {
        assert!((explained(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!(explained(&[1.0, 2.0, 3.0], &[2.0, 2.0, 2.0]).abs() < 1e-12);
        assert!(explained(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) < 0.0);
    }
}
