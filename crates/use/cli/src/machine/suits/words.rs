//! What suits what, as text for people. It decides nothing and prints nothing.

use isochrone_machine::{RegionKind, spans, strides};
use isochrone_report::lines::fit;
use isochrone_report::{fmt, table::Cell, table::Table};

use super::figures::{Figures, Number, RegionFigures, Set, StepFigures};
use isochrone_console::output::Terminal;

/// Rows of regions that are shown at most, beyond those of the first set.
const ROWS_MOST: usize = 32;
/// What all of it is.
const LAW: &str = "predicted: by Little's law, from latency without load and the bandwidth of a triad; pages by \
                   turns as if the cores could move what both memories do";

/// All of it.
pub(super) fn text(figures: &Figures, terminal: Terminal) -> String {
    if let Some(nothing) = figures.nothing {
        return format!("{}: {nothing}", figures.machine);
    }
    let rows: usize = figures.sets.iter().map(|set| set.regions.len()).sum();
    let mut parts = vec![figures.machine.clone()];
    for (nth, set) in figures.sets.iter().enumerate() {
        let with_rows = nth == 0 || rows <= ROWS_MOST;
        parts.push(of_set(set, with_rows, terminal));
    }
    if rows > ROWS_MOST && figures.sets.len() > 1 {
        parts.push("what regions are to the other sets: --cores LIST, or --json".to_owned());
    }
    parts.push(LAW.to_owned());
    parts.extend(figures.assumed.iter().map(|what| format!("assumed: {what}")));
    fit(&parts.join("\n"), terminal.width)
}

fn of_set(set: &Set, with_rows: bool, terminal: Terminal) -> String {
    let mut lines = vec![format!("cores {}", strides(&set.cores))];
    if with_rows {
        lines.push(table(&set.regions).to_terminal(terminal.columns()));
    }
    lines.extend(suited(set).into_iter().map(|line| format!("  {line}")));
    let left_out = set.unknown().into_iter().filter(|(_, regions)| !regions.is_empty());
    lines.extend(left_out.map(|(what, regions)| {
        format!("  left out, since {what} is not known: regions {}", spans(&regions))
    }));
    lines.join("\n")
}

fn table(regions: &[RegionFigures]) -> Table {
    let mut table = Table::new(["region", "memory", "latency, ns", "bandwidth, GB/s", "reading"]);
    for of in regions {
        let number = |number: Option<Number>| match number {
            Some(of) => Cell::number(of.value, ranged(&of, "")),
            None => Cell::missing(),
        };
        table.row([
            of.region.to_string().into(),
            kind(of.kind).into(),
            number(of.latency_ns),
            number(of.gb_per_s),
            readings(of).into(),
        ]);
    }
    table
}

/// Readings of latency and bandwidth.
fn readings(of: &RegionFigures) -> String {
    let mut words: Vec<&str> =
        [of.latency_ns, of.gb_per_s].into_iter().flatten().map(|of| of.word()).collect();
    words.dedup();
    words.join(", ")
}

/// Which region suits what.
fn suited(set: &Set) -> Vec<String> {
    let cores = set.cores.len();
    let Some((near, wider)) = set.separate.split_first() else { return Vec::new() };
    let mut lines = vec![format!("accesses that wait for one another: {}", near.words())];
    lines.push(match wider {
        [] => format!("many lines under way: {} as well", near.words()),
        steps => format!("many lines under way: {}", all_from(steps, cores)),
    });
    let by_turns = set.with_turns.iter().any(|step| step.regions.len() > 1);
    lines.push(match (by_turns, set.with_turns.as_slice()) {
        (true, [_, steps @ ..]) => format!("with pages by turns: {}", all_from(steps, cores)),
        _ => "pages of two regions by turns: no gain".to_owned(),
    });
    lines
}

fn all_from(steps: &[StepFigures], cores: usize) -> String {
    let one =
        |step: &StepFigures| format!("{} {}", step.words(), from_words(&step.from_lines, cores));
    steps.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// From how many lines on, of all cores and of each.
pub(crate) fn from_words(lines: &Number, cores: usize) -> String {
    let each = lines.value / cores.max(1) as f64;
    format!("from {} on, {} a core", ranged(lines, "lines"), fmt::significant(each, 2))
}

/// A number with its range, where it has one.
fn ranged(number: &Number, unit: &str) -> String {
    let Number { value, lo, hi, .. } = *number;
    if lo < hi {
        return fmt::interval(value, lo, hi, unit);
    }
    let space = if unit.is_empty() { "" } else { " " };
    format!("{}{space}{unit}", fmt::significant(value, 3))
}

const fn kind(of: RegionKind) -> &'static str {
    match of {
        RegionKind::Ddr => "DDR",
        RegionKind::Gddr => "GDDR",
        RegionKind::Mcdram => "MCDRAM",
        RegionKind::Hbm => "HBM",
        RegionKind::Cxl => "CXL",
        RegionKind::Unknown => "unknown",
    }
}
