//! One long table: a row a value, so that any tool can filter and pivot it.
//!
//! Columns: `table, group, row, column, quantity, unit, value, lo, hi, p5, p95, n`. Fields are
//! quoted as RFC 4180 says.

use crate::Experiment;
use crate::contents::{Cell, Contents, LevelMap, Matrix, Quality};
use std::io::{self, Write};

const HEADER: &str = "table,group,row,column,quantity,unit,value,lo,hi,p5,p95,n";

/// What a row is about.
#[derive(Clone, Copy)]
struct Key<'k> {
    table: &'k str,
    group: &'k str,
    row: &'k str,
    column: &'k str,
    quantity: &'k str,
    unit: &'k str,
}

/// Writes all values of an atlas but the codes of single pages.
///
/// # Errors
/// What the writer says.
pub fn csv(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    Experiment::ALL.into_iter().try_for_each(|experiment| rows_of(experiment, contents, out))
}

fn rows_of(experiment: Experiment, contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    match experiment {
        Experiment::Block => {
            contents.levels.iter().try_for_each(|level| level_rows(contents, level, out))
        }
        Experiment::Region => contents
            .regions
            .iter()
            .try_for_each(|map| matrix("region_latency", &map.mode, &map.latency_ns, out)),
        Experiment::Transfer => contents.transfers.iter().try_for_each(|map| {
            matrix("transfer", &map.state, &map.latency_ns, out)?;
            best_lines(&map.state, &map.latency_ns, &map.best_line_ns, out)
        }),
        Experiment::Multiline => {
            multiline(contents, out)?;
            interactions(contents, out)
        }
        Experiment::Terms => terms(contents, out),
        Experiment::Bandwidth => bandwidth(contents, out),
        Experiment::Placement => places(contents, out),
    }
}

fn interactions(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    for item in &contents.interactions {
        let row = item.n.to_string();
        let key = Key {
            table: "interaction",
            group: &item.kind,
            row: &row,
            column: "",
            quantity: "latency",
            unit: "ns",
        };
        cell(key, item.ns.as_ref(), out)?;
    }
    Ok(())
}

fn terms(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    for term in &contents.terms {
        let parts =
            [("difference", &term.ns), ("with", &term.with_ns), ("without", &term.without_ns)];
        for (quantity, value) in parts {
            let (table, group, unit) = ("term", term.name.as_str(), "ns");
            let key = Key { table, group, row: "", column: "", quantity, unit };
            cell(key, value.as_ref(), out)?;
        }
    }
    Ok(())
}

fn bandwidth(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    for group in &contents.bandwidth {
        let cores: Vec<String> = group.cores.iter().map(ToString::to_string).collect();
        let (row, column) =
            (format!("cores {}", cores.join(" ")), format!("region {}", group.region));
        let key = Key {
            table: "bandwidth",
            group: "triad",
            row: &row,
            column: &column,
            quantity: "bandwidth",
            unit: "GB/s",
        };
        cell(key, Some(&group.gb_per_s), out)?;
    }
    Ok(())
}

fn places(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    for (label, x, y) in contents.placement.iter().flat_map(|placement| &placement.places) {
        for (quantity, value) in [("x", *x), ("y", *y)] {
            let key =
                Key { table: "place", group: "", row: label, column: "", quantity, unit: "cells" };
            number(key, Some(value), out)?;
        }
    }
    Ok(())
}

fn level_rows(contents: &Contents, level: &LevelMap, out: &mut impl Write) -> io::Result<()> {
    let group = level.level.as_str();
    for (index, base) in level.bases.iter().enumerate() {
        for (class, pattern) in base.patterns.iter().enumerate() {
            for (line, cycles) in pattern.iter().enumerate() {
                let row = format!("base {index} class {class}");
                let column = format!("line {line}");
                let key = Key {
                    table: "base",
                    group,
                    row: &row,
                    column: &column,
                    quantity: "latency",
                    unit: "cycles",
                };
                number(key, Some(f64::from(*cycles)), out)?;
            }
        }
    }
    for (code, share) in level.code_share.iter().enumerate() {
        let row = format!("code {code}");
        let key = Key { table: "code", group, row: &row, column: "", quantity: "share", unit: "" };
        number(key, Some(f64::from(*share)), out)?;
    }
    for (core, quality) in contents.machine.cores.iter().zip(&level.quality) {
        quality_rows(group, &format!("core {}", core.id), quality, out)?;
    }
    for (frame, core, cycles) in &level.lines {
        for (line, cycles) in cycles.iter().enumerate() {
            let (row, column) = (format!("core {core}"), format!("frame {frame} line {line}"));
            let key = Key {
                table: "line",
                group,
                row: &row,
                column: &column,
                quantity: "latency",
                unit: "cycles",
            };
            number(key, Some(f64::from(*cycles)).filter(|cycles| !cycles.is_nan()), out)?;
        }
    }
    Ok(())
}

