//! Values over an axis, with bands for intervals: fits over the number of lines, relative
//! latency over addresses. Points that an axis cannot show (missing, or not positive on a
//! logarithmic axis) break the line rather than bend it.

use super::canvas::{
    Anchor, Canvas, FULL_WIDTH, Paint, SERIES_FILL, SERIES_LINE, shorten, text_width,
};
use super::legend;
use crate::cast::index;
use crate::fmt::bytes;
use crate::scale::{Extent, Scale, bounds};

/// Room for the numbers and the title of the vertical axis, at least, and what they keep free.
const LEFT: f64 = 62.0;
const TITLE: f64 = 20.0;
const GAP: f64 = 8.0;
/// Of the numbers (figure.css).
const NUMBERS: f64 = 11.0;
const HEIGHT: f64 = 270.0;
/// Height of one of several panels.
const PANEL_HEIGHT: f64 = 92.0;

/// How the ticks of an axis are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TickText {
    /// As numbers.
    #[default]
    Plain,
    /// As bytes, at multiples or powers of two.
    Bytes,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit: `"latency, ns"`.
    pub title: String,
    /// How it is divided.
    pub scale: Scale,
    /// Its ends; the data's if `None`.
    pub range: Option<(f64, f64)>,
    /// How its ticks are written.
    pub ticks: TickText,
}

/// One point; `None` where there is no value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Value there; `None` breaks the line.
    pub y: Option<f64>,
    /// Interval of the value, drawn as a band (lines) or a whisker (dots).
    pub band: Option<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points.
    #[default]
    Line,
    /// A horizontal step a point, for values that hold for a whole block.
    Steps,
    /// Dots, for measured values.
    Dots,
}

/// One series. It is drawn as given: thin out more than some thousand points first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineSeries {
    /// What it shows; several series with the same label share a colour and a legend entry.
    pub label: String,
    /// Its points in ascending order of `x`.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub mark: Mark,
}

/// Values over an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// What is shown.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series.
    pub series: Vec<LineSeries>,
    /// One panel for each label, on the same axes, instead of all in one: for series that would
    /// hide one another.
    pub apart: bool,
}

impl LineChart {
    /// Each different label once, in the order of appearance.
    fn labels(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for series in &self.series {
            if !labels.contains(&series.label.as_str()) {
                labels.push(&series.label);
            }
        }
        labels
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|s| &s.points)
    }
}

