//! `isochrone reproduce pspt`: Figures 6, 7 and 8 and Tables I and II of the paper on partially separated
//! page tables, its numbers beside simulated ones. This machine has no part in it.

mod json;
mod markdown;
mod page;
mod rows;
mod shown;
mod tables;
mod terminal;

#[cfg(test)]
mod tests;

use crate::row::Row;
use anyhow::{Context, Result};
use isochrone_workloads::pspt::{Change, Mode, Plan, Simulated, Smt, cores_of, simulate};

/// The paper's machine, by the name of its file.
const MACHINE: &str = "xeon-phi-preproduction";

/// Everything that is shown.
#[derive(Clone, Debug)]
pub struct Reproduction {
    simulated: Simulated,
    rows: Vec<Row>,
    /// The same rows under each change.
    changed: Vec<(Change, Vec<Row>)>,
}

/// Simulates every case of the plan.
///
/// # Errors
/// When the plan does not fit the paper's machine.
pub fn pspt(plan: &Plan) -> Result<Reproduction> {
    let machine = isochrone_host::find_machine(MACHINE).context("reading the paper's machine")?;
    let simulated = simulate(&machine, plan).context("simulating the paper's cases")?;
    let changed = rows::under_changes(&simulated);
    Ok(Reproduction { rows: rows::rows(&simulated, &changed), simulated, changed })
}

/// The modes of Figure 7, in its order.
const MODES: [Mode; 4] = [Mode::InMemory, Mode::Regular, Mode::Pspt, Mode::Prefetch];

impl Reproduction {
    /// Rows that must hold and do not, and how many must.
    fn verdict(&self) -> (Vec<&Row>, usize) {
        let must: Vec<&Row> = self.rows.iter().filter(|row| row.must).collect();
        let failed = must.iter().filter(|row| row.pass == Some(false)).copied().collect();
        (failed, must.len())
    }

    /// Millions of cycles that all sweeps over the paper's area take.
    fn runtime(&self, mode: Mode, smt: Smt, workers: u16) -> Option<f64> {
        use isochrone_workloads::pspt::PUBLISHED;
        let sweep = self.simulated.cell(mode, smt, workers)?.outcome.sweep;
        let strip = f64::from(2 * self.simulated.plan.rows);
        Some(sweep * PUBLISHED.iterations * PUBLISHED.pages / strip / 1e6)
    }

    fn overhead(&self, mode: Mode, smt: Smt, workers: u16) -> Option<f64> {
        self.simulated.overhead(mode, smt, workers)
    }
}

/// Both settings of hyper-threading, with their numbers of threads.
fn settings() -> [(Smt, [u16; 6]); 2] {
    [Smt::Off, Smt::On].map(|smt| (smt, cores_of(smt)))
}
