//! Every row under every change, as a page of the documentation.

use std::fmt::Write as _;

use isochrone_report::table::{Cell, Table};

use super::Reproduction;
use crate::Shown as _;
use crate::exhibit::headline;
use crate::row::Row;

/// The page.
pub(super) fn to_markdown(all: &Reproduction) -> String {
    let mut out = String::from("# PSPT by mechanism\n\n");
    _ = writeln!(
        out,
        "`isochrone reproduce pspt --markdown FILE` writes this page (seed {}). All numbers of ours are *simulated*. \
         Each column but the default and `before` changes one thing: `before` is the model without the last \
         mechanisms, one engine for both directions and locks that are handed on for nothing. An asterisk marks a \
         number that holds. Sources, ranges and what was expected: \
         [papers-mechanisms.md](papers-mechanisms.md).\n\n{}\n",
        all.simulated.plan.seed,
        headline(&all.exhibits())
    );
    out.push_str(&table(all).to_markdown());
    out
}

fn table(all: &Reproduction) -> Table {
    let names = all.changed.iter().map(|(change, _)| change.as_str());
    let heads = ["row", "tests", "paper", "default"].into_iter().chain(names);
    let mut table = Table::new(heads).keyed(3);
    let judged = all.rows.iter().enumerate().filter(|(_, row)| row.asks());
    for (at, row) in judged {
        let fixed = [row.id.as_str(), row.tests.as_str(), row.paper.as_str()].map(Cell::from);
        let under = all.changed.iter().filter_map(|(_, rows)| rows.get(at));
        table.row(fixed.into_iter().chain(std::iter::once(row).chain(under).map(number)));
    }
    table
}

/// Ours, with a mark where it holds.
fn number(row: &Row) -> Cell {
    let mark = if row.pass == Some(true) { " *" } else { "" };
    Cell::text(format!("{}{mark}", row.ours))
}
