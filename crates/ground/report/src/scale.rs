//! From numbers to positions: axes with round ticks. It never sees a pixel it was not given,
//! and every finite input gives a finite position.

use crate::cast::{exponent, index};

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios, ticks at powers of ten.
    Log10,
    /// Equal distances for equal ratios, ticks at powers of two.
    Log2,
}

/// A range of values that an axis shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) scale: Scale,
}

/// Differences below this share of the values never fill a colour scale of their own. Repeated
/// runs of one cell differ by less than a twentieth of it.
const LEAST_SPAN: f64 = 0.05;

/// The smallest and largest finite value, if there is one.
pub(crate) fn bounds(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| v.is_finite()).fold(None, |found, v| match found {
        None => Some((v, v)),
        Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
    })
}

impl Extent {
    /// An axis from `lo` to `hi`; equal ends are moved apart so that a constant sits mid-axis.
    pub(crate) fn new(lo: f64, hi: f64, scale: Scale) -> Self {
        let (mut lo, mut hi) = if lo <= hi { (lo, hi) } else { (hi, lo) };
        if scale == Scale::Linear {
            // Closer than one part in 10^12 is equal to the eye, and would give no tick.
            if hi / 2.0 - lo / 2.0 <= 1e-12 * (lo.abs() / 2.0 + hi.abs() / 2.0) {
                let room = (0.1 * hi.abs()).max(1e-9);
                (lo, hi) = ((lo - room).max(f64::MIN), (hi + room).min(f64::MAX));
            }
        } else {
            lo = lo.max(f64::MIN_POSITIVE);
            hi = hi.max(lo);
            if hi / lo < 1.0 + 1e-9 {
                (lo, hi) = ((lo / 2.0).max(f64::MIN_POSITIVE), (hi * 2.0).min(f64::MAX));
            }
        }
        Self { lo, hi, scale }
    }

    /// The same axis with `share` of its length added at both ends (linear axes only).
    pub(crate) fn padded(self, share: f64) -> Self {
        if self.scale != Scale::Linear {
            return self;
        }
        let room = share * (self.hi / 2.0 - self.lo / 2.0) * 2.0;
        Self { lo: (self.lo - room).max(f64::MIN), hi: (self.hi + room).min(f64::MAX), ..self }
    }

    /// The axis of a colour scale chosen from the data: at least `room` long and at least
    /// [`LEAST_SPAN`] of its values, so that noise is not painted in the colours of structure.
    pub(crate) fn for_colours(lo: f64, hi: f64, room: f64) -> Self {
        let middle = lo / 2.0 + hi / 2.0;
        let least = (LEAST_SPAN * middle.abs()).max(room);
        if hi / 2.0 - lo / 2.0 >= least / 2.0 {
            return Self::new(lo, hi, Scale::Linear);
        }
        let lo = (middle - least / 2.0).max(f64::MIN);
        let hi = (middle + least / 2.0).min(f64::MAX);
        Self::new(lo, hi, Scale::Linear)
    }

    /// Where `value` lies, 0 at `lo` and 1 at `hi`, clamped. Halves avoid overflow.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value / 2.0 - self.lo / 2.0) / (self.hi / 2.0 - self.lo / 2.0),
            Scale::Log10 | Scale::Log2 => {
                let lo = self.lo.ln();
                (value.max(f64::MIN_POSITIVE).ln() - lo) / (self.hi.ln() - lo)
            }
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Whether the axis can show `value`.
    pub(crate) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// About `wanted` ticks at round values inside the axis, each with its label.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let wanted = wanted.clamp(2, 40);
        match self.scale {
            Scale::Linear => self.linear_ticks(wanted),
            Scale::Log10 => self.log_ticks(10.0, wanted),
            Scale::Log2 => self.log_ticks(2.0, wanted),
        }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let raw = self.hi / wanted as f64 - self.lo / wanted as f64;
        let power = 10f64.powi(exponent(raw.log10()));
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|step| *step >= raw * 0.999)
            .unwrap_or(raw);
        if !(step.is_normal() && step > 0.0) {
            return Vec::new();
        }
        let first = (self.lo / step).ceil();
        let slack = step * 1e-9;
        (0..=2 * wanted)
            .map(|i| (first + i as f64) * step)
            .take_while(|v| *v <= self.hi + slack && v.is_finite())
            .map(|v| (v, tick_label(v, step)))
            .collect()
    }

    /// Ticks at multiples of a power of two, for bytes on a linear axis.
    pub(crate) fn binary_ticks(&self, wanted: usize) -> Vec<f64> {
        let wanted = wanted.clamp(2, 40);
        let raw = self.hi / wanted as f64 - self.lo / wanted as f64;
        let step = 2f64.powi(exponent((raw * 0.999).log2()).saturating_add(1));
        if !step.is_normal() {
            return Vec::new();
        }
        let first = (self.lo / step).ceil();
        let ticks = (0..=2 * wanted).map(|i| (first + i as f64) * step);
        ticks.take_while(|v| *v <= self.hi && v.is_finite()).collect()
    }

    fn log_ticks(&self, root: f64, wanted: usize) -> Vec<(f64, String)> {
        let first = exponent((self.lo.ln() / root.ln() - 1e-9).ceil());
        let last = exponent(self.hi.ln() / root.ln() + 1e-9);
        let decades = usize::try_from(last - first + 1).unwrap_or(0);
        if decades < 2 {
            // Less than one power apart: round linear values say more than a single power.
            let near = Self { scale: Scale::Linear, ..*self };
            return near.linear_ticks(wanted).into_iter().filter(|t| t.0 > 0.0).collect();
        }
        if root == 10.0 && decades * 3 <= wanted + 4 {
            return self.fine_decimal_ticks(first - 1, last);
        }
        let every = decades.div_ceil(wanted).max(1);
        (0..decades)
            .step_by(every)
            .filter_map(|i| Some(first + i32::try_from(i).ok()?))
            .map(|power| root.powi(power))
            .filter(|v| v.is_normal())
            .map(|v| (v, plain(v)))
            .collect()
    }
}

