//! How values are distributed: small multiples, one panel a level, one outline a series. Shares
//! rather than counts, so that series of different length compare; medians are marked. Values
//! beyond the axis are counted in words, never dropped silently.

use super::canvas::{Anchor, Canvas, FULL_WIDTH, Paint, SERIES_FILL, SERIES_LINE, text_width};
use crate::cast::index;
use crate::fmt::{count, significant};
use crate::scale::{Extent, Scale, bounds};

const PANEL_HEIGHT: f64 = 170.0;
const LEFT: f64 = 44.0;
const MOST_BINS: usize = 72;

/// Distributions side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// What is shown.
    pub title: String,
    /// The unit of every value.
    pub unit: String,
    /// One panel for each thing with an axis of its own: LLC, DRAM.
    pub panels: Vec<HistogramPanel>,
}

/// One panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramPanel {
    /// What the panel shows: `"DRAM"`.
    pub label: String,
    /// Series drawn over one another.
    pub series: Vec<HistogramSeries>,
}

/// One distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramSeries {
    /// Whose values they are: `"core 0"`.
    pub label: String,
    /// The values, in any order; what is not finite is left out.
    pub values: Vec<f64>,
}

impl HistogramSeries {
    /// The values in ascending order.
    fn sorted(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.values.iter().copied().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

/// The middle of ascending values.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(lower / 2.0 + upper / 2.0)
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(index(share * last as f64 + 0.5, last)).copied().unwrap_or(0.0)
}

/// The common axis of a panel and its number of bins. A tail that would squeeze the body of the
/// distribution into a third of the axis is cut at the 0.5th or 99.5th percentile.
fn axis(series: &[Vec<f64>]) -> Option<(Extent, usize)> {
    let mut all: Vec<f64> = series.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let (mut lo, mut hi) = bounds(all.iter().copied())?;
    let (low, high) = (quantile(&all, 0.005), quantile(&all, 0.995));
    let body = high / 2.0 - low / 2.0;
    if body > 0.0 && hi / 2.0 - lo / 2.0 > 1.5 * body {
        (lo, hi) = (lo.max(low - 0.2 * body), hi.min(high + 0.2 * body));
    }
    let extent = Extent::new(lo, hi, Scale::Linear).padded(0.02);
    // Freedman and Diaconis (1981): width 2 IQR n^(-1/3), for the shortest series.
    let shortest = series.iter().map(Vec::len).filter(|n| *n > 0).min().unwrap_or(1);
    let iqr = quantile(&all, 0.75) - quantile(&all, 0.25);
    let width = 2.0 * iqr / (shortest as f64).cbrt();
    let span = extent.hi - extent.lo;
    let bins = if width > 0.0 { index((span / width).ceil(), MOST_BINS).max(12) } else { 24 };
    Some((extent, bins))
}

/// Share of the values in each bin, and how many lie outside the axis.
fn shares(sorted: &[f64], extent: &Extent, bins: usize) -> (Vec<f64>, u64) {
    let (mut shares, mut outside) = (vec![0.0; bins], 0);
    for value in sorted {
        if *value < extent.lo || *value > extent.hi {
            outside += 1;
        } else {
            let bin = index(extent.share(*value) * bins as f64, bins - 1);
            shares[bin] += 1.0 / sorted.len() as f64;
        }
    }
    (shares, outside)
}

/// Draws distributions.
#[must_use]
pub fn histogram(histogram: &Histogram) -> String {
    let mut canvas = Canvas::new();
    let top = canvas.heading(&histogram.title, "");
    let columns = if histogram.panels.len() == 1 { 1 } else { 2 };
    let width = if columns == 1 { 620.0 } else { (FULL_WIDTH - 30.0) / 2.0 };
    let mut y = top;
    let mut words = Vec::new();
    for row in histogram.panels.chunks(columns) {
        let mut tallest = 0.0f64;
        for (i, panel) in row.iter().enumerate() {
            let left = i as f64 * (width + 30.0);
            let plot = Plot { left: left + LEFT, top: y, width: width - LEFT };
            tallest = tallest.max(plot.draw(&mut canvas, panel, &histogram.unit, &mut words));
        }
        y += tallest + 18.0;
    }
    canvas.finish(y, &histogram.title, &words.join(" "))
}

/// Where a panel lies.
struct Plot {
    left: f64,
    top: f64,
    width: f64,
}

impl Plot {
    /// Draws a panel and returns its height.
    fn draw(
        &self,
        canvas: &mut Canvas,
        panel: &HistogramPanel,
        unit: &str,
        words: &mut Vec<String>,
    ) -> f64 {
        canvas.text(self.left, self.top + 12.0, "b", Anchor::Start, &panel.label);
        let sorted: Vec<Vec<f64>> = panel.series.iter().map(HistogramSeries::sorted).collect();
        let top = self.top + 22.0 + 17.0 * panel.series.len() as f64 + 8.0;
        let Some((extent, bins)) = axis(&sorted) else {
            canvas.text(self.left, top, "m", Anchor::Start, "no value");
            words.push(format!("{}: no value.", panel.label));
            return top + 10.0 - self.top;
        };
        let binned: Vec<_> = sorted.iter().map(|s| shares(s, &extent, bins)).collect();
        let tallest = binned.iter().flat_map(|b| b.0.iter().copied()).fold(0.0, f64::max);
        let heights = Extent::new(0.0, 100.0 * tallest.max(1e-6), Scale::Linear);
        self.axes(canvas, &extent, &heights, unit, top);
        let plot = Drawing { left: self.left, top, width: self.width, extent, heights };
        for (i, (shares, _)) in binned.iter().enumerate() {
            plot.outline(canvas, i, shares);
        }
        for (i, series) in panel.series.iter().enumerate() {
            let Some(middle) = median(&sorted[i]) else { continue };
            plot.median(canvas, i, middle);
            let legend = legend_words(series, sorted[i].len(), middle, binned[i].1, unit);
            words.push(format!("{}, {legend}.", panel.label));
            let y = self.top + 22.0 + 17.0 * i as f64;
            canvas.rect((self.left, y), (12.0, 10.0), Paint::Class(SERIES_FILL[i % 8]), "");
            canvas.text(self.left + 18.0, y + 9.0, "l", Anchor::Start, &legend);
        }
        top + PANEL_HEIGHT + 42.0 - self.top
    }

