//! `isochrone reproduce latency-checker`: the grids of the Latency Checker poster, and Figure 2 of the Euro-Par paper
//! for this machine.
//!
//! The poster's grids stand as published, cell by cell, unreadable ones missing. Beside them are
//! grids that the probe's own region experiment measured on a modelled machine (simulated), whose
//! few constants are fitted on some cells and judged on the others. This machine's side comes
//! from an atlas and keeps its reading.

mod apart;
mod cells;
mod constants;
mod die;
mod epyc;
pub(super) mod figure2;
mod fit;
mod json;
mod links;
pub(super) mod measured;
mod page;
mod phi;
pub(super) mod pictures;
mod route;
mod rows;
mod shown;
mod silicon;
mod simulate;
mod tables;
pub(super) mod terminal;
pub(super) mod words;

#[cfg(test)]
mod tests;

use anyhow::Context as _;
use cells::GridResult;
use isochrone_atlas_store::contents::Contents;
use isochrone_machine::Machine;
use measured::Measured;

/// Machines of the poster, in its order, by the names of their files in `machines/`.
const MACHINES: [&str; 4] =
    ["xeon-phi-7285-all2all", "xeon-phi-7285-quadrant", "xeon-phi-7285-snc4", "epyc-7702-2s-nps4"];

/// Everything that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproduction {
    /// Seed of the simulated measurements.
    pub(crate) seed: u64,
    /// The poster's grids, in its order.
    pub(crate) grids: Vec<GridResult>,
    /// Which cores two memories tell apart.
    pub(crate) apart: Vec<apart::CoresApart>,
    /// Remarks of the machine files, `(machine, remark)`, each once.
    pub(crate) remarks: Vec<(String, String)>,
    /// This machine, where there is an atlas.
    pub(crate) measured: Option<Measured>,
}

/// Simulates the poster's grids and puts this machine's atlas beside them.
///
/// # Errors
/// When a machine file lacks what the model is built from; says which part of which machine.
pub fn latency_checker(atlas: Option<&Contents>, seed: u64) -> anyhow::Result<Reproduction> {
    let machines: Vec<Machine> = MACHINES
        .iter()
        .map(|name| isochrone_host::find_machine(name).context("reading a machine of the poster"))
        .collect::<anyhow::Result<_>>()?;
    let [all2all, quadrant, snc4, epyc] = machines.as_slice() else {
        anyhow::bail!("the poster has four machines and {} were read", machines.len());
    };
    let (mut grids, apart) = phi::grids(&phi::Modes { all2all, quadrant, snc4 }, seed)
        .context("simulating the Xeon Phi 7285")?;
    grids.extend(epyc::grids(epyc, seed).context("simulating the EPYC 7702")?);
    let measured = atlas.map(Measured::of);
    Ok(Reproduction { seed, grids, apart, remarks: remarks(&machines), measured })
}

/// What the files assume and what they do not know.
fn remarks(machines: &[Machine]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for machine in machines {
        let assumed = machine.assumed.iter().map(|what| format!("assumed: {what}"));
        let unknown = machine.unknown.iter().map(|what| format!("not known: {what}"));
        for remark in assumed.chain(unknown) {
            if !all.iter().any(|(_, seen)| *seen == remark) {
                all.push((machine.name.clone(), remark));
            }
        }
    }
    all
}
