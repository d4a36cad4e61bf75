//! Matrices as heat maps with their tables: core to core in every state, core to region in every
//! mode.

use isochrone_atlas_store::contents::{Cell as Value, Contents, Matrix, RegionMap, TransferMap};
use isochrone_machine::strides;
use isochrone_report::fmt;
use isochrone_report::html::Figure;
use isochrone_report::svg::{self, Cluster, HeatMap};
use isochrone_report::table::{Cell, Table};
use isochrone_stats::median;

use super::{name, ns, reading, whole};
use crate::clusters::Clusters;
use crate::level::ends;
use crate::words::cells::{has_more_than, measured, mode_title, transfer_missing, transfer_title};

/// Up to this many cells each has a row with its interval.
const LONG_TABLE: usize = 400;
/// Up to this many cells the table is the matrix; beyond, clusters are summed up, or rows where there are none.
const WIDE_TABLE: usize = 64 * 64;
/// Cells of a table of clusters.
const CLUSTER_TABLE: usize = 1024;

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

/// Core to core in one state, in the order of clusters; `None` if nothing was measured.
pub(crate) fn transfer_map(map: &TransferMap, clusters: &Clusters) -> Option<HeatMap> {
    if !has_more_than(&map.latency_ns, 0) {
        return None;
    }
    let (rows, columns) = match map.state.as_str() {
        "cas" => ("one core", "the other"),
        _ => ("owner", "core that asks"),
    };
    Some(clusters.arrange(HeatMap {
        title: transfer_title(map),
        row_title: rows.into(),
        column_title: columns.into(),
        missing: missing(&map.latency_ns),
        ..heat_map(&map.latency_ns)
    }))
}

/// Why cells of a matrix of pairs have no number.
fn missing(matrix: &Matrix) -> String {
    let columns = matrix.columns.len().max(1);
    let unknown = matrix.cells.iter().enumerate().filter(|(_, cell)| cell.is_none());
    let all_same = unknown
        .map(|(at, _)| at)
        .all(|at| matrix.rows.get(at / columns) == matrix.columns.get(at % columns));
    if all_same { "same core" } else { "same core, or not measured" }.to_owned()
}

/// The clusters by which matrices are ordered, each with its cores; `None` where transfers tell none. Regions have a
/// table of their own.
pub(crate) fn cluster_figure(contents: &Contents, clusters: &Clusters) -> Option<Figure> {
    let head = ["level", "cluster", "how many", "cores", "transfer inside, ns"];
    let mut table = Table::new(head);
    // The outermost first: it has the fewest.
    let told = clusters.levels.iter().enumerate().filter(|(_, level)| level.transfer_ns.is_some());
    for (level, (at, found)) in told.rev().enumerate() {
        for (nth, members) in clusters.joined(at) {
            let inside = found.transfer_ns.filter(|_| members.len() > 1);
            table.row([
                whole(level as u64 + 1),
                whole(nth as u64),
                whole(members.len() as u64),
                Cell::text(strides(&members)),
                ns(inside.map(|cell| cell.median)),
            ]);
        }
    }
    (clusters.measured && !table.is_empty()).then(|| Figure {
        caption: "Clusters of cores, the largest first. A transfer inside is one between cores that no smaller cluster \
                  joins."
            .into(),
        badge: Some(reading(contents)),
        table: Some(table),
        ..Figure::default()
    })
}

/// Core-to-core figures, one a state that was measured.
pub(crate) fn transfer_figures(contents: &Contents, clusters: &Clusters) -> Vec<Figure> {
    let figure = |map: &TransferMap| {
        let drawn = transfer_map(map, clusters)?;
        let more = match left_out(&map.latency_ns) {
            "" => " The fastest line of a pair is in the table: flags belong there.",
            words => words,
        };
        let what = map.what.split(": not measured").next().unwrap_or_default();
        Some(Figure {
            svg: svg::heat_map(&drawn),
            caption: format!(
                "State {}: {what}, the median over {} lines with its 95 % interval.{more}",
                map.state, map.lines
            ),
            badge: Some(reading(contents)),
            table: Some(table(&map.latency_ns, &drawn, Some(&map.best_line_ns))),
            open: !has_more_than(&map.latency_ns, 8),
        })
    };
    contents.transfers.iter().filter_map(figure).collect()
}

/// States without a figure, each with the reason.
pub(crate) fn transfers_missing(contents: &Contents) -> Vec<String> {
    let missing = contents.transfers.iter().filter(|map| !has_more_than(&map.latency_ns, 0));
    missing.map(|map| format!("{}: {}.", transfer_title(map), transfer_missing(map))).collect()
}

/// Modes of which something was measured.
fn region_modes(contents: &Contents) -> Vec<&RegionMap> {
    contents.regions.iter().filter(|map| has_more_than(&map.latency_ns, 0)).collect()
}

