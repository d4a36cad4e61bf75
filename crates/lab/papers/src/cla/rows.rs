//! What the paper says in numbers as rows: its costs, which the model is given, and what Figure 3's text says.

use isochrone_units::{Reading, Standing};

use crate::exhibit::{Exhibit, Tests};
use crate::row::{Accepts, Cell, Row, short};

/// HMPI's flat tree against the paper's, at most (section 4).
pub(crate) const PUBLISHED_FLAT: f64 = 1.8;
/// The MPI libraries against the paper's tree, at most (section 4).
pub(crate) const PUBLISHED_MPI: f64 = 14.0;

/// A number of the paper, with this machine's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beside {
    /// What the paper calls it.
    pub(crate) name: &'static str,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// What it is.
    pub(crate) what: String,
    /// The paper's value.
    pub(crate) published: Option<f64>,
    /// This machine's, if its atlas has it.
    pub(crate) measured: Option<f64>,
}

/// What is compared.
pub(super) struct Stated<'a> {
    pub(super) table1: &'a [Beside],
    pub(super) latencies: &'a [Beside],
    /// Of each number of threads the simulated median.
    pub(super) medians: Vec<Cell>,
    /// HMPI with a barrier before, and with one after too, over the chosen tree, at most.
    pub(super) hmpi: [f64; 2],
    /// The flat tree alone over the chosen one, at most.
    pub(super) flat: f64,
}

const PAPER: &str = "cla";
/// How near a speed-up has to be.
const FACTOR: f64 = 1.3;

/// All comparisons.
pub(super) fn exhibits(all: &Stated<'_>) -> Vec<Exhibit> {
    let inputs = [("table1", all.table1), ("latencies", all.latencies)];
    let inputs =
        inputs.into_iter().flat_map(|(table, rows)| rows.iter().map(move |b| input(table, b)));
    let inputs = inputs.map(|row| row.exhibit(PAPER, Reading::Measured, Standing::Known));
    let inside = inside(&all.medians).exhibit(PAPER, Reading::Simulated, Standing::Known);
    let figure3 =
        [flat(all), mpi()].map(|row| row.exhibit(PAPER, Reading::Predicted, Standing::Known));
    inputs.chain([inside]).chain(figure3).collect()
}

/// A cost that the model is given; beside it this machine's, which need not agree.
fn input(table: &str, beside: &Beside) -> Row {
    let cell = Cell::new(beside.what.clone(), beside.published, beside.measured, Accepts::ANY);
    let id = format!("{table}/{}", beside.name);
    let here = "ours is this machine, another one, which has to agree with nothing";
    Row::single(id, Tests::Input, "none", cell).note(here)
}

/// Whether the simulated medians of Figure 3 lie in the band, which both follow from the same rules.
fn inside(medians: &[Cell]) -> Row {
    let id = "figure3/simulated inside our band";
    let what = "the simulated median in the band, ns";
    Row::new(id, Tests::Invariant, what, "the band", medians.to_vec())
        .named()
        .note("the band and the simulation have the same rules, and the band is wide")
}

/// HMPI's flat tree over the chosen one, at most.
fn flat(all: &Stated<'_>) -> Row {
    let [before, both] = all.hmpi;
    let cell = Cell::factor("HMPI over chosen, at most", PUBLISHED_FLAT, Some(both), FACTOR);
    let accepts = cell.accepts;
    let beside = format!(
        "a flat tree between two barriers; {} with one barrier before, {} as a flat tree alone",
        short(before),
        short(all.flat)
    );
    Row::single("figure3/flat over best, at most", Tests::OutOfSample, "a factor of 1.3", cell)
        .explained(accepts.takes(before) || accepts.takes(all.flat))
        .note(beside)
}

/// The MPI libraries over the chosen tree, at most.
fn mpi() -> Row {
    let cell = Cell::factor("MPI over chosen, at most", PUBLISHED_MPI, None, FACTOR);
    Row::single("figure3/MPI over best, at most", Tests::OutOfSample, "a factor of 1.3", cell)
        .note("no model here knows an MPI library")
}
