//! A matrix of numbers as colours: core to core, core to region, block by block. Small matrices
//! carry their numbers in the cells; large ones become one embedded picture. Missing cells are
//! hatched, never coloured.

use super::canvas::{Anchor, Canvas, Paint, num, shorten, text_width, thinning};
use super::clusters::{self, Axis, Cluster};
use super::dots::dots;
use super::legend;
use crate::colour::ramp;
use crate::fmt::significant;
use crate::scale::{Extent, Scale, bounds};

/// Up to this many rows and columns the numbers are written into the cells.
const WRITTEN_SIDE: usize = 20;
/// Up to this many cells each is an element that says its value when pointed at.
const ELEMENT_CELLS: usize = 64 * 64;
const MATRIX_WIDTH: f64 = 740.0;
const MATRIX_HEIGHT: f64 = 700.0;
/// What is left of the widest figure beside the longest labels.
const SHEET: f64 = 768.0;
/// A label of a row needs this height, and one of a column that is written upwards this width.
const LINE: f64 = 14.0;
const LONGEST_LABEL: f64 = 150.0;

/// A matrix of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// What is shown.
    pub title: String,
    /// The unit of every cell.
    pub unit: String,
    /// What the rows are: `"from"`. May be empty.
    pub row_title: String,
    /// What the columns are: `"to"`. May be empty.
    pub column_title: String,
    /// One label a row.
    pub rows: Vec<String>,
    /// One label a column.
    pub columns: Vec<String>,
    /// Row-major cells; a cell that is absent or not finite counts as missing.
    pub cells: Vec<Option<f64>>,
    /// Interval of each cell, in the same layout; may be empty.
    pub intervals: Vec<Option<(f64, f64)>>,
    /// Ends of the colour scale; if `None` the smallest and largest cell, moved apart where they
    /// differ by less than a twentieth or than twice the widest interval. Cells outside take the
    /// colour of the end, and the legend says so.
    pub range: Option<(f64, f64)>,
    /// Why cells are missing: `"same core"`. `"not measured"` if empty.
    pub missing: String,
    /// Clusters of rows, nested, innermost first; may be empty. Each level covers the rows from the first on.
    pub row_clusters: Vec<Vec<Cluster>>,
    /// Clusters of columns, in the same form.
    pub column_clusters: Vec<Vec<Cluster>>,
}

impl HeatMap {
    /// The value of a cell, if it has one.
    pub(crate) fn cell(&self, row: usize, column: usize) -> Option<f64> {
        self.cells
            .get(row * self.columns.len() + column)
            .copied()
            .flatten()
            .filter(|v| v.is_finite())
    }

    /// The interval of a cell, if it has one.
    pub(crate) fn interval(&self, row: usize, column: usize) -> Option<(f64, f64)> {
        let interval = self.intervals.get(row * self.columns.len() + column).copied().flatten();
        interval.filter(|i| i.0.is_finite() && i.1.is_finite())
    }

    /// Every place of the matrix.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.rows.len()).flat_map(|r| (0..self.columns.len()).map(move |c| (r, c)))
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.places().filter_map(|(r, c)| self.cell(r, c))
    }

    /// The colour scale, if any cell has a value.
    pub(crate) fn extent(&self) -> Option<Extent> {
        let (lo, hi) = bounds(self.values())?;
        let asked = self.range.filter(|r| r.0.is_finite() && r.1.is_finite());
        let widths = self.places().filter_map(|(r, c)| self.interval(r, c)).map(|i| i.1 - i.0);
        let widest = bounds(widths).map_or(0.0, |w| w.1.max(0.0));
        Some(asked.map_or_else(
            || Extent::for_colours(lo, hi, 2.0 * widest),
            |(lo, hi)| Extent::new(lo, hi, Scale::Linear),
        ))
    }

    /// What missing means here.
    pub(crate) fn missing_words(&self) -> &str {
        if self.missing.is_empty() { "not measured" } else { &self.missing }
    }

    fn describe(&self) -> String {
        let missing = self.places().filter(|(r, c)| self.cell(*r, *c).is_none()).count();
        let size = format!("Matrix of {} rows and {} columns", self.rows.len(), self.columns.len());
        let range = bounds(self.values()).map_or("no value".to_owned(), |(lo, hi)| {
            format!("{} to {} {}", significant(lo, 3), significant(hi, 3), self.unit)
        });
        format!("{size}: {range}; {missing} missing ({}).", self.missing_words())
    }
}

