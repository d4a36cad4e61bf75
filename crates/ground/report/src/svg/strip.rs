//! A base pattern: the lines of a canonical page as bars around their mean, with the same lines
//! as a ribbon of colour under them. Rows (cores, bases, page classes) share one axis, so that a
//! look tells whose near lines are whose far ones. The bars start at the row's mean, not at 0.

use super::canvas::{Anchor, Canvas, FULL_WIDTH, Paint, shorten, text_width, thinning};
use super::dots::dots;
use super::legend;
use crate::colour::ramp;
use crate::fmt::significant;
use crate::scale::{Extent, bounds};

/// Above this many rows only the ribbons are drawn.
const BAR_ROWS: usize = 12;
const LABEL_WIDTH: f64 = 150.0;
/// Bold letters of 12 pixels are as wide as usual ones of this size.
const BOLD: f64 = 15.0;

/// Patterns of lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// What is shown.
    pub title: String,
    /// The unit of every value.
    pub unit: String,
    /// What the horizontal axis counts: `"line index in the canonical page"`.
    pub index_title: String,
    /// The rows, drawn from top to bottom on a common axis.
    pub rows: Vec<StripRow>,
}

/// One pattern.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StripRow {
    /// Whose pattern it is: `"core 0"`.
    pub label: String,
    /// One value a line; what is `None` or not finite is hatched.
    pub values: Vec<Option<f64>>,
}

impl StripRow {
    /// The values that there are.
    pub(crate) fn present(&self) -> Vec<f64> {
        self.values.iter().copied().flatten().filter(|v| v.is_finite()).collect()
    }

    /// Mean of the values, and mean of the nearest (smallest) quarter of them.
    pub(crate) fn means(&self) -> Option<(f64, f64)> {
        let mut values = self.present();
        values.sort_by(f64::total_cmp);
        let mean = |v: &[f64]| v.iter().map(|x| x / v.len() as f64).sum::<f64>();
        let quarter = values.len().div_ceil(4);
        (!values.is_empty()).then(|| (mean(&values), mean(&values[..quarter])))
    }
}

impl Strip {
    /// The common axis, if any row has a value; at least a twentieth of the values long, so that
    /// the noise of a flat pattern looks flat.
    pub(crate) fn extent(&self) -> Option<Extent> {
        let (lo, hi) = bounds(self.rows.iter().flat_map(StripRow::present))?;
        Some(Extent::for_colours(lo, hi, 0.0))
    }

    fn longest(&self) -> usize {
        self.rows.iter().map(|r| r.values.len()).max().unwrap_or(0)
    }

    fn describe(&self) -> String {
        let rows: Vec<_> = self
            .rows
            .iter()
            .take(BAR_ROWS)
            .map(|r| {
                let means = r.means().map_or("no value".to_owned(), |(mean, near)| {
                    let (mean, near) = (significant(mean, 3), significant(near, 3));
                    format!("mean {mean} {u}, nearest quarter {near} {u}", u = self.unit)
                });
                format!("{}: {means}", r.label)
            })
            .collect();
        format!("{} rows of {} values. {}.", self.rows.len(), self.longest(), rows.join("; "))
    }
}

/// Draws patterns of lines as bars and ribbons.
#[must_use]
pub fn strip(strip: &Strip) -> String {
    let mut canvas = Canvas::new();
    let mut y = canvas.heading(&strip.title, "");
    let extent = strip.extent();
    let bars = strip.rows.len() <= BAR_ROWS;
    let height = if strip.rows.len() <= 4 { 96.0 } else { 56.0 };
    let left = if bars { 48.0 } else { label_width(strip) + 10.0 };
    let width = (FULL_WIDTH - left - 12.0) / strip.longest().max(1) as f64;
    for row in &strip.rows {
        if bars {
            let panel = Panel { left, width, top: y + 20.0, height };
            panel.draw(&mut canvas, row, &strip.unit, extent.as_ref());
            y += height + 46.0;
        } else {
            let label = shorten(&row.label, 12.0, LABEL_WIDTH);
            canvas.text(left - 8.0, y + 10.0, "l", Anchor::End, &label);
            ribbon(&mut canvas, (left, y), (width, 13.0), row, extent.as_ref());
            y += 15.0;
        }
    }
    index_axis(&mut canvas, strip, left, y, width);
    y += 42.0;
    let missing = strip.rows.iter().any(|r| r.present().len() < r.values.len());
    let words = missing.then_some("not measured");
    legend::colour_bar(&mut canvas, (left, y), extent.as_ref(), &strip.unit, (false, false), words);
    canvas.finish(y + legend::BAR_HEIGHT, &strip.title, &strip.describe())
}

