//! Pictures for the terminal: the matrices and patterns of [`crate::svg`] as coloured or shaded
//! characters. Without colour only ASCII is used. It never asks what the terminal can do: the
//! caller says so.

use std::fmt::Write as _;

use crate::cast::index;
use crate::colour::{Rgb, ramp};
use crate::fmt::significant;
use crate::scale::Extent;
use crate::svg::{HeatMap, Strip};

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
const LONGEST_LABEL: usize = 18;
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

/// A matrix, at most `width` characters wide. Numbers are written into the cells where they fit;
/// larger matrices are shaded, and where even one character a cell is too much, a mark is the
/// mean of a square of cells, which is said.
#[must_use]
pub fn heat_map(map: &HeatMap, colour: Colour, width: usize) -> String {
    let width = width.clamp(20, WIDEST);
    let extent = map.extent();
    let name = |labels: &[String]| labels.iter().map(|l| clean(l).chars().count()).max();
    let left = name(&map.rows).unwrap_or(0).min(LONGEST_LABEL);
    let cell = name(&map.columns).unwrap_or(0).clamp(6, 10) + 1;
    let columns = map.columns.len();
    let mut out = String::new();
    let heading = format!("{} ({})", clean(&map.title), clean(&map.unit));
    _ = writeln!(out, "{heading}");
    if left + 1 + columns * cell <= width && columns <= 20 && map.rows.len() <= 40 {
        written(&mut out, map, extent.as_ref(), colour, left, cell);
    } else {
        shaded(&mut out, map, extent.as_ref(), colour, left, width);
    }
    _ = write!(out, "{:left$} {}", "", key(extent.as_ref(), &map.unit, colour));
    out
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

/// Cells as marks; squares of cells are averaged where there are too many.
fn shaded(
    out: &mut String,
    map: &HeatMap,
    extent: Option<&Extent>,
    colour: Colour,
    left: usize,
    width: usize,
) {
    let room = width.saturating_sub(left + 1).max(1);
    let group = map.columns.len().div_ceil(room).max(1);
    // Two characters make a square; one where two do not fit.
    let mark = if map.columns.len().div_ceil(group) * 2 <= room { 2 } else { 1 };
    for top in (0..map.rows.len()).step_by(group) {
        _ = write!(out, "{:left$} ", label(&map.rows[top], left));
        for first in (0..map.columns.len()).step_by(group) {
            let square =
                (top..top + group).flat_map(|r| (first..first + group).map(move |c| (r, c)));
            let inside = square.filter(|(r, c)| *r < map.rows.len() && *c < map.columns.len());
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
    if group > 1 {
        _ = writeln!(out, "{:left$} each mark is the mean of {group} x {group} cells", "");
    }
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
    _ = write!(out, "{:left$} {}", "", key(extent.as_ref(), &strip.unit, colour));
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
mod tests {
    use super::*;
    use crate::svg::StripRow;

    fn matrix(n: usize) -> HeatMap {
        let names: Vec<String> = (0..n).map(|i| format!("core {i}")).collect();
        HeatMap {
            title: "Pairs".into(),
            unit: "ns".into(),
            rows: names.clone(),
            columns: names,
            cells: (0..n * n).map(|i| (i / n != i % n).then_some((i % n) as f64)).collect(),
            ..HeatMap::default()
        }
    }

    /// Text as it looks, without colour sequences.
    fn seen(text: &str) -> String {
        let mut parts = text.split('\x1b');
        let first = parts.next().unwrap_or("").to_owned();
        parts.fold(first, |seen, part| seen + part.split_once('m').map_or("", |p| p.1))
    }

    #[test]
    fn small_matrices_have_their_numbers() {
        let text = heat_map(&matrix(3), Colour::None, 80);
        assert!(text.is_ascii(), "{text}");
        let row = text.lines().find(|l| l.starts_with("core 1")).unwrap();
        assert!(row.contains("0.00.") && row.contains("2.00@") && row.contains(HATCH), "{row}");
    }

    #[test]
    fn colour_changes_nothing_but_colour_in_width() {
        for colour in [Colour::Ansi256, Colour::TrueColour] {
            for n in [3, 30, 300] {
                let text = heat_map(&matrix(n), colour, 100);
                assert!(text.contains("\x1b["));
                assert!(seen(&text).lines().all(|l| l.chars().count() <= 100), "{n}");
            }
        }
    }

    #[test]
    fn a_matrix_wider_than_the_terminal_is_averaged_and_says_so() {
        let text = heat_map(&matrix(288), Colour::None, 80);
        assert!(text.is_ascii());
        assert!(text.lines().all(|l| l.len() <= 80));
        assert!(text.contains("each mark is the mean of 5 x 5 cells"), "{text}");
    }

    #[test]
    fn strips_have_a_mark_a_line() {
        let row = StripRow {
            label: "core 0".into(),
            values: (0..64).map(|i| (i != 5).then(|| f64::from(i % 8))).collect(),
        };
        let data = Strip {
            title: "Base".into(),
            unit: "cycles".into(),
            rows: vec![row],
            ..Strip::default()
        };
        let plain = strip(&data, Colour::None, 120);
        assert!(plain.is_ascii());
        let line = plain.lines().nth(1).unwrap();
        assert_eq!(&line[7..15], ".:-=+/#@");
        assert!(line.ends_with("mean 3.48, nearest quarter 0.500"), "{line}");
        let coloured = seen(&strip(&data, Colour::TrueColour, 40));
        assert!(coloured.contains("mean of 2 lines"));
        assert!(coloured.lines().all(|l| l.chars().count() <= 60));
    }

    #[test]
    fn bars_fill_by_their_share() {
        assert_eq!(bar(Some(0.5), 10, Colour::None), "#####.....");
        assert_eq!(bar(Some(7.0), 4, Colour::None), "####");
        assert_eq!(bar(None, 4, Colour::TrueColour), "////");
        assert_eq!(seen(&bar(Some(0.3125), 4, Colour::TrueColour)), "█▎  ");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let mut map = matrix(2);
        map.title = "x\x1b[2J".into();
        map.rows[0] = "\x1b]0;y\x07".into();
        assert!(!heat_map(&map, Colour::None, 80).contains('\x1b'));
    }
}
