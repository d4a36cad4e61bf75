//! Bars and boxes in groups: small multiples, two panels a row, each with its own vertical axis. A bar is a
//! stack of layers that share colours over all panels; a box shows the quartiles, the median and the
//! extremes of its values. What is not a number is left out, and its place stays empty.

use super::canvas::{Anchor, Canvas, FULL_WIDTH, Paint, SERIES_FILL, shorten};
use super::legend;
use crate::fmt::significant;
use crate::scale::{Extent, Scale, bounds};

/// Room for the ticks of a panel.
const LEFT: f64 = 52.0;
/// Height of a panel's data.
const HEIGHT: f64 = 170.0;
/// Room between two panels.
const GAP: f64 = 28.0;

/// Panels of bars or boxes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grouped {
    /// What is shown.
    pub title: String,
    /// Of what, with its unit: `"bytes moved, TB"`.
    pub unit: String,
    /// What each layer of a bar shows.
    pub layers: Vec<String>,
    /// The panels.
    pub panels: Vec<GroupPanel>,
}

/// One panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupPanel {
    /// What it shows.
    pub label: String,
    /// Its groups, from left to right.
    pub groups: Vec<Group>,
}

/// Marks that stand together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Written below them, a line for each line of the text.
    pub label: String,
    /// The marks.
    pub marks: Vec<GroupMark>,
}

/// One mark.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupMark {
    /// Layers on top of one another.
    Stack {
        /// Shown when pointed at.
        hint: String,
        /// One value for each layer.
        values: Vec<f64>,
    },
    /// The distribution of some values.
    Box {
        /// Shown when pointed at.
        hint: String,
        /// The values.
        values: Vec<f64>,
    },
}

impl GroupMark {
    fn reach(&self) -> f64 {
        match self {
            Self::Stack { values, .. } => values.iter().copied().filter(|v| *v > 0.0).sum(),
            Self::Box { values, .. } => {
                bounds(values.iter().copied()).map_or(f64::NAN, |(_, most)| most)
            }
        }
    }
}

/// Draws panels of bars or boxes.
#[must_use]
pub fn grouped(figure: &Grouped) -> String {
    let mut canvas = Canvas::new();
    let mut y = canvas.heading(&figure.title, &figure.unit);
    let entries: Vec<_> = figure
        .layers
        .iter()
        .enumerate()
        .map(|(i, layer)| (Paint::Class(SERIES_FILL[i % 8]), layer.clone()))
        .collect();
    y += legend::swatches(&mut canvas, 0.0, y, &entries) + 8.0;
    let width = (FULL_WIDTH - GAP) / 2.0;
    for row in figure.panels.chunks(2) {
        let mut lines = 1;
        for (i, panel) in row.iter().enumerate() {
            let plot = Plot { left: i as f64 * (width + GAP) + LEFT, top: y, width: width - LEFT };
            plot.draw(&mut canvas, panel);
            let most = panel.groups.iter().map(|group| group.label.lines().count()).max();
            lines = lines.max(most.unwrap_or(1));
        }
        y += HEIGHT + 40.0 + 14.0 * lines as f64;
    }
    let labels: Vec<&str> = figure.panels.iter().map(|panel| panel.label.as_str()).collect();
    let words = format!("{}. Panels: {}.", figure.unit, labels.join(", "));
    canvas.finish(y, &figure.title, &words)
}

/// The rectangle of a panel.
struct Plot {
    left: f64,
    top: f64,
    width: f64,
}

impl Plot {
    fn draw(&self, canvas: &mut Canvas, panel: &GroupPanel) {
        canvas.text(self.left, self.top + 12.0, "b", Anchor::Start, &panel.label);
        let base = self.top + 20.0 + HEIGHT;
        let reaches = panel.groups.iter().flat_map(|group| &group.marks).map(GroupMark::reach);
        let Some((_, most)) = bounds(reaches).filter(|(_, most)| *most > 0.0) else {
            canvas.text(self.left, self.top + 40.0, "m", Anchor::Start, "no value");
            return;
        };
        let heights = Extent::new(0.0, most * 1.04, Scale::Linear);
        let at = |value: f64| base - HEIGHT * heights.share(value);
        for (value, label) in heights.ticks(5) {
            canvas.line((self.left, at(value)), (self.left + self.width, at(value)), "grid");
            canvas.text(self.left - 7.0, at(value) + 4.0, "x", Anchor::End, &label);
        }
        canvas.line((self.left, base), (self.left + self.width, base), "axis");
        let room = self.width / panel.groups.len().max(1) as f64;
        for (i, group) in panel.groups.iter().enumerate() {
            let left = self.left + i as f64 * room;
            for (line, text) in group.label.lines().enumerate() {
                let y = base + 14.0 + 13.0 * line as f64;
                let text = shorten(text, 11.0, room + 6.0);
                canvas.text(left + room / 2.0, y, "x", Anchor::Middle, &text);
            }
            let each = (room * 0.84 / group.marks.len().max(1) as f64).min(26.0);
            let start = left + (room - each * group.marks.len() as f64) / 2.0;
            for (j, mark) in group.marks.iter().enumerate() {
                let x = start + j as f64 * each;
                draw_mark(canvas, mark, x + 0.6, each - 1.2, j, &at);
            }
        }
    }
}

fn draw_mark(
    canvas: &mut Canvas,
    mark: &GroupMark,
    x: f64,
    width: f64,
    place: usize,
    at: &impl Fn(f64) -> f64,
) {
    match mark {
        GroupMark::Stack { hint, values } => {
            let mut below = 0.0;
            for (layer, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let (low, high) = (at(below), at(below + value));
                below += value;
                let hint = format!("{hint}: {}", significant(*value, 3));
                let paint = Paint::Class(SERIES_FILL[layer % 8]);
                canvas.rect((x, high), (width, low - high), paint, &hint);
            }
        }
        GroupMark::Box { hint, values } => {
            let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            sorted.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else { return };
            let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share));
            let centre = x + width / 2.0;
            canvas.line((centre, at(*least)), (centre, at(*most)), "axis");
            for end in [least, most] {
                canvas.line((x + 1.0, at(*end)), (x + width - 1.0, at(*end)), "axis");
            }
            let words = format!(
                "{hint}: least {}, median {}, most {}",
                significant(*least, 3),
                significant(middle, 3),
                significant(*most, 3)
            );
            let paint = Paint::Class(SERIES_FILL[place % 8]);
            canvas.rect((x, at(high)), (width, (at(low) - at(high)).max(1.5)), paint, &words);
            canvas.line((x, at(middle)), (x + width, at(middle)), "mean");
        }
    }
}

/// A quantile of ascending values, between neighbours in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = crate::cast::index(place.floor(), sorted.len() - 1);
    let above = (below + 1).min(sorted.len() - 1);
    let part = place - below as f64;
    sorted[below] * (1.0 - part) + sorted[above] * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_as_high_as_its_layers_and_nothing_is_no_value() {
        let stack = GroupMark::Stack { hint: String::new(), values: vec![1.0, f64::NAN, 2.0] };
        assert!((stack.reach() - 3.0).abs() < 1e-12);
        assert!((quantile(&[1.0, 2.0, 3.0, 4.0], 0.5) - 2.5).abs() < 1e-12);
        let panel = |marks| GroupPanel {
            label: "one".into(),
            groups: vec![Group { label: "16\nDFT".into(), marks }],
        };
        let draw = |marks| grouped(&Grouped { panels: vec![panel(marks)], ..Grouped::default() });
        assert!(draw(vec![stack]).contains("class=\"f2\""));
        assert!(draw(Vec::new()).contains("no value"));
    }
}