/// Where things lie on the sheet.
struct Layout {
    left: f64,
    top: f64,
    cell: (f64, f64),
    written: bool,
    upright: bool,
}

impl Layout {
    fn at(&self, row: usize, column: usize) -> (f64, f64) {
        (self.left + column as f64 * self.cell.0, self.top + row as f64 * self.cell.1)
    }
}

fn widest<'l>(labels: impl IntoIterator<Item = &'l String>) -> f64 {
    labels.into_iter().map(|l| text_width(l, 12.0)).fold(0.0, f64::max).min(LONGEST_LABEL)
}

/// How far one side of a matrix may be longer than the other for its cells to be squares.
const SQUARE_UP_TO: usize = 4;

/// Sides of the cells of a matrix that has too many for numbers: squares, unless a side is much shorter. Large matrices
/// take what the sheet has beside their labels.
fn cell_of(map: &HeatMap, widest: f64) -> (f64, f64) {
    let (rows, columns) = (map.rows.len().max(1), map.columns.len().max(1));
    let room = (MATRIX_WIDTH / columns as f64, MATRIX_HEIGHT / rows as f64);
    let dots = |cells: usize| (SHEET / cells as f64).floor();
    let high = room.1.min(24.0).max(dots(rows).min(2.0));
    let (short, long) = (rows.min(columns), rows.max(columns));
    if short > 8 && long <= SQUARE_UP_TO * short {
        let side = room.0.min(24.0).min(high).max(dots(long).min(2.0));
        (side, side)
    } else {
        (room.0.min(widest), high)
    }
}

fn layout(map: &HeatMap, heading: f64) -> Layout {
    let sides = (map.rows.len().max(1), map.columns.len().max(1));
    let written = sides.0 <= WRITTEN_SIDE && sides.1 <= WRITTEN_SIDE;
    let room = (MATRIX_WIDTH / sides.1 as f64, MATRIX_HEIGHT / sides.0 as f64);
    let widest_cell = if map.intervals.is_empty() { 72.0 } else { 104.0 };
    let cell = if written {
        (room.0.min(widest_cell), room.1.clamp(24.0, 44.0))
    } else {
        cell_of(map, widest_cell)
    };
    // Whole pixels keep the dots of large matrices free of moire.
    let whole = |side: f64| if side >= 1.0 { side.floor() } else { side };
    let cell = (whole(cell.0), whole(cell.1));
    let rows = clusters::axis(&map.rows, &map.row_clusters, cell.1, LINE);
    let columns = clusters::axis(&map.columns, &map.column_clusters, cell.0, LINE);
    let widest_column = widest(columns.names());
    let upright = match &columns {
        Axis::Each(_) => {
            let every = thinning(cell.0, widest_column.min(40.0) + 4.0);
            widest_column + 4.0 <= cell.0 * every as f64
        }
        Axis::Clusters(level) => clusters::least(level) * cell.0 >= widest_column + 4.0,
    };
    let row_title = if map.row_title.is_empty() { 0.0 } else { 20.0 };
    let column_title = if map.column_title.is_empty() { 0.0 } else { 20.0 };
    Layout {
        left: row_title + widest(rows.names()) + 10.0,
        top: heading + column_title + if upright { 20.0 } else { widest_column + 12.0 },
        cell,
        written,
        upright,
    }
}

/// Draws a matrix as colours.
#[must_use]
pub fn heat_map(map: &HeatMap) -> String {
    let mut canvas = Canvas::new();
    let heading = canvas.heading(&map.title, "");
    let layout = layout(map, heading);
    let extent = map.extent();
    labels(&mut canvas, map, &layout, heading);
    if map.rows.len() * map.columns.len() <= ELEMENT_CELLS {
        elements(&mut canvas, map, &layout, extent.as_ref());
    } else {
        picture(&mut canvas, map, &layout, extent.as_ref());
    }
    borders(&mut canvas, map, &layout);
    let bottom = layout.at(map.rows.len(), 0).1;
    let missing = map.places().any(|(r, c)| map.cell(r, c).is_none());
    let beyond = extent.as_ref().map_or((false, false), |e| {
        (map.values().any(|v| v < e.lo), map.values().any(|v| v > e.hi))
    });
    legend::colour_bar(
        &mut canvas,
        (layout.left, bottom + 16.0),
        extent.as_ref(),
        &map.unit,
        beyond,
        missing.then(|| map.missing_words()),
    );
    canvas.finish(bottom + 16.0 + legend::BAR_HEIGHT, &map.title, &map.describe())
}

