//! Goals of maps of large machines, and whether they are met.

use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use serde::Serialize;

/// A whole map of so many cores at most takes so many seconds at most.
pub(super) const FULL_S: [(u16, f64); 3] = [(128, 120.0), (384, 240.0), (576, 360.0)];
/// A quick map takes so many seconds at most, however many cores there are.
pub(super) const QUICK_S: f64 = 20.0;
/// Processor time of plans, seconds.
pub(super) const PLANNING_S: f64 = 2.0;
/// An atlas without codes of pages, bytes.
pub(super) const ATLAS_BYTES: f64 = 4e6;
/// `isochrone show`, milliseconds.
pub(super) const SHOW_MS: f64 = 200.0;
/// The report, bytes.
pub(super) const REPORT_BYTES: f64 = 3e6;

/// One goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Goal {
    /// What is to be small.
    what: String,
    /// `"s"`, `"ms"`, `"bytes"` or `"share"`.
    unit: String,
    /// At most.
    limit: f64,
    found: f64,
    met: bool,
}

impl Goal {
    /// So much was found of what may be so much.
    pub(super) fn new(what: &str, unit: &str, limit: f64, found: f64) -> Self {
        Self { what: what.to_owned(), unit: unit.to_owned(), limit, found, met: found <= limit }
    }

    /// Whether it is met.
    pub(super) fn met(&self) -> bool {
        self.met
    }

    fn words(&self, value: f64) -> String {
        match self.unit.as_str() {
            "bytes" => format!("{} MB", fmt::significant(value / 1e6, 3)),
            "share" => fmt::percent(value),
            unit => format!("{} {unit}", fmt::significant(value, 3)),
        }
    }
}

/// Goals as a table.
pub(super) fn table(goals: &[Goal]) -> Table {
    let mut table = Table::new(["goal", "at most", "found", ""]).keyed(1);
    for goal in goals {
        table.row([
            goal.what.as_str().into(),
            Cell::number(goal.limit, goal.words(goal.limit)),
            Cell::number(goal.found, goal.words(goal.found)),
            if goal.met { "met" } else { "missed" }.into(),
        ]);
    }
    table
}