fn quality_rows(group: &str, row: &str, quality: &Quality, out: &mut impl Write) -> io::Result<()> {
    let values = [
        ("r2_heldout", "", quality.r2_heldout),
        ("r2_ceiling", "", quality.r2_ceiling),
        ("r2_train", "", quality.r2_train),
        ("lines_per_page", "lines", quality.lines_per_page),
        ("samples_per_page", "loads", quality.samples_per_page),
        ("us_per_page", "us", quality.us_per_page),
        ("key_accuracy", "", quality.key_accuracy),
        ("near_regret", "", quality.near_regret),
        ("spread_p90_p10", "", quality.spread_p90_p10),
        ("mean", "ns", quality.mean_ns),
        ("near_quarter", "ns", quality.near_quarter_ns),
    ];
    for (quantity, unit, value) in values {
        number(Key { table: "quality", group, row, column: "", quantity, unit }, value, out)?;
    }
    let Some(verified) = quality.verified else { return Ok(()) };
    for (quantity, value) in [("verified", verified.explained), ("verified_error", verified.error)]
    {
        number(Key { table: "quality", group, row, column: "", quantity, unit: "" }, value, out)?;
    }
    Ok(())
}

fn matrix(table: &str, group: &str, matrix: &Matrix, out: &mut impl Write) -> io::Result<()> {
    for (row, column, found) in labelled(matrix, &matrix.cells) {
        let key = Key { table, group, row, column, quantity: "latency", unit: "ns" };
        cell(key, found.as_ref(), out)?;
    }
    Ok(())
}

fn best_lines(
    group: &str,
    matrix: &Matrix,
    best: &[Option<f64>],
    out: &mut impl Write,
) -> io::Result<()> {
    for (row, column, best) in labelled(matrix, best) {
        let (table, quantity, unit) = ("transfer", "best_line", "ns");
        number(Key { table, group, row, column, quantity, unit }, *best, out)?;
    }
    Ok(())
}

/// Row-major values with the labels of their row and column.
fn labelled<'m, T>(
    matrix: &'m Matrix,
    values: &'m [T],
) -> impl Iterator<Item = (&'m str, &'m str, &'m T)> {
    let pairs = matrix
        .rows
        .iter()
        .flat_map(|row| matrix.columns.iter().map(move |column| (row.as_str(), column.as_str())));
    pairs.zip(values).map(|((row, column), value)| (row, column, value))
}

fn multiline(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    for fit in &contents.multiline {
        let table = "multiline";
        for (quantity, value) in [("q", Some(fit.q_ns)), ("o", Some(fit.o_ns)), ("c", fit.c_ns)] {
            let key = Key { table, group: &fit.what, row: "", column: "", quantity, unit: "ns" };
            let (value, lo, hi) = match value {
                Some((value, lo, hi)) => (Some(value), Some(lo), Some(hi)),
                None => (None, None, None),
            };
            record(key, [value, lo, hi, None, None], None, out)?;
        }
        for (lines, readers, ns) in &fit.points {
            let (row, column) = (format!("{lines} lines"), format!("{readers} readers"));
            let (row, column) = (row.as_str(), column.as_str());
            let key = Key { table, group: &fit.what, row, column, quantity: "latency", unit: "ns" };
            number(key, Some(*ns), out)?;
        }
    }
    Ok(())
}

fn cell(key: Key<'_>, cell: Option<&Cell>, out: &mut impl Write) -> io::Result<()> {
    let values =
        cell.map_or([None; 5], |cell| [cell.median, cell.lo, cell.hi, cell.p5, cell.p95].map(Some));
    record(key, values, cell.map(|cell| cell.n), out)
}

fn number(key: Key<'_>, value: Option<f64>, out: &mut impl Write) -> io::Result<()> {
    record(key, [value, None, None, None, None], None, out)
}

fn record(
    key: Key<'_>,
    values: [Option<f64>; 5],
    n: Option<u32>,
    out: &mut impl Write,
) -> io::Result<()> {
    for field in [key.table, key.group, key.row, key.column, key.quantity, key.unit] {
        write!(out, "{},", quoted(field))?;
    }
    for value in values {
        write!(out, "{},", value.map(|value| value.to_string()).unwrap_or_default())?;
    }
    writeln!(out, "{}", n.map(|n| n.to_string()).unwrap_or_default())
}

/// RFC 4180, section 2: fields with commas, quotes or line ends stand in quotes, quotes doubled.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
