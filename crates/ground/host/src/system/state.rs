//! The state of the machine at one moment: everything that can change without its becoming
//! another machine, and that an atlas therefore records beside its numbers.

use isochrone_machine::{HugePages, MachineState};

use super::cgroup;
use super::cpuinfo;
use super::hypervisor;
use super::list::{field, parse_list};
use super::regions;
use super::root::SysRoot;
use super::topology::online;

const CPUS: &str = "sys/devices/system/cpu";
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Reads the state below `root`. What cannot be read is `None`; nothing is an error.
#[must_use]
pub fn machine_state(root: &SysRoot) -> MachineState {
    let info = cpuinfo::read(root);
    let status = root.text("proc/self/status").unwrap_or_default();
    let affinity = field(&status, "Cpus_allowed_list").and_then(|list| parse_list(&list));
    let limits = cgroup::read(root);
    // Masks of affinity keep cores that are switched off.
    let online = online(root, &info.cores).ok();
    let isolated = root.line(format!("{CPUS}/isolated")).and_then(|list| parse_list(&list));
    MachineState {
        hypervisor: hypervisor::name(root, &info),
        kernel: root.line("proc/sys/kernel/osrelease"),
        clocksource: root.line(CLOCK),
        governors: governors(root, online.as_deref().unwrap_or_default()),
        microcode: info.microcode,
        turbo: turbo(root),
        thp: root.line("sys/kernel/mm/transparent_hugepage/enabled").and_then(|t| chosen(&t)),
        huge_pages: huge_pages(root),
        autonuma: root.number("proc/sys/kernel/numa_balancing").map(|mode: u32| mode != 0),
        isolated_cores: isolated.unwrap_or_default(),
        allowed_cores: both(affinity, limits.cores)
            .map(|allowed| within(allowed, online.as_deref())),
        allowed_regions: both(regions::allowed(root), limits.regions),
        memory_max_bytes: limits.memory_max_bytes,
        cpu_quota_cores: limits.cpu_quota_cores,
        loadavg: root.line("proc/loadavg").and_then(|line| loadavg(&line)),
    }
}

/// Those of the cores that are online, where that is known.
fn within(cores: Vec<u16>, online: Option<&[u16]>) -> Vec<u16> {
    let is_online = |core: &u16| online.is_none_or(|online| online.contains(core));
    cores.into_iter().filter(is_online).collect()
}

/// What both lists allow; the one that exists where the other is missing.
fn both(own: Option<Vec<u16>>, group: Option<Vec<u16>>) -> Option<Vec<u16>> {
    match (own, group) {
        (Some(own), Some(group)) => Some(own.into_iter().filter(|id| group.contains(id)).collect()),
        (own, group) => own.or(group),
    }
}

fn governors(root: &SysRoot, cores: &[u16]) -> Vec<(u16, Option<String>)> {
    let governor = |core: u16| root.line(format!("{CPUS}/cpu{core}/cpufreq/scaling_governor"));
    cores.iter().map(|&core| (core, governor(core))).collect()
}

/// Intel's driver says `no_turbo`, the others `boost`.
fn turbo(root: &SysRoot) -> Option<bool> {
    let off = root.number(format!("{CPUS}/intel_pstate/no_turbo")).map(|off: u8| off == 0);
    off.or_else(|| root.number(format!("{CPUS}/cpufreq/boost")).map(|on: u8| on != 0))
}

/// The word in brackets: `madvise` of `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

fn huge_pages(root: &SysRoot) -> Vec<HugePages> {
    const POOLS: &str = "sys/kernel/mm/hugepages";
    let pool = |name: &String| {
        let size: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some(HugePages {
            page_bytes: size.checked_mul(1024)?,
            total: root.number(format!("{POOLS}/{name}/nr_hugepages"))?,
            free: root.number(format!("{POOLS}/{name}/free_hugepages"))?,
        })
    };
    let mut pools: Vec<HugePages> = root.names(POOLS).iter().filter_map(pool).collect();
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}

fn loadavg(line: &str) -> Option<[f64; 3]> {
    let mut numbers = line.split_whitespace().map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}
