//! The tables that terminal and page share: every cell, the scores, the numbers under the
//! pictures, what the model was made of, and this machine's own numbers. Each number stands under
//! a header that says where it comes from.

use isochrone_report::table::{Cell, Table};
use isochrone_units::Reading;

use super::cells::{Cell as GridCell, GridResult};
use super::constants::{Constant, free_numbers, standing};
use super::measured::Measured;
use super::simulate::Simulated;
use super::words;

fn number(value: Option<f64>, write: fn(f64) -> String) -> Cell {
    Cell::maybe(value, write)
}

/// The numbers under the picture.
pub(super) fn printed(grid: &GridResult) -> Table {
    let mut table = Table::new([
        "nanoseconds",
        Reading::Published.as_str(),
        Reading::Simulated.as_str(),
        "apart",
        "note",
    ]);
    for row in &grid.printed {
        let apart = row.published.zip(row.simulated).map(|(p, s)| s - p);
        table.row([
            row.what.as_str().into(),
            number(row.published, words::cell),
            number(row.simulated, words::cell),
            number(apart, |v| words::signed(v, 1)),
            row.note.as_str().into(),
        ]);
    }
    table
}

/// How far simulated cells are from published ones.
pub(super) fn scores(grid: &GridResult) -> Table {
    let mut table = Table::new(["cells", "used", "n", "rms error, ns", "largest, ns", "explained"]);
    for score in &grid.scores {
        table.row([
            score.what.as_str().into(),
            score.role.as_str().into(),
            Cell::number(score.cells as f64, score.cells.to_string()),
            number(score.rms_ns, |v| format!("{v:.2}")),
            number(score.worst_ns, |v| words::signed(v, 2)),
            number(score.explained, words::explained),
        ]);
    }
    table
}

/// What the simulated machine was made of.
pub(super) fn constants(constants: &[Constant]) -> Table {
    let mut table = Table::new(["constant", "value", "standing"]);
    for constant in constants {
        table.row([
            constant.name.as_str().into(),
            constant.value.number.words.as_str().into(),
            standing(&constant.value).into(),
        ]);
    }
    table
}

/// How many numbers were fitted, in words.
pub(super) fn count_words(grid: &GridResult) -> String {
    match free_numbers(&grid.constants) {
        0 => "No number was fitted on this grid.".to_owned(),
        1 => "One number was fitted on this grid.".to_owned(),
        count => format!("{count} numbers were fitted on this grid."),
    }
}

/// Every cell as it stands.
pub(super) fn cells(grid: &GridResult) -> Table {
    let mut table = Table::new([
        "core",
        "column",
        "row",
        "published, ns",
        "simulated, ns",
        "95 % interval",
        "apart, ns",
        "note",
    ])
    .keyed(3);
    for cell in &grid.cells {
        table.row(row(cell));
    }
    table
}

fn row(cell: &GridCell) -> [Cell; 8] {
    let whole = |value: Option<u16>| Cell::maybe(value.map(f64::from), |v| format!("{v:.0}"));
    let interval = |s: Simulated| format!("{:.2} to {:.2}", s.lo_ns, s.hi_ns);
    [
        whole(cell.core),
        whole(cell.at.map(|at| at.0)),
        whole(cell.at.map(|at| at.1)),
        number(cell.published, words::cell),
        number(cell.simulated.map(|s| s.ns), |v| format!("{v:.2}")),
        cell.simulated.map_or_else(Cell::missing, |s| Cell::number(s.lo_ns, interval(s))),
        number(cell.error_ns(), |v| words::signed(v, 2)),
        cell.note().into(),
    ]
}

/// This machine's own grid: every mode, core and region.
pub(super) fn regions(measured: &Measured) -> Table {
    let reading = measured.reading;
    let mut table = Table::new([
        "chase".to_owned(),
        "core".to_owned(),
        "region".to_owned(),
        format!("{reading}, ns"),
        "95 % interval".to_owned(),
        "chases".to_owned(),
    ])
    .keyed(3);
    for grid in &measured.regions {
        for (at, cell) in grid.cells.iter().enumerate() {
            let columns = grid.columns.len().max(1);
            let label = |all: &[String], index: usize| all.get(index).cloned().unwrap_or_default();
            table.row([
                grid.mode.as_str().into(),
                label(&grid.rows, at / columns).into(),
                label(&grid.columns, at % columns).into(),
                number(cell.map(|c| c.median), |v| format!("{v:.2}")),
                cell.map_or_else(Cell::missing, |c| {
                    Cell::number(c.lo, format!("{:.2} to {:.2}", c.lo, c.hi))
                }),
                Cell::maybe(cell.map(|c| f64::from(c.n)), |v| format!("{v:.0}")),
            ]);
        }
    }
    table
}

/// What the block levels say of each core.
pub(super) fn levels(measured: &Measured) -> Table {
    let reading = measured.reading;
    let mut table = Table::new([
        "level".to_owned(),
        "core".to_owned(),
        format!("mean ({reading}), ns"),
        "nearest quarter, ns".to_owned(),
        "p90 over p10".to_owned(),
        "explained on held-out pages".to_owned(),
    ])
    .keyed(2);
    for level in &measured.levels {
        table.row([
            level.level.to_uppercase().into(),
            format!("core {}", level.core).into(),
            number(level.mean_ns, words::cell),
            number(level.near_quarter_ns, words::cell),
            number(level.spread_p90_p10, |v| format!("{v:.3}")),
            number(level.r2_heldout, words::explained),
        ]);
    }
    table
}

/// Ranges of all grids beside one another, each under its own reading; no row mixes two.
pub(super) fn ranges(grids: &[GridResult], measured: Option<&Measured>) -> Table {
    let mut table =
        Table::new(["grid", "reading", "cells", "least, ns", "most, ns", "delta, ns"]).keyed(2);
    let mut row = |name: String, reading: Reading, values: Vec<f64>| {
        let count = values.len();
        let range = super::cells::extremes(values.into_iter());
        table.row([
            name.into(),
            reading.as_str().into(),
            Cell::number(count as f64, count.to_string()),
            number(range.map(|r| r.0), words::cell),
            number(range.map(|r| r.1), words::cell),
            number(range.map(|r| r.1 - r.0), words::cell),
        ]);
    };
    for grid in grids {
        let published = grid.cells.iter().filter_map(|c| c.published).collect();
        row(grid.grid.clone(), Reading::Published, published);
        let simulated = grid.cells.iter().filter_map(|c| Some(c.simulated?.ns)).collect();
        row(grid.grid.clone(), Reading::Simulated, simulated);
    }
    if let Some(measured) = measured {
        for grid in &measured.regions {
            let values = grid.cells.iter().flatten().map(|cell| cell.median).collect();
            row(format!("this machine, {} chase", grid.mode), measured.reading, values);
        }
    }
    table
}
