//! `isochrone machine --suits`: which region suits which array, on this machine by its atlas, or on one that is
//! described.
//!
//! What suits what is found by `distance`; here it is asked for sets of cores, and shown.

mod figures;
#[cfg(test)]
pub(crate) mod tests;
mod words;

use std::process::ExitCode;

use anyhow::{Result, bail};
use isochrone_console::run::atlas;
use isochrone_distance::{Described, Distances, Unknown};
use isochrone_host::{SysRoot, find_machine, this_machine};
use isochrone_machine::{Cost, Machine, Value, spans};
use isochrone_report::json::{self, Format};
use isochrone_units::{CoreId, Reading, RegionId};

pub(crate) use figures::{Figures, ONE_REGION, Set};
pub(crate) use words::from_words;

use crate::args::MachineArgs;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::written::{Place, each_written, on_stdout, write_to};

/// What is said of a description that is not enough.
const NOT_DESCRIBED: &str = "the description lacks latency and bandwidth of two regions: give costs called \
                             `region 0 latency` (ns), `region 0 bandwidth` (GB/s), and so on";
/// The same of an atlas.
const NOT_MEASURED: &str = "the atlas lacks latency and bandwidth of two regions from the same cores: measure them \
                            with `isochrone map --only region,bandwidth`";

/// The same of cores that the user has named.
const NOT_TOGETHER: &str = "what these cores move together is not known: name all cores of a region, or leave --cores \
                            out";

/// Runs the command.
pub(super) fn run(args: &MachineArgs, terminal: &Terminal) -> Result<ExitCode> {
    let [json] = Place::open_all([args.json.asked()])?;
    let alone = on_stdout(std::slice::from_ref(&json));
    let figures = found(args, terminal)?;
    each_written([
        if alone { Ok(()) } else { terminal.say(&words::text(&figures, *terminal)) },
        write_to(json, terminal, || Ok(json::pretty(Format::Suits, &figures)?)),
    ])?;
    Ok(ExitCode::SUCCESS)
}

fn found(args: &MachineArgs, terminal: &Terminal) -> Result<Figures> {
    let asked = args.cores.as_ref().map(|list| list.cores().collect::<Vec<_>>());
    let is_named = asked.is_some();
    if let Some(name) = &args.name {
        let machine = find_machine(name)?;
        return told(is_named, figures(&Described(&machine), &machine, asked)?, NOT_DESCRIBED);
    }
    if let Some(found) = atlas::known(args.atlas.as_deref(), terminal)? {
        let figures = figures(&found.atlas.atlas()?, &found.contents.machine, asked)?;
        return told(is_named, figures, NOT_MEASURED);
    }
    told(is_named, figures(&Unknown, &this_machine(&SysRoot::live())?, asked)?, atlas::NONE)
}

/// The figures, where they say anything, else why they do not; the cores are those that the user has named, or all.
fn told(is_named: bool, figures: Figures, else_why: &str) -> Result<Figures> {
    if figures.nothing.is_some() || figures.sets.iter().any(|set| !set.separate.is_empty()) {
        return Ok(figures);
    }
    let lacks_bandwidth = is_named && figures.sets.iter().any(Set::lacks_bandwidth);
    bail!("{}: {}", figures.machine, if lacks_bandwidth { NOT_TOGETHER } else { else_why })
}

fn figures(on: &dyn Distances, machine: &Machine, asked: Option<Vec<CoreId>>) -> Result<Figures> {
    let sets = match asked {
        Some(cores) => vec![of_machine(machine, cores)?],
        None => sets(on, machine),
    };
    let one = machine.regions.len() <= 1;
    let sets = if one { Vec::new() } else { sets };
    Ok(Figures {
        machine: machine.title.clone(),
        reading: Reading::Predicted,
        nothing: one.then_some(ONE_REGION),
        sets: sets.iter().map(|cores| Set::of(on, machine, cores)).collect(),
        assumed: assumed(machine),
    })
}

/// Cores that the user has named, if the machine has them.
fn of_machine(machine: &Machine, cores: Vec<CoreId>) -> Result<Vec<CoreId>> {
    let not: Vec<u16> =
        cores.iter().filter(|core| machine.core(**core).is_none()).map(|core| core.0).collect();
    if not.is_empty() {
        return Ok(cores);
    }
    let all: Vec<u16> = machine.core_ids().map(|core| core.0).collect();
    Err(WrongUsage::error(format!(
        "--cores: {} has no cores {}, it has {}",
        machine.title,
        spans(&not),
        spans(&all)
    )))
}

/// All cores of which anything is known, and those of each region, where several regions have cores.
fn sets(on: &dyn Distances, machine: &Machine) -> Vec<Vec<CoreId>> {
    let regions = || machine.regions.iter().map(|region| RegionId(region.id));
    let is_known = |core: &CoreId| regions().any(|region| on.region(*core, region).is_some());
    let known: Vec<CoreId> = machine.core_ids().filter(is_known).collect();
    let of_region = |region: RegionId| -> Vec<CoreId> {
        let is_its = |core: &&CoreId| machine.region_of(**core) == Some(region);
        known.iter().filter(is_its).copied().collect()
    };
    let by_region: Vec<_> = regions().map(of_region).filter(|cores| !cores.is_empty()).collect();
    let parts = if by_region.len() > 1 { by_region } else { Vec::new() };
    std::iter::once(known).chain(parts).collect()
}

/// What is assumed of regions: numbers with their ranges and reasons, and sentences.
fn assumed(machine: &Machine) -> Vec<String> {
    let of_regions = |cost: &&Cost| {
        let named = ["region ", "local ", "near ", "far "];
        let is_its = ["latency", "bandwidth"].iter().any(|what| cost.name.ends_with(what));
        is_its && named.iter().any(|begin| cost.name.starts_with(begin))
    };
    let sentence = |cost: &Cost| {
        let Value { number, unit, source, .. } = cost.assumed()?;
        let (low, high) = cost.sweep()?;
        Some(format!("{}: {number} {unit}, {low} to {high}; {source}", cost.name))
    };
    let costs = machine.costs.iter().filter(of_regions).filter_map(sentence);
    costs.chain(machine.assumed.iter().cloned()).collect()
}