impl Extent {
    /// One, two and five of each power of ten, for axes of few decades.
    fn fine_decimal_ticks(&self, first: i32, last: i32) -> Vec<(f64, String)> {
        let all = (first..=last).flat_map(|p| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(p)));
        let inside = all.filter(|v| *v >= self.lo * (1.0 - 1e-9) && *v <= self.hi * (1.0 + 1e-9));
        inside.filter(|v| v.is_normal()).map(|v| (v, plain(v))).collect()
    }
}

/// A tick's text with the decimals that its step needs.
fn tick_label(value: f64, step: f64) -> String {
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    if value != 0.0 && (value.abs() >= 1e7 || step < 1e-5) {
        return format!("{value:.1e}");
    }
    // A step of 2.5 or 0.25 needs one decimal more than its power of ten says.
    let decimals = (0..=6).find(|d| {
        let scaled = step * 10f64.powi(*d);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    let decimals = index(f64::from(decimals.unwrap_or(6)), 6);
    format!("{value:.decimals$}")
}

/// A number without trailing zeros.
fn plain(value: f64) -> String {
    if (1e-4..1e7).contains(&value) { format!("{value}") } else { format!("{value:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lo: f64, hi: f64, scale: Scale, wanted: usize) -> Vec<String> {
        Extent::new(lo, hi, scale).ticks(wanted).into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(86.0, 156.0, Scale::Linear, 5), ["100", "120", "140"]);
        assert_eq!(labels(0.0, 1.0, Scale::Linear, 4), ["0.00", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(labels(0.97, 1.03, Scale::Linear, 3), ["0.98", "1.00", "1.02"]);
        assert_eq!(labels(1.0, 1000.0, Scale::Log10, 6), ["1", "10", "100", "1000"]);
        assert_eq!(labels(50.0, 1200.0, Scale::Log10, 6), ["50", "100", "200", "500", "1000"]);
        let bytes = Extent::new(0.0, 8192.0, Scale::Linear).binary_ticks(9);
        assert_eq!(bytes, [0.0, 1024.0, 2048.0, 3072.0, 4096.0, 5120.0, 6144.0, 7168.0, 8192.0]);
        assert_eq!(labels(1.0, 16.0, Scale::Log2, 8), ["1", "2", "4", "8", "16"]);
    }

    #[test]
    fn a_constant_sits_mid_axis() {
        for (value, scale) in [(5.0, Scale::Linear), (0.0, Scale::Linear), (8.0, Scale::Log2)] {
            let axis = Extent::new(value, value, scale);
            assert!((axis.share(value) - 0.5).abs() < 1e-6, "{value}");
            assert!(axis.lo < axis.hi);
        }
    }

    #[test]
    fn small_differences_do_not_fill_a_colour_scale() {
        let same = Extent::for_colours(84.09, 84.10, 0.0);
        assert!((same.share(84.09) - same.share(84.10)).abs() < 0.01);
        let noisy = Extent::for_colours(50.0, 54.0, 16.0);
        assert!((noisy.lo, noisy.hi) == (44.0, 60.0), "{noisy:?}");
        let clear = Extent::for_colours(50.0, 90.0, 2.0);
        assert!((clear.lo, clear.hi) == (50.0, 90.0));
    }

    #[test]
    fn extreme_values_stay_finite() {
        let wide = [f64::MIN, -1.0, 0.0, f64::MIN_POSITIVE, 5e-324, 1.0, f64::MAX];
        for lo in wide {
            for hi in wide {
                for scale in [Scale::Linear, Scale::Log10, Scale::Log2] {
                    let axis = Extent::new(lo, hi, scale).padded(0.05);
                    for value in wide {
                        assert!((0.0..=1.0).contains(&axis.share(value)));
                    }
                    for tick in axis.binary_ticks(5) {
                        assert!(tick.is_finite());
                    }
                    for (tick, _) in axis.ticks(5) {
                        assert!(tick.is_finite());
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_skip_what_is_not_a_number() {
        assert_eq!(bounds([f64::NAN, 2.0, f64::INFINITY, -1.0]), Some((-1.0, 2.0)));
        assert_eq!(bounds([f64::NAN]), None);
    }
}
