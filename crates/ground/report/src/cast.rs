//! The only lossy conversions of this crate, each saturating and documented, so that no picture
//! has a cast of its own. It never panics and never wraps.

/// `value` rounded down into `0..=max`; NaN and negative values give 0.
#[must_use]
pub(crate) fn index(value: f64, max: usize) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // `as` from f64 saturates and maps NaN to 0, which is the meaning wanted here.
    let whole = value as usize;
    whole.min(max)
}

/// `value` rounded to the nearest colour channel; out-of-range values saturate, NaN gives 0.
#[must_use]
pub(crate) fn channel(value: f64) -> u8 {
    u8::try_from(index(value + 0.5, 255)).unwrap_or(u8::MAX)
}

/// `value` rounded down, saturating at the ends of `i32`; NaN gives 0.
#[must_use]
pub(crate) fn exponent(value: f64) -> i32 {
    #[allow(clippy::cast_possible_truncation)]
    // `as` from f64 saturates and maps NaN to 0; decimal exponents lie in -324..=308.
    let whole = value.floor() as i32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_saturate() {
        assert_eq!(index(3.9, 10), 3);
        assert_eq!(index(-1.0, 10), 0);
        assert_eq!(index(f64::NAN, 10), 0);
        assert_eq!(index(f64::INFINITY, 10), 10);
        assert_eq!((channel(254.6), channel(-3.0), channel(1e9)), (255, 0, 255));
        assert_eq!((exponent(-0.5), exponent(2.9), exponent(f64::NAN)), (-1, 2, 0));
    }
}
