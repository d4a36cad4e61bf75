//! The paper on cache-line-aware optimisation (Ramos and Hoefler, HPDC 2015) beside our graph, band and
//! simulation, and beside this machine: Table 1, the five latencies of section 2.1, Figures 2 and 3.
//!
//! The program is Figure 1 as printed, from memory. Figure 3 has no numbers in its text but two factors, so
//! those stand beside ours.

mod figure3;
mod page;
mod programs;
mod rows;
mod shown;
mod tables;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_cla::collectives::{Figure1, Tree};
use isochrone_cla::costs::of_machine;
use isochrone_cla::predicted::{Prediction, Rules, Start, predict};
use isochrone_cla::program::{Rank, Recorded, record};
use isochrone_machine::{ClassCost, Cost, LineCosts, Machine};
use isochrone_units::{Ratio, Reading};

use figure3::Row;
pub(crate) use rows::{Beside, PUBLISHED_FLAT, PUBLISHED_MPI};

/// The paper's machine.
const MACHINE: &str = "xeon-e5-2660-2s";

/// Everything that is shown.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Table 1.
    pub(crate) table1: Vec<Beside>,
    /// The five latencies.
    pub(crate) latencies: Vec<Beside>,
    /// Figure 2 by the printed rules and by ours.
    pub(crate) figure2: [Prediction; 2],
    /// Figure 3: 2 to 16 threads.
    pub(crate) figure3: Vec<Row>,
    /// This machine.
    pub(crate) machine: Option<String>,
}

/// This machine.
#[derive(Clone, Debug)]
pub struct Here<'a> {
    /// What was measured.
    pub atlas: &'a Contents,
    /// What lines cost between the nearest cores, where the atlas has that.
    pub near: Option<ClassCost>,
    /// The same between cores whose memories are in two regions, where there are such.
    pub far: Option<ClassCost>,
    /// A line in the core's own cache, ns, where it was timed.
    pub local_ns: Option<f64>,
}

/// Predicts and simulates what the paper shows, and puts this machine beside it.
///
/// # Errors
/// When the machine file lacks a cost, or a program cannot be priced.
pub fn cla(here: Option<Here<'_>>, threads: &[usize]) -> Result<Reproduction> {
    let machine = isochrone_host::find_machine(MACHINE).context("reading the paper's machine")?;
    let costs = of_machine(&machine, false)?.costs;
    let binary = Tree::regular(4, Rank(0), 2);
    let band = |rules| figure2(&binary, &costs, rules);
    Ok(Reproduction {
        table1: table1(&machine, here.as_ref()),
        latencies: latencies(&machine, here.as_ref()),
        figure2: [band(Rules::Paper)?, band(Rules::Timed)?],
        figure3: threads.iter().map(|&n| figure3::row(&costs, n)).collect::<Result<_>>()?,
        machine: here.map(|h| h.atlas.machine.title.clone()),
    })
}

/// Figure 1 over a tree, one line.
pub(crate) fn figure1(tree: &Tree) -> Recorded {
    record(tree.ranks(), |lines, me| Figure1 { tree, bytes: 64 }.run(lines, me))
}

fn figure2(tree: &Tree, costs: &LineCosts, rules: Rules) -> Result<Prediction> {
    Ok(predict(&figure1(tree), Start::Memory, costs, &[0, 1, 2, 3], rules)?)
}

fn beside(
    machine: &Machine,
    name: &'static str,
    unit: &'static str,
    what: &str,
    measured: Option<f64>,
) -> Beside {
    let published = machine.cost(name).and_then(Cost::number);
    Beside { name, unit, what: what.to_owned(), published, measured }
}

fn table1(machine: &Machine, here: Option<&Here<'_>>) -> Vec<Beside> {
    let fit = here.and_then(|here| here.atlas.multiline.first());
    let far = here.and_then(|here| here.far.as_ref());
    let row = |name, unit, what: &str, measured| beside(machine, name, unit, what, measured);
    let within = "within a socket";
    let between = "between sockets";
    vec![
        row("intra q", "ns", &format!("{within}: start-up"), fit.map(|f| f.q_ns.0)),
        row("intra o", "ns/line", &format!("{within}: each line"), fit.map(|f| f.o_ns.0)),
        row(
            "intra c",
            "ns/line/thread",
            &format!("{within}: congestion"),
            fit.and_then(|f| f.c_ns.map(|c| c.0)),
        ),
        row("intra R2", "", &format!("{within}: variance explained"), fit.map(|f| f.r2)),
        row("inter q", "ns", &format!("{between}: start-up"), far.map(|c| c.start_ns)),
        row("inter o", "ns/line", &format!("{between}: each line"), far.map(|c| c.line_ns)),
        row(
            "inter c",
            "ns/line/thread",
            &format!("{between}: congestion"),
            far.map(|c| c.congestion_ns),
        ),
        row("inter R2", "", &format!("{between}: variance explained"), None),
    ]
}

fn latencies(machine: &Machine, here: Option<&Here<'_>>) -> Vec<Beside> {
    let row = |name, what: &str, measured| beside(machine, name, "ns", what, measured);
    let (near, far) = here.map_or((None, None), |here| (here.near.as_ref(), here.far.as_ref()));
    vec![
        row("R_L", "in the local cache", here.and_then(|here| here.local_ns)),
        row("R_R", "in another core's cache, one socket", near.map(|c| c.transfer_ns)),
        row("R_Q", "in a cache of the other socket", far.map(|c| c.transfer_ns)),
        row("R_I", "in local memory", near.map(|c| c.memory_ns)),
        row("R_QI", "in the other socket's memory", far.map(|c| c.memory_ns)),
    ]
}

/// The flat tree against the chosen one by the printed rules, at most.
pub(crate) fn most_over_flat(all: &Reproduction) -> Ratio {
    most_over(all, |row| row.flat_ns)
}

/// HMPI with one barrier or two against the chosen tree by the printed rules, at most.
pub(crate) fn most_over_hmpi(all: &Reproduction, at: usize) -> Ratio {
    most_over(all, |row| row.hmpi[at].min_ns)
}

fn most_over(all: &Reproduction, ns: impl Fn(&Row) -> f64) -> Ratio {
    let ratio = |row: &Row| Ratio::within(Reading::Predicted, ns(row), row.printed.min_ns);
    let all = all.figure3.iter().map(ratio);
    let none = Ratio::stated(Reading::Predicted, 0.0);
    all.fold(none, |most, one| if one.value() > most.value() { one } else { most })
}
