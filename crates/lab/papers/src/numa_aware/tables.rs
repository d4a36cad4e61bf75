//! The paper's tables with ours beside them.

use isochrone_report::table::{Cell, Table};
use isochrone_tasks::Regime;
use isochrone_workloads::numa::Bench;

use super::paper::{AGAINST_DFT, AGAINST_DI, Change, FIGURE_THREADS, TABLE_2};
use super::record::Record;
use super::runs::{ABLATIONS, ALL_THREADS, DFT_SEEDS, NAFT_RULES, Runs};
use super::{Reproduction, traffic};
use crate::row::short;
use isochrone_workloads::numa::Variant;

/// The rows of the judging list.
pub(super) fn judged(all: &Reproduction) -> Table {
    let mut table =
        Table::new(["row", "what", "tests", "paper", "ours", "tolerance", "holds", "note"]);
    for row in &all.rows {
        let holds = match (row.pass, row.must) {
            (Some(true), true) => "yes (must)",
            (Some(true), false) => "yes",
            (Some(false), true) => "NO (must)",
            (Some(false), false) => "no",
            (None, _) => "not run",
        };
        let tolerance = format!("{}: {}", row.tolerance, row.narrow);
        let words =
            [&row.id, &row.what, row.tests.as_str(), &row.paper, &row.ours, tolerance.as_str()];
        let cells = words.into_iter().map(Into::into);
        table.row(cells.chain([holds.into(), row.note.as_str().into()]));
    }
    table
}

/// Table 2.
pub(super) fn table_2(all: &Reproduction) -> Table {
    let mut table = Table::new([
        "distance",
        "latency, ns",
        "paper",
        "least to most",
        "paper",
        "bandwidth, GB/s",
        "paper",
    ]);
    for ((name, latency, bandwidth), (ns, gbs)) in TABLE_2.iter().zip(&all.table2.by_distance) {
        let number = |value: f64| Cell::number(value, short(value));
        table.row([
            (*name).into(),
            number(ns.mean),
            number(latency[0]),
            Cell::number(ns.least, format!("{} to {}", short(ns.least), short(ns.most))),
            Cell::number(latency[1], format!("{} to {}", latency[1], latency[2])),
            number(gbs.mean),
            number(bandwidth[0]),
        ]);
    }
    table
}

/// Table 3a or 3b: ours, and the paper's in brackets.
pub(super) fn table_3(runs: &Runs, against: Regime) -> Table {
    let rows: &[Change] = if against == Regime::Di { &AGAINST_DI } else { &AGAINST_DFT };
    let mut table = Table::new(["benchmark", "speed-up", "DWB", "DTC", "control", "total"]);
    for row in rows {
        let paper = [row.speedup, row.dwb, row.dtc, row.control, row.total];
        let ours = traffic::table_3(runs, row, against);
        let cells = paper.into_iter().zip(ours).enumerate().map(|(column, (paper, ours))| {
            let write = |value: f64| match column {
                0 => format!("{value:.2}x"),
                _ => format!("{value:.0} %"),
            };
            let ours = ours.map_or_else(|| "not run".to_owned(), write);
            Cell::text(format!("{ours} ({})", write(paper)))
        });
        table.row(std::iter::once(Cell::text(row.bench.title())).chain(cells));
    }
    table
}

/// Speed-ups of all regimes over threads: Figure 2 in numbers.
pub(super) fn figure_2(runs: &Runs, bench: Bench) -> Table {
    let mut table = Table::new(["threads", "DFT", "DI", "NAFT"]);
    for threads in super::paper::THREADS {
        let cell = |regime| Cell::maybe(runs.speedup(bench, regime, threads), short);
        table.row([
            Cell::number(f64::from(threads), threads.to_string()),
            cell(Regime::Dft),
            cell(Regime::Di),
            cell(Regime::Naft),
        ]);
    }
    table
}

/// Where skew appears: most over median module under DFT, least, median and most of the seeds.
pub(super) fn seeds(runs: &Runs) -> Table {
    let mut table = Table::new([
        "benchmark",
        "threads",
        "seeds",
        "uneven: least",
        "median",
        "most",
        "data in one module, %",
        "s: least",
        "median",
        "most",
    ])
    .keyed(2);
    for bench in Bench::ALL {
        for threads in FIGURE_THREADS {
            let all = runs.seeds(bench, Regime::Dft, threads, &[]);
            if all.is_empty() {
                continue;
            }
            let spread = |of: &dyn Fn(&Record) -> f64| {
                let mut values: Vec<f64> = all.iter().map(|record| of(record)).collect();
                values.sort_by(f64::total_cmp);
                [values[0], values[values.len() / 2], values[values.len() - 1]]
            };
            let number = |value: f64| Cell::number(value, short(value));
            let uneven = spread(&|record| record.skew().unwrap_or(1.0));
            let seconds = spread(&|record| record.seconds);
            let share = spread(&|record| 100.0 * most_at_home(record))[1];
            let count = all.len().min(usize::try_from(DFT_SEEDS).unwrap_or(usize::MAX));
            table.row(
                [bench.title().into(), threads.to_string().into(), count.to_string().into()]
                    .into_iter()
                    .chain(uneven.map(number))
                    .chain([number(share)])
                    .chain(seconds.map(number)),
            );
        }
    }
    table
}

