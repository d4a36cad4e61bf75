//! Which samples of a batch count: those in a window around the median. Outside of it are
//! interrupts, and lines that were not where they had been put.
//!
//! Means of what is kept are right where medians are not: a counter may move in steps larger than
//! the differences that are looked for.

use super::number::{cycles, narrow};

/// Samples that say where the window lies.
pub(super) const ENOUGH: usize = 1024;

/// From the least value that counts to the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub(super) low: f32,
    pub(super) high: f32,
}

impl Window {
    /// Everything counts.
    const ALL: Self = Self { low: f32::NEG_INFINITY, high: f32::INFINITY };

    /// Whether this value counts.
    pub(super) fn holds(self, value: f32) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl From<isochrone_decode::Window> for Window {
    fn from(of: isochrone_decode::Window) -> Self {
        Self { low: narrow(of.low), high: narrow(of.high) }
    }
}

/// The window of `values`, least to largest; `room` holds [`ENOUGH`] values and is overwritten.
/// Everything is kept of an empty batch.
pub(super) fn keep_window(values: &[f32], room: &mut [f32], tick: u32) -> Window {
    let step = values.len().div_ceil(room.len().max(1)).max(1);
    let mut count = 0;
    for (slot, value) in room.iter_mut().zip(values.iter().step_by(step)) {
        *slot = *value;
        count += 1;
    }
    let some = &mut room[..count];
    let Some(centre) = median(some) else { return Window::ALL };
    some.iter_mut().for_each(|value| *value = (*value - centre).abs());
    // 1.4826 makes the median deviation of a Gaussian its standard deviation.
    let spread = 1.4826 * median(some).unwrap_or(0.0);
    let half = (3.0 * cycles(tick)).max(4.0 * spread);
    Window { low: centre - half, high: centre + half }
}

fn median(values: &mut [f32]) -> Option<f32> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f32::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_window_leaves_out_what_is_far_and_keeps_the_rest() {
        let mut values: Vec<f32> = (0..3000_u16).map(|i| 40.0 + f32::from(i % 9)).collect();
        (0..3000).step_by(4).for_each(|i| values[i] = 350.0);
        let mut room = [0.0; ENOUGH];
        let Window { low, high } = keep_window(&values, &mut room, 2);
        assert!(low < 40.0 && high > 48.0 && high < 200.0, "{low} {high}");
        let Window { low, high } = keep_window(&values, &mut room, 26);
        assert!(low < 40.0 - 60.0 && high > 100.0 && high < 200.0, "{low} {high}");
        assert_eq!(keep_window(&[], &mut room, 26), Window::ALL);
    }
}