fn labels(canvas: &mut Canvas, map: &HeatMap, layout: &Layout, heading: f64) {
    for (at, label) in clusters::axis(&map.rows, &map.row_clusters, layout.cell.1, LINE)
        .labels(layout.cell.1, LINE)
    {
        let label = shorten(label, 12.0, LONGEST_LABEL);
        canvas.text(layout.left - 8.0, layout.top + at + 4.0, "l", Anchor::End, &label);
    }
    let columns = clusters::axis(&map.columns, &map.column_clusters, layout.cell.0, LINE);
    let room = if layout.upright { widest(columns.names()).min(40.0) + 4.0 } else { LINE };
    for (at, label) in columns.labels(layout.cell.0, room) {
        let x = layout.left + at;
        let label = shorten(label, 12.0, LONGEST_LABEL);
        if layout.upright {
            canvas.text(x, layout.top - 8.0, "l", Anchor::Middle, &label);
        } else {
            canvas.text_turned(x + 4.0, layout.top - 6.0, "l", Anchor::Start, &label, true);
        }
    }
    let middle = |cells: usize, cell: f64| cells as f64 * cell / 2.0;
    if !map.column_title.is_empty() {
        let x = layout.left + middle(map.columns.len(), layout.cell.0);
        canvas.text(x, heading + 12.0, "m", Anchor::Middle, &map.column_title);
    }
    if !map.row_title.is_empty() {
        let y = layout.top + middle(map.rows.len(), layout.cell.1);
        canvas.text_turned(12.0, y, "m", Anchor::Middle, &map.row_title, true);
    }
}

fn elements(canvas: &mut Canvas, map: &HeatMap, layout: &Layout, extent: Option<&Extent>) {
    let gap = if layout.cell.0.min(layout.cell.1) >= 8.0 { 1.0 } else { 0.0 };
    let size = (layout.cell.0 - gap, layout.cell.1 - gap);
    for (r, c) in map.places() {
        let at = layout.at(r, c);
        let names = format!("{}, {}", map.rows[r], map.columns[c]);
        let (Some(value), Some(extent)) = (map.cell(r, c), extent) else {
            let hint = format!("{names}: {}", map.missing_words());
            canvas.rect(at, size, Paint::Hatch, &hint);
            continue;
        };
        let colour = ramp(extent.share(value));
        let interval = map.interval(r, c);
        let hint = match interval {
            Some((lo, hi)) => crate::fmt::interval(value, lo, hi, &map.unit),
            None => format!("{} {}", significant(value, 3), map.unit),
        };
        canvas.rect(at, size, Paint::Fill(colour), &format!("{names}: {hint}"));
        if layout.written {
            write_value(canvas, at, size, value, interval, colour.wants_white_text());
        }
    }
}

/// The number of a cell, and its interval under it where there is room.
fn write_value(
    canvas: &mut Canvas,
    at: (f64, f64),
    size: (f64, f64),
    value: f64,
    interval: Option<(f64, f64)>,
    white: bool,
) {
    let x = at.0 + size.0 / 2.0;
    let (large, small) = if white { ("w", "ws") } else { ("k", "ks") };
    let text = significant(value, 3);
    if text_width(&text, 12.0) > size.0 + 2.0 {
        return;
    }
    let below = interval
        .map(|(lo, hi)| format!("{}–{}", significant(lo, 3), significant(hi, 3)))
        .filter(|t| text_width(t, 10.0) < size.0 - 4.0 && size.1 >= 34.0);
    let middle = at.1 + size.1 / 2.0;
    match below {
        Some(range) => {
            canvas.text(x, middle - 1.0, &format!("b {large}"), Anchor::Middle, &text);
            canvas.text(x, middle + 12.0, small, Anchor::Middle, &range);
        }
        None => canvas.text(x, middle + 4.0, large, Anchor::Middle, &text),
    }
}

/// Borders of clusters, thinner the further in they lie. Those that would lie too close are left out.
fn borders(canvas: &mut Canvas, map: &HeatMap, layout: &Layout) {
    let (right, bottom) = layout.at(map.rows.len(), map.columns.len());
    for (at, class) in clusters::borders(&map.row_clusters, layout.cell.1) {
        let y = layout.top + at;
        canvas.line((layout.left, y), (right, y), class);
    }
    for (at, class) in clusters::borders(&map.column_clusters, layout.cell.0) {
        let x = layout.left + at;
        canvas.line((x, layout.top), (x, bottom), class);
    }
}

