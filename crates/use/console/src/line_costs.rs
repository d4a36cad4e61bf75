//! What lines cost on a machine: from its description, or from this machine's atlas.

use std::path::Path;

use anyhow::{Context, Result, bail};
use isochrone_atlas_store::contents::{Contents, CostTerm};
use isochrone_atlas_store::matrix_classes;
use isochrone_cla::costs::of_machine;
use isochrone_machine::{ClassCost, LineCosts, Machine, PairClass};

use crate::output::Terminal;
use crate::run::atlas;

/// A cost table with where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The machine in a few words.
    pub machine: String,
    /// The costs.
    pub costs: LineCosts,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// What is not known but assumed.
    pub assumed: Vec<String>,
    /// What the paper's model leaves out, as the atlas has it; nothing for a described machine.
    pub terms: Vec<CostTerm>,
}

/// The table of a machine that is named, or of this one by its atlas, which may be named as well. With
/// `siblings`, every core of the named machine has a second thread.
pub fn of(
    machine: Option<&str>,
    named: Option<&Path>,
    siblings: bool,
    terminal: &Terminal,
) -> Result<Table> {
    match machine {
        Some(name) => described(&isochrone_host::find_machine(name)?, siblings),
        None if siblings => {
            bail!("--smt assumed needs --machine: an atlas has measured its hardware threads")
        }
        None => measured(&atlas::needed(named, terminal)?.contents),
    }
}

/// The table of a described machine.
fn described(machine: &Machine, siblings: bool) -> Result<Table> {
    let found = of_machine(machine, siblings)?;
    Ok(Table {
        machine: machine.title.clone(),
        costs: found.costs,
        classes: found.classes,
        assumed: found.assumed,
        terms: Vec::new(),
    })
}

/// Cycles of a load that hits the first level of cache, on the Intel and AMD cores of the last ten years
/// (4 or 5; Intel's optimisation manual, section on cache parameters). An atlas does not measure it.
const LOCAL_CYCLES: f64 = 5.0;

/// The table of this machine, as far as its atlas goes: transfers of modified lines, several lines, DRAM.
pub fn measured(atlas: &Contents) -> Result<Table> {
    let map = atlas.transfers.iter().find(|t| t.state == "modified");
    let map = map.context(
        "the atlas has no line transfers; measure them with `isochrone map --only transfer,multiline,block`",
    )?;
    let matrix = &map.latency_ns;
    let cores = matrix.rows.len();
    let lacking = "the atlas lacks some pair of cores; measure all with `isochrone map`";
    let found = matrix_classes(matrix).context(lacking)?;
    let of: Option<Vec<u8>> = found.class.iter().copied().collect();
    let of = of.context(lacking)?;
    let memory_ns = memory_ns(atlas).context("the atlas has no DRAM latency")?;
    let fit = atlas.multiline.first();
    let class = |&transfer_ns: &f64| ClassCost {
        transfer_ns,
        memory_ns,
        // Without a fit, one line after the other.
        start_ns: fit.map_or(0.0, |f| f.q_ns.0),
        line_ns: fit.map_or(transfer_ns, |f| f.o_ns.0),
        congestion_ns: fit.and_then(|f| f.c_ns).map_or(0.0, |c| c.0),
    };
    let classes: Vec<ClassCost> = found.means_ns.iter().map(class).collect();
    let local_ns = atlas.clock.ns(LOCAL_CYCLES);
    let costs = LineCosts::new(cores, classes, local_ns, |a, b| PairClass(of[a * cores + b]));
    let mut assumed = vec![format!("R_L = {local_ns:.2} ns: {LOCAL_CYCLES} cycles, not measured")];
    if fit.is_none() {
        assumed
            .push("several lines cost as much as one after the other: no fit in the atlas".into());
    }
    Ok(Table {
        machine: atlas.machine.title.clone(),
        costs,
        classes: (1..=found.means_ns.len()).map(|n| format!("measured class {n}")).collect(),
        assumed,
        terms: atlas.terms.clone(),
    })
}

/// An owner, a core near it and one that is farther away than that, by their places in the matrix of line
/// transfers; why there are none, where there are none.
pub fn remote_readers(atlas: &Contents) -> Result<[usize; 3], String> {
    let map = atlas.transfers.iter().find(|t| t.state == "modified");
    let map = map.ok_or("needs the line transfers of the same map")?;
    let cores = map.latency_ns.rows.len();
    let found =
        matrix_classes(&map.latency_ns).ok_or("needs the line transfers of pairs of cores")?;
    let class = |a: usize, b: usize| found.class[a * cores + b];
    let others = |owner: usize| (0..cores).filter(move |&core| core != owner);
    let others = |owner: usize| others(owner).filter(move |&core| class(owner, core).is_some());
    for owner in 0..cores {
        let near = others(owner).min_by_key(|&core| class(owner, core));
        let far = others(owner).max_by_key(|&core| class(owner, core));
        if let (Some(near), Some(far)) = (near, far)
            && class(owner, near) < class(owner, far)
        {
            return Ok([owner, near, far]);
        }
    }
    Err("needs a core that is farther away than another; all cores here are equally far".to_owned())
}

fn memory_ns(atlas: &Contents) -> Option<f64> {
    let dram = atlas.levels.iter().find(|level| level.level == "dram")?;
    let means: Vec<f64> = dram.quality.iter().filter_map(|q| q.mean_ns).collect();
    isochrone_stats::mean(&means)
}
