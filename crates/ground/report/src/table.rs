//! Tables that are read in a terminal and on a page: the same rows, numbers aligned right,
//! missing numbers as a dash. It never rounds: a number comes with its text.

mod layout;

use std::fmt::Write as _;

use crate::fmt::MISSING;
use crate::inline::breakable;
use crate::lines::wrap;
use crate::term::clean;
use layout::{MARGIN, Need, Place, parts};

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Number(f64),
    Missing,
}

impl Cell {
    /// Words, aligned left.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Text }
    }

    /// A number as it is to be written, aligned right; `value` is what it is sorted by. A value
    /// that is not finite gives [`Cell::missing`].
    #[must_use]
    pub fn number(value: f64, text: impl Into<String>) -> Self {
        if value.is_finite() {
            Self { text: text.into(), kind: Kind::Number(value) }
        } else {
            Self::missing()
        }
    }

    /// A number that may be missing, written by `write` (one of [`crate::fmt`], say).
    #[must_use]
    pub fn maybe(value: Option<f64>, write: impl FnOnce(f64) -> String) -> Self {
        value.filter(|v| v.is_finite()).map_or_else(Self::missing, |v| Self::number(v, write(v)))
    }

    /// A missing number.
    #[must_use]
    pub fn missing() -> Self {
        Self { text: MISSING.into(), kind: Kind::Missing }
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let text = clean(&self.text);
        if self.kind == Kind::Text { wrap(&text, width) } else { vec![text] }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A table. Its columns stand in the order in which a reader wants them: in a narrow terminal the last ones go
/// first, into a part of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<Cell>>,
    keys: usize,
}

impl Table {
    /// A table with these column headers.
    #[must_use]
    pub fn new<S: Into<String>>(headers: impl IntoIterator<Item = S>) -> Self {
        Self { headers: headers.into_iter().map(Into::into).collect(), rows: Vec::new(), keys: 1 }
    }

    /// How many columns at the left say which row it is, if not one: they stand in every part of a table that is
    /// too wide for its terminal.
    #[must_use]
    pub fn keyed(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Adds a row. Cells beyond the headers are kept under empty headers; absent ones are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).fold(self.headers.len(), usize::max)
    }

    fn header(&self, column: usize) -> &str {
        self.headers.get(column).map_or("", String::as_str)
    }

    /// Whether a column holds numbers and nothing else.
    fn is_numeric(&self, column: usize) -> bool {
        let kinds: Vec<Kind> =
            self.rows.iter().filter_map(|r| r.get(column)).map(|c| c.kind).collect();
        !kinds.is_empty() && kinds.iter().all(|k| *k != Kind::Text)
    }

    /// The table as lines of at most `width` characters, without a trailing line break. Cells of words are
    /// wrapped between words; neither a word nor a number is broken. What has no room stands below, in a further
    /// table with the same first columns.
    #[must_use]
    pub fn to_terminal(&self, width: u16) -> String {
        let needs: Vec<Need> = (0..self.columns()).map(|column| self.need(column)).collect();
        let parts = parts(&needs, self.keys, width.into());
        parts.iter().map(|part| self.part(part)).collect::<Vec<_>>().join("\n\n")
    }

    fn need(&self, column: usize) -> Need {
        let header = Need::of_words(&clean(self.header(column)));
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.fold(header, |need, cell| {
            let text = clean(&cell.text);
            need.and(match cell.kind {
                Kind::Text => Need::of_words(&text),
                Kind::Number(_) | Kind::Missing => Need::of_number(&text),
            })
        })
    }

    /// Columns beside one another: headers, a rule, the rows.
    fn part(&self, places: &[Place]) -> String {
        let headers = places.iter().map(|place| {
            let lines = wrap(&clean(self.header(place.column)), place.width);
            Lines { lines, width: place.width, right: self.is_numeric(place.column) }
        });
        let mut out = beside(headers.collect());
        let rule: usize = places.iter().map(|place| place.width + MARGIN).sum();
        out.push('\n');
        out.push_str(&"─".repeat(rule));
        for row in &self.rows {
            let cells = places.iter().map(|place| {
                let cell = row.get(place.column);
                let lines = cell.map_or_else(Vec::new, |cell| cell.lines(place.width));
                let right = cell.is_some_and(|cell| cell.kind != Kind::Text);
                Lines { lines, width: place.width, right }
            });
            out.push('\n');
            out.push_str(&beside(cells.collect()));
        }
        out
    }

    /// The table as Markdown, with a line break at its end.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            cells.fold(String::from("|"), |line, cell| line + " " + &cell + " |") + "\n"
        };
        let of = |text: &str| clean(text).replace('|', "\\|");
        let columns = || 0..self.columns();
        let rule = |column| if self.is_numeric(column) { "---:" } else { "---" }.to_owned();
        let mut out = line(&mut columns().map(|column| of(self.header(column))));
        out.push_str(&line(&mut columns().map(rule)));
        for row in &self.rows {
            let cell =
                |column| row.get(column).map_or_else(String::new, |cell: &Cell| of(&cell.text));
            out.push_str(&line(&mut columns().map(cell)));
        }
        out
    }

    /// The table as an HTML element.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
        for column in 0..self.columns() {
            let class = if self.is_numeric(column) { " class=\"n\"" } else { "" };
            _ = write!(html, "<th scope=\"col\"{class}>{}</th>", breakable(self.header(column)));
        }
        html.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            html.push_str("<tr>");
            for column in 0..self.columns() {
                html.push_str(&html_cell(row.get(column), column));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></div>");
        html
    }
}

