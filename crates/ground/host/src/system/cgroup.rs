//! The limits of this process's control groups, version 1 and 2 alike.
//!
//! A limit holds if any group between the process and the root of the tree sets it, so the
//! tightest one counts. Groups above the mount (outside a container) cannot be seen.

use std::path::{Path, PathBuf};

use super::list::parse_list;
use super::root::SysRoot;

/// Version 1 writes "no limit" as the largest multiple of a page; anything near is no limit.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// The limits, each `None` where there is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Limits {
    pub(super) cores: Option<Vec<u16>>,
    pub(super) regions: Option<Vec<u16>>,
    pub(super) memory_max_bytes: Option<u64>,
    pub(super) cpu_quota_cores: Option<f64>,
}

pub(super) fn read(root: &SysRoot) -> Limits {
    let mut limits = Limits::default();
    for hierarchy in hierarchies(root) {
        let folders = hierarchy.folders.iter();
        if hierarchy.has("cpuset") && limits.cores.is_none() {
            limits.cores = folders.clone().find_map(|folder| numbers(root, folder, CORES));
        }
        if hierarchy.has("cpuset") && limits.regions.is_none() {
            limits.regions = folders.clone().find_map(|folder| numbers(root, folder, REGIONS));
        }
        if hierarchy.has("memory") {
            let tightest = folders.clone().filter_map(|folder| memory(root, folder)).min();
            limits.memory_max_bytes = smaller(limits.memory_max_bytes, tightest);
        }
        if hierarchy.has("cpu") {
            let tightest = folders.filter_map(|folder| quota(root, folder)).reduce(f64::min);
            limits.cpu_quota_cores = match (limits.cpu_quota_cores, tightest) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
    }
    limits
}

/// Bytes that this process's groups may still take, where one of them has a limit: the least over all of them. Pages of
/// files that nobody uses now are given up for others, so they count as free.
pub(super) fn memory_left_bytes(root: &SysRoot) -> Option<u64> {
    let trees = hierarchies(root).into_iter().filter(|hierarchy| hierarchy.has("memory"));
    let left = |folder: &PathBuf| {
        let used = ["memory.current", "memory.usage_in_bytes"];
        let used = used.iter().find_map(|name| root.number::<u64>(folder.join(name)))?;
        Some(memory(root, folder)?.saturating_sub(used.saturating_sub(idle_files(root, folder))))
    };
    trees.flat_map(|hierarchy| hierarchy.folders).filter_map(|folder| left(&folder)).min()
}

/// Bytes of files' pages that nobody used lately. Version 1 counts those of groups inside under another name.
fn idle_files(root: &SysRoot, folder: &Path) -> u64 {
    let text = root.text(folder.join("memory.stat")).unwrap_or_default();
    let of = |wanted: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(wanted)?.strip_prefix(' ')?.trim().parse::<u64>().ok()
        })
    };
    of("total_inactive_file").or_else(|| of("inactive_file")).unwrap_or(0)
}

fn smaller(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// One mounted tree of groups: its controllers (empty for version 2, which has them all) and the
/// folders from this process's group up to the mount.
struct Hierarchy {
    controllers: Vec<String>,
    folders: Vec<PathBuf>,
}

impl Hierarchy {
    fn has(&self, controller: &str) -> bool {
        self.controllers.is_empty() || self.controllers.iter().any(|name| name == controller)
    }
}

fn hierarchies(root: &SysRoot) -> Vec<Hierarchy> {
    let groups = root.text("proc/self/cgroup").unwrap_or_default();
    let mounts = root.text("proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter_map(|mount| hierarchy(mount, &groups)).collect()
}

/// One line of `mountinfo` (see `proc_pid_mountinfo(5)`): the fourth field is the part of the
/// tree that is mounted, the fifth where; after a lone dash come type, source and options.
fn hierarchy(mount: &str, groups: &str) -> Option<Hierarchy> {
    let (left, right) = mount.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (mounted, point) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (kind, options) = (right.next()?, right.nth(1).unwrap_or_default());
    let (controllers, group) = match kind {
        "cgroup2" => (Vec::new(), group_of(groups, "")?),
        "cgroup" => {
            let known = ["cpuset", "memory", "cpu"];
            let of_mount: Vec<String> =
                options.split(',').filter(|o| known.contains(o)).map(str::to_owned).collect();
            let group = group_of(groups, of_mount.first()?)?;
            (of_mount, group)
        }
        _ => return None,
    };
    Some(Hierarchy { controllers, folders: folders(Path::new(point), mounted, &group) })
}

/// The group of this process in the tree of `controller`, or in version 2's tree for `""`.
fn group_of(groups: &str, controller: &str) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let fits = controllers.split(',').any(|name| name == controller);
        fits.then(|| path.to_owned())
    })
}

/// Folders from the group up to the mount point. Inside a container the group may lie outside
/// what is mounted; then only the mount point itself can be read.
fn folders(point: &Path, mounted: &str, group: &str) -> Vec<PathBuf> {
    let inside = Path::new(group).strip_prefix(mounted).unwrap_or(Path::new(""));
    let inside = match inside.components().any(|part| part.as_os_str() == "..") {
        true => Path::new(""),
        false => inside,
    };
    inside.ancestors().map(|part| point.join(part)).collect()
}

/// Files of a cpuset that list cores: what holds (version 2, then 1), and what was asked for.
const CORES: [&str; 3] = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
/// The same of regions.
const REGIONS: [&str; 3] = ["cpuset.mems.effective", "cpuset.effective_mems", "cpuset.mems"];

/// The first list of these files that is not empty.
fn numbers(root: &SysRoot, folder: &Path, names: [&str; 3]) -> Option<Vec<u16>> {
    let lists = names.iter().filter_map(|name| root.line(folder.join(name)));
    lists.filter_map(|list| parse_list(&list)).find(|numbers| !numbers.is_empty())
}

fn memory(root: &SysRoot, folder: &Path) -> Option<u64> {
    let names = ["memory.max", "memory.limit_in_bytes"];
    let limits = names.iter().filter_map(|name| root.number::<u64>(folder.join(name)));
    limits.filter(|&bytes| bytes < NO_LIMIT_BYTES).min()
}

/// Processor time as a number of cores: quota over period, both in microseconds.
fn quota(root: &SysRoot, folder: &Path) -> Option<f64> {
    let (quota, period) = match root.line(folder.join("cpu.max")) {
        Some(both) => {
            let (quota, period) = both.split_once(' ')?;
            (quota.parse::<u32>().ok()?, period.parse::<u32>().ok()?)
        }
        None => (
            root.number(folder.join("cpu.cfs_quota_us"))?,
            root.number(folder.join("cpu.cfs_period_us"))?,
        ),
    };
    (period > 0).then(|| f64::from(quota) / f64::from(period))
}
