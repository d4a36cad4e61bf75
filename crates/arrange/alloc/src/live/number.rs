//! Numbers changed from one kind to another, each with what it loses.

/// A count as a number; exact below 2^24, and no count here is a thousandth of that off.
#[allow(clippy::cast_precision_loss, reason = "counts of samples, of which a rounded one will do")]
pub(super) const fn real(count: usize) -> f32 {
    count as f32
}

/// A reading of the clock as a number; exact below 2^24 cycles, above which it is an interrupt.
#[allow(clippy::cast_precision_loss, reason = "readings beyond 2^24 cycles are left out anyway")]
pub(super) const fn cycles(reading: u32) -> f32 {
    reading as f32
}

/// A latency of which a single's precision is enough.
#[allow(clippy::cast_possible_truncation, reason = "latencies fit an f32")]
pub(super) const fn narrow(cycles: f64) -> f32 {
    cycles as f32
}

/// A page number as an index.
pub(super) fn index(page: u32) -> usize {
    usize::try_from(page).unwrap_or(usize::MAX)
}

/// An index as a page number; arenas have fewer than 2^32 pages.
pub(super) fn page(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
