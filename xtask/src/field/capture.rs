//! The machine's description as the kernel gives it: small files of `/proc` and `/sys`, in the form of the captures in
//! `crates/ground/host/fixtures`, so that a test may stand in for the machine later. A line `== path` opens a file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Files, with `*` for any name in a folder.
const FILES: &[&str] = &[
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/loadavg",
    "proc/version",
    "proc/cmdline",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/numa_balancing",
    "proc/self/status",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/system/cpu/*/topology/physical_package_id",
    "sys/devices/system/cpu/*/topology/die_id",
    "sys/devices/system/cpu/*/topology/thread_siblings_list",
    "sys/devices/system/cpu/*/topology/core_cpus_list",
    "sys/devices/system/cpu/*/cpufreq/scaling_governor",
    "sys/devices/system/cpu/*/cache/*/level",
    "sys/devices/system/cpu/*/cache/*/type",
    "sys/devices/system/cpu/*/cache/*/size",
    "sys/devices/system/cpu/*/cache/*/coherency_line_size",
    "sys/devices/system/cpu/*/cache/*/ways_of_associativity",
    "sys/devices/system/cpu/*/cache/*/shared_cpu_list",
    "sys/devices/system/node/online",
    "sys/devices/system/node/has_memory",
    "sys/devices/system/node/*/cpulist",
    "sys/devices/system/node/*/distance",
    "sys/devices/system/node/*/meminfo",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/hugepages/*/nr_hugepages",
    "sys/kernel/mm/hugepages/*/free_hugepages",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/hypervisor/type",
    "sys/fs/cgroup/*/cpuset.cpus.effective",
    "sys/fs/cgroup/*/cpuset.mems.effective",
];

/// All files that are there below `root`.
pub(super) fn of(root: &Path) -> String {
    let mut text = String::new();
    for pattern in FILES {
        for path in matching(root, pattern) {
            if let Ok(content) = fs::read_to_string(root.join(&path)) {
                let _ = writeln!(text, "== {path}\n{}", content.trim_end());
            }
        }
    }
    text
}

/// Paths below `root` that a pattern stands for, ascending.
fn matching(root: &Path, pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once("/*/") else { return vec![pattern.to_owned()] };
    let Ok(entries) = fs::read_dir(root.join(before)) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let below = |name: &String| {
        let here = format!("{before}/{name}");
        matching(&root.join(&here), after).into_iter().map(move |path| format!("{here}/{path}"))
    };
    names.iter().flat_map(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_each_file_once_below_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/version", "Linux\n");
        write("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n");
        write("sys/devices/system/cpu/cpu1/cache/index0/size", "48K\n");
        write("sys/devices/system/cpu/kernel_max", "3\n");
        let paths =
            ["cpu0", "cpu1"].map(|cpu| format!("sys/devices/system/cpu/{cpu}/cache/index0/size"));
        let expected =
            format!("== proc/version\nLinux\n== {}\n32K\n== {}\n48K\n", paths[0], paths[1]);
        assert_eq!(of(folder.path()), expected);
    }
}
