//! The judging list as rows: the paper's number, ours, the tolerance, and whether it holds.

use serde::Serialize;

use super::paper::TABLE_2;
use super::runs::{ABLATIONS, Runs};
use isochrone_workloads::numa::Variant;

/// One cell of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Cell {
    pub(crate) what: String,
    /// The paper's number; `None` where it gives none.
    pub(crate) paper: Option<f64>,
    /// Ours; `None` where it was not run.
    pub(crate) ours: Option<f64>,
    /// Whether it holds.
    pub(crate) pass: Option<bool>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Row {
    /// Its name in the judging list.
    pub(crate) id: String,
    /// What is compared.
    pub(crate) what: String,
    /// The paper's numbers.
    pub(crate) paper: String,
    pub(crate) ours: String,
    /// How near is near enough.
    pub(crate) tolerance: String,
    /// Whether it has to hold.
    pub(crate) must: bool,
    /// Whether all cells hold; `None` where some were not run.
    pub(crate) pass: Option<bool>,
    /// What to know: the gap, and what moves it.
    pub(crate) note: String,
    /// The cells.
    pub(crate) cells: Vec<Cell>,
}

impl Cell {
    /// A cell that holds if `holds` says so of our number.
    pub(crate) fn new(
        what: impl Into<String>,
        paper: f64,
        ours: Option<f64>,
        holds: impl Fn(f64) -> bool,
    ) -> Self {
        Self {
            what: what.into(),
            paper: paper.is_finite().then_some(paper),
            ours,
            pass: ours.map(holds),
        }
    }

    /// A cell within so much of the paper's number.
    pub(crate) fn within(what: impl Into<String>, paper: f64, ours: Option<f64>, by: f64) -> Self {
        Self::new(what, paper, ours, |ours| (ours - paper).abs() <= by)
    }

    /// A cell within a factor of the paper's number.
    pub(crate) fn factor(what: impl Into<String>, paper: f64, ours: Option<f64>, by: f64) -> Self {
        Self::new(what, paper, ours, |ours| ours <= paper * by && ours >= paper / by)
    }
}

impl Row {
    /// A row of cells.
    pub(crate) fn new(id: &str, what: &str, tolerance: &str, cells: Vec<Cell>) -> Self {
        let numbers = |of: fn(&Cell) -> Option<f64>| {
            let words = cells.iter().map(|cell| of(cell).map_or("?".to_owned(), short));
            words.collect::<Vec<String>>().join(" ")
        };
        let pass = cells.iter().map(|cell| cell.pass).collect::<Option<Vec<bool>>>();
        Self {
            id: id.to_owned(),
            what: what.to_owned(),
            paper: numbers(|cell| cell.paper),
            ours: numbers(|cell| cell.ours),
            tolerance: tolerance.to_owned(),
            must: false,
            // A cell that failed decides, whether or not others were run.
            pass: if cells.iter().any(|cell| cell.pass == Some(false)) {
                Some(false)
            } else {
                pass.map(|all| all.iter().all(|pass| *pass))
            },
            note: String::new(),
            cells,
        }
    }

    /// It has to hold.
    pub(crate) fn must(mut self) -> Self {
        self.must = true;
        self
    }

    /// With more words.
    pub(crate) fn note(mut self, words: impl AsRef<str>) -> Self {
        if !words.as_ref().is_empty() {
            if !self.note.is_empty() {
                self.note.push_str("; ");
            }
            self.note.push_str(words.as_ref());
        }
        self
    }

    /// With the names of the cells that fail.
    pub(crate) fn named(self) -> Self {
        let failed: Vec<&str> =
            self.cells.iter().filter(|c| c.pass == Some(false)).map(|c| c.what.as_str()).collect();
        let words = match failed.len() {
            0 => String::new(),
            n if n > 8 => format!("misses {n} of {} cells", self.cells.len()),
            _ => format!("misses: {}", failed.join(", ")),
        };
        self.note(words)
    }

    /// With the numbers in other words, where there are too many cells to list.
    pub(crate) fn words(mut self, paper: &str, ours: String) -> Self {
        (self.paper, self.ours) = (paper.to_owned(), ours);
        self
    }
}

/// A number in few characters.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Which ablation brings a figure nearest to the paper's, and to what. Nothing where none does.
pub(crate) fn moved_by(
    runs: &Runs,
    paper: f64,
    plain: Option<f64>,
    figure: impl Fn(&Runs, Option<Variant>) -> Option<f64>,
) -> String {
    let Some(plain) = plain else { return String::new() };
    let gap = |value: f64| (value - paper).abs();
    let all = ABLATIONS.iter().filter_map(|change| Some((figure(runs, Some(*change))?, change)));
    let best = all.min_by(|a, b| gap(a.0).total_cmp(&gap(b.0)));
    best.filter(|(value, _)| gap(*value) < 0.9 * gap(plain))
        .map_or_else(String::new, |(value, change)| format!("{change} makes it {}", short(value)))
}

/// Table 2 as rows J1 and J2.
pub(crate) fn table_2(found: &super::Table2) -> [Row; 2] {
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
    bandwidths.push(Cell::within(
        "all switches, without their roof",
        paper,
        Some(all.reported),
        0.1 * paper,
    ));
    [
        Row::new("J1", "latency by distance, mean, least and most, ns", "2 %", latencies)
            .must()
            .note("input: but timed message by message through the protocol"),
        Row::new("J2", "STREAM Triad by distance, and over all switches, GB/s", "5 %; all 10 %", bandwidths)
            .named()
            .note(format!(
                "by distance input; all switches: what the links alone give ({} in and {} out as the switches \
                 count). Runs have the published 275 as a roof, so for them it is input",
                short(all.switches_in),
                short(all.switches_out)
            )),
    ]
}