fn extent(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<Extent> {
    let asked = axis.range.filter(|r| r.0.is_finite() && r.1.is_finite());
    let shown = values.filter(|v| axis.scale == Scale::Linear || *v > 0.0);
    let (lo, hi) = asked.or_else(|| bounds(shown))?;
    let extent = Extent::new(lo, hi, axis.scale);
    Some(extent)
}

/// Draws values over an axis.
#[must_use]
pub fn line_chart(chart: &LineChart) -> String {
    let mut canvas = Canvas::new();
    let mut top = canvas.heading(&chart.title, "");
    let labels = chart.labels();
    let x = extent(&chart.x, chart.points().map(|p| p.x));
    let values = |p: &Point| {
        let band = p.band.map_or([f64::NAN; 2], |b| [b.0, b.1]);
        [p.y.unwrap_or(f64::NAN), band[0], band[1]]
    };
    let y = extent(&chart.y, chart.points().flat_map(values));
    let (Some(x), Some(y)) = (x, y) else {
        canvas.text(LEFT, top + 20.0, "m", Anchor::Start, "no value");
        return canvas.finish(top + 30.0, &chart.title, "No value.");
    };
    let pad = |axis: &Axis, e: Extent| if axis.range.is_some() { e } else { e.padded(0.03) };
    let (x, y) = (pad(&chart.x, x), pad(&chart.y, y));
    let left = left(&chart.y, &y, if chart.apart { PANEL_HEIGHT } else { HEIGHT });
    let first = top;
    if chart.apart {
        for (i, label) in labels.iter().enumerate() {
            canvas.text(left, top + 12.0, "b", Anchor::Start, label);
            let last = i + 1 == labels.len();
            let plot = Plot { left, top: top + 20.0, height: PANEL_HEIGHT, x, y };
            plot.panel(&mut canvas, chart, &labels, Some(label), last);
            top += PANEL_HEIGHT + if last { 20.0 } else { 34.0 };
        }
    } else {
        top += legend(&mut canvas, &labels, left, top) + 6.0;
        let plot = Plot { left, top, height: HEIGHT, x, y };
        plot.panel(&mut canvas, chart, &labels, None, true);
        top += HEIGHT;
    }
    let title = shorten(&chart.y.title, 12.0, top - first);
    canvas.text_turned(12.0, (first + top) / 2.0, "m", Anchor::Middle, &title, true);
    let series = format!("{} series: {}", labels.len(), labels.join(", "));
    let words = format!("{} over {}. {series}.", chart.y.title, chart.x.title);
    canvas.finish(top + 40.0, &chart.title, &words)
}

/// Where the data begin: right of the numbers of the vertical axis.
fn left(axis: &Axis, y: &Extent, height: f64) -> f64 {
    let labels = ticks(axis, y, wanted(height)).into_iter().map(|(_, label)| label);
    let widest = labels.map(|label| text_width(&label, NUMBERS)).fold(0.0, f64::max);
    LEFT.max(TITLE + widest + GAP)
}

/// Ticks of a vertical axis, about.
fn wanted(height: f64) -> usize {
    if height < HEIGHT { 3 } else { 6 }
}

fn legend(canvas: &mut Canvas, labels: &[&str], left: f64, top: f64) -> f64 {
    let named = labels.iter().enumerate().filter(|(_, label)| !label.is_empty());
    let entries: Vec<_> =
        named.map(|(i, l)| (Paint::Class(SERIES_FILL[i % 8]), (*l).to_owned())).collect();
    legend::swatches(canvas, left, top, &entries)
}

/// The rectangle of the data and its axes.
struct Plot {
    left: f64,
    top: f64,
    height: f64,
    x: Extent,
    y: Extent,
}

impl Plot {
    fn width(&self) -> f64 {
        FULL_WIDTH - self.left - 10.0
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let right = self.left + self.width() * self.x.share(x);
        (right, self.top + self.height * (1.0 - self.y.share(y)))
    }

    /// The axes and the series of one label, or of all.
    fn panel(
        &self,
        canvas: &mut Canvas,
        chart: &LineChart,
        labels: &[&str],
        only: Option<&str>,
        last: bool,
    ) {
        self.vertical_axis(canvas, &chart.y);
        self.horizontal_axis(canvas, &chart.x, last);
        for series in chart.series.iter().filter(|s| only.is_none_or(|o| o == s.label)) {
            let colour = labels.iter().position(|l| *l == series.label).unwrap_or(0) % 8;
            self.draw(canvas, series, colour);
        }
    }

    fn vertical_axis(&self, canvas: &mut Canvas, axis: &Axis) {
        let right = self.left + self.width();
        for (value, label) in ticks(axis, &self.y, wanted(self.height)) {
            let y = self.at(self.x.lo, value).1;
            canvas.line((self.left, y), (right, y), "grid");
            canvas.text(self.left - GAP, y + 4.0, "x", Anchor::End, &label);
        }
    }

    /// The horizontal axis, with its numbers and title if `written`.
    fn horizontal_axis(&self, canvas: &mut Canvas, axis: &Axis, written: bool) {
        let base = self.top + self.height;
        canvas.line((self.left, base), (self.left + self.width(), base), "axis");
        for (value, label) in ticks(axis, &self.x, 10) {
            let x = self.at(value, self.y.lo).0;
            canvas.line((x, base), (x, base + 4.0), "axis");
            if written {
                canvas.text(x, base + 17.0, "x", Anchor::Middle, &label);
            }
        }
        if written {
            let middle = self.left + self.width() / 2.0;
            canvas.text(middle, base + 36.0, "m", Anchor::Middle, &axis.title);
        }
    }

    fn draw(&self, canvas: &mut Canvas, series: &LineSeries, colour: usize) {
        let drawn = |p: &&Point| self.x.shows(p.x) && p.y.is_some_and(|y| self.y.shows(y));
        if series.mark == Mark::Dots {
            for point in series.points.iter().filter(drawn) {
                self.dot(canvas, point, colour);
            }
            return;
        }
        let line = format!("ln {}", SERIES_LINE[colour]);
        let wash = format!("wash {}", SERIES_FILL[colour]);
        for run in series.points.split(|p| !drawn(&p)) {
            let upper = self.outline(run, series.mark, |p| p.band.map(|b| b.1).or(p.y));
            let lower = self.outline(run, series.mark, |p| p.band.map(|b| b.0).or(p.y));
            if run.iter().any(|p| p.band.is_some()) {
                canvas.path(upper.into_iter().chain(lower.into_iter().rev()), &wash, true);
            }
            let middle = self.outline(run, series.mark, |p| p.y);
            if let [(x, y)] = middle[..] {
                canvas.circle((x, y), 2.0, Paint::Class(SERIES_FILL[colour]), "");
            } else {
                canvas.path(middle, &line, false);
            }
        }
    }

    /// The corners of a line or of steps through one value of each point.
    fn outline(
        &self,
        run: &[Point],
        mark: Mark,
        value: impl Fn(&Point) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let places: Vec<_> =
            run.iter().map(|p| self.at(p.x, value(p).unwrap_or(self.y.lo))).collect();
        if mark != Mark::Steps {
            return places;
        }
        // A step reaches half way to both neighbours.
        let half = |a: usize, b: usize| (places[a].0 + places[b].0) / 2.0;
        let steps = places.iter().enumerate().flat_map(|(i, (x, y))| {
            let left = if i > 0 { half(i - 1, i) } else { *x };
            let right = if i + 1 < places.len() { half(i, i + 1) } else { *x };
            [(left, *y), (right, *y)]
        });
        steps.collect()
    }

    fn dot(&self, canvas: &mut Canvas, point: &Point, colour: usize) {
        let Some(value) = point.y else { return };
        if let Some((lo, hi)) = point.band {
            let class = format!("fine {}", SERIES_LINE[colour]);
            canvas.line(self.at(point.x, lo), self.at(point.x, hi), &class);
        }
        let hint = format!(
            "{}: {}",
            crate::fmt::significant(point.x, 4),
            crate::fmt::significant(value, 3)
        );
        let at = self.at(point.x, value);
        canvas.circle(at, 3.0, Paint::Class(SERIES_FILL[colour]), &hint);
    }
}

/// An axis's ticks as it wants them written.
fn ticks(axis: &Axis, extent: &Extent, wanted: usize) -> Vec<(f64, String)> {
    if axis.ticks == TickText::Plain {
        return extent.ticks(wanted);
    }
    let write = |value: f64| {
        let whole = index(value.max(0.0), usize::MAX);
        (value, bytes(u64::try_from(whole).unwrap_or(u64::MAX)))
    };
    if axis.scale == Scale::Linear {
        return extent.binary_ticks(wanted).into_iter().map(write).collect();
    }
    extent.ticks(wanted).into_iter().map(|tick| write(tick.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<Point>, mark: Mark) -> LineChart {
        let series = LineSeries { label: "core 0".into(), points, mark };
        LineChart { title: "Fit".into(), series: vec![series], ..LineChart::default() }
    }

    fn line(values: &[f64]) -> Vec<Point> {
        let point = |(i, y): (usize, &f64)| Point { x: i as f64, y: Some(*y), band: None };
        values.iter().enumerate().map(point).collect()
    }

    #[test]
    fn a_missing_point_breaks_the_line() {
        let mut points = line(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(line_chart(&chart(points.clone(), Mark::Line)).matches("class=\"ln").count(), 1);
        points[2].y = None;
        let broken = line_chart(&chart(points, Mark::Line));
        assert_eq!(broken.matches("class=\"ln").count(), 2);
        roxmltree::Document::parse(&broken).unwrap();
    }

    #[test]
    fn a_logarithmic_axis_leaves_out_what_it_cannot_show() {
        let mut chart = chart(line(&[0.0, 10.0, 100.0, 1000.0]), Mark::Dots);
        chart.y.scale = Scale::Log10;
        let text = line_chart(&chart);
        assert_eq!(text.matches("<circle").count(), 3);
        assert!(text.contains(">1000<"));
    }

    #[test]
    fn bands_and_whiskers_show_intervals() {
        let mut points = line(&[5.0, 6.0]);
        for point in &mut points {
            point.band = point.y.map(|y| (y - 1.0, y + 1.0));
        }
        assert!(line_chart(&chart(points.clone(), Mark::Line)).contains("class=\"wash f0\""));
        let dots = line_chart(&chart(points, Mark::Dots));
        assert_eq!(dots.matches("class=\"fine s0\"").count(), 2);
    }

    #[test]
    fn series_of_one_label_share_a_colour_and_a_legend_entry() {
        let mut chart = chart(line(&[1.0, 2.0]), Mark::Dots);
        chart.series.push(LineSeries { mark: Mark::Line, ..chart.series[0].clone() });
        let text = line_chart(&chart);
        assert_eq!(text.matches(">core 0</text>").count(), 1);
        assert!(text.contains("class=\"ln s0\""));
    }

    #[test]
    fn series_apart_have_a_panel_each_and_one_written_axis() {
        let mut chart = chart(line(&[1.0, 2.0]), Mark::Steps);
        chart.series.push(LineSeries { label: "core 1".into(), ..chart.series[0].clone() });
        chart.x.title = "offset".into();
        chart.apart = true;
        let text = line_chart(&chart);
        assert_eq!(text.matches("class=\"axis\"").count() % 2, 0);
        assert_eq!(text.matches(">offset</text>").count(), 1);
        assert_eq!(text.matches("class=\"b\">core ").count(), 2);
        assert!(text.contains("class=\"ln s0\"") && text.contains("class=\"ln s1\""));
    }

    #[test]
    fn bytes_are_ticks_of_a_binary_axis() {
        let mut chart = chart(line(&[1.0, 2.0, 3.0]), Mark::Line);
        chart.x = Axis {
            scale: Scale::Log2,
            ticks: TickText::Bytes,
            range: Some((1024.0, 4_194_304.0)),
            ..Axis::default()
        };
        let text = line_chart(&chart);
        assert!(text.contains(">1 MiB<") || text.contains(">2 MiB<"));
    }
    #[test]
    fn large_numbers_leave_room_for_the_title() {
        let text = line_chart(&chart(line(&[1.0, 90_000_000.0]), Mark::Line));
        let document = roxmltree::Document::parse(&text).unwrap();
        let numbers =
            document.descendants().filter(|node| node.attribute("text-anchor") == Some("end"));
        let lefts: Vec<f64> = numbers
            .map(|node| {
                let right: f64 = node.attribute("x").unwrap().parse().unwrap();
                right - text_width(node.text().unwrap_or(""), NUMBERS)
            })
            .collect();
        assert!(lefts.len() > 2 && lefts.iter().all(|left| *left >= TITLE - 0.1), "{lefts:?}");
    }
}
