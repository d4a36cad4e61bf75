//! Matrices as heat maps with their tables: core to core in every state, core to region in every
//! mode.

use isochrone_atlas_store::contents::{Cell as Value, Contents, Matrix, RegionMap, TransferMap};
use isochrone_report::fmt;
use isochrone_report::html::Figure;
use isochrone_report::svg::{self, HeatMap};
use isochrone_report::table::{Cell, Table};
use isochrone_stats::median;

use super::{name, ns, reading, whole};
use crate::level::ends;
use crate::words::cells::{measured, mode_title, transfer_missing, transfer_title};

/// Up to this many cells each has a row with its interval.
const LONG_TABLE: usize = 400;
/// Up to this many columns the table is the matrix; beyond, each row is summed up.
const WIDE_TABLE: usize = 128;

fn heat_map(matrix: &Matrix) -> HeatMap {
    let cells = || matrix.cells.iter();
    HeatMap {
        unit: "ns".into(),
        rows: matrix.rows.clone(),
        columns: matrix.columns.clone(),
        cells: cells().map(|cell| cell.map(|c| c.median)).collect(),
        intervals: cells().map(|cell| cell.map(|c| (c.lo, c.hi))).collect(),
        ..HeatMap::default()
    }
}

/// Core to core in one state; `None` if nothing was measured.
pub(crate) fn transfer_map(map: &TransferMap) -> Option<HeatMap> {
    if measured(&map.latency_ns).is_empty() {
        return None;
    }
    let (rows, columns) = match map.state.as_str() {
        "cas" => ("one core", "the other"),
        _ => ("owner", "core that asks"),
    };
    Some(HeatMap {
        title: transfer_title(map),
        row_title: rows.into(),
        column_title: columns.into(),
        missing: "same core".into(),
        ..heat_map(&map.latency_ns)
    })
}

/// Core-to-core figures, one a state that was measured.
pub(crate) fn transfer_figures(contents: &Contents) -> Vec<Figure> {
    let figure = |map: &TransferMap| {
        let drawn = transfer_map(map)?;
        let more = match map.latency_ns.cells.len() <= LONG_TABLE {
            true => "The fastest line of a pair is in the table: flags belong there.",
            false => "`isochrone export --csv` has the interval of every cell.",
        };
        let what = map.what.split(": not measured").next().unwrap_or_default();
        Some(Figure {
            svg: svg::heat_map(&drawn),
            caption: format!(
                "State {}: {what}, the median over {} lines with its 95 % interval. {more}",
                map.state, map.lines
            ),
            badge: Some(reading(contents)),
            table: Some(table(&map.latency_ns, Some(&map.best_line_ns))),
            open: measured(&map.latency_ns).len() <= 8,
        })
    };
    contents.transfers.iter().filter_map(figure).collect()
}

/// States without a figure, each with the reason.
pub(crate) fn transfers_missing(contents: &Contents) -> Vec<String> {
    let missing = contents.transfers.iter().filter(|map| measured(&map.latency_ns).is_empty());
    missing.map(|map| format!("{}: {}.", transfer_title(map), transfer_missing(map))).collect()
}

/// Modes of which something was measured.
fn region_modes(contents: &Contents) -> Vec<&RegionMap> {
    contents.regions.iter().filter(|map| !measured(&map.latency_ns).is_empty()).collect()
}

/// Core to region, one map a mode. Where there is one region, modes that go to memory share a
/// map, a column each: a matrix of one column shows no difference between modes.
pub(crate) fn region_maps(contents: &Contents) -> Vec<HeatMap> {
    let modes = region_modes(contents);
    // In order the prefetcher hides memory: that is another scale altogether.
    let to_memory: Vec<&RegionMap> =
        modes.iter().copied().filter(|map| map.mode != "in-order").collect();
    if one_region(&modes) && to_memory.len() > 1 {
        return vec![joined(&to_memory)];
    }
    let title = |map: &RegionMap| format!("Core to region: {}", mode_title(map));
    modes.iter().map(|map| HeatMap { title: title(map), ..heat_map(&map.latency_ns) }).collect()
}

/// Whether all modes are of the same cores and the same single region.
fn one_region(modes: &[&RegionMap]) -> bool {
    let names = |map: &RegionMap| (map.latency_ns.rows.clone(), map.latency_ns.columns.clone());
    let Some(first) = modes.first().map(|map| names(map)) else { return false };
    first.1.len() == 1 && modes.iter().all(|map| names(map) == first)
}

fn joined(maps: &[&RegionMap]) -> HeatMap {
    let matrices: Vec<HeatMap> = maps.iter().map(|map| heat_map(&map.latency_ns)).collect();
    let rows = matrices[0].rows.clone();
    let places = || (0..rows.len()).flat_map(|row| matrices.iter().map(move |m| (row, m)));
    HeatMap {
        title: format!("Core to {}", matrices[0].columns[0]),
        unit: "ns".into(),
        columns: maps.iter().map(|map| map.mode.clone()).collect(),
        cells: places().map(|(row, m)| m.cells.get(row).copied().flatten()).collect(),
        intervals: places().map(|(row, m)| m.intervals.get(row).copied().flatten()).collect(),
        rows: rows.clone(),
        ..HeatMap::default()
    }
}

