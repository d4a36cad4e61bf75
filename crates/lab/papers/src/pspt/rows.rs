//! What the paper says beside what was simulated, with what each row tests, a tolerance and a verdict.

use isochrone_tier::simulated::Part;
use isochrone_workloads::pspt::{Change, Mode, PUBLISHED, Simulated, Smt, cores_of};

use crate::exhibit::Tests;
use crate::row::{Accepts, Cell, Row};

/// Points by which a cell of a table may differ.
const POINTS: f64 = 5.0;
/// What has to be said of a fault's cost.
const FAULT: &str = "cycles of a fault; with one amount of arithmetic for a page it does not agree with the 93 % of \
                     Table I at 56 cores";
/// Part by which a fault's cost may differ.
const PART: f64 = 0.2;

/// All comparisons under each change alone.
pub(super) fn under_changes(all: &Simulated) -> Vec<(Change, Vec<Row>)> {
    all.under_changes().map(|(change, under)| (change, compared(&under))).collect()
}

/// All comparisons, and what each comes to under single changes where it misses.
pub(super) fn rows(all: &Simulated, changed: &[(Change, Vec<Row>)]) -> Vec<Row> {
    let single = || changed.iter().filter(|(change, _)| change.is_single());
    let rows = compared(all).into_iter().enumerate();
    rows.map(|(at, row)| {
        let under = single().filter_map(|(change, rows)| Some((*change, rows.get(at)?)));
        beside_changes(row, under)
    })
    .collect()
}

fn compared(all: &Simulated) -> Vec<Row> {
    let mut rows = Vec::new();
    figure6(all, &mut rows);
    figure7(all, &mut rows);
    rows.push(siblings(all));
    tables(all, &mut rows);
    causes(all, &mut rows);
    figure8(all, &mut rows);
    rows
}

/// A number of the paper's with ours, and how near they have to be.
struct Beside {
    paper: Option<f64>,
    ours: Option<f64>,
    accepts: Accepts,
}

fn row(id: impl Into<String>, tests: Tests, beside: Beside, tolerance: &str, note: &str) -> Row {
    let id = id.into();
    let cell = Cell::new(id.clone(), beside.paper, beside.ours, beside.accepts);
    let row = Row::single(id, tests, tolerance, cell).note(note);
    // What follows from the model, or is asked for nothing, does not have to hold.
    let fails = beside.accepts != Accepts::ANY && tests != Tests::Invariant;
    if fails { row.must() } else { row }
}

/// What changes do to a row of one cell that misses, each alone: the numbers, and whether one of them makes it hold.
fn beside_changes<'r>(row: Row, changed: impl Iterator<Item = (Change, &'r Row)>) -> Row {
    if row.pass != Some(false) {
        return row;
    }
    let moved: Vec<(Change, &Row)> = changed.filter(|(_, under)| under.ours != row.ours).collect();
    let holds = |under: &Row| under.pass == Some(true);
    let words = |(change, under): &(Change, &Row)| {
        let verdict = if holds(under) { ", which holds" } else { "" };
        format!("{} {}{verdict}", under.ours, change.as_str())
    };
    let list = moved.iter().map(words).collect::<Vec<_>>().join(", ");
    let list = if list.is_empty() { list } else { format!("with one thing changed: {list}") };
    row.explained(moved.iter().any(|(_, under)| holds(under))).note(list)
}

/// Within a part of the paper's number.
fn within(paper: f64, ours: Option<f64>, part: f64) -> Beside {
    Beside { paper: Some(paper), ours, accepts: Accepts::within(paper, part * paper) }
}

fn figure6(all: &Simulated, rows: &mut Vec<Row>) {
    let fault = |mode, smt, workers| all.cell(mode, smt, workers).map(|cell| cell.outcome.fault());
    let separated = PUBLISHED.fault_separated;
    let at = |smt, workers| fault(Mode::Pspt, smt, workers);
    for (smt, workers) in [(Smt::Off, 2), (Smt::Off, 32), (Smt::Spread, 64)] {
        let (tests, split) = match workers {
            2 => (Tests::InSample, "its parts are an assumed split of this number"),
            _ => (Tests::OutOfSample, ""),
        };
        let beside = within(separated, at(smt, workers), PART);
        let id = format!("figure6/pspt/{workers}");
        rows.push(row(id, tests, beside, "20 %", FAULT).note(split));
    }
    let flat = at(Smt::Spread, 64).zip(at(Smt::Off, 2)).map(|(most, two)| most / two);
    rows.push(row(
        "figure6/pspt/64 over 2",
        Tests::OutOfSample,
        Beside { paper: Some(1.0), ours: flat, accepts: Accepts::at_most(1.25) },
        "at most 1.25",
        "nearly constant",
    ));
    let shared = PUBLISHED.fault_shared;
    rows.push(row(
        "figure6/regular/32",
        Tests::InSample,
        within(shared, fault(Mode::Regular, Smt::Off, 32), PART),
        "20 %",
        "cycles of a fault; the cost of an interrupt request is fitted on it",
    ));
    let part = |workers| {
        let cell = all.cell(Mode::Regular, Smt::Off, workers)?;
        Some(cell.outcome.parts[Part::Shootdown as usize])
    };
    let growth = part(32).zip(part(16)).map(|(most, half)| most / half);
    rows.push(row(
        "figure6/regular/shootdown, 32 over 16",
        Tests::OutOfSample,
        Beside { paper: None, ours: growth, accepts: Accepts::above(2.0) },
        "more than 2",
        "faster than linearly",
    ));
}

