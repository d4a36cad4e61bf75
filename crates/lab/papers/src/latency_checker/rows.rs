//! The poster's numbers beside the simulated ones as rows: scores of cells, and the numbers under the pictures.

use super::cells::{GridResult, Printed, Role, Score};
use crate::exhibit::Tests;
use crate::row::{Accepts, Cell, Row};

/// The share of the cells' own variance that has to be explained, percent.
const EXPLAINED: f64 = 75.0;
/// How far one value for all cells may be from them, as a part of their mean.
const NEAR: f64 = 0.01;
/// The same of a printed latency.
const LATENCY: f64 = 0.01;
/// The same of a printed difference of two.
const DELTA: f64 = 0.1;

/// All comparisons of a grid.
pub(super) fn rows(grid: &GridResult) -> Vec<Row> {
    let scores = grid.scores.iter().map(|score| scored(grid, score));
    let readable = grid.printed.iter().filter(|printed| printed.published.is_some());
    let printed = readable.map(|printed| under_the_picture(grid, printed));
    scores.chain(printed).chain(columns(grid)).collect()
}

/// One mesh has one cost of a column, whichever memory is timed.
fn columns(grid: &GridResult) -> Option<Row> {
    let ours = grid.column_over_other?;
    let cell = Cell::new(
        "a column over one of the MCDRAM grid",
        None,
        Some(ours),
        Accepts::within(1.0, DELTA),
    );
    let id = format!("{}/a column's cost", grid.id());
    Some(
        Row::single(id, Tests::InSample, "10 % of one mesh", cell)
            .note("fitted on each grid by itself; known to miss when the row was made"),
    )
}

const fn tests_of(role: Role) -> Tests {
    match role {
        Role::Fitted => Tests::InSample,
        Role::HeldOut => Tests::OutOfSample,
        Role::AtFloor | Role::Unused => Tests::Input,
    }
}

fn scored(grid: &GridResult, score: &Score) -> Row {
    let id = format!("{}/{}", grid.id(), score.what);
    let tests = tests_of(score.role);
    let rms = score.rms_ns.map_or_else(String::new, |rms| format!(", rms error {rms:.2} ns"));
    let (tolerance, cell) = match (score.explained, score.mean_ns) {
        (None, Some(mean)) => {
            let accepts = Accepts::at_most(NEAR * mean);
            let cell = Cell::new("rms error, ns", Some(0.0), score.rms_ns, accepts);
            ("1 % of their mean", cell)
        }
        (explained, _) => {
            let accepts = Accepts::at_least(EXPLAINED);
            let percent = explained.map(|share| 100.0 * share);
            ("75 % of their variance", Cell::new("explained, %", None, percent, accepts))
        }
    };
    Row::single(id, tests, tolerance, cell).note(format!("{} cells{rms}", score.cells))
}

fn under_the_picture(grid: &GridResult, printed: &Printed) -> Row {
    let id = format!("{}/{}", grid.id(), printed.what);
    let (part, tolerance) = if printed.is_difference { (DELTA, "10 %") } else { (LATENCY, "1 %") };
    let paper = printed.published.unwrap_or(f64::NAN);
    let cell = Cell::within(printed.what.clone(), paper, printed.simulated, part * paper);
    let floor = if cell.pass == Some(false) { at_the_floor(grid, printed) } else { String::new() };
    Row::single(id, tests_of(printed.role), tolerance, cell).note(&printed.note).note(floor)
}

/// Why the least of a grid with a floor is missed, and with it the difference to the most.
fn at_the_floor(grid: &GridResult, printed: &Printed) -> String {
    let count = grid.cells.iter().filter(|cell| cell.role == Role::AtFloor).count();
    if count == 0 || !(printed.is_difference || printed.what.starts_with("least")) {
        return String::new();
    }
    format!(
        "{count} published cells lie at a floor; a network of ways has none, so simulated ones go on falling there"
    )
}
