//! Memory regions (NUMA nodes) and the firmware's distances between them.

use isochrone_machine::{Region, RegionKind};

use super::cgroup;
use super::list::{field, kibibytes, parse_list};
use super::root::SysRoot;
use super::total_memory_bytes;

const NODES: &str = "sys/devices/system/node";

/// What was found, with one remark for each thing that was not.
#[derive(Debug, Default)]
pub(super) struct Regions {
    pub(super) regions: Vec<Region>,
    pub(super) distances: Option<Vec<Vec<u32>>>,
    pub(super) notes: Vec<String>,
}

pub(super) fn read(root: &SysRoot, cores: &[u16]) -> Regions {
    let mut ids = root.line(format!("{NODES}/online")).and_then(|list| parse_list(&list));
    if ids.as_ref().is_none_or(Vec::is_empty) {
        ids = Some(root.numbered(NODES, "node"));
    }
    let ids = ids.unwrap_or_default();
    if ids.is_empty() {
        return one_region(root, cores);
    }
    let mut found = Regions::default();
    for &id in &ids {
        let members = root.line(format!("{NODES}/node{id}/cpulist")).and_then(|l| parse_list(&l));
        let members = members.unwrap_or_default();
        found.regions.push(Region {
            id,
            kind: RegionKind::Unknown,
            bytes: node_bytes(root, id),
            cores: members.into_iter().filter(|core| cores.contains(core)).collect(),
            source: None,
        });
    }
    adjust_only_region(root, &mut found);
    found.distances = distances(root, &ids);
    if found.distances.is_none() {
        found.notes.push("the firmware's distances between regions are not readable".into());
    }
    adopt_strays(cores, &mut found);
    found
}

/// A kernel without NUMA has no node folder: all memory is one region.
fn one_region(root: &SysRoot, cores: &[u16]) -> Regions {
    let bytes = total_memory_bytes(root);
    let region = Region { bytes, cores: cores.to_vec(), ..Region::default() };
    let mut note =
        "the system lists no memory regions; all memory is taken for one region".to_owned();
    // The kernel lists regions of a process even where nobody mounted the folder that describes them.
    let allowed = allowed(root).unwrap_or_default();
    if allowed.len() > 1 {
        let names = isochrone_machine::spans(&allowed);
        note += &format!("; it may lie in any of regions {names}, which this process may use");
    }
    Regions { regions: vec![region], distances: None, notes: vec![note] }
}

/// Regions that this process may take memory from, as far as the kernel says so of the process.
pub(super) fn allowed(root: &SysRoot) -> Option<Vec<u16>> {
    let status = root.text("proc/self/status")?;
    parse_list(&field(&status, "Mems_allowed_list")?)
}

fn node_bytes(root: &SysRoot, id: u16) -> Option<u64> {
    node_field(root, id, "MemTotal")
}

fn node_field(root: &SysRoot, id: u16, name: &str) -> Option<u64> {
    let text = root.text(format!("{NODES}/node{id}/meminfo"))?;
    // "Node 0 MemTotal:  4286680 kB"
    kibibytes(&field(&text, &format!("Node {id} {name}"))?)
}

/// Bytes of a region that nobody uses now, the kernel's caches not counted; where the system lists no regions, what
/// programs can have of all memory. No more than the limits of this process's control groups leave it, which end who
/// takes more. `None` where the system tells none of that.
#[must_use]
pub fn region_free_bytes(root: &SysRoot, id: u16) -> Option<u64> {
    let free = node_field(root, id, "MemFree").or_else(|| {
        let text = root.text("proc/meminfo")?;
        kibibytes(&field(&text, "MemAvailable")?)
    });
    free.into_iter().chain(cgroup::memory_left_bytes(root)).min()
}

/// A node's own total only counts pages that the kernel has taken into use; in a guest whose
/// memory grows it lags behind the machine's total. With one region the two are the same memory.
fn adjust_only_region(root: &SysRoot, found: &mut Regions) {
    if let [only] = found.regions.as_mut_slice() {
        only.bytes = only.bytes.max(total_memory_bytes(root));
    }
}

/// One row a region, in the order of `ids`; `None` unless every row is whole.
fn distances(root: &SysRoot, ids: &[u16]) -> Option<Vec<Vec<u32>>> {
    let row = |id: &u16| {
        let line = root.line(format!("{NODES}/node{id}/distance"))?;
        let row: Option<Vec<u32>> =
            line.split_whitespace().map(|number| number.parse().ok()).collect();
        row.filter(|row| row.len() == ids.len())
    };
    ids.iter().map(row).collect()
}

/// Cores that no region lists are given to the first one, and said so.
fn adopt_strays(cores: &[u16], found: &mut Regions) {
    let listed = |core: &u16| found.regions.iter().any(|region| region.cores.contains(core));
    let strays: Vec<u16> = cores.iter().copied().filter(|core| !listed(core)).collect();
    if strays.is_empty() {
        return;
    }
    let names = isochrone_machine::spans(&strays);
    let Some(first) = found.regions.first_mut() else { return };
    found
        .notes
        .push(format!("no region lists cores {names}; they are taken for region {}", first.id));
    first.cores.extend(strays);
    first.cores.sort_unstable();
}
