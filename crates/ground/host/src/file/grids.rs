//! Floor plan and latency grids of a description. A grid drawn in rows has the layout of the
//! floor plan, cell for cell; a grid whose layout is not readable is a list of core and number.

use std::collections::BTreeSet;

use isochrone_machine::{Grid, GridLabels, Machine, Origin, Place};
use toml::Spanned;

use super::cells::Cell;
use super::checker::{CORE_LIMIT, Checker};
use super::error::MachineFileError;
use super::raw::{RawGrid, RawLabels, RawMachine, Rows};

/// Most grids, and most sets of labels under one of them; the poster has two and two.
const MAX_GRIDS: usize = 64;

/// Gives every core that is drawn its place.
pub(super) fn floor_plan(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    let Some(plan) = &raw.floor_plan else { return Ok(()) };
    let source = check.source(&plan.source)?;
    machine.origins.push(Origin { what: "floor plan".into(), source });
    let mut seen = BTreeSet::new();
    let columns = columns(&plan.rows, check)?;
    for (index, cell) in cells(&plan.rows).enumerate() {
        let Some(id) = drawn_core(cell, check)? else { continue };
        let core = machine.cores.iter_mut().find(|core| core.id == id).ok_or_else(|| {
            check.wrong(cell, format!("core {id} is not described under [[cores]]"))
        })?;
        if !seen.insert(id) {
            return Err(check.wrong(cell, format!("core {id} is drawn twice; expected it once")));
        }
        core.place = Some(Place { x: coordinate(index % columns), y: coordinate(index / columns) });
    }
    Ok(())
}

pub(super) fn grids(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    check.unique("grid", raw.grids.iter().map(|grid| &grid.name))?;
    check.at_most(
        "grids",
        MAX_GRIDS,
        raw.grids.len(),
        raw.grids.last().map(|grid| grid.name.span()),
    )?;
    for grid in &raw.grids {
        check.at_most("sets of labels", MAX_GRIDS, grid.labels.len(), Some(grid.name.span()))?;
        let (columns, cores, cells) = match (&grid.rows, &grid.list) {
            (Some(rows), None) => from_rows(raw, rows, check)?,
            (None, Some(_)) => from_list(grid, check, machine)?,
            _ => {
                let problem = "expected exactly one of `rows` (in the layout of [floor_plan]) \
                               and `list` (of core and number)";
                return Err(check.wrong(&grid.name, problem));
            }
        };
        let labels = grid.labels.iter().map(|raw| self::labels(raw, &cores, check));
        machine.grids.push(Grid {
            name: grid.name.get_ref().clone(),
            what: grid.what.clone(),
            unit: grid.unit.clone(),
            mode: grid.mode.clone(),
            memory: grid.memory.clone(),
            region: grid.region.as_ref().map(|id| check.region(id, machine)).transpose()?,
            columns,
            labels: labels.collect::<Result<_, _>>()?,
            cores,
            cells,
            note: grid.note.clone(),
            source: check.source(&grid.source)?,
        });
    }
    Ok(())
}

type Layout = (Option<u16>, Vec<Option<u16>>, Vec<Option<f64>>);

fn from_rows(
    raw: &RawMachine,
    rows: &Rows,
    check: &Checker<'_>,
) -> Result<Layout, MachineFileError> {
    let Some(plan) = &raw.floor_plan else {
        return Err(check.wrong(rows, "expected a [floor_plan] that says which core is where"));
    };
    let (wide, high) = (columns(&plan.rows, check)?, plan.rows.get_ref().len());
    if rows.get_ref().len() != high || columns(rows, check)? != wide {
        let problem = format!(
            "expected {high} rows of {wide} cells, as in [floor_plan], not {} rows",
            rows.get_ref().len()
        );
        return Err(check.wrong(rows, problem));
    }
    let (mut cores, mut values) = (Vec::new(), Vec::new());
    for (place, cell) in cells(&plan.rows).zip(cells(rows)) {
        let core = drawn_core(place, check)?;
        values.push(value_of(core, cell, check)?);
        cores.push(core);
    }
    Ok((u16::try_from(wide).ok(), cores, values))
}

