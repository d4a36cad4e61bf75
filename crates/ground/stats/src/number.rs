//! The few conversions and checks that every estimator here needs.
//!
//! It exists so that lossy casts stand in one place, each with its reason. It never estimates.

use alloc::vec::Vec;

/// Whether every value is a number that can be averaged.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    values.iter().all(|v| v.is_finite())
}

/// The values in ascending order, or `None` if there are none or one is not finite.
pub(crate) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || !all_finite(values) {
        return None;
    }
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    Some(copy)
}

/// A count as a real number; exact up to 2^53.
pub(crate) fn real(count: usize) -> f64 {
    count as f64
}

/// The largest index not above `x`; 0 for what is negative or NaN.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and floor-toward-zero of a non-negative number is what is wanted"
)]
pub(crate) fn index(x: f64) -> usize {
    x.max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_floors_and_saturates() {
        assert_eq!(index(2.999), 2);
        assert_eq!(index(-3.0), 0);
        assert_eq!(index(f64::NAN), 0);
        assert_eq!(index(f64::INFINITY), usize::MAX);
    }

    #[test]
    fn sorting_refuses_what_cannot_be_ordered() {
        assert_eq!(sorted(&[3.0, -1.0, 2.0]).unwrap(), [-1.0, 2.0, 3.0]);
        assert_eq!(sorted(&[1.0, f64::NAN]), None);
        assert_eq!(sorted(&[1.0, f64::INFINITY]), None);
        assert_eq!(sorted(&[]), None);
    }
}