/// The number of threads after which twice as many are less than 1.5 times as fast.
fn bend(all: &Simulated, mode: Mode, smt: Smt) -> Option<f64> {
    let time = |workers| all.cell(mode, smt, workers).map(|cell| cell.outcome.sweep);
    let steps = cores_of(smt);
    for pair in steps.windows(2) {
        let gain = time(pair[0])? / time(pair[1])?;
        let ideal = f64::from(pair[1]) / f64::from(pair[0]);
        if gain < 0.75 * ideal {
            return Some(f64::from(pair[0]));
        }
    }
    Some(f64::from(steps[5]))
}

fn figure7(all: &Simulated, rows: &mut Vec<Row>) {
    for smt in [Smt::Off, Smt::On] {
        let regular = bend(all, Mode::Regular, smt);
        // The paper says it of separate cores; threads that share a core ask for less.
        let (most, tolerance) = if smt == Smt::Off { (8.0, "8") } else { (16.0, "8 or 16") };
        rows.push(row(
            format!("figure7/{}/regular scales up to", smt.as_str()),
            Tests::OutOfSample,
            Beside { paper: Some(8.0), ours: regular, accepts: Accepts::between(8.0, most) },
            tolerance,
            "severe overhead on scalability just over 8 application threads; here threads after which \
             twice as many are less than 1.5 times as fast",
        ));
        let separated = bend(all, Mode::Pspt, smt);
        let first = regular.zip(separated).map(|(regular, pspt)| pspt - regular);
        rows.push(row(
            format!("figure7/{}/PSPT scales further by", smt.as_str()),
            Tests::OutOfSample,
            Beside { paper: None, ours: first, accepts: Accepts::above(0.0) },
            "more than 0",
            "threads",
        ));
    }
}

/// Four threads of one core beside two cores, all data in memory.
fn siblings(all: &Simulated) -> Row {
    let time = |smt, workers| all.cell(Mode::InMemory, smt, workers).map(|cell| cell.outcome.sweep);
    let ours = time(Smt::On, 4).zip(time(Smt::Off, 2)).map(|(four, two)| four / two);
    row(
        "figure7/in memory, four threads of a core over two cores",
        Tests::InSample,
        Beside { paper: None, ours, accepts: Accepts::above(1.0) },
        "more than 1",
        "\"runtimes for 4 threads are actually worse than for 2\"; what threads do together was assumed by it",
    )
}

fn mode_of(prefetch: bool) -> Mode {
    if prefetch { Mode::Prefetch } else { Mode::Pspt }
}

/// Why a table's cells were looked at before the model was what it is.
const POLLED: &str = "that threads which wait poll was chosen after these were seen to miss";
const BATCHED: &str = "that movers evict page by page was chosen by these";
const ENGINE: &str = "fitted: an engine's time";

/// What a cell of a table tests: with hyper-threading all were looked at.
fn tests_of(smt: Smt, prefetch: bool, workers: u16) -> (Tests, &'static str) {
    match (smt, prefetch, workers) {
        (Smt::Off, _, 56) => (Tests::InSample, ENGINE),
        (Smt::Off, false, 8) => (Tests::InSample, "fitted: arithmetic for a page"),
        (Smt::Off, ..) => (Tests::OutOfSample, ""),
        (_, false, _) => (Tests::InSample, POLLED),
        (_, true, _) => (Tests::InSample, BATCHED),
    }
}