fn label_width(strip: &Strip) -> f64 {
    let widths = strip.rows.iter().map(|r| text_width(&r.label, 12.0));
    widths.fold(0.0, f64::max).min(LABEL_WIDTH)
}

/// The numbers of the lines under the last row.
fn index_axis(canvas: &mut Canvas, strip: &Strip, left: f64, top: f64, width: f64) {
    let longest = strip.longest();
    let every = thinning(width, 60.0).min(longest.max(1));
    for i in (0..longest).step_by(every) {
        let x = left + (i as f64 + 0.5) * width;
        canvas.text(x, top + 10.0, "x", Anchor::Middle, &i.to_string());
    }
    let middle = left + longest as f64 * width / 2.0;
    canvas.text(middle, top + 27.0, "m", Anchor::Middle, &strip.index_title);
}

/// The values of a row as cells of colour.
fn ribbon(
    canvas: &mut Canvas,
    at: (f64, f64),
    cell: (f64, f64),
    row: &StripRow,
    extent: Option<&Extent>,
) {
    let value = |value: &Option<f64>| extent.and(*value).filter(|v| v.is_finite());
    for (i, _) in row.values.iter().enumerate().filter(|(_, v)| value(v).is_none()) {
        canvas.rect((at.0 + i as f64 * cell.0, at.1), cell, Paint::Hatch, "");
    }
    let (columns, values) = (row.values.len(), row.values.iter().map(value));
    let size = (columns as f64 * cell.0, cell.1);
    dots(canvas, at, size, columns, values, extent);
}

/// One row drawn as bars.
struct Panel {
    left: f64,
    width: f64,
    top: f64,
    height: f64,
}

impl Panel {
    fn draw(&self, canvas: &mut Canvas, row: &StripRow, unit: &str, extent: Option<&Extent>) {
        let under = (self.left, self.top + self.height + 5.0);
        ribbon(canvas, under, (self.width, 9.0), row, extent);
        self.head(canvas, row, unit);
        let (Some(extent), Some((mean, _))) = (extent, row.means()) else {
            return;
        };
        let axis = extent.padded(0.06);
        self.axis(canvas, &axis, row.values.len());
        for (i, value) in row.values.iter().enumerate() {
            let Some(value) = value.filter(|v| v.is_finite()) else { continue };
            let (a, b) = (self.y(&axis, value), self.y(&axis, mean));
            let gap = if self.width >= 6.0 { 1.5 } else { 0.0 };
            let at = (self.left + i as f64 * self.width + gap / 2.0, a.min(b));
            // A line at the mean still shows as a bar one pixel high.
            let size = (self.width - gap, (a - b).abs().max(1.0));
            let hint = format!("{}, line {i}: {} {unit}", row.label, significant(value, 3));
            canvas.rect(at, size, Paint::Fill(ramp(extent.share(value))), &hint);
        }
        let end = self.left + row.values.len() as f64 * self.width;
        let level = self.y(&axis, mean);
        canvas.line((self.left, level), (end, level), "mean");
    }

