//! This machine as a value, from captured `/proc` and `/sys` trees and from the real ones.
//!
//! A capture is one text file in `fixtures/`: a line `== path` opens a file, the lines up to the
//! next one are its content. The tests unpack it into a temporary folder.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use isochrone_host::{
        HostError, SysRoot, fingerprint, ignored_signals, is_root, machine_state, page_bytes,
        reach, region_free_bytes, this_machine, total_memory_bytes,
    };
    use isochrone_machine::{CacheKind, HugePages};
    use isochrone_units::{CoreId, RegionId};
    use tempfile::TempDir;

    struct Tree {
        folder: TempDir,
        root: SysRoot,
    }

    fn empty_tree() -> Tree {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = SysRoot(folder.path().to_owned());
        Tree { folder, root }
    }

    fn tree(name: &str) -> Tree {
        let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let text = fs::read_to_string(capture).expect("the capture is there");
        let tree = empty_tree();
        for file in text.split("== ").filter(|file| !file.is_empty()) {
            let (path, content) = file.split_once('\n').expect("a path and a content");
            tree.write(path, content);
        }
        tree
    }

    impl Tree {
        fn write(&self, path: &str, content: &str) {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, content).expect("written");
        }

        fn remove(&self, path: &str) {
            fs::remove_file(self.folder.path().join(path)).expect("removed");
        }
    }

    #[test]
    fn a_small_guest() {
        let tree = tree("guest.txt");
        let machine = this_machine(&tree.root).expect("described");
        let ids: Vec<CoreId> = machine.core_ids().collect();
        assert_eq!(ids, [CoreId(0), CoreId(1)]);
        assert_eq!(machine.title, "AMD EPYC, 2 cores");
        let cpu = machine.cpu.clone().expect("named");
        assert_eq!((cpu.family, cpu.model, cpu.stepping), (Some(25), Some(17), Some(1)));
        assert_eq!(machine.cores[0].package, Some(0));
        assert_eq!(machine.cores[0].module, None, "one die is no module");
        assert!(machine.cores[0].smt_siblings.is_empty(), "this guest hides whether threads share");
        let llc = machine.last_level_cache(CoreId(1)).expect("an L3");
        assert_eq!((llc.level, llc.bytes, llc.line_bytes), (3, Some(32 << 20), Some(64)));
        assert_eq!(machine.cache(CoreId(0), 2).and_then(|cache| cache.bytes), Some(1 << 20));
        // The node's own total lags behind the machine's in a guest whose memory grows.
        assert_eq!(machine.regions[0].bytes, Some(24_684_096 * 1024));
        assert_eq!(machine.distance(RegionId(0), RegionId(0)), Some(10));
        assert_eq!(machine.caveats(), Vec::<String>::new());
    }

    #[test]
    fn the_state_of_a_small_guest() {
        let tree = tree("guest.txt");
        let state = machine_state(&tree.root);
        assert_eq!(state.hypervisor.as_deref(), Some("KVM"), "named by its clock");
        assert_eq!(state.clocksource.as_deref(), Some("tsc"));
        assert_eq!(state.microcode.as_deref(), Some("0x1000065"));
        assert_eq!(state.kernel.as_deref(), Some("6.18.44"));
        assert_eq!(state.governors, [(0, None), (1, None)]);
        assert_eq!(state.turbo, None);
        assert_eq!(state.autonuma, Some(false));
        assert_eq!(state.isolated_cores, Vec::<u16>::new());
        assert_eq!(state.allowed_cores, Some(vec![0, 1]));
        assert_eq!(state.allowed_regions, Some(vec![0]));
        assert_eq!(state.memory_max_bytes, Some(17_179_869_184), "the parent group's limit");
        assert_eq!(state.cpu_quota_cores, None);
        assert_eq!(state.loadavg, Some([0.23, 0.12, 0.08]));
        let sizes: Vec<u64> = state.huge_pages.iter().map(|pool| pool.page_bytes).collect();
        assert_eq!(sizes, [2 << 20, 1 << 30]);
        assert_eq!(is_root(&tree.root), Some(true));
    }

    #[test]
    fn two_sockets_with_four_regions_and_smt() {
        let machine = this_machine(&tree("two-socket.txt").root).expect("described");
        assert_eq!(machine.cores.len(), 16);
        let core = machine.core(CoreId(13)).expect("core 13");
        assert_eq!((core.region, core.package, core.module), (2, Some(1), Some(2)));
        assert_eq!(core.smt_siblings, [5]);
        assert_eq!(machine.regions[3].cores, [6, 7, 14, 15]);
        assert_eq!(machine.regions[3].bytes, Some(32_875_000 * 1024));
        assert_eq!(machine.distance(RegionId(0), RegionId(1)), Some(12));
        assert_eq!(machine.distance(RegionId(3), RegionId(0)), Some(21));
        let data = machine.caches.iter().filter(|cache| cache.kind == CacheKind::Data);
        assert_eq!(data.count(), 8, "each instance once");
        let llc = machine.last_level_cache(CoreId(12)).expect("an L3");
        assert_eq!(llc.shared_by, [4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(llc.ways, None, "0 ways is not known");
    }

    #[test]
    fn the_limits_of_nested_control_groups() {
        let tree = tree("two-socket.txt");
        let state = machine_state(&tree.root);
        assert_eq!(state.hypervisor, None, "firmware words alone make no guest");
        // Affinity 0-5,8-13 and the parent group's 0-3,8-11.
        assert_eq!(state.allowed_cores, Some(vec![0, 1, 2, 3, 8, 9, 10, 11]));
        assert_eq!(state.cpu_quota_cores, Some(2.5), "the parent's quota");
        assert_eq!(state.memory_max_bytes, Some(8 << 30));
        assert_eq!(state.isolated_cores, [6, 7, 14, 15]);
        assert_eq!(state.turbo, Some(false));
        assert_eq!(state.thp.as_deref(), Some("never"));
        assert_eq!(state.huge_pages, [HugePages { page_bytes: 2 << 20, total: 64, free: 60 }]);
        assert_eq!(state.governors[8], (8, Some("powersave".into())));
        assert_eq!(state.governors[15], (15, None));
        assert_eq!(is_root(&tree.root), Some(false));
    }

    #[test]
    fn a_group_s_limit_leaves_less_of_a_region_than_the_node_has() {
        // Version 1: the parent group has the limit.
        let one = tree("guest.txt");
        assert_eq!(
            region_free_bytes(&one.root, 0),
            Some(3_466_352 << 10),
            "what it uses is unknown"
        );
        let group = "sys/fs/cgroup/memory/service";
        one.write(&format!("{group}/memory.usage_in_bytes"), "16106127360\n");
        assert_eq!(region_free_bytes(&one.root, 0), Some(1 << 30));
        one.write(
            &format!("{group}/memory.stat"),
            "inactive_file 1\ntotal_inactive_file 1073741824\n",
        );
        assert_eq!(
            region_free_bytes(&one.root, 0),
            Some(2 << 30),
            "idle pages of files count as free"
        );
        one.write(&format!("{group}/memory.usage_in_bytes"), "1\n");
        assert_eq!(region_free_bytes(&one.root, 0), Some(3_466_352 << 10), "the node has less");
        // Version 2: its own group has one.
        let two = tree("two-socket.txt");
        let group = "sys/fs/cgroup/user.slice/job.scope";
        two.write(&format!("{group}/memory.current"), "8589934592\n");
        assert_eq!(region_free_bytes(&two.root, 0), Some(0));
        two.write(&format!("{group}/memory.stat"), "anon 5\ninactive_file 4096\n");
        assert_eq!(region_free_bytes(&two.root, 0), Some(4096));
    }

    #[test]
    fn a_container_sees_only_its_own_part_of_the_groups() {
        let tree = tree("two-socket.txt");
        let mount = "30 23 0:26 /user.slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        tree.write("proc/self/mountinfo", mount);
        tree.write("sys/fs/cgroup/job.scope/memory.max", "4096\n");
        assert_eq!(machine_state(&tree.root).memory_max_bytes, Some(4096));
        // A group outside what is mounted: only the mount point can be read.
        tree.write("proc/self/cgroup", "0::/../../other\n");
        tree.write("sys/fs/cgroup/memory.max", "8192\n");
        assert_eq!(machine_state(&tree.root).memory_max_bytes, Some(8192));
    }

    #[test]
    fn firmware_names_the_hypervisor_before_its_clock() {
        let tree = tree("guest.txt");
        tree.write("sys/class/dmi/id/sys_vendor", "QEMU\n");
        tree.write("sys/class/dmi/id/product_name", "Standard PC (Q35)\n");
        let name = machine_state(&tree.root).hypervisor;
        assert_eq!(name.as_deref(), Some("QEMU Standard PC (Q35)"));
        tree.write("sys/hypervisor/type", "xen\n");
        assert_eq!(machine_state(&tree.root).hypervisor.as_deref(), Some("xen"));
        let bare = self::tree("guest.txt");
        bare.remove("sys/devices/system/clocksource/clocksource0/available_clocksource");
        assert_eq!(machine_state(&bare.root).hypervisor.as_deref(), Some("unnamed"));
    }

    #[test]
    fn what_is_missing_is_none_and_said() {
        let tree = tree("sparse.txt");
        let machine = this_machine(&tree.root).expect("two cores are enough");
        assert_eq!(machine.cores.len(), 2);
        assert_eq!((machine.cores[0].package, machine.cores[1].region), (None, 0));
        assert_eq!((machine.regions.len(), machine.distances.clone()), (1, None));
        assert_eq!(machine.regions[0].bytes, Some(2_000_000 * 1024));
        assert!(machine.caches.is_empty());
        assert!(machine.notes[0].contains("no memory regions"), "{:?}", machine.notes);
        let state = machine_state(&tree.root);
        assert_eq!((state.hypervisor, state.clocksource, state.thp), (None, None, None));
        assert_eq!((state.allowed_cores, state.memory_max_bytes), (None, None));
        assert_eq!((page_bytes(&tree.root), is_root(&tree.root)), (None, None));
    }

    #[test]
    fn a_region_that_lists_no_cores_does_not_lose_them() {
        let tree = tree("guest.txt");
        tree.write("sys/devices/system/node/node0/cpulist", "0\n");
        let machine = this_machine(&tree.root).expect("described");
        assert_eq!(machine.regions[0].cores, [0, 1]);
        assert!(machine.notes[0].contains("cores 1"), "{:?}", machine.notes);
    }

    #[test]
    fn regions_without_memory_or_without_cores_keep_their_numbers() {
        let tree = tree("two-socket.txt");
        tree.write("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:        0 kB\n");
        tree.write("sys/devices/system/node/node2/cpulist", "\n");
        tree.write("sys/devices/system/node/node3/cpulist", "4-7,12-15\n");
        let machine = this_machine(&tree.root).expect("described");
        assert_eq!(
            machine.regions.iter().map(|region| region.id).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        assert_eq!(
            (machine.regions[1].bytes, &machine.regions[1].cores[..]),
            (Some(0), &[2, 3, 10, 11][..])
        );
        assert_eq!(machine.regions[2].cores, [0_u16; 0]);
        assert_eq!(machine.distance(RegionId(1), RegionId(2)), Some(21));
        let found = reach(&machine, &machine_state(&tree.root));
        assert_eq!(found.regions, [0, 2].map(RegionId), "3 is not allowed, 1 has no memory");
        let lines = [found.cores_left_out, found.regions_left_out].concat();
        assert!(lines[0].starts_with("cores 4-7,12-15: "), "{lines:?}");
        assert_eq!(lines[1], "region 1: no memory there");
        assert!(lines[2].starts_with("region 3: this process may not take memory"), "{lines:?}");
    }

    #[test]
    fn a_cpuset_of_either_version_bounds_regions_as_well() {
        let tree = tree("two-socket.txt");
        tree.write("sys/fs/cgroup/user.slice/cpuset.mems.effective", "1-3\n");
        assert_eq!(machine_state(&tree.root).allowed_regions, Some(vec![1, 2]), "both hold");
        tree.remove("proc/self/status");
        assert_eq!(machine_state(&tree.root).allowed_regions, Some(vec![1, 2, 3]));
        let old = self::tree("guest.txt");
        old.write("proc/self/status", "Mems_allowed_list:\t0-3\n");
        old.write("sys/fs/cgroup/cpuset/cpuset.mems", "2\n");
        assert_eq!(machine_state(&old.root).allowed_regions, Some(vec![2]));
    }

    #[test]
    fn signals_that_are_ignored_are_a_mask() {
        let tree = tree("guest.txt");
        tree.write("proc/self/status", "SigBlk:\t0000000000000004\nSigIgn:\t0000000000001001\n");
        assert_eq!(ignored_signals(&tree.root), Some(0x1001));
        tree.write("proc/self/status", "SigIgn:\tnone\n");
        assert_eq!(ignored_signals(&tree.root), None);
    }

    #[test]
    fn a_core_that_is_switched_off_is_none_and_is_said() {
        let tree = tree("two-socket.txt");
        tree.write("sys/devices/system/cpu/present", "0-15\n");
        assert_eq!(this_machine(&tree.root).expect("described").notes, Vec::<String>::new());
        tree.write("sys/devices/system/cpu/online", "0-8,10-15\n");
        let machine = this_machine(&tree.root).expect("described");
        assert_eq!((machine.cores.len(), machine.core(CoreId(9))), (15, None));
        assert_eq!(machine.regions[0].cores, [0, 1, 8]);
        assert_eq!(machine.notes, ["cores that are switched off: 9"]);
        let state = machine_state(&tree.root);
        assert_eq!(state.allowed_cores, Some(vec![0, 1, 2, 3, 8, 10, 11]), "affinity has 9");
        let foreign = reach(&machine, &state).cores_left_out;
        assert!(foreign[0].starts_with("cores 4-7,12-15: "), "{foreign:?}");
    }

    #[test]
    fn without_sys_one_line_says_what_is_unknown() {
        let tree = tree("sparse.txt");
        let machine = this_machine(&tree.root).expect("described");
        assert_eq!(machine.unknown.len(), 1, "{:?}", machine.unknown);
        assert!(machine.unknown[0].contains("caches"), "{:?}", machine.unknown);
        assert!(machine.caveats().iter().any(|line| line.starts_with("unknown: caches")));
        assert!(!machine.notes[0].contains("may use"), "{:?}", machine.notes);
        // What the kernel says of the process is there all the same.
        tree.write("proc/self/status", "Cpus_allowed_list:\t1\nMems_allowed_list:\t0-1\n");
        let machine = this_machine(&tree.root).expect("described");
        assert!(machine.notes[0].contains("any of regions 0-1"), "{:?}", machine.notes);
        let found = reach(&machine, &machine_state(&tree.root));
        assert!(found.cores_left_out[0].starts_with("core 0: "), "{:?}", found.cores_left_out);
        assert_eq!(found.regions, [RegionId(0)]);
        assert!(this_machine(&self::tree("guest.txt").root).expect("described").unknown.is_empty());
    }

    #[test]
    fn no_core_and_an_unreadable_list_are_errors_that_name_the_file() {
        let error = this_machine(&empty_tree().root).expect_err("nothing there");
        assert!(matches!(error, HostError::NoCores { .. }), "{error}");
        let tree = tree("guest.txt");
        tree.write("sys/devices/system/cpu/online", "0-x\n");
        let error = this_machine(&tree.root).expect_err("nonsense").to_string();
        assert!(error.contains("cpu/online") && error.contains("0-x"), "{error}");
    }

    #[test]
    fn the_fingerprint_names_the_machine_and_not_its_load() {
        let tree = tree("guest.txt");
        let machine = this_machine(&tree.root).expect("described");
        let before = fingerprint(&machine, &machine_state(&tree.root));
        tree.write("proc/loadavg", "99 99 99 1/1 1\n");
        tree.write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 5204184 kB\n");
        let machine = this_machine(&tree.root).expect("described");
        let after = fingerprint(&machine, &machine_state(&tree.root));
        assert_eq!(before, after);
        assert!(before.0.contains(&"memory: 24 GiB".to_owned()), "{:?}", before.0);
        assert!(before.0.contains(&"hypervisor: KVM".to_owned()), "{:?}", before.0);
        let other = self::tree("two-socket.txt");
        let machine = this_machine(&other.root).expect("described");
        assert_ne!(before.1, fingerprint(&machine, &machine_state(&other.root)).1);
    }

    #[test]
    fn the_machine_that_runs_this_test() {
        let root = SysRoot::live();
        let machine = this_machine(&root).expect("described");
        let state = machine_state(&root);
        let in_use = std::thread::available_parallelism().expect("known").get();
        let allowed = state.allowed_cores.as_ref().expect("Linux says");
        assert!(in_use <= allowed.len(), "{in_use} cores in use, {allowed:?} allowed");
        assert!(allowed.iter().all(|&core| machine.core(CoreId(core)).is_some()));
        let in_regions: usize = machine.regions.iter().map(|region| region.cores.len()).sum();
        assert_eq!(in_regions, machine.cores.len(), "each core is in one region");
        assert!(page_bytes(&root).is_some_and(u64::is_power_of_two));
        assert_eq!(machine.memory_bytes, total_memory_bytes(&root));
        assert_eq!(fingerprint(&machine, &state), fingerprint(&machine, &machine_state(&root)));
    }
}