fn tables(all: &Simulated, rows: &mut Vec<Row>) {
    for table in PUBLISHED.tables {
        let mode = mode_of(table.prefetch);
        let name = if table.smt == Smt::Off { "table1" } else { "table2" };
        let percent = |workers| all.overhead(mode, table.smt, workers).map(|share| 100.0 * share);
        let points = |paper: f64, ours| Beside {
            paper: Some(paper),
            ours,
            accepts: Accepts::within(paper, POINTS),
        };
        let mut ours = Vec::new();
        for (workers, paper) in table.cells {
            let found = percent(workers);
            ours.extend(found);
            let (tests, note) = tests_of(table.smt, table.prefetch, workers);
            let saturated = table.prefetch && [56, 128].contains(&workers);
            let cause = if saturated { "saturated: judged by its cause, below" } else { "" };
            let id = format!("{name}/{}/{workers}", mode.as_str());
            let mut row = row(id, tests, points(paper, found), "5 points", "percent");
            row = row.note(note).note(cause);
            row.must = !saturated;
            rows.push(row);
        }
        let mean = (ours.len() == 6).then(|| ours.iter().sum::<f64>() / 6.0);
        let id = format!("{name}/{}/mean", mode.as_str());
        let note = "percent; cells that were fitted are in it";
        rows.push(row(id, Tests::InSample, points(table.mean, mean), "5 points", note));
    }
}

/// The two saturated cells: what bounds them is switched off.
fn causes(all: &Simulated, rows: &mut Vec<Row>) {
    let percent = |mode, smt, workers| all.overhead(mode, smt, workers).map(|share| 100.0 * share);
    let falls = |mode, smt, workers| {
        let with = percent(Mode::Prefetch, smt, workers)?;
        Some(with - percent(mode, smt, workers)?)
    };
    rows.push(row(
        "table1/56/engines without bound take away",
        Tests::InSample,
        Beside {
            paper: Some(20.0),
            ours: falls(Mode::PrefetchAnyEngines, Smt::Off, 56),
            accepts: Accepts::at_least(10.0),
        },
        "at least 10 points",
        "the paper's cause; its number is what 56 cores have above 32; the engine is fitted there",
    ));
    rows.push(row(
        "table2/128/a mover for each thread takes away",
        Tests::OutOfSample,
        Beside {
            paper: Some(16.0),
            ours: falls(Mode::PrefetchMoverEach, Smt::On, 128),
            accepts: Accepts::at_least(8.0),
        },
        "at least 8 points",
        "the paper's cause: 64 movers for 128 threads; its number is what 128 have above 64",
    ));
    let unjudged = [
        ("table1/8", Smt::Off, 8, Mode::PrefetchNoSiblings, "a core for each thread takes away"),
        ("table1/8", Smt::Off, 8, Mode::PrefetchAnyEngines, "engines without bound take away"),
        ("table2/128", Smt::On, 128, Mode::PrefetchAnyEngines, "engines without bound take away"),
    ];
    for (cell, smt, workers, mode, name) in unjudged {
        let ours = falls(mode, smt, workers);
        let beside = Beside { paper: None, ours, accepts: Accepts::ANY };
        let note = "points; what the bound is worth there";
        rows.push(row(format!("{cell}/{name}"), Tests::Invariant, beside, "not judged", note));
    }
}

/// Pages fetched by each core in 25 sweeps over the paper's area.
pub(super) fn faults(all: &Simulated, mode: Mode, smt: Smt, workers: u16) -> Option<f64> {
    let of_a_sweep = all.cell(mode, smt, workers)?.outcome.faults;
    // Of a strip of one page width.
    let strip = f64::from(2 * all.plan.rows);
    Some(of_a_sweep * PUBLISHED.iterations * PUBLISHED.pages / strip)
}

fn figure8(all: &Simulated, rows: &mut Vec<Row>) {
    for workers in cores_of(Smt::Off) {
        let formula = counted_faults(workers);
        let alone = faults(all, Mode::Pspt, Smt::Off, workers);
        rows.push(row(
            format!("figure8/PSPT/{workers}"),
            Tests::Invariant,
            within(formula, alone, 0.02),
            "2 %",
            "faults of a core; the paper's number is 25 P / N, its figure is an image",
        ));
        let ours =
            alone.zip(faults(all, Mode::Prefetch, Smt::Off, workers)).map(|(all, few)| all / few);
        let id = format!("figure8/PSPT over PSPT+pre-fetch/{workers}");
        rows.push(if workers == 56 {
            let accepts = Accepts::factor(10.0, HALF_AN_ORDER);
            let beside = Beside { paper: Some(10.0), ours, accepts };
            row(
                id,
                Tests::OutOfSample,
                beside,
                "half an order of magnitude",
                "one order of magnitude",
            )
        } else {
            let beside = Beside { paper: Some(100.0), ours, accepts: Accepts::at_least(50.0) };
            let note =
                "approximately two orders of magnitude; about the window, while movers keep up";
            row(id, Tests::Invariant, beside, "at least 50", note)
        });
    }
}

/// Faults of a core by counting: each page in each iteration.
pub(super) fn counted_faults(workers: u16) -> f64 {
    PUBLISHED.iterations * PUBLISHED.pages / f64::from(workers)
}

/// A factor up to which an order of magnitude is the same one.
const HALF_AN_ORDER: f64 = 3.162;
