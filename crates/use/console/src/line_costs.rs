//! What lines cost on a machine: from its description, or from this machine's atlas.

use std::path::Path;

use anyhow::{Context, Result};
use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{Contents, CostTerm};
use isochrone_atlas_store::encode;
use isochrone_cla::costs::{of_distances, of_machine};
use isochrone_machine::{LineCosts, Machine};
use isochrone_units::CoreId;

use crate::output::{Terminal, WrongUsage};
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
            let why = "--smt assumed needs --machine: an atlas has measured its hardware threads";
            Err(WrongUsage::error(why.to_owned()))
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

/// The table of this machine, as far as its atlas goes: transfers of modified lines, several lines, DRAM. A team that
/// is given the same atlas chooses by the same costs.
pub fn measured(contents: &Contents) -> Result<Table> {
    let cores = cores(contents)?;
    // An atlas of an older version has no groups and no fits beside its description, and has them when it is written
    // anew.
    let bytes = encode(contents).context("the atlas cannot be read as one of this version")?;
    let atlas = Atlas::open(&bytes)?;
    let local_ns = contents.clock.ns(LOCAL_CYCLES);
    let found = of_distances(&atlas, &cores, local_ns)
        .context("the atlas lacks some pair of cores; measure all with `isochrone map`")?;
    let mut assumed = vec![format!("R_L = {local_ns:.2} ns: {LOCAL_CYCLES} cycles, not measured")];
    assumed.extend(found.assumed);
    Ok(Table {
        machine: contents.machine.title.clone(),
        classes: (1..=found.costs.classes.len()).map(|n| format!("measured class {n}")).collect(),
        costs: found.costs,
        assumed,
        terms: contents.terms.clone(),
    })
}

/// The cores between which line transfers were measured, in the order of the matrix.
pub fn cores(atlas: &Contents) -> Result<Vec<CoreId>> {
    let map = atlas.transfers.iter().find(|t| t.state == "modified");
    let map = map.context(
        "the atlas has no line transfers; measure them with `isochrone map --only transfer,multiline,block`",
    )?;
    let core = |name: &String| -> Result<CoreId> {
        let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        Ok(CoreId(number.parse().context("a core of the atlas has no number")?))
    };
    map.latency_ns.rows.iter().map(core).collect()
}
