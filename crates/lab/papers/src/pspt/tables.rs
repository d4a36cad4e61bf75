//! The numbers as tables.

use isochrone_machine::Value;
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_tier::simulated::Part;
use isochrone_units::Standing;
use isochrone_workloads::pspt::{Mode, PUBLISHED, Smt};

use super::{MODES, Reproduction, settings};
use crate::row::Row;

fn four(value: f64) -> String {
    fmt::significant(value, 4)
}

/// Whether a comparison holds, in a word.
fn holds(row: &Row) -> &'static str {
    match row.pass {
        _ if !row.asks() => "",
        Some(true) => "yes",
        Some(false) => "NO",
        None => "?",
    }
}

/// What a row tests, in a word; nothing where nothing is asked.
fn tests(row: &Row) -> &'static str {
    if row.asks() { row.tests.as_str() } else { "" }
}

/// Every comparison, without remarks.
pub(super) fn verdicts(all: &Reproduction) -> Table {
    let mut table = Table::new(["what", "tests", "paper", "ours", "allowed", "holds"]);
    for row in &all.rows {
        table.row([
            row.id.as_str().into(),
            tests(row).into(),
            Cell::maybe(row.cells[0].paper, four),
            Cell::maybe(row.cells[0].ours, four),
            row.tolerance.as_str().into(),
            holds(row).into(),
        ]);
    }
    table
}

/// Every comparison.
pub(super) fn rows(all: &Reproduction) -> Table {
    let mut table = Table::new([
        "what",
        "tests",
        "paper",
        "ours, simulated",
        "allowed",
        "accepts",
        "must",
        "holds",
        "note",
    ]);
    for row in &all.rows {
        table.row([
            row.id.as_str().into(),
            tests(row).into(),
            Cell::maybe(row.cells[0].paper, four),
            Cell::maybe(row.cells[0].ours, four),
            row.tolerance.as_str().into(),
            row.narrow.as_str().into(),
            if row.must { "must" } else { "" }.into(),
            holds(row).into(),
            row.note.as_str().into(),
        ]);
    }
    table
}

/// Figure 6: cycles of a fault by part.
pub(super) fn breakdown(all: &Reproduction, mode: Mode) -> Table {
    let mut headers = vec!["threads".to_owned(), "cycles".to_owned()];
    headers.extend(Part::ALL.map(|part| part.as_str().to_owned()));
    let mut table = Table::new(headers);
    let wanted = |smt| matches!(smt, Smt::Off | Smt::Spread);
    for cell in all.simulated.cells.iter().filter(|c| c.mode == mode && wanted(c.smt)) {
        let number = |value: f64| Cell::number(value, format!("{value:.0}"));
        let parts = cell.outcome.parts.map(number);
        let head = [number(f64::from(cell.workers)), number(cell.outcome.fault())];
        table.row(head.into_iter().chain(parts));
    }
    table
}

/// Figure 7: what all sweeps take.
pub(super) fn runtimes(all: &Reproduction, smt: Smt, steps: [u16; 6]) -> Table {
    let mut headers = vec!["threads".to_owned()];
    headers.extend(MODES.map(|mode| format!("{}, million cycles", mode.as_str())));
    let mut table = Table::new(headers);
    for workers in steps {
        let times = MODES.map(|mode| Cell::maybe(all.runtime(mode, smt, workers), four));
        let head = Cell::number(f64::from(workers), workers.to_string());
        table.row(std::iter::once(head).chain(times));
    }
    table
}

/// Tables I and II.
pub(super) fn overheads(all: &Reproduction) -> Table {
    let mut table = Table::new(["threads", "", "paper, %", "ours, simulated, %"]).keyed(2);
    for published in PUBLISHED.tables {
        let mode = if published.prefetch { Mode::Prefetch } else { Mode::Pspt };
        for (workers, percent) in published.cells {
            let ours = all.overhead(mode, published.smt, workers).map(|share| 100.0 * share);
            table.row([
                format!("{workers}, {}", published.smt.as_str()).into(),
                mode.as_str().into(),
                Cell::number(percent, format!("{percent:.0}")),
                Cell::maybe(ours, |share| format!("{share:.1}")),
            ]);
        }
    }
    table
}

/// Figure 8 and what the paper lacks: what prefetching reached.
pub(super) fn prefetching(all: &Reproduction) -> Table {
    let mut table = Table::new([
        "threads",
        "fetched by workers, of what is needed",
        "waited for a mover",
        "engines busy",
        "interrupts a page",
    ]);
    for (smt, steps) in settings() {
        for workers in steps {
            let cell = all.simulated.cell(Mode::Prefetch, smt, workers);
            let Some(cell) = cell else { continue };
            let outcome = &cell.outcome;
            let needed = f64::from(2 * all.simulated.plan.rows) / f64::from(workers);
            table.row([
                format!("{workers}, {}", smt.as_str()).into(),
                Cell::number(outcome.faults / needed, fmt::percent(outcome.faults / needed)),
                Cell::number(outcome.late / needed, fmt::percent(outcome.late / needed)),
                Cell::number(outcome.engines_busy, fmt::percent(outcome.engines_busy)),
                Cell::number(outcome.interrupts, four(outcome.interrupts)),
            ]);
        }
    }
    table
}

/// How a number is known, in a word.
pub(super) const fn standing(value: &Value) -> &'static str {
    match value.standing {
        Standing::Known => value.reading.as_str(),
        other => other.as_str(),
    }
}

/// What it rests on.
pub(super) fn constants(all: &Reproduction) -> Table {
    let mut table = Table::new(["constant", "value", "unit", "standing", "why"]);
    for constant in &all.simulated.constants {
        let value = &constant.value;
        table.row([
            constant.name.as_str().into(),
            Cell::number(value.number, plain(value.number)),
            value.unit.as_str().into(),
            standing(value).into(),
            value.source.as_str().into(),
        ]);
    }
    table
}

/// A number as it was given: a count without digits behind the point, a share without zeros at its end.
fn plain(number: f64) -> String {
    let whole = number.fract().abs() < f64::EPSILON;
    if whole {
        format!("{number:.0}")
    } else {
        fmt::significant(number, 6).trim_end_matches('0').to_owned()
    }
}