/// The part of all data whose memory is in the module that has most.
fn most_at_home(record: &Record) -> f64 {
    let modules = record.messages.len().max(1);
    let each = record.homes.len() / modules;
    let sums: Vec<u64> = record.homes.chunks(each.max(1)).map(|part| part.iter().sum()).collect();
    let real = super::record::real;
    let most = sums.iter().max().copied().unwrap_or(0);
    real(most) / real(sums.iter().sum::<u64>().max(1))
}

/// Rankings and initialisations side by side, and ours.
pub(super) fn variants(runs: &Runs) -> Table {
    let mut table = Table::new([
        "benchmark",
        "ranking",
        "initialisation",
        "s",
        "movement against DI, %",
        "DWB against DI, %",
        "mode",
        "partitioning, s of one core here, measured",
    ])
    .keyed(3);
    for bench in Bench::ALL {
        let base = runs.one(bench, Regime::Di, ALL_THREADS);
        let percent = |ours: f64, base: f64| 100.0 * (ours / base - 1.0);
        let mut add = |ranking: &str, touch: &str, record: Option<&Record>| {
            let Some(record) = record else { return };
            let number = |value: f64| Cell::number(value, short(value));
            let against = |kind: usize| {
                base.map(|b| percent(super::runs::moved(record)[kind], super::runs::moved(b)[kind]))
            };
            table.row([
                bench.title().into(),
                ranking.into(),
                touch.into(),
                number(record.seconds),
                Cell::maybe(against(3), short),
                Cell::maybe(against(0), short),
                record.mode().0.to_string().into(),
                Cell::maybe(Some(record.partition_seconds).filter(|seconds| *seconds > 0.0), short),
            ]);
        };
        let rankings = [("Nanos++: each range once", &[][..]), ("inout twice", &NAFT_RULES[..])];
        for (ranking, rules) in rankings {
            for (touch, more) in [("per tile or block", &[][..]), ("per panel", &[Variant::Panels])]
            {
                let rules = [rules, more].concat();
                let found = runs.seeds(bench, Regime::Naft, ALL_THREADS, &rules);
                add(ranking, touch, found.into_iter().next());
            }
        }
        let ours = |rules: &[Variant]| {
            runs.seeds(bench, Regime::Isochrone, ALL_THREADS, rules).into_iter().next()
        };
        add("isochrone: by latency and bandwidth", "per tile or block", ours(&[]));
        add("a partition of the next 1024 tasks", "per tile or block", ours(&[Variant::Partition]));
        add("DI", "interleaved", base);
    }
    table
}

/// What each change does at 288 threads.
pub(super) fn ablations(runs: &Runs, bench: Bench) -> Table {
    let mut table = Table::new([
        "change",
        "NAFT/DI moved, %",
        "NAFT/DFT moved, %",
        "NAFT over DI",
        "NAFT over DFT",
        "DI over DFT",
        "DI/DFT moved",
    ]);
    for change in std::iter::once(None).chain(ABLATIONS.into_iter().map(Some)) {
        let moved = |pair| runs.ratio(bench, pair, ALL_THREADS, change, |r| r.movement(None));
        let seconds = |pair| runs.ratio(bench, pair, ALL_THREADS, change, |r| r.seconds);
        let (dft, di, naft) = (Regime::Dft, Regime::Di, Regime::Naft);
        let percent = |ratio: Option<f64>| Cell::maybe(ratio.map(|r| 100.0 * (r - 1.0)), short);
        if moved([naft, di]).is_none() {
            continue;
        }
        table.row([
            change.map_or("nothing", Variant::says).into(),
            percent(moved([naft, di])),
            percent(moved([naft, dft])),
            Cell::maybe(seconds([di, naft]), short),
            Cell::maybe(seconds([dft, naft]), short),
            Cell::maybe(seconds([dft, di]), short),
            Cell::maybe(moved([di, dft]), short),
        ]);
    }
    table
}
