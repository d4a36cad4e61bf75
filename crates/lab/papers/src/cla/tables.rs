//! The paper's numbers beside ours, as tables and as text.

use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_units::Reading;

use super::{Beside, PUBLISHED_FLAT, PUBLISHED_MPI, Reproduction, most_over_flat, most_over_hmpi};

/// What stands on top.
pub(super) const INTRODUCTION: &str = "Published numbers are those of a Xeon E5-2660 with two sockets. The \
    graph, the bands and the simulation are for that machine too, from the costs that the paper prints. \
    Nothing there is measured. The column `measured` is this machine.";

/// What Figure 3 is here.
pub(super) const FIGURE_3: &str = "The program of Figure 1, from memory, one line; threads fill the first socket. \
    The tree is the best by the printed rules. `printed` is the band by the printed rules, `ours` the one by \
    where lines can be, in which the simulated median lies. Beyond eight threads a parent has a synchronisation line \
    for each socket. The paper gives no numbers of its curve.";

/// What stands beside it.
pub(super) const OTHERS: &str = "Beside it: Figure 1 with one synchronisation line; HMPI's flat tree after a \
    barrier, and between two; and the tree that is best by our rules. How HMPI's barrier is built is assumed: a \
    counter and a flag for each socket.";

fn ns(value: f64) -> Cell {
    Cell::number(value, fmt::significant(value, 4))
}

pub(super) fn beside(rows: &[Beside]) -> Table {
    let mut table = Table::new([
        "name",
        "what",
        "unit",
        Reading::Published.as_str(),
        Reading::Measured.as_str(),
    ]);
    for row in rows {
        table.row([
            Cell::text(row.name),
            Cell::text(row.what.clone()),
            Cell::text(row.unit),
            Cell::maybe(row.published, |v| fmt::significant(v, 4)),
            Cell::maybe(row.measured, |v| fmt::significant(v, 4)),
        ]);
    }
    table
}

pub(super) fn figure3(all: &Reproduction) -> Table {
    let mut table = Table::new([
        "threads",
        "printed ns",
        "ours ns",
        Reading::Simulated.as_str(),
        "inside",
        "flat ns",
        "flat / best",
        "flat simulated",
    ]);
    for row in &all.figure3 {
        let band = |min: f64, max: f64| Cell::number(min, format!("{min:.0} to {max:.0}"));
        table.row([
            Cell::text(row.threads.to_string()),
            band(row.printed.min_ns, row.printed.max_ns),
            band(row.ours.min_ns, row.ours.max_ns),
            ns(row.simulated_ns),
            Cell::text(if row.ours.holds(row.simulated_ns) { "yes" } else { "NO" }),
            ns(row.flat_ns),
            Cell::text(format!("{:.2}", row.flat_ns / row.printed.min_ns)),
            ns(row.flat_simulated_ns),
        ]);
    }
    table
}

/// Other programs and another tree beside the chosen one.
pub(super) fn others(all: &Reproduction) -> Table {
    let mut table = Table::new([
        "threads",
        "one line, ours ns",
        "one line, simulated",
        "HMPI ns",
        "HMPI / best",
        "HMPI simulated",
        "best by printed rules",
        "best by ours",
        Reading::Simulated.as_str(),
        "readers 5, 25 ns apart",
        "HMPI so",
    ]);
    for row in &all.figure3 {
        let two = |values: [f64; 2], write: fn(f64) -> String| {
            Cell::number(values[1], format!("{} to {}", write(values[0]), write(values[1])))
        };
        let whole = |ns: f64| format!("{ns:.0}");
        table.row([
            Cell::text(row.threads.to_string()),
            two([row.one_line.min_ns, row.one_line.max_ns], whole),
            ns(row.one_line_simulated_ns),
            two(row.hmpi.map(|one| one.min_ns), whole),
            two(row.hmpi.map(|one| one.min_ns / row.printed.min_ns), |r| format!("{r:.2}")),
            two(row.hmpi.map(|one| one.simulated_ns), whole),
            Cell::text(row.tree.to_string()),
            Cell::text(row.our_tree.to_string()),
            ns(row.our_simulated_ns),
            two(row.in_turn.map(|one| one.simulated_ns), whole),
            two(row.in_turn.map(|one| one.hmpi_simulated_ns), whole),
        ]);
    }
    table
}

/// The result in sentences.
pub(super) fn summary(all: &Reproduction) -> Vec<String> {
    let [printed, ours] = &all.figure2;
    let most = most_over_flat(all);
    vec![
        format!(
            "Figure 2: the four-node binary tree takes {:.1} to {:.1} ns by the printed rules and {:.1} to \
             {:.1} ns by ours (predicted).",
            printed.min.total_ns, printed.max.total_ns, ours.min.total_ns, ours.max.total_ns
        ),
        format!(
            "Figure 3: HMPI takes {:.2} (one barrier) to {:.2} (two) times the best tree's time at most, the flat \
             tree alone {:.2} ({}); the paper measured {PUBLISHED_FLAT} at most, and {PUBLISHED_MPI:.0} against \
             MPI libraries, which no model here knows.",
            most_over_hmpi(all, 0).value(),
            most_over_hmpi(all, 1).value(),
            most.value(),
            most.readings()
        ),
    ]
}

/// What the terminal shows.
pub(super) fn to_terminal(all: &Reproduction, width: u16) -> String {
    let machine = all.machine.clone().unwrap_or_else(|| "no atlas".to_owned());
    let mut parts = vec![
        INTRODUCTION.to_owned(),
        format!("this machine: {machine}"),
        "Table 1: several lines, T = q + oN + cnN".to_owned(),
        beside(&all.table1).to_terminal(width),
        "Section 2.1: one line".to_owned(),
        beside(&all.latencies).to_terminal(width),
        FIGURE_3.to_owned(),
        figure3(all).to_terminal(width),
        OTHERS.to_owned(),
        others(all).to_terminal(width),
    ];
    parts.extend(summary(all));
    parts.join("\n")
}
