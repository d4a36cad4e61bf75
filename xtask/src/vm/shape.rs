//! Emulated machines by name, each as a value: what the emulator is told, and what programs must find there.

use std::time::Duration;

use anyhow::{Context, Result};

use super::arch::Arch;

/// Memory of one number, with the cores that it is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// 0 for a region that has only cores.
    pub(super) mib: u32,
    /// First and last core; `None` for a region that has only memory.
    pub(super) cores: Option<(u16, u16)>,
}

/// What runs as the first process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// The checks of `tests/vm`: places of pages, and counts of interrupts.
    Checks,
    /// The two programs, whose JSON is held against the machine.
    Programs,
    /// Tests of crates under Debian for arm64, with its MPIs and compilers.
    Tests,
}

/// Cores and regions that programs may use, from the first to the last of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpuset {
    pub(super) cores: (u16, u16),
    pub(super) regions: (u16, u16),
}

/// An emulated machine.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) arch: Arch,
    pub(super) does: Does,
    pub(super) nodes: Vec<Node>,
    /// Cores that are switched off before programs run.
    pub(super) off: &'static [u16],
    pub(super) cpuset: Option<Cpuset>,
    /// Whether the kernel's description of the machine is mounted.
    pub(super) sys: bool,
    /// Seconds of a map.
    pub(super) map_s: u32,
    /// After this something hangs.
    pub(super) limit: Duration,
}

/// The longest that a machine may run.
const LIMIT: Duration = Duration::from_secs(600);
/// A boot and all checks take about a minute.
const CHECKS_LIMIT: Duration = Duration::from_secs(300);
/// Compilers, MPIs and tests, every instruction of them translated: one suite alone may take an hour beside other work.
const TESTS_LIMIT: Duration = Duration::from_secs(3 * 3600);

impl Shape {
    /// So many regions with so much memory and so many cores each.
    fn regular(name: &'static str, what: &'static str, regions: u16, cores: u16, mib: u32) -> Self {
        let cores_of = |region: u16| (region * cores, region * cores + cores - 1);
        let node = |region| Node { mib, cores: Some(cores_of(region)) };
        Self {
            name,
            what,
            arch: Arch::X86,
            does: Does::Programs,
            nodes: (0..regions).map(node).collect(),
            off: &[],
            cpuset: None,
            sys: true,
            map_s: 120,
            limit: LIMIT,
        }
    }

    /// All of them, in the order in which they are run.
    pub(super) fn all() -> Vec<Self> {
        let mut checks = Self::regular(
            "checks16",
            "33 cores, 16 regions: places of pages, interrupts",
            16,
            2,
            // The programs of all machines that are asked for lie in the first region, or in the next one as well.
            256,
        );
        // Beside two of each region one who evicts.
        checks.nodes[15].cores = Some((30, 32));
        (checks.does, checks.limit) = (Does::Checks, CHECKS_LIMIT);
        let mut cpuset =
            Self::regular("cpuset", "4 of 8 cores and 2 of 4 regions are allowed", 4, 2, 384);
        cpuset.cpuset = Some(Cpuset { cores: (2, 5), regions: (1, 2) });
        // The usual gate waits for this one.
        cpuset.map_s = 60;
        let mut memoryless = Self::regular(
            "memoryless",
            "a region without memory, and one without cores",
            4,
            2,
            384,
        );
        // Linux numbers regions by cores first and those that have only memory last (`acpi_numa_init` reads the
        // affinity of processors before that of memory).
        (memoryless.nodes[1].mib, memoryless.nodes[3].cores) = (0, None);
        let mut offline = Self::regular("offline", "one of 4 cores is switched off", 2, 2, 512);
        offline.off = &[2];
        let mut nosys = Self::regular("nosys", "4 cores, /sys is not mounted", 2, 2, 512);
        nosys.sys = false;
        let mut tests = Self::regular(
            "debian",
            "2 cores, Debian for arm64: tests of the preloads, the C library, MPI, tasks and tiering",
            1,
            2,
            4096,
        );
        (tests.does, tests.limit) = (Does::Tests, TESTS_LIMIT);
        let two = Self::regular("regions2", "2 regions of 2 cores", 2, 2, 512);
        let mut regions = Self::regular("regions16", "16 regions of 2 cores", 16, 2, 256);
        let mut cores = Self::regular("cores64", "64 cores in 2 regions", 2, 32, 2048);
        // Block latency of many emulated cores takes longer than its share, and others are to have some.
        (regions.map_s, cores.map_s) = (180, 180);
        vec![checks, cpuset, memoryless, offline, nosys, two, regions, cores, tests]
    }

