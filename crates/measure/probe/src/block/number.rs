//! Numbers as the atlas stores them.

/// A latency, a residual or a logarithm as an `f32`; all of them fit.
#[allow(clippy::cast_possible_truncation, reason = "the values fit an f32")]
pub(super) fn f32_of(value: f64) -> f32 {
    value as f32
}

/// The entry of a table of `entries` in which a value lies; the ends take all that lies beyond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded and clamped to the table's range first"
)]
pub(super) fn entry(place: f64, entries: usize) -> usize {
    place.round().clamp(0.0, (entries - 1) as f64) as usize
}
