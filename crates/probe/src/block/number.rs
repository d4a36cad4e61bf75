//! Numbers as the atlas stores them.

/// A latency, a residual or a logarithm as an `f32`; all of them fit.
#[allow(clippy::cast_possible_truncation, reason = "the values fit an f32")]
pub(super) fn f32_of(value: f64) -> f32 {
    value as f32
}
