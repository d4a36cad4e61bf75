//! The TPDS paper on NUMA-aware runtimes beside its simulation: every row of the judging list, Tables 2 and 3,
//! Figures 2 to 7. All numbers of ours are simulated.

mod by_mechanism;
pub mod constants;
mod far_link;
mod mechanisms;
mod page;
mod paper;
pub mod record;
mod rows;
mod runs;
mod shown;
mod speed;
mod table_2;
mod tables;
mod terminal;
mod traffic;

#[cfg(test)]
mod tests;

use isochrone_machine::Constant;
use isochrone_report::table::Table;
use isochrone_sim::coherence::NumaSpec;
use isochrone_workloads::numa::Variant;

use crate::row::Row;

use table_2::Table2;

pub use mechanisms::arms;
pub use paper::THREADS;
pub use runs::{BESIDE, Depth, Runs, plan};

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
