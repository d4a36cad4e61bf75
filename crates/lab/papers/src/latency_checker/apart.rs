//! Which cores the two memories of the SNC4 grids tell apart, by themselves and together, where the cores' places are
//! not used. Two memories place no core; which cores differ is told. The modelled die's own cores are the check: how
//! far they differ is known.

use isochrone_placement::{Apart, ColumnError, ColumnLatencies, apart};
use isochrone_report::table::{Cell as Field, Table};
use isochrone_units::Reading;
use serde_json::{Value, json};

use super::cells::{Cell, GridResult};
use crate::exhibit::Tests;
use crate::row::{Accepts, Cell as RowCell, Row};

/// Standard errors of a published cell that are tried, ns: the poster gives none. The least is its last decimal.
const PUBLISHED_NS: [f64; 3] = [0.1, 0.3, 1.0];
/// A standard error that was not estimated has so many degrees of freedom.
const ASSUMED_FREEDOM: f64 = 1e6;
/// Half of a 95 % interval in standard errors.
const HALF_INTERVAL: f64 = 1.96;
/// Latencies of the model that differ by less are alike: rounding.
const ALIKE_NS: f64 = 1e-6;

/// A grid and what each of its cores truly costs in the model.
pub(super) struct Side<'a> {
    pub(super) grid: &'a GridResult,
    /// `(core, ns)`.
    pub(super) truth: Vec<(u16, f64)>,
}

/// What some columns tell of the cores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoresApart {
    reading: Reading,
    memories: Vec<String>,
    /// Standard error of each column's cells.
    errors_ns: Vec<f64>,
    cores: usize,
    pairs: usize,
    told: usize,
    /// Sizes of groups, the largest first: each core of a group differs from all of the others.
    groups: Vec<usize>,
    truth: Option<Truth>,
}

/// The model's own cores beside what was told.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Truth {
    /// Pairs that differ.
    differ: usize,
    /// Pairs that were told apart and are alike.
    wrong: usize,
    /// The most by which a pair differs that was not told apart.
    untold_ns: f64,
}

