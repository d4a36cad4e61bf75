//! Numbers changed from one kind to another, each with what it loses.

/// A latency, a residual or a logarithm as an `f32`; all of them fit.
#[allow(clippy::cast_possible_truncation, reason = "the values fit an f32")]
#[inline]
pub(crate) const fn narrow(value: f64) -> f32 {
    value as f32
}

/// A count as a number; no count here is above 2^53.
#[allow(clippy::cast_precision_loss, reason = "counts of samples and lines are far below 2^53")]
#[inline]
pub(crate) const fn real(count: usize) -> f64 {
    count as f64
}

/// The entry of a table of `entries` in which a value lies; the ends take all that lies beyond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded and clamped to the table's range first"
)]
#[inline]
pub(crate) fn entry(place: f64, entries: usize) -> usize {
    libm::round(place).clamp(0.0, real(entries.saturating_sub(1))) as usize
}

/// An index as 32 bits; tables are shorter.
#[inline]
pub(crate) fn short(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// 32 bits as an index.
#[inline]
pub(crate) fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The lowest byte.
#[inline]
pub(crate) const fn byte(value: usize) -> u8 {
    value.to_le_bytes()[0]
}

/// The mean; the second pass takes off what rounding left in the first. 0 of nothing, and of what is not
/// finite.
#[inline]
pub(crate) fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for value in values.clone() {
        (sum, count) = (sum + value, count + 1);
    }
    let n = real(count);
    let first = sum / n;
    let mut rest = 0.0;
    for value in values {
        rest += value - first;
    }
    let mean = first + rest / n;
    if mean.is_finite() { mean } else { 0.0 }
}
