//! Mean and variance of a sample. They drop no value.

use crate::number::{all_finite, real};

/// The arithmetic mean; `None` if there are no values or one is not finite.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty() && all_finite(values)).then(|| mean_unchecked(values))
}

/// The mean of a non-empty slice. The second pass takes off what rounding left in the first.
pub(crate) fn mean_unchecked(values: &[f64]) -> f64 {
    let n = real(values.len());
    let first = values.iter().sum::<f64>() / n;
    first + values.iter().map(|v| v - first).sum::<f64>() / n
}

/// The sample variance (divisor n - 1); `None` for fewer than two values or one not finite.
#[must_use]
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - centre) * (v - centre)).sum();
    Some(squares / real(values.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_survive_a_large_offset() {
        // NIST StRD, univariate, NumAcc4: 10000000.2 and 500 pairs (.1, .3); certified mean
        // 10000000.2 and standard deviation 0.1.
        let mut values = std::vec![10_000_000.2];
        for _ in 0..500 {
            values.extend([10_000_000.1, 10_000_000.3]);
        }
        assert!((mean(&values).unwrap() - 10_000_000.2).abs() < 2e-9);
        assert!((libm::sqrt(variance(&values).unwrap()) - 0.1).abs() < 1e-8);
        assert_eq!(variance(&[1.0]), None);
    }
}
