//! The machine as a value: cores with siblings and packages, regions, caches.

use std::collections::{BTreeMap, BTreeSet};

use isochrone_machine::{Core, Machine, Region, Source};

use super::list::parse_list;
use super::root::SysRoot;
use super::{HostError, caches, cpuinfo, regions, total_memory_bytes};

const CPUS: &str = "sys/devices/system/cpu";
const ONLINE: &str = "sys/devices/system/cpu/online";

/// Describes the machine below `root`: the cores that are online, whether or not this process
/// may use them (that is in [`super::machine_state`]).
///
/// # Errors
/// No core is listed, or the list cannot be understood.
pub fn this_machine(root: &SysRoot) -> Result<Machine, HostError> {
    let info = cpuinfo::read(root);
    let ids = online(root, &info.cores)?;
    let mut found = regions::read(root, &ids);
    found.notes.extend(switched_off(root, &ids));
    let modules = modules(root, &ids);
    let cores = ids.iter().map(|&id| core(root, id, &found.regions, &modules)).collect();
    let model = info.cpu.model_name.clone().unwrap_or_else(|| "unnamed processor".to_owned());
    Ok(Machine {
        name: "this-machine".into(),
        title: format!("{model}, {} cores", ids.len()),
        sources: vec![Source { id: "linux".into(), text: "/proc and /sys of this machine".into() }],
        cpu: Some(info.cpu),
        cores,
        memory_bytes: total_memory_bytes(root),
        caches: caches::read(root, &ids),
        distances: found.distances,
        regions: found.regions,
        notes: found.notes,
        unknown: unknown(root).into_iter().collect(),
        ..Machine::default()
    })
}

/// The online cores, ascending.
pub(super) fn online(root: &SysRoot, listed: &[u16]) -> Result<Vec<u16>, HostError> {
    let name = |relative: &str| root.path(relative).display().to_string();
    match root.line(ONLINE) {
        Some(text) => match parse_list(&text) {
            Some(cores) if !cores.is_empty() => Ok(cores),
            _ => Err(HostError::BadList { path: name(ONLINE), text }),
        },
        None if !listed.is_empty() => Ok(listed.to_vec()),
        None => Err(HostError::NoCores { online: name(ONLINE), cpuinfo: name("proc/cpuinfo") }),
    }
}

/// Cores that are there and switched off, in one line.
fn switched_off(root: &SysRoot, online: &[u16]) -> Option<String> {
    let present = parse_list(&root.line(format!("{CPUS}/present"))?)?;
    let off: Vec<u16> = present.into_iter().filter(|core| !online.contains(core)).collect();
    let names = isochrone_machine::spans(&off);
    (!off.is_empty()).then(|| format!("cores that are switched off: {names}"))
}

/// What nobody can know without `/sys`, in one line.
fn unknown(root: &SysRoot) -> Option<String> {
    let is_there = root.path(CPUS).is_dir();
    (!is_there).then(|| {
        let cpus = root.path(CPUS);
        format!(
            "caches, packages, threads of one core and the regions of cores and memory: {} is not there",
            cpus.display()
        )
    })
}

fn core(root: &SysRoot, id: u16, regions: &[Region], modules: &BTreeMap<u16, u16>) -> Core {
    let folder = format!("sys/devices/system/cpu/cpu{id}/topology");
    Core {
        id,
        region: regions.iter().find(|region| region.cores.contains(&id)).map_or(0, |r| r.id),
        module: modules.get(&id).copied(),
        package: root.number(format!("{folder}/physical_package_id")),
        smt_siblings: siblings(root, id),
        place: None,
    }
}

/// The other threads of a core; none where the system does not say.
pub(super) fn siblings(root: &SysRoot, id: u16) -> Vec<u16> {
    let folder = format!("sys/devices/system/cpu/cpu{id}/topology");
    let list = |file: &str| parse_list(&root.line(format!("{folder}/{file}"))?);
    // `core_cpus_list` is the newer name of the same file (Linux 5.3).
    let threads = list("core_cpus_list").or_else(|| list("thread_siblings_list"));
    threads.unwrap_or_default().into_iter().filter(|&core| core != id).collect()
}

/// Dies as modules, numbered over the whole machine; empty where each package has one die.
fn modules(root: &SysRoot, cores: &[u16]) -> BTreeMap<u16, u16> {
    let die = |core: &u16| -> Option<(u16, u16)> {
        let folder = format!("sys/devices/system/cpu/cpu{core}/topology");
        let package = root.number(format!("{folder}/physical_package_id"))?;
        Some((package, root.number(format!("{folder}/die_id"))?))
    };
    let of_core: BTreeMap<u16, (u16, u16)> =
        cores.iter().filter_map(|core| Some((*core, die(core)?))).collect();
    let dies: BTreeSet<(u16, u16)> = of_core.values().copied().collect();
    let packages: BTreeSet<u16> = dies.iter().map(|&(package, _)| package).collect();
    if dies.len() == packages.len() {
        return BTreeMap::new();
    }
    let numbers: BTreeMap<(u16, u16), u16> = dies.into_iter().zip(0..).collect();
    of_core.into_iter().filter_map(|(core, die)| Some((core, *numbers.get(&die)?))).collect()
}
