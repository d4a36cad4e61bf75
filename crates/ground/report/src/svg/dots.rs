//! Many values as one embedded picture, a dot each: an element for each of thousands would make most of a page.

use super::canvas::Canvas;
use crate::cast::index;
use crate::colour::ramp;
use crate::png::Indexed;
use crate::scale::Extent;

/// Draws `values`, row after row of `columns`, over a rectangle. A value that is absent leaves its place as it is.
pub(super) fn dots(
    canvas: &mut Canvas,
    at: (f64, f64),
    size: (f64, f64),
    columns: usize,
    values: impl Iterator<Item = Option<f64>>,
    extent: Option<&Extent>,
) {
    let palette: Vec<_> = (0..255u8).map(|i| ramp(f64::from(i) / 254.0)).collect();
    let dot = |value| match (value, extent) {
        (Some(value), Some(extent)) => {
            u8::try_from(1 + index(extent.share(value) * 254.0 + 0.5, 254)).unwrap_or(u8::MAX)
        }
        _ => 0,
    };
    let dots: Vec<u8> = values.map(dot).collect();
    let rows = dots.len() / columns.max(1);
    if let Some(address) = (Indexed { columns, rows, palette: &palette, dots: &dots }).data_uri() {
        canvas.image(at, size, &address);
    }
}
