//! The paper on partially separated page tables, simulated: its machine, its cases, and what it printed
//! (Gerofi, Shimada, Hori, Ishikawa, CCGrid 2013).
//!
//! One number is fitted on one cell: arithmetic for a page, on eight cores with separated tables. What the
//! kernel and the card cost is in the machine file, each number with its standing.

mod cells;
mod change;
mod fit;
mod machine;
mod number;
mod plan;
mod published;

#[cfg(test)]
mod tests;

pub use cells::{Cell, Mode, Smt, cores_of};
pub use change::Change;
pub use machine::PsptError;
pub use plan::Plan;
pub use published::{PUBLISHED, Published, TableRow};

use isochrone_machine::{Constant, Machine};

use cells::Key;
use machine::Card;

/// Everything that was simulated.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What was asked for.
    pub plan: Plan,
    /// Arithmetic for a page, cycles, as fitted.
    pub compute: f64,
    /// Every case.
    pub cells: Vec<Cell>,
    /// Every case under each change alone.
    pub beside: Vec<(Change, Vec<Cell>)>,
    /// The numbers that it rests on.
    pub constants: Vec<Constant>,
}

/// Fits, then runs every case, and each of them under every change.
///
/// # Errors
/// [`PsptError`]: the machine file is not the card's, or a run has no end, which is a defect of the pager.
pub fn simulate(machine: &Machine, plan: &Plan) -> Result<Simulated, PsptError> {
    let card = Card::of(machine)?.with(plan.change);
    let compute = fit::compute(plan, &card)?;
    // What changes a change would change.
    let changes =
        if plan.beside && plan.change == Change::None { &Change::BESIDE[..] } else { &[] };
    let cards: Vec<Card> =
        std::iter::once(card).chain(changes.iter().map(|change| card.with(*change))).collect();
    // The longest last.
    let keys = cells::keys(plan.most);
    let cases: Vec<(Card, Key)> =
        keys.iter().flat_map(|key| cards.iter().map(|card| (*card, *key))).collect();
    let mut by_card: Vec<Vec<Cell>> = vec![Vec::new(); cards.len()];
    for (at, cell) in cells::all(plan, &cases, compute)?.into_iter().enumerate() {
        by_card[at % cards.len()].push(cell);
    }
    let mut by_card = by_card.into_iter();
    let cells = by_card.next().unwrap_or_default();
    let beside = changes.iter().copied().zip(by_card).collect();
    let constants = machine::constants(&card, plan.window, plan.chunk, compute);
    Ok(Simulated { plan: *plan, compute, cells, beside, constants })
}

fn find(cells: &[Cell], mode: Mode, smt: Smt, workers: u16) -> Option<&Cell> {
    cells.iter().find(|cell| (cell.mode, cell.smt, cell.workers) == (mode, smt, workers))
}

fn overhead(cells: &[Cell], mode: Mode, smt: Smt, workers: u16) -> Option<f64> {
    let base = find(cells, mode.base(), smt, workers)?.outcome.sweep;
    Some(find(cells, mode, smt, workers)?.outcome.sweep / base - 1.0)
}

impl Simulated {
    /// The case of a mode at a number of threads.
    #[must_use]
    pub fn cell(&self, mode: Mode, smt: Smt, workers: u16) -> Option<&Cell> {
        find(&self.cells, mode, smt, workers)
    }

    /// Additional time over the run of the same machine that has all of its data in memory.
    #[must_use]
    pub fn overhead(&self, mode: Mode, smt: Smt, workers: u16) -> Option<f64> {
        overhead(&self.cells, mode, smt, workers)
    }

    /// What was simulated under each change, as if it were the figures.
    pub fn under_changes(&self) -> impl Iterator<Item = (Change, Self)> {
        self.beside.iter().map(|(change, cells)| {
            let plan = Plan { change: *change, beside: false, ..self.plan };
            (*change, Self { plan, cells: cells.clone(), beside: Vec::new(), ..self.clone() })
        })
    }
}