/// Core-to-region figures: one for all modes, or one a mode.
pub(crate) fn region_figures(contents: &Contents) -> Vec<Figure> {
    let (modes, maps) = (region_modes(contents), region_maps(contents));
    let figure = |map: &HeatMap, caption: String, table: Table, open: bool| Figure {
        svg: svg::heat_map(map),
        caption,
        badge: Some(reading(contents)),
        table: Some(table),
        open,
    };
    let what = "Nanoseconds a load of a dependent chase, the median with its 95 % interval";
    if let ([map], true) = (maps.as_slice(), modes.len() > 1) {
        let caption = format!("{what}. In order is in the table only: prefetching hides memory.");
        let open = map.rows.len() <= 4;
        return vec![figure(map, caption, mode_table(&modes), open)];
    }
    let drawn = modes.iter().zip(&maps).map(|(mode, map)| {
        let caption = format!("{what}, through {}.", fmt::bytes(mode.buffer_bytes));
        figure(map, caption, table(&mode.latency_ns, None), false)
    });
    drawn.collect()
}

/// All modes of one region under one another.
fn mode_table(modes: &[&RegionMap]) -> Table {
    let head = ["walk", "through", "from", "to", "median, ns", "95 % from", "95 % to"];
    let mut table =
        Table::new(head.into_iter().chain(["5 % of values", "95 % of values", "values"]));
    for mode in modes {
        let matrix = &mode.latency_ns;
        for (row, column, cell) in measured(matrix) {
            let walk = [mode_title(mode), fmt::bytes(mode.buffer_bytes)].map(Cell::text);
            let names = [&matrix.rows[row], &matrix.columns[column]].map(|l| name(l));
            table.row(walk.into_iter().chain(names).chain(numbers(&cell)));
        }
    }
    table
}

/// Median, interval, percentiles and number of values.
fn numbers(cell: &Value) -> impl Iterator<Item = Cell> + use<> {
    let latencies = [cell.median, cell.lo, cell.hi, cell.p5, cell.p95].map(|v| ns(Some(v)));
    latencies.into_iter().chain([whole(u64::from(cell.n))])
}

/// The numbers of a matrix, in the form that its size allows.
fn table(matrix: &Matrix, best: Option<&[Option<f64>]>) -> Table {
    let cells = matrix.rows.len() * matrix.columns.len();
    if cells <= LONG_TABLE {
        long_table(matrix, best)
    } else if matrix.columns.len() <= WIDE_TABLE {
        wide_table(matrix)
    } else {
        row_table(matrix)
    }
}

/// One row a cell, with everything that is known of it.
fn long_table(matrix: &Matrix, best: Option<&[Option<f64>]>) -> Table {
    let head = ["from", "to", "median, ns", "95 % from", "95 % to", "5 % of values"];
    let fastest = best.map(|_| "fastest line, ns");
    let mut table = Table::new(head.into_iter().chain(["95 % of values", "values"]).chain(fastest));
    for (row, column, cell) in measured(matrix) {
        let names = [&matrix.rows[row], &matrix.columns[column]].map(|l| name(l));
        let at = row * matrix.columns.len() + column;
        let best = best.map(|best| ns(best.get(at).copied().flatten()));
        table.row(names.into_iter().chain(numbers(&cell)).chain(best));
    }
    table
}

/// The medians as a matrix.
fn wide_table(matrix: &Matrix) -> Table {
    let mut table = Table::new(["ns".to_owned()].into_iter().chain(matrix.columns.iter().cloned()));
    let columns = matrix.columns.len();
    for (row, label) in matrix.rows.iter().enumerate() {
        let cell = |column| matrix.cells.get(row * columns + column).copied().flatten();
        let medians = (0..columns).map(|column| ns(cell(column).map(|c| c.median)));
        table.row([name(label)].into_iter().chain(medians));
    }
    table
}

/// Every row in a few numbers.
fn row_table(matrix: &Matrix) -> Table {
    let mut table = Table::new(["from", "cells", "nearest, ns", "median, ns", "farthest, ns"]);
    let found = measured(matrix);
    for (row, label) in matrix.rows.iter().enumerate() {
        let values: Vec<f64> = found.iter().filter(|f| f.0 == row).map(|f| f.2.median).collect();
        let ends = ends(&values);
        table.row([
            name(label),
            whole(values.len() as u64),
            ns(ends.map(|e| e.0)),
            ns(median(&values)),
            ns(ends.map(|e| e.1)),
        ]);
    }
    table
}
