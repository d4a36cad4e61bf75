//! Pictures for the terminal: the matrices and patterns of [`crate::svg`] as coloured or shaded
//! characters. Without colour only ASCII is used. It never asks what the terminal can do: the
//! caller says so.

use std::fmt::Write as _;

use crate::cast::index;
use crate::colour::{Rgb, ramp};
use crate::fmt::significant;
use crate::scale::Extent;
use crate::svg::{Cluster, HeatMap, Strip};

/// What colours the terminal takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// None: shades of ASCII characters.
    #[default]
    None,
    /// The 256 colours of xterm.
    Ansi256,
    /// 24-bit colours.
    TrueColour,
}

/// From near to far, without colour.
const SHADES: &[u8; 8] = b".:-=+*#@";
/// From near to far, as heights.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A missing number in a picture.
const HATCH: char = '/';
const LONGEST_LABEL: usize = 24;
/// Rows of a matrix that has clusters to pool them by; more do not fit on a screen.
const TALLEST: usize = 40;
/// Widest picture: beyond this nobody reads a line.
const WIDEST: usize = 500;

/// Text without control characters, so that no name from outside can steer the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A label cut to `width` characters.
fn label(text: &str, width: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= width {
        return text;
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "~"
}

impl Colour {
    /// `text` on a background of `colour`.
    fn on(self, colour: Rgb, text: &str) -> String {
        let Rgb(r, g, b) = colour;
        let ink = if colour.wants_white_text() { 97 } else { 30 };
        match self {
            Self::None => text.to_owned(),
            Self::Ansi256 => format!("\x1b[{ink};48;5;{}m{text}\x1b[0m", colour.ansi256()),
            Self::TrueColour => format!("\x1b[{ink};48;2;{r};{g};{b}m{text}\x1b[0m"),
        }
    }

    /// `text` in `colour`.
    fn ink(self, colour: Rgb, text: &str) -> String {
        let Rgb(r, g, b) = colour;
        match self {
            Self::None => text.to_owned(),
            Self::Ansi256 => format!("\x1b[38;5;{}m{text}\x1b[0m", colour.ansi256()),
            Self::TrueColour => format!("\x1b[38;2;{r};{g};{b}m{text}\x1b[0m"),
        }
    }
}

fn shade(share: f64) -> char {
    char::from(SHADES[index(share * SHADES.len() as f64, SHADES.len() - 1)])
}

/// The words under a picture: what the colours mean.
fn key(extent: Option<&Extent>, unit: &str, colour: Colour) -> String {
    let Some(extent) = extent else { return "no value".into() };
    let steps = 20;
    let mut bar = String::new();
    for i in 0..steps {
        let share = (f64::from(i) + 0.5) / f64::from(steps);
        match colour {
            Colour::None => bar.push(shade(share)),
            _ => bar.push_str(&colour.on(ramp(share), " ")),
        }
    }
    let (lo, hi) = (significant(extent.lo, 3), significant(extent.hi, 3));
    format!("{lo} [{bar}] {hi} {}   {HATCH} missing", clean(unit))
}

/// Writes the key under the marks, whose labels are `left` characters wide, or further left where it would not fit.
fn under(
    out: &mut String,
    extent: Option<&Extent>,
    unit: &str,
    colour: Colour,
    left: usize,
    width: usize,
) {
    let length = key(extent, unit, Colour::None).chars().count();
    let indent = left.min(width.saturating_sub(length + 1));
    _ = write!(out, "{:indent$} {}", "", key(extent, unit, colour));
}

/// A matrix, at most `width` characters wide. Numbers are written into the cells where they fit;
/// larger matrices are shaded. Where even one character a cell is too much, or there are more rows than a screen has, a
/// mark is the mean of a cluster of rows and one of columns, or of a square of cells where there are no clusters. That
/// is said. An axis that has room is never pooled.
#[must_use]
pub fn heat_map(map: &HeatMap, colour: Colour, width: usize) -> String {
    let width = width.clamp(20, WIDEST);
    let pooled = pooled(map, width);
    let drawn = pooled.as_ref().unwrap_or(map);
    let extent = drawn.extent();
    let name = |labels: &[String]| labels.iter().map(|l| clean(l).chars().count()).max();
    let left = name(&drawn.rows).unwrap_or(0).min(LONGEST_LABEL);
    let cell = name(&drawn.columns).unwrap_or(0).clamp(6, 10) + 1;
    let columns = drawn.columns.len();
    let mut out = String::new();
    let heading = format!("{} ({})", clean(&map.title), clean(&map.unit));
    _ = writeln!(out, "{heading}");
    let square = pooled.is_some() && drawn.rows == drawn.columns;
    if !square && left + 1 + columns * cell <= width && columns <= 20 && drawn.rows.len() <= 40 {
        written(&mut out, drawn, extent.as_ref(), colour, left, cell);
    } else {
        shaded(&mut out, drawn, extent.as_ref(), colour, left, width);
    }
    if pooled.is_some() {
        let order = if square { "; columns are in the order of the rows" } else { "" };
        let words = format!("each mark is the mean over all that its row and column name{order}");
        for line in crate::lines::wrap(&words, width.saturating_sub(left + 1).max(20)) {
            _ = writeln!(out, "{:left$} {line}", "");
        }
    }
    under(&mut out, extent.as_ref(), &map.unit, colour, left, width);
    out
}

/// The matrix with a row a cluster, and a column a cluster, where it has more of them than fit; `None` where nothing is
/// to be pooled or it has no clusters. The innermost level that fits is taken.
fn pooled(map: &HeatMap, width: usize) -> Option<HeatMap> {
    let room = width.saturating_sub(LONGEST_LABEL + 1).max(1);
    let rows = pooling(&map.row_clusters, map.rows.len(), TALLEST.min(room));
    // A mark of two characters is a square.
    let columns = pooling(&map.column_clusters, map.columns.len(), room / 2);
    if rows.is_none() && columns.is_none() {
        return None;
    }
    // Both sides of a matrix of pairs are pooled alike.
    let (rows, columns) = if map.row_clusters == map.column_clusters {
        let coarser = [rows, columns].into_iter().flatten().min_by_key(|level| level.len());
        (coarser, coarser)
    } else {
        (rows, columns)
    };
    let (row_names, row_of) = side(rows, &map.rows);
    let (column_names, column_of) = side(columns, &map.columns);
    let mut sums = vec![(0.0, 0.0); row_names.len() * column_names.len()];
    for (row, to_row) in row_of.iter().enumerate() {
        for (column, to_column) in column_of.iter().enumerate() {
            if let Some(value) = map.cell(row, column) {
                let sum = &mut sums[to_row * column_names.len() + to_column];
                *sum = (sum.0 + value, sum.1 + 1.0);
            }
        }
    }
    Some(HeatMap {
        title: map.title.clone(),
        unit: map.unit.clone(),
        rows: row_names,
        columns: column_names,
        cells: sums.into_iter().map(|(sum, n)| (n > 0.0).then(|| sum / n)).collect(),
        missing: map.missing.clone(),
        ..HeatMap::default()
    })
}

/// The level by which a side is pooled: the innermost that fits, else the outermost. `None` where all fit as they are.
fn pooling(levels: &[Vec<Cluster>], cells: usize, room: usize) -> Option<&[Cluster]> {
    if cells <= room {
        return None;
    }
    levels.iter().find(|level| level.len() <= room).or(levels.last()).map(Vec::as_slice)
}

/// The names of a pooled side, and which of these each row or column belongs to.
fn side(clusters: Option<&[Cluster]>, labels: &[String]) -> (Vec<String>, Vec<usize>) {
    let Some(clusters) = clusters else {
        return (labels.to_vec(), (0..labels.len()).collect());
    };
    let names = clusters.iter().map(|cluster| cluster.label.clone()).collect();
    let of = clusters.iter().enumerate().flat_map(|(nth, one)| std::iter::repeat_n(nth, one.cells));
    (names, of.take(labels.len()).collect())
}

/// Cells with their numbers.
fn written(
    out: &mut String,
    map: &HeatMap,
    extent: Option<&Extent>,
    colour: Colour,
    left: usize,
    cell: usize,
) {
    _ = write!(out, "{:left$} ", "");
    for name in &map.columns {
        _ = write!(out, "{:>cell$}", label(name, cell - 1));
    }
    out.push('\n');
    for (r, name) in map.rows.iter().enumerate() {
        _ = write!(out, "{:left$} ", label(name, left));
        for c in 0..map.columns.len() {
            match (map.cell(r, c), extent) {
                (Some(value), Some(extent)) => {
                    let share = extent.share(value);
                    let mut text = significant(value, 3);
                    if colour == Colour::None {
                        // The shade behind the number keeps the picture readable at a glance.
                        text.push(shade(share));
                    } else {
                        text.push(' ');
                    }
                    out.push_str(&colour.on(ramp(share), &format!("{text:>cell$}")));
                }
                _ if colour == Colour::None => _ = write!(out, "{HATCH:>cell$}"),
                // The number's last digit stands one before the edge of its colour.
                _ => _ = write!(out, "{HATCH:>0$} ", cell - 1),
            }
        }
        out.push('\n');
    }
}

/// Cells as marks. Where there are too many columns some are averaged, and as many rows of a square matrix.
fn shaded(
    out: &mut String,
    map: &HeatMap,
    extent: Option<&Extent>,
    colour: Colour,
    left: usize,
    width: usize,
) {
    let room = width.saturating_sub(left + 1).max(1);
    let across = map.columns.len().div_ceil(room).max(1);
    let square = map.rows == map.columns;
    let down = if square { across } else { 1 };
    // Two characters make a square; three leave room for the numbers of a few columns.
    let columns = map.columns.len().div_ceil(across);
    let mark =
        (1..=if square { 2 } else { 3 }).rev().find(|mark| columns * mark <= room).unwrap_or(1);
    let numbers = numbers(&map.columns, mark).filter(|_| across == 1);
    if let Some(numbers) = &numbers {
        _ = writeln!(out, "{:left$} {numbers}", "");
    }
    for top in (0..map.rows.len()).step_by(down) {
        _ = write!(out, "{:left$} ", label(&map.rows[top], left));
        for first in (0..map.columns.len()).step_by(across) {
            let block =
                (top..top + down).flat_map(|r| (first..first + across).map(move |c| (r, c)));
            let inside = block.filter(|(r, c)| *r < map.rows.len() && *c < map.columns.len());
            let values: Vec<f64> = inside.filter_map(|(r, c)| map.cell(r, c)).collect();
            let mean = values.iter().map(|v| v / values.len() as f64).sum::<f64>();
            match extent.filter(|_| !values.is_empty()) {
                None => out.extend(std::iter::repeat_n(HATCH, mark)),
                Some(extent) => {
                    let share = extent.share(mean);
                    let sign = if colour == Colour::None { shade(share) } else { ' ' };
                    let text: String = std::iter::repeat_n(sign, mark).collect();
                    out.push_str(&colour.on(ramp(share), &text));
                }
            }
        }
        out.push('\n');
    }
    let mean = format!("each mark is the mean of {down} x {across} cells");
    let ends = map.columns.first().zip(map.columns.last());
    let ends = ends.map(|(first, last)| format!("columns are {} to {}", clean(first), clean(last)));
    let said = [(across > 1).then_some(mean), ends.filter(|_| !square && numbers.is_none())];
    for words in said.into_iter().flatten() {
        let indent = left.min(width.saturating_sub(words.chars().count() + 1));
        _ = writeln!(out, "{:indent$} {words}", "");
    }
}

/// What columns are by their common word and their numbers, `mark` characters each, where each ends with a number that
/// leaves a space: `"region"` over `" 0 1 2"`.
fn numbers(columns: &[String], mark: usize) -> Option<String> {
    let digits = |label: &str| label.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (word, _) = columns.first().map(|label| label.split_at(digits(label)))?;
    let mut line = String::new();
    for label in columns {
        let (before, number) = label.split_at(digits(label));
        if before != word || number.is_empty() || number.len() >= mark {
            return None;
        }
        _ = write!(line, "{number:>mark$}");
    }
    Some(format!("{line}  {}", clean(word.trim_end())))
}

/// Patterns of lines, a row each: one mark a line, or the mean of some lines where `width` is
/// too small; then the row's mean and that of its nearest quarter.
#[must_use]
pub fn strip(strip: &Strip, colour: Colour, width: usize) -> String {
    let width = width.clamp(20, WIDEST);
    let extent = strip.extent();
    let names = strip.rows.iter().map(|r| clean(&r.label).chars().count()).max();
    let left = names.unwrap_or(0).min(LONGEST_LABEL);
    let room = width.saturating_sub(left + 1).max(1);
    let longest = strip.rows.iter().map(|r| r.values.len()).max().unwrap_or(0);
    let group = longest.div_ceil(room).max(1);
    let mut out = format!("{} ({})\n", clean(&strip.title), clean(&strip.unit));
    for row in &strip.rows {
        _ = write!(out, "{:left$} ", label(&row.label, left));
        for lines in row.values.chunks(group) {
            let known: Vec<f64> =
                lines.iter().flatten().copied().filter(|v| v.is_finite()).collect();
            let mean = known.iter().map(|v| v / known.len() as f64).sum::<f64>();
            match extent.as_ref().filter(|_| !known.is_empty()) {
                None => out.push(HATCH),
                Some(extent) => out.push_str(&height(extent.share(mean), colour)),
            }
        }
        if let Some((mean, near)) = row.means() {
            let (mean, near) = (significant(mean, 3), significant(near, 3));
            let words = format!("mean {mean}, nearest quarter {near}");
            let used = left + 1 + row.values.len().div_ceil(group);
            let space = if used + 2 + words.len() <= width {
                "  ".to_owned()
            } else {
                format!("\n{:left$} ", "")
            };
            _ = write!(out, "{space}{words}");
        }
        out.push('\n');
    }
    if group > 1 {
        _ = writeln!(out, "{:left$} each mark is the mean of {group} lines", "");
    }
    under(&mut out, extent.as_ref(), &strip.unit, colour, left, width);
    out
}

fn height(share: f64, colour: Colour) -> String {
    if colour == Colour::None {
        return shade(share).to_string();
    }
    let block = HEIGHTS[index(share * HEIGHTS.len() as f64, HEIGHTS.len() - 1)];
    colour.ink(ramp(share), &block.to_string())
}

/// A bar of `width` characters, filled to `share` (0 to 1); all hatched if there is no share.
#[must_use]
pub fn bar(share: Option<f64>, width: usize, colour: Colour) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let width = width.min(WIDEST);
    let Some(share) = share.filter(|s| s.is_finite()) else {
        return std::iter::repeat_n(HATCH, width).collect();
    };
    let share = share.clamp(0.0, 1.0);
    if colour == Colour::None {
        let full = index(share * width as f64 + 0.5, width);
        return "#".repeat(full) + &".".repeat(width - full);
    }
    let eighths = index(share * width as f64 * 8.0 + 0.5, width * 8);
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    let used = text.chars().count();
    colour.ink(ramp(share), &text) + &" ".repeat(width - used)
}

#[cfg(test)]
mod tests;