/// Large matrices: one dot a cell, with the hatching showing through where cells are missing.
fn picture(canvas: &mut Canvas, map: &HeatMap, layout: &Layout, extent: Option<&Extent>) {
    let (rows, columns) = (map.rows.len(), map.columns.len());
    let size = (columns as f64 * layout.cell.0, rows as f64 * layout.cell.1);
    let at = layout.at(0, 0);
    let value = |(r, c)| extent.and(map.cell(r, c));
    let missing = map.places().filter(|place| value(*place).is_none()).count();
    if missing > 0 {
        let hint = format!("{} hatched: {}", num(missing as f64), map.missing_words());
        canvas.rect(at, size, Paint::Hatch, &hint);
    }
    dots(canvas, at, size, columns, map.places().map(value), extent);
    canvas.rect(at, size, Paint::Class("box"), "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::canvas::thinning;

    fn named(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("core {i}")).collect()
    }

    fn matrix(n: usize) -> HeatMap {
        let cell = |i: usize| (i / n != i % n).then_some(50.0 + (i % 37) as f64);
        HeatMap {
            title: "Pairs".into(),
            unit: "ns".into(),
            rows: named(n),
            columns: named(n),
            cells: (0..n * n).map(cell).collect(),
            ..HeatMap::default()
        }
    }

    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn every_cell_is_drawn_and_the_diagonal_is_hatched() {
        let text = heat_map(&matrix(6));
        let tree = roxmltree::Document::parse(&text).unwrap();
        let hatched = |n: &roxmltree::Node<'_, '_>| n.attribute("class") == Some("missing");
        let rects: Vec<_> = tree.descendants().filter(|n| n.has_tag_name("rect")).collect();
        let cells = rects.iter().filter(|n| n.has_children()).count();
        assert_eq!(cells, 36, "each cell has a hint");
        assert_eq!(rects.iter().filter(|n| hatched(n)).count(), 6 + 1, "diagonal and legend");
        let texts: Vec<_> = tree
            .descendants()
            .filter(|n| n.has_tag_name("text"))
            .filter_map(|n| n.text())
            .collect();
        for i in 0..6 {
            let label = format!("core {i}");
            assert_eq!(texts.iter().filter(|t| **t == label).count(), 2, "{label}");
        }
        assert!(texts.contains(&"51.0"), "values are written in small matrices");
    }

    #[test]
    fn near_and_far_take_the_ends_of_the_ramp() {
        let map = HeatMap {
            cells: vec![Some(1.0), Some(2.0)],
            columns: named(2),
            rows: named(1),
            ..matrix(1)
        };
        let text = heat_map(&map);
        assert!(
            text.contains(&format!("fill=\"{}\"><title>core 0, core 0: 1.00 ns", ramp(0.0).hex()))
        );
        assert!(
            text.contains(&format!("fill=\"{}\"><title>core 0, core 1: 2.00 ns", ramp(1.0).hex()))
        );
    }

    #[test]
    fn a_large_matrix_is_one_small_picture_with_thinned_labels() {
        let text = heat_map(&matrix(288));
        assert!(text.len() < 200_000, "{} bytes", text.len());
        assert_eq!(count(&text, "<image "), 1);
        let cell = (MATRIX_HEIGHT / 288.0).floor();
        let expected = 288usize.div_ceil(thinning(cell, 14.0));
        assert!(expected < 60);
        assert_eq!(count(&text, "text-anchor=\"end\">core "), expected);
        assert!(text.contains("288 hatched: not measured"));
        roxmltree::Document::parse(&text).unwrap();
    }

    #[test]
    fn intervals_are_written_and_a_given_range_is_honest_about_what_lies_outside() {
        let mut map = matrix(2);
        map.intervals = vec![None, Some((49.0, 53.5)), Some((50.0, 54.0)), None];
        map.range = Some((51.5, 60.0));
        let text = heat_map(&map);
        assert!(text.contains("49.0–53.5"));
        assert!(text.contains("some lie below the scale"));
    }

    #[test]
    fn a_matrix_without_values_has_no_scale_and_says_why() {
        let map = HeatMap { cells: Vec::new(), missing: "one region only".into(), ..matrix(3) };
        let text = heat_map(&map);
        assert_eq!(count(&text, "class=\"missing\""), 10);
        assert!(text.contains("no value; 9 missing (one region only)"));
    }
}
