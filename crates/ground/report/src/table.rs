//! Tables that are read in a terminal and on a page: the same rows, numbers aligned right,
//! missing numbers as a dash. It never rounds: a number comes with its text.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, TableStyle};

use crate::fmt::MISSING;
use crate::svg::escape;

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

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these column headers.
    #[must_use]
    pub fn new<S: Into<String>>(headers: impl IntoIterator<Item = S>) -> Self {
        Self { headers: headers.into_iter().map(Into::into).collect(), rows: Vec::new() }
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

    /// The table as lines of at most `width` characters, without a trailing line break. Long
    /// words are wrapped within their column.
    #[must_use]
    pub fn to_terminal(&self, width: u16) -> String {
        const RULE: TableStyle = TableStyle::new()
            .header_lines(ContentLineStyle::none())
            .header_separator(LineStyle::none().fill('─').junction('─'))
            .content_lines(ContentLineStyle::none());
        let mut table = comfy_table::Table::new();
        table.load_style(RULE);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width.max(20));
        let columns = self.columns();
        let cell = |text: &str, right: bool| {
            let side = if right { CellAlignment::Right } else { CellAlignment::Left };
            comfy_table::Cell::new(crate::term::clean(text)).set_alignment(side)
        };
        table.set_header((0..columns).map(|c| cell(self.header(c), self.is_numeric(c))));
        for row in &self.rows {
            table.add_row((0..columns).map(|c| {
                row.get(c).map_or_else(
                    || cell("", false),
                    |content| cell(&content.text, content.kind != Kind::Text),
                )
            }));
        }
        table.trim_fmt()
    }

    /// The table as an HTML element.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
        for column in 0..self.columns() {
            let class = if self.is_numeric(column) { " class=\"n\"" } else { "" };
            _ = write!(html, "<th scope=\"col\"{class}>{}</th>", escape(self.header(column)));
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

fn html_cell(cell: Option<&Cell>, column: usize) -> String {
    let Some(cell) = cell else { return "<td></td>".into() };
    let text = escape(&cell.text);
    match cell.kind {
        Kind::Text if column == 0 => format!("<th scope=\"row\">{text}</th>"),
        Kind::Text => format!("<td>{text}</td>"),
        Kind::Number(value) => format!("<td class=\"n\" data-v=\"{value}\">{text}</td>"),
        Kind::Missing => format!("<td class=\"n none\" title=\"no value\">{text}</td>"),
    }
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

    #[test]
    fn html_is_well_formed_escaped_and_sortable() {
        let html = sample().to_html();
        let tree = roxmltree::Document::parse(&html).unwrap();
        let cells = |name| tree.descendants().filter(|n| n.has_tag_name(name)).count();
        assert_eq!((cells("tr"), cells("th"), cells("td")), (4, 3 + 3, 6));
        assert!(html.contains("<td class=\"n\" data-v=\"59.8\">59.8</td>"));
        assert!(html.contains("core &lt;0&gt;"));
        assert!(html.contains("<td class=\"n none\" title=\"no value\">–</td>"));
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
