//! What the rows of the judging list share: which change moves a figure, and Table 2 as rows.

use super::paper::TABLE_2;
use super::runs::{ABLATIONS, Runs};
use super::table_2::Table2;
use crate::exhibit::Tests;
use crate::row::{Cell, Row, short};
use isochrone_workloads::numa::Variant;

/// Which ablation brings the figure of a cell that misses nearest to the paper's, and to what.
pub(crate) struct Moved {
    /// In words; nothing where none brings it nearer.
    pub(crate) words: String,
    /// Whether the cell holds with it.
    pub(crate) holds: bool,
}

/// Looks for a single change that moves a cell of `bench` to the paper's number.
pub(crate) fn moved_by(
    runs: &Runs,
    cell: &Cell,
    bench: impl std::fmt::Display,
    figure: impl Fn(&Runs, Option<Variant>) -> Option<f64>,
) -> Moved {
    let nothing = Moved { words: String::new(), holds: false };
    let Some((plain, paper)) = cell.ours.zip(cell.paper) else { return nothing };
    let gap = |value: f64| (value - paper).abs();
    let all = ABLATIONS.iter().filter_map(|change| Some((figure(runs, Some(*change))?, change)));
    let best = all.min_by(|a, b| gap(a.0).total_cmp(&gap(b.0)));
    best.filter(|(value, _)| gap(*value) < 0.9 * gap(plain)).map_or(nothing, |(value, change)| {
        Moved {
            words: format!("{bench}: {change} makes it {}", short(value)),
            holds: cell.accepts.takes(value),
        }
    })
}

/// Words of all changes that move something, and whether each cell that misses holds with one.
pub(crate) fn explained(row: Row, moved: &[Moved]) -> Row {
    let words: Vec<&str> =
        moved.iter().map(|moved| moved.words.as_str()).filter(|words| !words.is_empty()).collect();
    let all = !moved.is_empty() && moved.iter().all(|moved| moved.holds);
    row.note(words.join("; ")).explained(all)
}

/// Table 2 as rows J1, J2 and J2b.
pub(crate) fn table_2(found: &Table2) -> [Row; 3] {
    let mut latencies = Vec::new();
    let mut bandwidths = Vec::new();
    for ((name, latency, bandwidth), (ns, gbs)) in TABLE_2.iter().zip(&found.by_distance) {
        let ours = [ns.mean, ns.least, ns.most];
        for ((which, paper), ours) in ["", " least", " most"].iter().zip(latency).zip(ours) {
            let by = 0.02 * paper;
            latencies.push(Cell::within(format!("{name}{which}"), *paper, Some(ours), by));
        }
        bandwidths.push(Cell::within(*name, bandwidth[0], Some(gbs.mean), 0.05 * bandwidth[0]));
    }
    let all = &found.switches;
    let paper = super::paper::ALL_SWITCHES;
    let switches = Cell::within("all switches", paper, Some(all.reported), 0.1 * paper);
    [
        Row::new("J1", Tests::Input, "latency by distance, mean, least and most, ns", "2 %", latencies)
            .named()
            .note("timed message by message through the protocol"),
        Row::new("J2", Tests::Input, "STREAM Triad by distance, GB/s", "5 %", bandwidths).named(),
        Row::new(
            "J2b",
            Tests::OutOfSample,
            "STREAM Triad over all switches, without their roof, GB/s",
            "10 %",
            vec![switches],
        )
        .note(format!(
            "what the links alone give ({} in and {} out as the switches count); runs have the published 275 as a roof",
            short(all.switches_in),
            short(all.switches_out)
        )),
    ]
}