/// Each memory alone and both, published under each error and simulated.
pub(super) fn cores_apart(sides: &[Side<'_>; 2]) -> anyhow::Result<Vec<CoresApart>> {
    let [first, second] = sides;
    let sets: [&[&Side<'_>]; 3] = [&[first], &[second], &[first, second]];
    let mut all = Vec::new();
    for set in sets {
        for error in PUBLISHED_NS {
            let errors = vec![ColumnError { standard: error, freedom: ASSUMED_FREEDOM }; set.len()];
            all.push(told(Reading::Published, set, &errors, |cell| cell.published)?);
        }
        let errors: Vec<ColumnError> = set.iter().filter_map(|side| pooled(side.grid)).collect();
        let simulated = told(Reading::Simulated, set, &errors, |cell| Some(cell.simulated?.ns));
        all.push(simulated?);
    }
    Ok(all)
}

/// One error for all simulated cells: from the mean square of their intervals.
fn pooled(grid: &GridResult) -> Option<ColumnError> {
    let cells = grid.cells.iter().filter_map(|cell| cell.simulated);
    let squares: Vec<f64> =
        cells.map(|cell| ((cell.hi_ns - cell.lo_ns) / (2.0 * HALF_INTERVAL)).powi(2)).collect();
    // Each interval is of several chases, so it has one degree of freedom at the least.
    let freedom = squares.len() as f64;
    Some(ColumnError { standard: isochrone_stats::mean(&squares)?.sqrt(), freedom })
}

fn told(
    reading: Reading,
    set: &[&Side<'_>],
    errors: &[ColumnError],
    value: impl Fn(&Cell) -> Option<f64>,
) -> anyhow::Result<CoresApart> {
    let cores: Vec<u16> = set[0].truth.iter().map(|(core, _)| *core).collect();
    let cell = |side: &Side<'_>, core: u16| {
        side.grid.cells.iter().find(|cell| cell.core == Some(core)).and_then(&value)
    };
    // A core that lacks one of the memories tells nothing of what all of them tell.
    let row = |core: &u16| {
        let row: Option<Vec<f64>> = set.iter().map(|side| cell(side, *core)).collect();
        row.map_or_else(|| vec![None; set.len()], |row| row.into_iter().map(Some).collect())
    };
    let cells: Vec<Option<f64>> = cores.iter().flat_map(row).collect();
    let memories: Vec<String> = set.iter().map(|side| side.grid.memory.clone()).collect();
    let columns = ColumnLatencies::new(cores.len(), memories.clone(), cells)?;
    let found = apart(&columns, errors)?;
    let mut groups: Vec<usize> = found.groups.iter().map(Vec::len).collect();
    groups.sort_unstable_by(|a, b| b.cmp(a));
    let is_model = reading == Reading::Simulated;
    Ok(CoresApart {
        reading,
        memories,
        errors_ns: errors.iter().map(|error| error.standard).collect(),
        cores: cores.len() - found.unknown.len(),
        pairs: found.pairs,
        told: found.count(),
        groups,
        truth: is_model.then(|| judged(set, &found, cores.len())),
    })
}

fn judged(set: &[&Side<'_>], found: &Apart, cores: usize) -> Truth {
    let by = |a: usize, b: usize| {
        let apart = set.iter().map(|side| (side.truth[a].1 - side.truth[b].1).abs());
        apart.fold(0.0, f64::max)
    };
    let mut truth = Truth { differ: 0, wrong: 0, untold_ns: 0.0 };
    for (a, b) in (0..cores).flat_map(|a| (a + 1..cores).map(move |b| (a, b))) {
        let (apart, ns) = (found.told(a, b), by(a, b));
        let differ = ns > ALIKE_NS;
        truth.differ += usize::from(differ);
        truth.wrong += usize::from(apart && !differ);
        if !apart {
            truth.untold_ns = truth.untold_ns.max(ns);
        }
    }
    truth
}

impl CoresApart {
    fn name(&self) -> String {
        self.memories.join(" and ")
    }

    fn error(&self) -> String {
        let each: Vec<String> = self.errors_ns.iter().map(|ns| format!("{ns:.2}")).collect();
        let mut distinct = each.clone();
        distinct.dedup();
        if distinct.len() == 1 { distinct.concat() } else { each.join(" ") }
    }
}

/// The check as a row: of the modelled die no two cores that are alike are told apart.
pub(super) fn row(all: &[CoresApart]) -> Option<Row> {
    let both = all.iter().find(|found| found.truth.is_some() && found.memories.len() > 1)?;
    let truth = both.truth?;
    let cell = RowCell::new(
        "cores of the model told apart by two memories that are alike, pairs",
        None,
        Some(truth.wrong as f64),
        Accepts::between(0.0, 0.0),
    );
    let id = "xeon-phi-7285-snc4/cores from memory alone";
    let row = Row::single(id, Tests::Invariant, "none", cell);
    Some(row.note(format!(
        "{} of {} pairs that differ are told, in {} groups; the others differ by {:.2} ns at most; two memories place \
         no core",
        both.told - truth.wrong,
        truth.differ,
        both.groups.len(),
        truth.untold_ns
    )))
}

pub(super) const CAPTION: &str = "Cores that latencies to memory tell apart, their places unused. Each core of a group \
    differs from all cores of the other groups; wrong once in a hundred grids whose cores are all alike. Errors of \
    published cells are assumed, those of simulated ones come from their intervals.";

/// All of it, a row for each set of memories and error.
pub(super) fn table(all: &[CoresApart]) -> Table {
    let mut table = Table::new([
        "memories",
        "reading",
        "standard error, ns",
        "cores",
        "pairs",
        "told apart",
        "groups",
        "cores of the largest",
        "truly differ",
        "told and alike",
        "most untold, ns",
    ])
    .keyed(3);
    let count = |count: usize| Field::number(count as f64, count.to_string());
    for found in all {
        let of = |of: fn(Truth) -> usize| found.truth.map_or_else(Field::missing, |t| count(of(t)));
        table.row([
            found.name().into(),
            found.reading.as_str().into(),
            found.error().into(),
            count(found.cores),
            count(found.pairs),
            count(found.told),
            count(found.groups.len()),
            found.groups.first().map_or_else(Field::missing, |largest| count(*largest)),
            of(|truth| truth.differ),
            of(|truth| truth.wrong),
            Field::maybe(found.truth.map(|truth| truth.untold_ns), |ns| format!("{ns:.2}")),
        ]);
    }
    table
}

/// The same for programs.
pub(super) fn to_json(all: &[CoresApart]) -> Vec<Value> {
    let one = |found: &CoresApart| {
        json!({
            "memories": found.memories,
            "reading": found.reading,
            "standard_errors_ns": found.errors_ns,
            "cores": found.cores,
            "pairs": found.pairs,
            "told_apart": found.told,
            "groups": found.groups,
            "truly_differ": found.truth.map(|truth| truth.differ),
            "told_and_alike": found.truth.map(|truth| truth.wrong),
            "most_untold_ns": found.truth.map(|truth| truth.untold_ns),
        })
    };
    all.iter().map(one).collect()
}