    fn axes(&self, canvas: &mut Canvas, x: &Extent, y: &Extent, unit: &str, top: f64) {
        let base = top + PANEL_HEIGHT;
        for (value, label) in y.ticks(4) {
            let at = base - PANEL_HEIGHT * y.share(value);
            canvas.line((self.left, at), (self.left + self.width, at), "grid");
            canvas.text(self.left - 7.0, at + 4.0, "x", Anchor::End, &format!("{label} %"));
        }
        canvas.line((self.left, base), (self.left + self.width, base), "axis");
        for (value, label) in x.ticks(6) {
            let at = self.left + self.width * x.share(value);
            canvas.line((at, base), (at, base + 4.0), "axis");
            if at + text_width(&label, 6.0) <= self.left + self.width + 8.0 {
                canvas.text(at, base + 17.0, "x", Anchor::Middle, &label);
            }
        }
        let middle = self.left + self.width / 2.0;
        canvas.text(middle, base + 34.0, "m", Anchor::Middle, unit);
    }
}

fn legend_words(series: &HistogramSeries, n: usize, median: f64, out: u64, unit: &str) -> String {
    let beyond = if out == 0 { String::new() } else { format!(", {} beyond the axis", count(out)) };
    let n = count(n as u64);
    format!("{}: median {} {unit}, n = {n}{beyond}", series.label, significant(median, 3))
}

/// The rectangle of a panel's data.
struct Drawing {
    left: f64,
    top: f64,
    width: f64,
    extent: Extent,
    heights: Extent,
}

impl Drawing {
    fn outline(&self, canvas: &mut Canvas, series: usize, shares: &[f64]) {
        let base = self.top + PANEL_HEIGHT;
        let step = self.width / shares.len() as f64;
        let mut points = vec![(self.left, base)];
        for (i, share) in shares.iter().enumerate() {
            let x = self.left + i as f64 * step;
            let y = base - PANEL_HEIGHT * self.heights.share(100.0 * share);
            points.extend([(x, y), (x + step, y)]);
        }
        points.push((self.left + self.width, base));
        let fill = format!("wash {}", SERIES_FILL[series % 8]);
        canvas.path(points.iter().copied(), &fill, true);
        canvas.path(points, &format!("ln {}", SERIES_LINE[series % 8]), false);
    }

    fn median(&self, canvas: &mut Canvas, series: usize, median: f64) {
        let x = self.left + self.width * self.extent.share(median);
        let class = format!("med {}", SERIES_LINE[series % 8]);
        canvas.line((x, self.top - 4.0), (x, self.top + PANEL_HEIGHT), &class);
        let tip = [(x - 4.0, self.top - 9.0), (x + 4.0, self.top - 9.0), (x, self.top - 3.0)];
        canvas.path(tip, SERIES_FILL[series % 8], true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: Vec<f64>) -> Histogram {
        let series = |label: &str| HistogramSeries { label: label.into(), values: values.clone() };
        let panel = |label: &str| HistogramPanel {
            label: label.into(),
            series: vec![series("core 0"), series("core 1")],
        };
        Histogram {
            title: "Lines".into(),
            unit: "ns".into(),
            panels: vec![panel("LLC"), panel("DRAM")],
        }
    }

    #[test]
    fn shares_add_up_to_what_lies_on_the_axis() {
        let sorted: Vec<f64> = (0..1000).map(f64::from).collect();
        let extent = Extent::new(0.0, 899.0, Scale::Linear);
        let (shares, outside) = shares(&sorted, &extent, 20);
        assert_eq!(outside, 100);
        assert!((shares.iter().sum::<f64>() - 0.9).abs() < 1e-9);
    }

    #[test]
    fn each_series_has_an_outline_a_median_and_its_numbers() {
        let text = histogram(&sample((0..501).map(|i| 10.0 + f64::from(i) / 100.0).collect()));
        roxmltree::Document::parse(&text).unwrap();
        assert_eq!(text.matches("class=\"ln s").count(), 4);
        assert_eq!(text.matches("class=\"med s").count(), 4);
        assert!(text.contains(">core 1: median 12.5 ns, n = 501<"));
        assert!(!text.contains("beyond the axis"));
    }

    #[test]
    fn a_heavy_tail_is_cut_and_counted() {
        let mut values: Vec<f64> = (0..1000).map(|i| 300.0 + f64::from(i % 50)).collect();
        values.extend([9000.0, 12000.0]);
        let text = histogram(&sample(values));
        assert!(text.contains("n = 1002, 2 beyond the axis"));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_panel_without_values_says_so() {
        let text = histogram(&sample(vec![f64::NAN]));
        assert_eq!(text.matches(">no value<").count(), 2);
    }
}
