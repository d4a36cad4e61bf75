//! Keys to colours: the bar of a continuous scale, swatches of categories, and the swatch of
//! missing numbers. They say what a colour means and never choose one.

use super::canvas::{Anchor, Canvas, FULL_WIDTH, Paint, text_width};
use crate::colour::ramp;
use crate::scale::Extent;

/// Height of a colour bar with its ticks.
pub(crate) const BAR_HEIGHT: f64 = 34.0;
const BAR_WIDTH: f64 = 240.0;
const BAR_STEPS: u32 = 48;

/// The bar of a continuous scale at `at`, with the words for missing cells beside it if there
/// are any. `beyond` says whether values lie below and above the scale's ends.
pub(crate) fn colour_bar(
    canvas: &mut Canvas,
    at: (f64, f64),
    extent: Option<&Extent>,
    unit: &str,
    beyond: (bool, bool),
    missing: Option<&str>,
) {
    let mut x = at.0;
    if let Some(extent) = extent {
        let step = BAR_WIDTH / f64::from(BAR_STEPS);
        for i in 0..BAR_STEPS {
            let share = (f64::from(i) + 0.5) / f64::from(BAR_STEPS);
            // A little overlap hides the seams between the steps.
            let left = x + f64::from(i) * step;
            let width = step + if i + 1 < BAR_STEPS { 0.6 } else { 0.0 };
            canvas.rect((left, at.1), (width, 12.0), Paint::Fill(ramp(share)), "");
        }
        for (value, label) in extent.ticks(5) {
            let tick = x + BAR_WIDTH * extent.share(value);
            canvas.line((tick, at.1 + 12.0), (tick, at.1 + 16.0), "axis");
            canvas.text(tick, at.1 + 28.0, "x", Anchor::Middle, &label);
        }
        let more = match beyond {
            (false, false) => "",
            (true, false) => " (some lie below the scale)",
            (false, true) => " (some lie above the scale)",
            (true, true) => " (some lie beyond the scale)",
        };
        let words = format!("{unit}{more}");
        canvas.text(x + BAR_WIDTH + 10.0, at.1 + 10.0, "m", Anchor::Start, &words);
        x += BAR_WIDTH + 34.0 + text_width(&words, 12.0);
    }
    if let Some(missing) = missing {
        canvas.rect((x, at.1), (22.0, 12.0), Paint::Hatch, "");
        canvas.text(x + 29.0, at.1 + 10.0, "m", Anchor::Start, missing);
    }
}

/// Swatches with words from `left`, in as many lines as they need; returns the height used.
pub(crate) fn swatches(
    canvas: &mut Canvas,
    left: f64,
    top: f64,
    entries: &[(Paint, String)],
) -> f64 {
    let (mut x, mut y) = (left, top);
    for (paint, words) in entries {
        let width = 19.0 + text_width(words, 12.0);
        if x > left && x + width > FULL_WIDTH {
            (x, y) = (left, y + 18.0);
        }
        canvas.rect((x, y), (12.0, 12.0), *paint, "");
        canvas.text(x + 18.0, y + 10.0, "l", Anchor::Start, words);
        x += width + 22.0;
    }
    if entries.is_empty() { 0.0 } else { y - top + 20.0 }
}
