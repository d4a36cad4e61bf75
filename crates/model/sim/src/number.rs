//! The few conversions between number types that the simulator needs, each checked once here.
//!
//! Nothing else in this crate casts a float to an integer or narrows one.

/// An index into memory. A value that no address space holds becomes the largest index, which
/// every look-up refuses.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A length as the 64-bit number that addresses are made of.
pub(crate) fn wide(value: usize) -> u64 {
    value as u64
}

/// A count that fits 16 bits because it counts stops, slices or lines of a pattern.
///
/// # Panics
/// If it does not: the spec was validated before, so that is a defect of this crate.
pub(crate) fn narrow(value: u64) -> u16 {
    u16::try_from(value).expect("a validated spec counts below 65536")
}

/// A length as a float; exact, since lengths stay far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "lengths are far below 2^53")]
pub(crate) fn float(value: usize) -> f64 {
    value as f64
}

/// A count of messages or bytes as a float; exact below 2^53.
#[allow(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}

/// A non-negative float as a count, rounded to the nearest. Saturates at both ends.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate; callers have checked the range"
)]
pub(crate) fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// Whole ticks of `tick` cycles that `cycles` holds, in cycles. Saturates at both ends.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, which is what a counter would show"
)]
pub(crate) fn whole_ticks(cycles: f64, tick: u32) -> u64 {
    let ticks = (cycles / f64::from(tick)).floor();
    (ticks * f64::from(tick)) as u64
}

/// Nanoseconds as whole picoseconds, the clock of the line engine. Negative ones and those that are no
/// number become 0, and none is above 2^63.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
pub(crate) fn picoseconds(ns: f64) -> u64 {
    ((ns * 1000.0).round() as u64).min(u64::MAX / 2)
}

/// Picoseconds as nanoseconds.
#[allow(clippy::cast_precision_loss, reason = "runs are far shorter than 2^53 ps, two hours")]
pub(crate) fn nanoseconds(ps: u64) -> f64 {
    ps as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_round_down_and_saturate() {
        assert_eq!(whole_ticks(77.9, 26), 52);
        assert_eq!(whole_ticks(78.0, 26), 78);
        assert_eq!(whole_ticks(-3.0, 1), 0);
        assert_eq!(whole_ticks(1e30, 1), u64::MAX);
    }
}
