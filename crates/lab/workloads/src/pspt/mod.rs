//! The paper on partially separated page tables, simulated: its machine, its cases, and what it printed
//! (Gerofi, Shimada, Hori, Ishikawa, CCGrid 2013).
//!
//! One number is fitted on one cell: arithmetic for a page, on eight cores with separated tables. What the
//! kernel and the card cost is in `machine`, each number with its standing.

mod cells;
mod fit;
mod machine;
mod published;

#[cfg(test)]
mod tests;

pub use cells::{Cell, Mode, Smt, cores_of};
pub use machine::constants;
pub use published::{PUBLISHED, Published, TableRow};

use isochrone_machine::Constant;
use isochrone_tier::simulated::Stuck;

/// How much of the paper's area is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rows of a grid; the paper's have 8192 if they are twice as long as they are high.
    pub rows: u32,
    /// Sweeps that are measured.
    pub sweeps: u32,
    /// Frames for each worker where movers run ahead, at least.
    pub frames_of_a_worker: u32,
    /// Groups that a mover fetches for a fault.
    pub window: u32,
    /// Of them by one transfer.
    pub chunk: u32,
    /// Largest number of threads.
    pub most: u16,
    /// Of the spread of arithmetic.
    pub seed: u64,
}

impl Plan {
    /// The paper's figures.
    #[must_use]
    pub const fn paper(seed: u64) -> Self {
        Self {
            rows: 8192,
            sweeps: 2,
            frames_of_a_worker: 1024,
            window: 128,
            chunk: 16,
            most: 128,
            seed,
        }
    }
}

/// Everything that was simulated.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What was asked for.
    pub plan: Plan,
    /// Arithmetic for a page, cycles, as fitted.
    pub compute: f64,
    /// Every case.
    pub cells: Vec<Cell>,
    /// The numbers that it rests on.
    pub constants: Vec<Constant>,
}

/// Fits, then runs every case.
///
/// # Errors
/// [`Stuck`] if a run has no end: a defect of the pager.
pub fn simulate(plan: &Plan) -> Result<Simulated, Stuck> {
    let compute = fit::compute(plan)?;
    let cells = cells::all(plan, compute)?;
    let constants = constants(plan.window, plan.chunk, compute);
    Ok(Simulated { plan: *plan, compute, cells, constants })
}

impl Simulated {
    /// The case of a mode at a number of threads.
    #[must_use]
    pub fn cell(&self, mode: Mode, smt: Smt, workers: u16) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.mode, cell.smt, cell.workers) == (mode, smt, workers))
    }

    /// Additional time over the run of the same machine that has all of its data in memory.
    #[must_use]
    pub fn overhead(&self, mode: Mode, smt: Smt, workers: u16) -> Option<f64> {
        let base = self.cell(mode.base(), smt, workers)?.outcome.sweep;
        Some(self.cell(mode, smt, workers)?.outcome.sweep / base - 1.0)
    }
}
