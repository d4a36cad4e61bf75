//! Cores and cores, cores and regions, several lines at once, bandwidth: what the matrices say.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{
    Bandwidth, Cell, Contents, CostTerm, Interaction, Matrix, MultiLineFit, RegionMap, TransferMap,
};
use isochrone_report::fmt;
use isochrone_stats::median;

use super::{EACH_CORE, absent, and, cores, counted, sentence, span};

/// A value with its interval, in the unit that fits.
pub(crate) fn interval(cell: &Cell) -> String {
    fmt::interval_ns(cell.median, cell.lo, cell.hi)
}

/// Cells that were measured, each with its row and column.
pub(crate) fn measured(matrix: &Matrix) -> impl Iterator<Item = (usize, usize, &Cell)> {
    let rows = matrix.cells.chunks(matrix.columns.len().max(1)).take(matrix.rows.len());
    let cells = rows.enumerate().flat_map(|(row, cells)| {
        cells.iter().enumerate().map(move |(column, cell)| (row, column, cell.as_ref()))
    });
    let cells = cells.filter(|(_, column, _)| *column < matrix.columns.len());
    cells.filter_map(|(row, column, cell)| {
        Some((row, column, cell.filter(|cell| cell.median.is_finite())?))
    })
}

/// Whether more than so many cells were measured.
pub(crate) fn has_more_than(matrix: &Matrix, cells: usize) -> bool {
    measured(matrix).nth(cells).is_some()
}

fn label(labels: &[String], at: usize) -> &str {
    labels.get(at).map_or("?", String::as_str)
}

/// Line transfers, one sentence a coherence state.
pub(crate) fn transfers(contents: &Contents) -> Vec<String> {
    if contents.transfers.is_empty() {
        return vec![absent(contents, Experiment::Transfer)];
    }
    contents.transfers.iter().map(transfer).collect()
}

/// What was timed between two cores.
pub(crate) fn transfer_title(map: &TransferMap) -> String {
    match map.state.as_str() {
        "cas" => "Compare-and-swap ping-pong, half a round trip".to_owned(),
        "modified" => "A line that its owner has written".to_owned(),
        "exclusive" => "A line that its owner alone has read".to_owned(),
        "shared" => "A line that its owner and another core have read".to_owned(),
        other => format!("A line in state {other}"),
    }
}

fn transfer(map: &TransferMap) -> String {
    let (matrix, title) = (&map.latency_ns, transfer_title(map));
    if !has_more_than(matrix, 0) {
        return format!("{title}: {}.", transfer_missing(map));
    }
    let once = symmetric(matrix);
    let ways: Vec<(usize, usize, &Cell)> =
        measured(matrix).filter(|(row, column, _)| !once || row < column).collect();
    let best = map.best_line_ns.iter().flatten().copied().reduce(f64::min);
    let best = best.map_or(String::new(), |ns| format!("; the best line takes {}", fmt::ns(ns)));
    if ways.len() <= 2 {
        let each: Vec<String> = ways
            .iter()
            .map(|(row, column, cell)| {
                let (from, to) = (label(&matrix.rows, *row), label(&matrix.columns, *column));
                let joined = if map.state == "cas" { "and" } else { "to" };
                format!("{from} {joined} {to} {}", interval(cell))
            })
            .collect();
        let p5 = ways.iter().map(|w| w.2.p5).fold(f64::INFINITY, f64::min);
        let p95 = ways.iter().map(|w| w.2.p95).fold(f64::NEG_INFINITY, f64::max);
        let (p5, p95) = (fmt::significant(p5, 3), fmt::ns(p95));
        let lines = counted(map.lines as usize, "line");
        return format!("{title}: {}; over {lines} {p5} to {p95}{best}.", and(&each));
    }
    let (spread, ends) = spread(matrix, &ways, "to");
    let pairs = counted(ways.len(), "pair");
    format!("{title}: {spread} over {pairs}, {ends}{best}.")
}

/// Why a state was not measured; the experiment says so behind what it is.
pub(crate) fn transfer_missing(map: &TransferMap) -> String {
    let why = map.what.split_once("not measured, ").map(|(_, why)| why);
    why.map_or("not measured".to_owned(), |why| format!("not measured: {why}"))
}

/// Whether a matrix says the same both ways.
fn symmetric(matrix: &Matrix) -> bool {
    let cores = matrix.rows.len();
    let ns =
        |row: usize, column: usize| Some(matrix.cells.get(row * cores + column)?.as_ref()?.median);
    let mut pairs = (0..cores).flat_map(|row| (0..row).map(move |column| (row, column)));
    matrix.rows == matrix.columns && pairs.all(|(row, column)| ns(row, column) == ns(column, row))
}

/// Smallest to largest with the median, and which cells these are.
fn spread(matrix: &Matrix, found: &[(usize, usize, &Cell)], joined: &str) -> (String, String) {
    let values: Vec<f64> = found.iter().map(|f| f.2.median).collect();
    let by =
        |a: &&(usize, usize, &Cell), b: &&(usize, usize, &Cell)| a.2.median.total_cmp(&b.2.median);
    let name = |f: Option<&(usize, usize, &Cell)>| {
        f.map_or(String::new(), |(r, c, _)| {
            format!("{} {joined} {}", label(&matrix.rows, *r), label(&matrix.columns, *c))
        })
    };
    let range = span(&values, fmt::ns).unwrap_or_else(|| fmt::MISSING.to_owned());
    let middle = median(&values).map_or_else(|| fmt::MISSING.to_owned(), fmt::ns);
    let (near, far) = (name(found.iter().min_by(by)), name(found.iter().max_by(by)));
    (format!("{range}, median {middle}"), format!("nearest {near}, farthest {far}"))
}