/// The rule of the first table in a text that is wider than it should be, since a word or a number in it is: what tests
/// of texts look for.
#[must_use]
pub fn too_wide(text: &str, width: u16) -> Option<&str> {
    let mut rules = text.lines().filter(|line| line.starts_with('─'));
    rules.find(|rule| rule.chars().count() > usize::from(width))
}

/// A cell in its column.
struct Lines {
    lines: Vec<String>,
    width: usize,
    right: bool,
}

/// Cells beside one another, without spaces at the ends of lines.
fn beside(cells: Vec<Lines>) -> String {
    let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0).max(1);
    let line = |at: usize| {
        let mut line = String::new();
        for Lines { lines, width, right } in &cells {
            let text = lines.get(at).map_or("", String::as_str);
            _ = match right {
                true => write!(line, " {text:>width$} "),
                false => write!(line, " {text:<width$} "),
            };
        }
        line.truncate(line.trim_end().len());
        line
    };
    (0..height).map(line).collect::<Vec<_>>().join("\n")
}

/// Bytes of a text from which it keeps some width in a page, however many columns stand beside it.
const LONG: usize = 80;

fn html_cell(cell: Option<&Cell>, column: usize) -> String {
    let Some(cell) = cell else { return "<td></td>".into() };
    let text = breakable(&cell.text);
    match cell.kind {
        Kind::Text if column == 0 => format!("<th scope=\"row\">{text}</th>"),
        Kind::Text if cell.text.len() > LONG => format!("<td class=\"long\">{text}</td>"),
        Kind::Text => format!("<td>{text}</td>"),
        // What is written is the number itself in most tables; then it is not said twice.
        Kind::Number(value) if is_written(value, &cell.text) => {
            format!("<td class=\"n\">{text}</td>")
        }
        Kind::Number(value) => format!("<td class=\"n\" data-v=\"{value}\">{text}</td>"),
        Kind::Missing => format!("<td class=\"n none\" title=\"no value\">{text}</td>"),
    }
}

