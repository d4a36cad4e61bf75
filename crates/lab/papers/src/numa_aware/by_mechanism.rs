//! The table of all rows by mechanism, and the page of it.

use std::fmt::Write as _;

use isochrone_report::table::{Cell, Table};

use super::Reproduction;
use super::mechanisms::{Did, arms};
use super::record::Key;
use super::runs::{Depth, Runs, plan};
use crate::Shown as _;
use crate::exhibit::headline;
use crate::row::Row;

pub(super) const CAPTION: &str = "In the order in which they were added, each switched by itself: the row with it (of \
    those that the default has, before → with it), and how many of its cells came nearer to the paper's number or went \
    away from it. What is printed alike is \"equal\"; what was not run is missing. Contention, the first one, took the \
    place of a rule that is gone.";

/// A row for each row, a column for each mechanism, the paper's numbers first.
pub(super) fn table(rows: &[Row], all: &[Did]) -> Table {
    let names = all.iter().map(|did| match did.default {
        true => format!("{} (default)", did.name),
        false => did.name.to_owned(),
    });
    let heads = ["row", "tests", "paper"].map(str::to_owned).into_iter();
    let mut table =
        Table::new(heads.chain(names).chain(["default".to_owned(), "holds".to_owned()])).keyed(3);
    if all.is_empty() {
        return table;
    }
    for row in rows {
        let words = |did: &Did| {
            let moved = did.rows.iter().find(|moved| moved.id == row.id);
            moved.map_or_else(Cell::missing, |moved| Cell::text(moved.words.clone()))
        };
        let fixed = [&row.id, row.tests.as_str(), &row.paper].map(|text: &str| Cell::text(text));
        let holds = match row.pass {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not all run",
        };
        let last = [Cell::text(row.ours.clone()), holds.into()];
        table.row(fixed.into_iter().chain(all.iter().map(words)).chain(last));
    }
    table
}

/// The page of it, whose table is the one of the HTML page. What was not run is counted, and nothing is filled in.
pub(super) fn to_markdown(all: &Reproduction) -> String {
    let mut out = String::from("# The runtime paper by mechanism\n\n");
    _ = writeln!(
        out,
        "`isochrone reproduce numa-aware-runtime --depth curves --mechanisms --markdown FILE` writes this page; with \
         `--results FILE --finished` of the runs that there are. All numbers of ours are *simulated*. {CAPTION} A `?` \
         is a cell that was not run.\n\n{}\n",
        headline(&all.exhibits())
    );
    let plan = |did: &Did| format!("[{}]({})", did.name, did.plan);
    let named: Vec<String> = all.mechanisms.iter().map(plan).collect();
    _ = writeln!(out, "Written down before they were coded: {}.\n", named.join(", "));
    out.push_str(&table(&all.rows, &all.mechanisms).to_markdown());
    _ = writeln!(
        out,
        "\n## What was run\n\nRuns of each change, of those that the whole table needs.\n"
    );
    out.push_str(&ran(&all.runs).to_markdown());
    out
}

/// How many runs of each change there are: those of the tables' three numbers of threads, and those of the curves.
fn ran(runs: &Runs) -> Table {
    let mut table = Table::new(["change", "16, 96 and 288 threads", "the other seven"]);
    let changes = std::iter::once(None).chain(arms().into_iter().map(Some));
    for change in changes {
        let (name, beside) = change.map_or(("none", Vec::new()), |c| (c.name(), vec![c]));
        let keys = |depth| {
            let plain = plan(&runs.machine, depth, &[]);
            let mut keys = plan(&runs.machine, depth, &beside);
            keys.retain(|key| change.is_none() || !plain.contains(key));
            keys
        };
        let figures = keys(Depth::Quick);
        let (few, more): (Vec<_>, Vec<_>) =
            keys(Depth::Curves).into_iter().partition(|key| figures.contains(key));
        let of = |keys: &[Key]| {
            let done = keys.iter().filter(|key| runs.records.contains_key(*key)).count();
            format!("{done} of {}", keys.len())
        };
        table.row([name.into(), of(&few).into(), of(&more).into()]);
    }
    table
}
