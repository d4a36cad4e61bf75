//! The reproduction as JSON: a row for each cell and each printed number, what the models were
//! made of, and this machine's numbers under its own reading. Missing is `null`.

use isochrone_units::{Reading, Standing};
use serde_json::{Value, json};

use super::Reproduction;
use super::cells::{Cell, GridResult, Printed, Role, extremes};
use super::constants::{free_numbers, standing};
use super::measured::Measured;

/// The whole as one JSON value.
pub(super) fn to_json(all: &Reproduction) -> Value {
    let rows: Vec<Value> = all.grids.iter().flat_map(rows).collect();
    let remarks =
        all.remarks.iter().map(|(machine, text)| json!({ "machine": machine, "remark": text }));
    json!({
        "paper": "latency-checker",
        "seed": all.seed,
        "simulated_by": super::simulate::method(),
        "simulated_noise_sd_ns": { "value": super::simulate::NOISE_SD_NS, "standing": Standing::Assumed },
        "grids": all.grids.iter().map(grid).collect::<Vec<_>>(),
        "rows": rows,
        "cores_apart": super::apart::to_json(&all.apart),
        "remarks": remarks.collect::<Vec<_>>(),
        "measured": all.measured.as_ref().map(measured),
    })
}

fn rows(grid: &GridResult) -> Vec<Value> {
    let cells = grid.cells.iter().map(|cell| cell_row(grid, cell));
    let printed = grid.printed.iter().map(|row| printed_row(grid, row));
    cells.chain(printed).collect()
}

fn cell_row(grid: &GridResult, cell: &Cell) -> Value {
    let name = match (cell.core, cell.at) {
        (Some(core), _) => format!("core {core}"),
        (None, Some((column, row))) => format!("column {column} row {row}"),
        (None, None) => "nowhere".to_owned(),
    };
    let simulated = cell.simulated;
    json!({
        "id": format!("{}/{name}", grid.id()),
        "machine": grid.machine,
        "mode": grid.mode,
        "memory": grid.memory,
        "core": cell.core,
        "column": cell.at.map(|at| at.0),
        "row": cell.at.map(|at| at.1),
        "published": cell.published,
        "simulated": simulated.map(|s| s.ns),
        "simulated_interval": simulated.map(|s| [s.lo_ns, s.hi_ns]),
        "error_ns": cell.error_ns(),
        "reading": word(cell.reading()),
        "used": used(cell.role),
        "note": cell.note(),
    })
}

fn word(reading: Option<Reading>) -> &'static str {
    reading.map_or("unreadable", Reading::as_str)
}

fn used(role: Role) -> Option<&'static str> {
    (role != Role::Unused).then(|| role.as_str())
}

fn printed_row(grid: &GridResult, row: &Printed) -> Value {
    json!({
        "id": format!("{}/{}", grid.id(), row.what),
        "machine": grid.machine,
        "mode": grid.mode,
        "memory": grid.memory,
        "published": row.published,
        "simulated": row.simulated,
        "error_ns": row.published.zip(row.simulated).map(|(p, s)| s - p),
        "reading": word(row.reading()),
        "note": row.note,
    })
}

fn grid(grid: &GridResult) -> Value {
    let constants = grid
        .constants
        .iter()
        .map(|c| json!({ "name": c.name, "value": c.value.number.words, "standing": standing(&c.value) }));
    let scores = grid.scores.iter().map(|score| {
        json!({
            "what": score.what,
            "used": score.role.as_str(),
            "cells": score.cells,
            "rms_ns": score.rms_ns,
            "worst_ns": score.worst_ns,
            "explained": score.explained,
            "reading": Reading::Simulated,
        })
    });
    let controllers = grid.controllers.iter().map(|c| {
        json!({
            "from": c.reading,
            "reading": Reading::Predicted,
            "best": c.best.map(|p| [p.0, p.1]),
            "truth": c.truth.map(|p| [p.0, p.1]),
            "candidates": c.candidates.iter().map(|p| [p.0, p.1]).collect::<Vec<_>>(),
            "floor_ns": c.floor.map(|f| f.1),
            "places_at_floor": c.floor.map(|f| f.0),
            "r2": c.r2,
            "summary": c.summary,
        })
    });
    json!({
        "id": grid.id(),
        "title": grid.title,
        "mode": grid.mode,
        "memory": grid.memory,
        "readable": grid.readable(),
        "unreadable": grid.unreadable(),
        "numbers_fitted": free_numbers(&grid.constants),
        "constants": constants.collect::<Vec<_>>(),
        "scores": scores.collect::<Vec<_>>(),
        "controllers": controllers.collect::<Vec<_>>(),
        "notes": grid.notes,
    })
}

fn measured(measured: &Measured) -> Value {
    let regions = measured.regions.iter().map(|grid| {
        let cells = grid.cells.iter().enumerate().map(|(at, cell)| {
            let columns = grid.columns.len().max(1);
            json!({
                "core": grid.rows.get(at / columns),
                "region": grid.columns.get(at % columns),
                "ns": cell.map(|c| c.median),
                "interval": cell.map(|c| [c.lo, c.hi]),
                "p5_p95": cell.map(|c| [c.p5, c.p95]),
                "n": cell.map(|c| c.n),
            })
        });
        let range = extremes(grid.cells.iter().flatten().map(|cell| cell.median));
        json!({
            "mode": grid.mode,
            "buffer_bytes": grid.buffer_bytes,
            "cells": cells.collect::<Vec<_>>(),
            "delta_ns": range.map(|r| r.1 - r.0),
        })
    });
    let levels = measured.levels.iter().map(|level| {
        json!({
            "level": level.level,
            "core": level.core,
            "mean_ns": level.mean_ns,
            "near_quarter_ns": level.near_quarter_ns,
            "spread_p90_p10": level.spread_p90_p10,
            "r2_heldout": level.r2_heldout,
        })
    });
    let figures = measured.figures.iter().map(|figure| {
        let cores =
            figure.cores.iter().map(|(core, line)| json!({ "core": core, "relative": line }));
        json!({
            "level": figure.level.as_str(),
            "reading": figure.reading,
            "first_frame": figure.first_frame,
            "fastest_ns": figure.fastest_ns,
            "what": figure.what,
            "cores": cores.collect::<Vec<_>>(),
        })
    });
    json!({
        "reading": measured.reading,
        "complete": measured.complete,
        "machine": measured.title,
        "regions": regions.collect::<Vec<_>>(),
        "levels": levels.collect::<Vec<_>>(),
        "figure2": figures.collect::<Vec<_>>(),
    })
}
