//! Colours that carry numbers. The continuous ramp is perceptually uniform, so that equal
//! differences look equal in colour, in grey and to colour-blind eyes; a test holds it to that.
//! It never decides what a colour means.

use crate::cast::channel;

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// Ten equidistant samples of matplotlib's viridis (Smith and van der Walt, 2015; CC0).
const VIRIDIS: [Rgb; 10] = [
    Rgb(0x44, 0x01, 0x54),
    Rgb(0x48, 0x28, 0x78),
    Rgb(0x3e, 0x49, 0x89),
    Rgb(0x31, 0x68, 0x8e),
    Rgb(0x26, 0x82, 0x8e),
    Rgb(0x1f, 0x9e, 0x89),
    Rgb(0x35, 0xb7, 0x79),
    Rgb(0x6e, 0xce, 0x58),
    Rgb(0xb5, 0xde, 0x2b),
    Rgb(0xfd, 0xe7, 0x25),
];

/// The colour of `share` in `0..=1` on the continuous ramp; outside values are clamped.
pub(crate) fn ramp(share: f64) -> Rgb {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let at = share * (VIRIDIS.len() - 1) as f64;
    let low = crate::cast::index(at, VIRIDIS.len() - 2);
    let part = at - low as f64;
    let (a, b) = (VIRIDIS[low], VIRIDIS[low + 1]);
    let mix = |x: u8, y: u8| channel(f64::from(x) + part * (f64::from(y) - f64::from(x)));
    Rgb(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

impl Rgb {
    /// `#rrggbb`.
    pub(crate) fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// Relative luminance in `0..=1` (WCAG 2.2, "relative luminance").
    pub(crate) fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Whether white text is easier to read on this colour than black text. The two contrasts
    /// are equal where (L + 0.05)^2 = 1.05 * 0.05.
    pub(crate) fn wants_white_text(self) -> bool {
        (self.luminance() + 0.05).powi(2) < 1.05 * 0.05
    }

    /// The nearest colour of the 6x6x6 cube of a 256-colour terminal.
    pub(crate) fn ansi256(self) -> u8 {
        let level = |c: u8| match c {
            0..48 => 0,
            48..115 => 1,
            _ => (c - 35) / 40,
        };
        16 + 36 * level(self.0) + 6 * level(self.1) + level(self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIE 1976 lightness of a colour.
    fn lightness(colour: Rgb) -> f64 {
        116.0 * colour.luminance().cbrt() - 16.0
    }

    #[test]
    fn equal_steps_of_the_ramp_are_equal_steps_of_lightness() {
        let steps: Vec<f64> = (0..20)
            .map(|i| {
                lightness(ramp(f64::from(i + 1) / 20.0)) - lightness(ramp(f64::from(i) / 20.0))
            })
            .collect();
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        for step in steps {
            assert!((step - mean).abs() < 0.4 * mean, "step {step} against mean {mean}");
        }
    }

    #[test]
    fn the_ramp_takes_any_number() {
        assert_eq!(ramp(f64::NAN), VIRIDIS[0]);
        assert_eq!(ramp(-5.0), VIRIDIS[0]);
        assert_eq!(ramp(9.0), VIRIDIS[9]);
    }

    #[test]
    fn text_on_any_ramp_colour_has_contrast_of_at_least_four() {
        for i in 0..=100 {
            let colour = ramp(f64::from(i) / 100.0);
            let l = colour.luminance();
            let contrast =
                if colour.wants_white_text() { 1.05 / (l + 0.05) } else { (l + 0.05) / 0.05 };
            assert!(contrast > 4.0, "{} has {contrast}", colour.hex());
        }
    }

    #[test]
    fn cube_corners_map_to_themselves() {
        assert_eq!(Rgb(0, 0, 0).ansi256(), 16);
        assert_eq!(Rgb(255, 255, 255).ansi256(), 231);
        assert_eq!(Rgb(95, 135, 175).ansi256(), 67);
    }
}