    /// The one of this name.
    ///
    /// # Errors
    /// There is none; says which there are.
    pub(super) fn named(name: &str) -> Result<Self> {
        let mut all = Self::all();
        let names = all.iter().map(|shape| shape.name).collect::<Vec<_>>().join(", ");
        let at = all.iter().position(|shape| shape.name == name);
        Ok(all.swap_remove(at.with_context(|| format!("no machine {name:?}: all, {names}"))?))
    }

    /// Whether there is such a machine with that kind of processor: tests run here already.
    pub(super) fn is_of(&self, arch: Arch) -> bool {
        self.does != Does::Tests || arch.is_arm()
    }

    /// The same with another kind of processor, which takes its time.
    pub(super) fn on(self, arch: Arch) -> Self {
        let (map_s, limit) = (self.map_s * arch.patience(), self.limit * arch.patience());
        Self { arch, map_s, limit, ..self }
    }

    /// Cores, switched off or not.
    pub(super) fn cores(&self) -> u16 {
        let last = self.nodes.iter().filter_map(|node| Some(node.cores?.1)).max();
        last.map_or(0, |last| last + 1)
    }

    /// Cores that the system uses.
    pub(super) fn online(&self) -> Vec<u16> {
        (0..self.cores()).filter(|core| !self.off.contains(core)).collect()
    }

    /// Cores that programs may run on.
    pub(super) fn allowed(&self) -> Vec<u16> {
        let within =
            |core: &u16| self.cpuset.is_none_or(|set| (set.cores.0..=set.cores.1).contains(core));
        self.online().into_iter().filter(within).collect()
    }

    /// Regions as the system counts them: all, or one where nothing describes them.
    pub(super) fn regions(&self) -> Vec<u16> {
        (0..).zip(&self.nodes).map(|(id, _)| id).filter(|id| self.sys || *id == 0).collect()
    }

    /// Regions whose memory programs may take.
    pub(super) fn measured(&self) -> Vec<u16> {
        if !self.sys {
            return vec![0];
        }
        let is_allowed =
            |id: &u16| self.cpuset.is_none_or(|set| (set.regions.0..=set.regions.1).contains(id));
        let with_memory = (0..).zip(&self.nodes).filter(|(_, node)| node.mib > 0);
        with_memory.map(|(id, _)| id).filter(is_allowed).collect()
    }

    /// The firmware's distance, as a bullion S has it: the region itself, the same module of two regions, another
    /// module (NumaAware paper, section 6).
    pub(super) fn distance(a: u16, b: u16) -> u32 {
        match (a == b, a / 2 == b / 2) {
            (true, _) => 10,
            (_, true) => 15,
            _ => 40,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_is_in_one_region_and_every_name_is_its_own() {
        let all = Shape::all();
        for shape in &all {
            let mut cores: Vec<u16> =
                shape.nodes.iter().filter_map(|node| node.cores).flat_map(|(a, b)| a..=b).collect();
            cores.sort_unstable();
            assert_eq!(cores, (0..shape.cores()).collect::<Vec<_>>(), "{}", shape.name);
            assert!(!shape.allowed().is_empty() && !shape.measured().is_empty(), "{}", shape.name);
            assert_eq!(all.iter().filter(|other| other.name == shape.name).count(), 1);
            assert!(shape.limit <= LIMIT || shape.does == Does::Tests);
        }
        let error = Shape::named("cores65").expect_err("there is none").to_string();
        assert!(error.contains("cores64") && error.contains("all"), "{error}");
    }

    #[test]
    fn what_programs_may_use_follows_from_the_shape() {
        let of = |name| Shape::named(name).expect("it is there");
        assert_eq!(
            (of("cpuset").allowed(), of("cpuset").measured()),
            (vec![2, 3, 4, 5], vec![1, 2])
        );
        assert_eq!((of("memoryless").cores(), of("memoryless").measured()), (6, vec![0, 2, 3]));
        assert_eq!((of("offline").online(), of("offline").measured()), (vec![0, 1, 3], vec![0, 1]));
        assert_eq!((of("nosys").regions(), of("nosys").allowed().len()), (vec![0], 4));
        assert_eq!((of("cores64").cores(), of("regions16").regions().len()), (64, 16));
        assert_eq!(of("checks16").cores(), 33);
    }
}
