//! Costs of a machine file that count something.

/// A count as a whole number; 0 for what is none.
pub(super) fn whole(count: f64) -> u32 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u32 first; machine files count cores, threads and entries"
    )]
    let whole = count.round().clamp(0.0, f64::from(u32::MAX)) as u32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole() {
        assert_eq!([57.0, 0.4, -3.0, 1e12].map(whole), [57, 0, 0, u32::MAX]);
    }
}