/// A cell of a grid, where the floor plan has `core` or nothing.
fn value_of(
    core: Option<u16>,
    cell: &Spanned<Cell>,
    check: &Checker<'_>,
) -> Result<Option<f64>, MachineFileError> {
    match (core, cell.get_ref(), cell.get_ref().number()) {
        (None, Cell::Empty, _) | (Some(_), Cell::Unreadable, _) => Ok(None),
        (Some(_), _, Some(value)) => check.positive(&Spanned::new(cell.span(), value)).map(Some),
        (None, _, _) => Err(check.wrong(cell, "nothing is drawn here; expected \"-\"")),
        (Some(id), _, None) => {
            let problem = format!("core {id} is drawn here; expected its number or \"?\"");
            Err(check.wrong(cell, problem))
        }
    }
}

fn from_list(
    raw: &RawGrid,
    check: &Checker<'_>,
    machine: &Machine,
) -> Result<Layout, MachineFileError> {
    let cores: Vec<Option<u16>> = machine.cores.iter().map(|core| Some(core.id)).collect();
    let mut values = vec![None; cores.len()];
    for (core, value) in raw.list.iter().flatten() {
        let id = *core.get_ref();
        let index = cores.iter().position(|&known| known == Some(id)).ok_or_else(|| {
            check.wrong(core, format!("core {id} is not described under [[cores]]"))
        })?;
        if values[index].replace(check.positive(value)?).is_some() {
            return Err(check.wrong(core, format!("core {id} has two numbers; expected one")));
        }
    }
    Ok((None, cores, values))
}

fn labels(
    raw: &RawLabels,
    drawn: &[Option<u16>],
    check: &Checker<'_>,
) -> Result<GridLabels, MachineFileError> {
    let cores = check.list(&raw.cores, CORE_LIMIT)?;
    let drawn: BTreeSet<u16> = drawn.iter().flatten().copied().collect();
    if let Some(stranger) = cores.iter().find(|core| !drawn.contains(core)) {
        return Err(check.wrong(&raw.cores, format!("core {stranger} is not in this grid")));
    }
    let optional = |value: &Option<Spanned<f64>>| {
        value.as_ref().map(|value| check.positive(value)).transpose()
    };
    let (min, max) = (optional(&raw.min)?, optional(&raw.max)?);
    Ok(GridLabels { cores, min, max, delta: optional(&raw.delta)? })
}

/// Cells in a row; all rows must have as many, and at least one.
fn columns(rows: &Rows, check: &Checker<'_>) -> Result<usize, MachineFileError> {
    let Some(first) = rows.get_ref().first() else {
        return Err(check.wrong(rows, "expected at least one row"));
    };
    let wide = first.get_ref().len();
    if wide == 0 || u16::try_from(wide).is_err() {
        return Err(check.wrong(first, "expected between 1 and 65535 cells in a row"));
    }
    match rows.get_ref().iter().find(|row| row.get_ref().len() != wide) {
        None => Ok(wide),
        Some(odd) => Err(check.wrong(
            odd,
            format!("expected {wide} cells, as in the first row, not {}", odd.get_ref().len()),
        )),
    }
}

fn cells(rows: &Rows) -> impl Iterator<Item = &Spanned<Cell>> {
    rows.get_ref().iter().flat_map(|row| row.get_ref())
}

/// A cell of the floor plan: a core's number, or nothing.
fn drawn_core(cell: &Spanned<Cell>, check: &Checker<'_>) -> Result<Option<u16>, MachineFileError> {
    let id = match *cell.get_ref() {
        Cell::Empty => return Ok(None),
        Cell::Whole(whole) => u16::try_from(whole).ok(),
        Cell::Number(_) | Cell::Unreadable => None,
    };
    match id {
        Some(id) => Ok(Some(id)),
        None => Err(check.wrong(cell, "expected a core's number, or \"-\" where nothing is drawn")),
    }
}

/// A row or column as a coordinate; a file has far fewer than 2^32 of them.
fn coordinate(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX))
}
