//! The TPDS paper on NUMA-aware runtimes beside its simulation: every row of the judging list, Tables 2 and 3,
//! Figures 2 to 7. All numbers of ours are simulated.

pub mod constants;
mod far_link;
mod mechanisms;
mod page;
mod paper;
pub mod record;
mod rows;
mod runs;
mod speed;
mod tables;
mod terminal;
mod traffic;

#[cfg(test)]
mod tests;

use isochrone_machine::Constant;
use isochrone_report::html::Page;
use isochrone_report::json::Format;
use isochrone_report::table::Table;
use isochrone_report::term::Colour;
use isochrone_sim::coherence::{Distance, NumaSpec};
use isochrone_units::{Reading, Standing};
use isochrone_workloads::numa::Variant;
use isochrone_workloads::numa::table2::{Range, Triad, latency_ns, triad_gbs, triad_over_switches};
use serde_json::{Value, json};

use crate::Shown;
use crate::exhibit::Exhibit;
use crate::row::Row;

use constants::FITTED_CELLS;
use record::Record;

pub use mechanisms::arms;
pub use paper::THREADS;
pub use runs::{BESIDE, Depth, Runs, plan};

/// Table 2 out of the model.
#[derive(Clone, Debug)]
pub(crate) struct Table2 {
    /// Latency and bandwidth, local, near and far.
    pub(crate) by_distance: Vec<(Range, Range)>,
    /// STREAM over all switches.
    pub(crate) switches: Triad,
}

impl Table2 {
    fn of(spec: &NumaSpec) -> Self {
        let distances = [Distance::Local, Distance::Near, Distance::Far];
        let both = |distance| Some((latency_ns(spec, distance)?, triad_gbs(spec, distance)?));
        Self {
            by_distance: distances.into_iter().filter_map(both).collect(),
            switches: triad_over_switches(spec),
        }
    }
}

/// Everything that is shown.
#[derive(Clone, Debug)]
pub struct Reproduction {
    pub(crate) runs: Runs,
    pub(crate) table2: Table2,
    /// The far link alone, by what bounds it.
    pub(crate) far_link: Table,
    pub(crate) rows: Vec<Row>,
    /// What each mechanism did whose arms were run.
    pub(crate) mechanisms: Vec<mechanisms::Did>,
    pub(crate) constants: Vec<Constant>,
}

/// The reproduction from finished runs.
pub fn numa_aware(spec: &NumaSpec, runs: Runs, constants: Vec<Constant>) -> Reproduction {
    let table2 = Table2::of(spec);
    let mut rows = all_rows(&table2, &runs);
    let under = |change: Variant| all_rows(&Table2::of(&change.machine(spec)), &runs.under(change));
    let mechanisms = mechanisms::did(&runs, |change| change.map_or_else(|| rows.clone(), under));
    for change in &runs.beside {
        let changed = under(*change);
        for (row, changed) in rows.iter_mut().zip(&changed) {
            *row = with_change(row.clone(), changed, *change);
        }
    }
    // What is of the machine alone needs no run.
    for change in [Variant::FarWindow30].iter().filter(|change| !runs.beside.contains(change)) {
        let [.., changed] = rows::table_2(&Table2::of(&change.machine(spec)));
        if let Some(row) = rows.iter_mut().find(|row| row.id == changed.id) {
            *row = with_change(row.clone(), &changed, *change);
        }
    }
    Reproduction { runs, table2, far_link: far_link::table(spec), rows, mechanisms, constants }
}

fn all_rows(table2: &Table2, runs: &Runs) -> Vec<Row> {
    let mut rows: Vec<Row> = rows::table_2(table2).into();
    rows.extend(traffic::rows(runs));
    rows.extend(speed::rows(runs));
    rows.sort_by_key(|row| order(&row.id));
    rows
}

/// A row with what a change makes of it; a miss that holds with that change alone is explained by it.
fn with_change(row: Row, changed: &Row, change: Variant) -> Row {
    let moved = row.pass == Some(false) && changed.pass == Some(true);
    let words = beside(&row, changed, change);
    let explained = row.explained || moved;
    row.note(words).explained(explained)
}

/// A row under a change, in words; nothing where none of it was run.
fn beside(row: &Row, changed: &Row, change: Variant) -> String {
    if changed.cells.iter().all(|cell| cell.ours.is_none()) {
        return String::new();
    }
    if changed.ours == row.ours {
        return format!("equal with {change}");
    }
    let verdict = match changed.pass {
        _ if changed.pass == row.pass => "",
        Some(true) => ", which holds",
        Some(false) => ", which misses",
        None => ", which has no verdict",
    };
    format!("with {change}: {}{verdict}", changed.ours)
}

/// `J6b` comes behind `J6`.
fn order(id: &str) -> (u32, String) {
    let digits: String = id.chars().filter(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(0), id.to_owned())
}

impl Reproduction {
    /// Rows that have to hold and do not, or were not run, in words.
    pub fn missed(&self) -> impl Iterator<Item = String> {
        let missed = self.rows.iter().filter(|row| row.must && row.pass != Some(true));
        missed.map(|row| format!("{} has to hold and does not: {}", row.id, row.note))
    }
}

impl Shown for Reproduction {
    fn format(&self) -> Format {
        Format::NumaAwareRuntime
    }

    fn exhibits(&self) -> Vec<Exhibit> {
        // Constants that nobody published stand behind every number.
        let one =
            |row: &Row| row.exhibit("numa-aware-runtime", Reading::Simulated, Standing::Assumed);
        self.rows.iter().map(one).collect()
    }

    fn json(&self) -> Value {
        to_json(self)
    }

    fn page(&self) -> Page {
        page::to_page(self)
    }

    fn text(&self, _: Colour, width: u16) -> String {
        terminal::to_terminal(self, width)
    }

    fn markdown(&self) -> Option<String> {
        (!self.mechanisms.is_empty()).then(|| mechanisms::to_markdown(self))
    }
}

fn to_json(all: &Reproduction) -> Value {
    json!({
        "paper": "P. Caheny et al., IEEE TPDS 2018",
        "reading": Reading::Simulated,
        "machine": all.runs.machine,
        "verified": all.runs.records.values().all(|record| record.verified),
        "naft_rules": runs::NAFT_RULES.iter().map(|v| v.name()).collect::<Vec<_>>(),
        "free_constants": all.constants.len(),
        "constants": constants::to_json(&all.constants),
        "fitted_cells": FITTED_CELLS,
        "rows": all.rows,
        "mechanisms": all.mechanisms,
        "runs": all.runs.records.len(),
        "touches": all.runs.records.values().map(|record| record.touches).sum::<u64>(),
        "host_seconds": all.runs.records.values().map(|record| record.host_seconds).sum::<f64>(),
        "cells": all.runs.records.values().map(cell).collect::<Vec<_>>(),
    })
}

fn cell(record: &Record) -> Value {
    json!({
        "bench": record.key.bench, "regime": record.key.regime, "variant": record.key.variant,
        "threads": record.key.threads, "seed": record.key.seed, "seconds": record.seconds,
        "movement_bytes": record.movement(None), "bandwidth_gbs": record.bandwidth(),
        "most_over_median": record.skew().filter(|skew| skew.is_finite()), "mode": record.mode().0,
        "verified": record.verified,
    })
}