/// Core to region, one map a mode. Where there is one region, modes that go to memory share a
/// map, a column each: a matrix of one column shows no difference between modes.
pub(crate) fn region_maps<'c>(
    contents: &'c Contents,
    clusters: &'c Clusters,
) -> impl Iterator<Item = HeatMap> {
    let modes = region_modes(contents);
    // In order the prefetcher hides memory: that is another scale altogether.
    let to_memory: Vec<&RegionMap> =
        modes.iter().copied().filter(|map| map.mode != "in-order").collect();
    let together = (one_region(&modes) && to_memory.len() > 1).then(|| joined(&to_memory));
    let title = |map: &RegionMap| format!("Core to region: {}", mode_title(map));
    let map = move |map: &RegionMap| HeatMap { title: title(map), ..heat_map(&map.latency_ns) };
    let each = if together.is_some() { Vec::new() } else { modes };
    together.into_iter().chain(each.into_iter().map(map)).map(|map| clusters.arrange(map))
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
pub(crate) fn region_figures(contents: &Contents, clusters: &Clusters) -> Vec<Figure> {
    let modes = region_modes(contents);
    let maps: Vec<HeatMap> = region_maps(contents, clusters).collect();
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
        let more = left_out(&mode.latency_ns);
        let caption = format!("{what}, through {}.{more}", fmt::bytes(mode.buffer_bytes));
        figure(map, caption, table(&mode.latency_ns, map, None), false)
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
            table.row(walk.into_iter().chain(names).chain(numbers(cell)));
        }
    }
    table
}

/// Median, interval, percentiles and number of values.
fn numbers(cell: &Value) -> impl Iterator<Item = Cell> + use<> {
    let latencies = [cell.median, cell.lo, cell.hi, cell.p5, cell.p95].map(|v| ns(Some(v)));
    latencies.into_iter().chain([whole(u64::from(cell.n))])
}

/// The numbers of a matrix, in the form that its size allows. `drawn` is the same in the order of clusters.
fn table(matrix: &Matrix, drawn: &HeatMap, best: Option<&[Option<f64>]>) -> Table {
    let cells = matrix.rows.len() * matrix.columns.len();
    if cells <= LONG_TABLE {
        long_table(matrix, best)
    } else if cells <= WIDE_TABLE {
        wide_table(matrix)
    } else {
        cluster_table(drawn).unwrap_or_else(|| row_table(matrix))
    }
}

/// What the table of a matrix leaves out, and where that is to be had.
fn left_out(matrix: &Matrix) -> &'static str {
    let cells = matrix.rows.len() * matrix.columns.len();
    if cells <= LONG_TABLE {
        ""
    } else if cells <= WIDE_TABLE {
        " `isochrone export --csv` has the interval of every cell."
    } else {
        " The table sums up; `isochrone export --csv` has every cell with its interval."
    }
}

/// Medians over clusters of rows, and of columns where these are clusters too; those of the innermost level that makes
/// a table one can read. `None` where there are no clusters.
fn cluster_table(map: &HeatMap) -> Option<Table> {
    let each = |labels: &[String]| -> Vec<Cluster> {
        labels.iter().map(|label| Cluster { label: label.clone(), cells: 1 }).collect()
    };
    let levels = map.row_clusters.iter().enumerate().map(|(nth, rows)| {
        let columns = map.column_clusters.get(nth).cloned();
        (rows, columns.unwrap_or_else(|| each(&map.columns)))
    });
    let levels: Vec<_> = levels.collect();
    let fits =
        |level: &&(&Vec<Cluster>, Vec<Cluster>)| level.0.len() * level.1.len() <= CLUSTER_TABLE;
    let (rows, columns) = levels.iter().find(fits).or(levels.last())?;
    let head = columns.iter().map(|column| column.label.clone());
    let mut table = Table::new(["median, ns".to_owned()].into_iter().chain(head));
    let mut top = 0;
    for row in *rows {
        let mut left = 0;
        let medians = columns.iter().map(|column| {
            let first = left;
            left += column.cells;
            let inside = (top..top + row.cells)
                .flat_map(|r| (first..left).map(move |c| r * map.columns.len() + c))
                .collect::<Vec<usize>>();
            let known = inside.into_iter().filter_map(|at| map.cells.get(at).copied().flatten());
            ns(median(&known.filter(|ns| ns.is_finite()).collect::<Vec<f64>>()))
        });
        let medians: Vec<Cell> = medians.collect();
        table.row([name(&row.label)].into_iter().chain(medians));
        top += row.cells;
    }
    Some(table)
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
        table.row(names.into_iter().chain(numbers(cell)).chain(best));
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
    let columns = matrix.columns.len().max(1);
    for (label, cells) in matrix.rows.iter().zip(matrix.cells.chunks(columns)) {
        let medians = cells.iter().flatten().map(|cell| cell.median);
        let values: Vec<f64> = medians.filter(|ns| ns.is_finite()).collect();
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
