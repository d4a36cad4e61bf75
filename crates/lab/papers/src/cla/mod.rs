//! The paper on cache-line-aware optimisation (Ramos and Hoefler, HPDC 2015) beside our graph, band and
//! simulation, and beside this machine: Table 1, the five latencies of section 2.1, Figures 2 and 3.
//!
//! The program is Figure 1 as printed, from memory. Figure 3 has no numbers in its text but two factors, so
//! those stand beside ours.

mod figure3;
mod page;
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
use isochrone_report::html::Page;
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use isochrone_units::{Ratio, Reading};
use serde_json::{Value, json};

use crate::Shown;
use figure3::Row;

/// The paper's machine.
const MACHINE: &str = "xeon-e5-2660-2s";
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
        table1: table1(&machine, here.as_ref().map(|h| h.atlas)),
        latencies: latencies(&machine, here.as_ref().and_then(|h| h.near.as_ref())),
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

fn table1(machine: &Machine, atlas: Option<&Contents>) -> Vec<Beside> {
    let fit = atlas.and_then(|a| a.multiline.first());
    let within = |get: &dyn Fn(&isochrone_atlas_store::contents::MultiLineFit) -> Option<f64>| {
        fit.and_then(get)
    };
    let row = |name, unit, what: &str, measured| beside(machine, name, unit, what, measured);
    vec![
        row("intra q", "ns", "within a socket: start-up", within(&|f| Some(f.q_ns.0))),
        row("intra o", "ns/line", "within a socket: each line", within(&|f| Some(f.o_ns.0))),
        row(
            "intra c",
            "ns/line/thread",
            "within a socket: congestion",
            within(&|f| f.c_ns.map(|c| c.0)),
        ),
        row("intra R2", "", "within a socket: variance explained", within(&|f| Some(f.r2))),
        row("inter q", "ns", "between sockets: start-up", None),
        row("inter o", "ns/line", "between sockets: each line", None),
        row("inter c", "ns/line/thread", "between sockets: congestion", None),
        row("inter R2", "", "between sockets: variance explained", None),
    ]
}

fn latencies(machine: &Machine, near: Option<&ClassCost>) -> Vec<Beside> {
    let row = |name, what: &str, measured| beside(machine, name, "ns", what, measured);
    vec![
        row("R_L", "in the local cache", None),
        row("R_R", "in another core's cache, one socket", near.map(|c| c.transfer_ns)),
        row("R_Q", "in a cache of the other socket", None),
        row("R_I", "in local memory", near.map(|c| c.memory_ns)),
        row("R_QI", "in the other socket's memory", None),
    ]
}

impl Shown for Reproduction {
    fn format(&self) -> Format {
        Format::CacheLines
    }

    fn json(&self) -> Value {
        to_json(self)
    }

    fn page(&self) -> Page {
        page::to_page(self)
    }

    fn text(&self, _: Colour, width: u16) -> String {
        tables::to_terminal(self, width)
    }
}

fn to_json(all: &Reproduction) -> Value {
    let beside = |rows: &[Beside]| -> Vec<Value> {
        let one = |b: &Beside| {
            json!({ "name": b.name, "unit": b.unit, "what": b.what, "published": b.published,
                    "measured": b.measured })
        };
        rows.iter().map(one).collect()
    };
    let [printed, ours] = &all.figure2;
    json!({
        "paper": "Ramos and Hoefler, HPDC 2015",
        "machine": all.machine,
        "table1": beside(&all.table1),
        "latencies": beside(&all.latencies),
        "figure2": {
            "reading": Reading::Predicted,
            "printed_t_min_ns": printed.min.total_ns,
            "printed_t_max_ns": printed.max.total_ns,
            "t_min_ns": ours.min.total_ns,
            "t_max_ns": ours.max.total_ns,
        },
        "figure3": all.figure3.iter().map(Row::json).collect::<Vec<_>>(),
        "published_flat_over_chosen_at_most": PUBLISHED_FLAT,
        "flat_over_chosen_at_most": most_over_flat(all).value(),
        "published_mpi_over_chosen_at_most": PUBLISHED_MPI,
    })
}

/// The flat tree against the chosen one by the printed rules, at most.
pub(crate) fn most_over_flat(all: &Reproduction) -> Ratio {
    let ratio = |row: &Row| Ratio::within(Reading::Predicted, row.flat_ns, row.printed.min_ns);
    let all = all.figure3.iter().map(ratio);
    let none = Ratio::stated(Reading::Predicted, 0.0);
    all.fold(none, |most, one| if one.value() > most.value() { one } else { most })
}