/// Region latency, one sentence a mode.
pub(crate) fn regions(contents: &Contents) -> Vec<String> {
    if contents.regions.is_empty() {
        return vec![absent(contents, Experiment::Region)];
    }
    contents.regions.iter().map(region).collect()
}

/// How the memory was walked through.
pub(crate) fn mode_title(map: &RegionMap) -> String {
    match map.mode.as_str() {
        "in-order" => "in order".to_owned(),
        "random" => "random order".to_owned(),
        "one-class" => "lines of the nearest class of pages".to_owned(),
        "stride" => map
            .stride_bytes
            .map_or("stride".to_owned(), |bytes| format!("stride of {}", fmt::bytes(bytes))),
        other => other.to_owned(),
    }
}

fn region(map: &RegionMap) -> String {
    let (matrix, title) = (&map.latency_ns, sentence(&mode_title(map)));
    let title = title.trim_end_matches('.');
    let buffer = fmt::bytes(map.buffer_bytes);
    let found: Vec<(usize, usize, &Cell)> = measured(matrix).collect();
    if found.is_empty() {
        return format!("{title} through {buffer}: not measured.");
    }
    if found.len() <= EACH_CORE {
        let each: Vec<String> = found
            .iter()
            .map(|(row, column, cell)| {
                let (core, region) = (label(&matrix.rows, *row), label(&matrix.columns, *column));
                format!("{core} to {region} {}", interval(cell))
            })
            .collect();
        return format!("{title} through {buffer}: {}.", and(&each));
    }
    let (spread, ends) = spread(matrix, &found, "to");
    format!("{title} through {buffer}: {spread}; {ends}.")
}

/// Fits of T = q + oN + cnN.
pub(crate) fn multiline(contents: &Contents) -> Vec<String> {
    if contents.multiline.is_empty() {
        return vec![absent(contents, Experiment::Multiline)];
    }
    contents.multiline.iter().map(fit).collect()
}

fn fit(fit: &MultiLineFit) -> String {
    let term = |(value, lo, hi): (f64, f64, f64)| fmt::interval_ns(value, lo, hi);
    let (q, o) = (term(fit.q_ns), term(fit.o_ns));
    let readers = fit
        .c_ns
        .map_or(String::new(), |c| format!(", and {} a line and reader of congestion", term(c)));
    format!(
        "N lines, {}: {q} to start and {o} a line{readers} (T = q + oN{}, R2 {}).",
        fit.what,
        if fit.c_ns.is_some() { " + cnN" } else { "" },
        fmt::significant(fit.r2, 4),
    )
}

/// What happens when several cores want the same, an entry for each kind that was measured.
pub(crate) fn interactions(contents: &Contents) -> Vec<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for one in contents.interactions.iter().filter(|one| one.ns.is_some()) {
        if !kinds.contains(&one.kind.as_str()) {
            kinds.push(&one.kind);
        }
    }
    kinds.iter().map(|kind| interaction(contents, kind)).collect()
}

fn interaction(contents: &Contents, kind: &str) -> String {
    let of_kind: Vec<(&Interaction, Cell)> = contents
        .interactions
        .iter()
        .filter(|one| one.kind == kind)
        .filter_map(|one| Some((one, one.ns?)))
        .collect();
    let note = of_kind.first().map_or("", |(one, _)| one.note.as_str());
    let each: Vec<String> =
        of_kind.iter().map(|(one, cell)| format!("n = {}: {}", one.n, interval(cell))).collect();
    format!("{kind} ({note}), {}", each.join(", "))
}

/// What the model of collectives leaves out, or why it was not measured.
pub(crate) fn terms(contents: &Contents) -> Vec<String> {
    if contents.terms.is_empty() {
        return vec![absent(contents, Experiment::Terms)];
    }
    let one = |term: &CostTerm| match (&term.ns, &term.missing) {
        (Some(cell), _) => format!("{} ({}): {}", term.name, term.what, interval(cell)),
        (None, why) => format!("{}: {}", term.name, why.as_deref().unwrap_or("not measured")),
    };
    contents.terms.iter().map(one).collect()
}

/// Triad bandwidth.
pub(crate) fn bandwidth(contents: &Contents) -> Vec<String> {
    let all = &contents.bandwidth;
    if all.is_empty() {
        return vec![absent(contents, Experiment::Bandwidth)];
    }
    let one = |entry: &Bandwidth| {
        let cell = &entry.gb_per_s;
        // One run has no spread, and an interval without width would claim one.
        let rate = match cell.n {
            0 | 1 => format!("{} GB/s (one run)", fmt::significant(cell.median, 3)),
            _ => fmt::interval(cell.median, cell.lo, cell.hi, "GB/s"),
        };
        format!("{} to region {}: {rate}", cores(&entry.cores), entry.region)
    };
    if all.len() <= EACH_CORE {
        return all.iter().map(|entry| sentence(&one(entry))).collect();
    }
    let rate = |entry: &&Bandwidth| entry.gb_per_s.median;
    let widest = all.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let single: Vec<f64> =
        all.iter().filter(|entry| entry.cores.len() == 1).map(|e| e.gb_per_s.median).collect();
    let write = |v: f64| format!("{} GB/s", fmt::significant(v, 3));
    let alone = span(&single, write).map(|range| format!("One core alone: {range}."));
    alone.into_iter().chain(widest.map(|entry| format!("Most by {}.", one(entry)))).collect()
}
