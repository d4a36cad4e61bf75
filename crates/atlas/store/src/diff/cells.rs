//! Compares measured quantities cell by cell, experiment by experiment.

use crate::Experiment;
use crate::contents::{Cell, Contents, Matrix, MultiLineFit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Medians that differ by less are the same, whatever their intervals say: two runs without a
/// change differ by up to this much.
const SAME_RATIO: f64 = 0.005;

/// A quantity that changed: its intervals do not overlap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellChange {
    /// What it is, with its unit: `"random core-to-region latency, ns: core 0 to region 1"`.
    pub what: String,
    /// Median and interval before; none if it was not measured.
    pub before: Option<(f64, f64, f64)>,
    /// Median and interval after.
    pub after: Option<(f64, f64, f64)>,
    /// New median over old one.
    pub ratio: Option<f64>,
    /// Room between the two intervals, in the unit of the quantity.
    pub gap: Option<f64>,
}

impl fmt::Display for CellChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what)?;
        match (self.before, self.after, self.ratio) {
            (Some((before, ..)), Some((after, ..)), Some(ratio)) => {
                let percent = (ratio - 1.0) * 100.0;
                write!(f, "{before:.2} became {after:.2} ({percent:+.1} %)")?;
                write!(f, ", intervals {:.2} apart", self.gap.unwrap_or(0.0))
            }
            (Some((before, ..)), _, _) => write!(f, "was {before:.2}, is missing"),
            (_, Some((after, ..)), _) => write!(f, "was missing, is {after:.2}"),
            _ => f.write_str("missing in both"),
        }
    }
}

type Interval = (f64, f64, f64);

/// All quantities of an atlas by name, `None` where the name exists and its value is missing.
type Quantities = BTreeMap<String, Option<Interval>>;

fn interval(cell: &Cell) -> Interval {
    (cell.median, cell.lo, cell.hi)
}

fn add_matrix(what: &str, matrix: &Matrix, all: &mut Quantities) {
    let columns = matrix.columns.len().max(1);
    for (index, cell) in matrix.cells.iter().enumerate() {
        let (row, column) = (matrix.rows.get(index / columns), matrix.columns.get(index % columns));
        if let (Some(row), Some(column)) = (row, column) {
            let name = format!("{what} {}: {row} to {column}", matrix.what);
            all.insert(name, cell.as_ref().map(interval));
        }
    }
}

fn add_fit(fit: &MultiLineFit, all: &mut Quantities) {
    let name = |part: &str| format!("multi-line transfer {}, {part}, ns", fit.what);
    all.insert(name("start-up q"), Some(fit.q_ns));
    all.insert(name("a line o"), Some(fit.o_ns));
    all.insert(name("congestion c"), fit.c_ns);
}

fn quantities(contents: &Contents) -> Quantities {
    let mut all = Quantities::new();
    for experiment in Experiment::ALL {
        add(experiment, contents, &mut all);
    }
    all
}

fn add(experiment: Experiment, contents: &Contents, all: &mut Quantities) {
    match experiment {
        // Compared by bases and codes of pages.
        Experiment::Block => {}
        Experiment::Region => {
            contents.regions.iter().for_each(|map| add_matrix(&map.mode, &map.latency_ns, all));
        }
        Experiment::Transfer => {
            contents.transfers.iter().for_each(|map| add_matrix(&map.state, &map.latency_ns, all));
        }
        Experiment::Multiline => {
            contents.multiline.iter().for_each(|fit| add_fit(fit, all));
            for item in &contents.interactions {
                let name = format!("{} with {} beside, ns", item.kind, item.n);
                all.insert(name, item.ns.as_ref().map(interval));
            }
        }
        Experiment::Terms => {
            for term in &contents.terms {
                all.insert(format!("term {}, ns", term.name), term.ns.as_ref().map(interval));
            }
        }
        Experiment::Bandwidth => {
            for group in &contents.bandwidth {
                let cores: Vec<String> = group.cores.iter().map(ToString::to_string).collect();
                let (cores, region) = (cores.join(","), group.region);
                let name = format!("bandwidth of cores {cores} to region {region}, GB/s");
                all.insert(name, Some(interval(&group.gb_per_s)));
            }
        }
        // It follows from quantities that are compared.
        Experiment::Placement => {}
    }
}

/// What became of all quantities.
#[derive(Default)]
pub(super) struct Cells {
    pub(super) changes: Vec<CellChange>,
    /// Quantities that both have.
    pub(super) compared: u64,
    /// What is worth knowing and no change.
    pub(super) notes: Vec<String>,
}

pub(super) fn compare(old: &Contents, new: &Contents) -> Cells {
    let mut found = Cells::default();
    let (before, after) = (quantities(old), quantities(new));
    for (what, &was) in &before {
        // A quantity that only one run was asked for is no change of the machine.
        let Some(&is) = after.get(what) else { continue };
        found.compared += u64::from(was.is_some() && is.is_some());
        if let Some(change) = changed(what, was, is) {
            found.changes.push(change);
        }
    }
    let only = |these: &Quantities, those: &Quantities| {
        these.keys().filter(|what| !those.contains_key(*what)).count()
    };
    for (count, which) in [(only(&before, &after), "first"), (only(&after, &before), "second")] {
        if count > 0 {
            let are = if count == 1 { "quantity is" } else { "quantities are" };
            found.notes.push(format!("{count} {are} only in the {which} atlas"));
        }
    }
    found
}

fn changed(what: &str, before: Option<Interval>, after: Option<Interval>) -> Option<CellChange> {
    let change = |ratio, gap| Some(CellChange { what: what.to_owned(), before, after, ratio, gap });
    match (before, after) {
        (None, None) => None,
        (Some((was, lo, hi)), Some((is, new_lo, new_hi))) => {
            let gap = (new_lo - hi).max(lo - new_hi);
            let ratio = is / was;
            let apart = gap > 0.0 && (ratio - 1.0).abs() > SAME_RATIO;
            if apart { change(Some(ratio), Some(gap)) } else { None }
        }
        _ => change(None, None),
    }
}