    /// Whose row it is, as far as there is room for it, and its means.
    fn head(&self, canvas: &mut Canvas, row: &StripRow, unit: &str) {
        let words = row.means().map_or(String::new(), |(mean, near)| {
            let (mean, near) = (significant(mean, 3), significant(near, 3));
            format!("mean {mean} {unit}, nearest quarter {near} {unit}")
        });
        let room = row.values.len() as f64 * self.width - text_width(&words, 12.0) - 14.0;
        let label = shorten(&row.label, BOLD, room);
        let y = self.top - 8.0;
        canvas.text(self.left, y, "b", Anchor::Start, &label);
        let end = self.left + text_width(&label, BOLD) + 14.0;
        canvas.text(end, y, "m", Anchor::Start, &words);
    }

    fn y(&self, axis: &Extent, value: f64) -> f64 {
        self.top + self.height * (1.0 - axis.share(value))
    }

    fn axis(&self, canvas: &mut Canvas, axis: &Extent, values: usize) {
        let end = self.left + values as f64 * self.width;
        for (value, label) in axis.ticks(4) {
            let y = self.y(axis, value);
            canvas.line((self.left, y), (end, y), "grid");
            canvas.text(self.left - 8.0, y + 4.0, "x", Anchor::End, &label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize, lines: usize) -> Strip {
        let row = |r: usize| StripRow {
            label: format!("core {r}"),
            values: (0..lines).map(|i| Some(40.0 + ((i + r) % 8) as f64)).collect(),
        };
        Strip {
            title: "Base".into(),
            unit: "ns".into(),
            index_title: "line".into(),
            rows: (0..rows).map(row).collect(),
        }
    }

    fn hinted(text: &str) -> usize {
        let tree = roxmltree::Document::parse(text).unwrap();
        tree.descendants().filter(|n| n.has_tag_name("rect") && n.has_children()).count()
    }

    #[test]
    fn each_line_has_a_bar_and_each_row_its_means() {
        let text = strip(&sample(2, 64));
        assert_eq!(hinted(&text), 128);
        assert!(text.contains("mean 43.5 ns, nearest quarter 40.5 ns"));
        assert!(text.contains(">56<"), "the index axis reaches the last eighth");
    }

    #[test]
    fn missing_lines_are_hatched_and_have_no_bar() {
        let mut some = sample(1, 64);
        some.rows[0].values[3] = None;
        some.rows[0].values[4] = Some(f64::NAN);
        let text = strip(&some);
        assert_eq!(hinted(&text), 62);
        assert_eq!(text.matches("class=\"missing\"").count(), 2 + 1, "two lines and the legend");
    }

    #[test]
    fn many_rows_become_ribbons() {
        let text = strip(&sample(60, 64));
        assert_eq!(hinted(&text), 0);
        assert_eq!(text.matches("<image").count(), 60, "one picture a row");
        assert!(text.contains(">core 59<"));
    }

    #[test]
    fn the_means_stand_behind_a_label_however_long_it_is() {
        let mut many = sample(1, 64);
        many.rows[0].label = (0..200).map(|core| format!("{core},")).collect();
        let text = strip(&many);
        let tree = roxmltree::Document::parse(&text).unwrap();
        let at = |start: &str| {
            let of = |n: &roxmltree::Node<'_, '_>| n.text().is_some_and(|t| t.starts_with(start));
            let found = tree.descendants().filter(|n| n.has_tag_name("text")).find(of).unwrap();
            (
                found.attribute("x").unwrap().parse::<f64>().unwrap(),
                found.text().unwrap().to_owned(),
            )
        };
        let ((label_x, label), (means_x, means)) = (at("0,1,"), at("mean"));
        assert!(label.ends_with('…') && label_x + text_width(&label, BOLD) <= means_x);
        assert!(means_x + text_width(&means, 12.0) <= FULL_WIDTH);
    }

    #[test]
    fn a_flat_pattern_is_drawn_mid_axis() {
        let mut flat = sample(1, 64);
        flat.rows[0].values.fill(Some(360.0));
        let text = strip(&flat);
        assert_eq!(hinted(&text), 64);
        assert!(text.contains("mean 360 ns, nearest quarter 360 ns"));
    }
}