/// Whether a text is a number, rounded at most.
fn is_written(value: f64, text: &str) -> bool {
    let near = |read: f64| (read - value).abs() <= value.abs() * 1e-3;
    text.parse().is_ok_and(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(["from", "to", "ns"]);
        table.row(["core 0".into(), "core 1".into(), Cell::number(59.8, "59.8")]);
        table.row(["core 1".into(), "core <0>".into(), Cell::number(104.0, "104")]);
        table.row(["core 1".into(), "core 1".into(), Cell::missing()]);
        table
    }

    #[test]
    fn numbers_are_right_aligned_under_their_header() {
        let text = sample().to_terminal(80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 3);
        let end = lines[2].trim_end().chars().count();
        assert!(lines[0].trim_end().ends_with("ns"));
        for line in [lines[0], lines[3], lines[4]] {
            assert_eq!(line.trim_end().chars().count(), end, "{text}");
        }
        assert!(lines[4].trim_end().ends_with(MISSING));
    }

    #[test]
    fn a_narrow_terminal_wraps_words() {
        let mut table = Table::new(["what", "why"]);
        table.row(["huge pages".into(), "none are reserved; run with more of them".into()]);
        let text = table.to_terminal(30);
        assert!(text.lines().count() > 3);
        assert!(text.lines().all(|l| l.chars().count() <= 30), "{text}");
    }

    /// A part has as many columns as fit, and the next one begins with the keys again.
    #[test]
    fn columns_without_room_stand_in_a_second_part() {
        let mut table = Table::new(["tables", "workers", "lock", "interrupts a batch"]).keyed(2);
        table.row(["shared".into(), "2".into(), Cell::number(1.0, "1.00"), Cell::missing()]);
        let text = table.to_terminal(30);
        let parts: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(parts.len(), 2, "{text}");
        for (part, has) in parts.iter().zip(["lock", "interrupts"]) {
            let head = part.lines().next().unwrap();
            assert!(head.contains("tables") && head.contains("workers") && head.contains(has));
        }
        assert_eq!(table.to_terminal(80).split("\n\n").count(), 1);
        assert_eq!(too_wide(&text, 30), None);
        assert!(too_wide(&table.to_terminal(20), 20).is_some(), "the keys and a column more");
    }

    proptest::proptest! {
        /// However narrow the terminal is, every word and every number stands whole in a line.
        #[test]
        fn nothing_is_broken_at_any_width(
            words in proptest::collection::vec("[a-z]{1,14}( [a-z0-9]{1,9}){0,12}", 1..8),
            numbers in proptest::collection::vec(0.0_f64..1e6, 1..8),
            keys in 0_usize..4,
            width in 20_u16..140,
        ) {
            let columns = words.len() + numbers.len();
            let mut table = Table::new((0..columns).map(|c| format!("header {c}"))).keyed(keys);
            let number = |n: &f64| Cell::number(*n, format!("{n:.3} [{n:.1}, {n:.2}]"));
            table.row(words.iter().map(|w| Cell::from(w.as_str())).chain(numbers.iter().map(number)));
            let text = table.to_terminal(width);
            let found: Vec<&str> = text.split_whitespace().collect();
            for word in words.iter().flat_map(|words| words.split(' ')) {
                proptest::prop_assert!(found.contains(&word), "{}", text);
            }
            for n in &numbers {
                let whole = format!("{n:.3} [{n:.1}, {n:.2}]");
                proptest::prop_assert!(text.lines().any(|line| line.contains(&whole)), "{}", text);
            }
        }
    }

    #[test]
    fn html_is_well_formed_escaped_and_sortable() {
        let html = sample().to_html();
        let tree = roxmltree::Document::parse(&html).unwrap();
        let cells = |name| tree.descendants().filter(|n| n.has_tag_name(name)).count();
        assert_eq!((cells("tr"), cells("th"), cells("td")), (4, 3 + 3, 6));
        assert!(html.contains("<td class=\"n\">59.8</td>"));
        let mut units = Table::new(["what", "time"]);
        units.row(["a".into(), Cell::number(59.8, "59.8 ns")]);
        units.row(["b".into(), Cell::number(12_345.0, "12\u{2009}345")]);
        let units = units.to_html();
        assert!(units.contains("<td class=\"n\" data-v=\"59.8\">59.8 ns</td>"));
        assert!(units.contains("data-v=\"12345\""));
        let mut lists = Table::new(["what", "cores"]);
        lists.row(["a".into(), Cell::text("0-3,8,10-15")]);
        lists.row(["b".into(), Cell::text("0-3,192-195,200-203")]);
        let lists = lists.to_html();
        assert!(lists.contains(">0-3,8,10-15<"));
        assert!(lists.contains(">0-3,<wbr>192-195,<wbr>200-203<"));
        assert!(html.contains("core &lt;0&gt;"));
        assert!(html.contains("<td class=\"n none\" title=\"no value\">–</td>"));
    }

    #[test]
    fn markdown_has_a_line_for_each_row_and_no_bar_of_a_cell() {
        let mut table = sample();
        table.row(["a|b".into(), "".into(), Cell::number(1.0, "1.0")]);
        let text = table.to_markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["| from | to | ns |", "| --- | --- | ---: |"]);
        assert_eq!(lines[4..], ["| core 1 | core 1 | – |", "| a\\|b |  | 1.0 |"]);
    }

    #[test]
    fn what_is_long_keeps_its_width_in_a_page() {
        let mut table = Table::new(["a", "why"]);
        table.row(["1".into(), "short".into()]).row(["2".into(), "long ".repeat(20).into()]);
        let html = table.to_html();
        assert!(
            html.contains("<td>short</td>") && html.contains("<td class=\"long\">long"),
            "{html}"
        );
    }

    #[test]
    fn uneven_rows_are_filled_up() {
        let mut table = Table::new(["a"]);
        table.row(["1".into(), "2".into()]).row([]);
        assert_eq!(table.to_html().matches("<td></td>").count(), 2);
        assert!(table.to_terminal(40).contains('2'));
    }

    #[test]
    fn what_is_not_finite_is_missing() {
        assert_eq!(Cell::number(f64::NAN, "NaN"), Cell::missing());
        assert_eq!(Cell::maybe(None, crate::fmt::ns), Cell::missing());
        assert_eq!(Cell::maybe(Some(12.34), crate::fmt::ns), Cell::number(12.34, "12.3 ns"));
    }
}
