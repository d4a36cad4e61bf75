//! What the system says of the cores' own clocks: how often they were slowed down because they were hot, and whether
//! they run below the rate that they are sold for.
//!
//! Both are there on bare metal only, and not on all of it. A clock that is low where neither is told cannot be told
//! from a slower machine.

use super::SysRoot;

const CPUS: &str = "sys/devices/system/cpu";

/// The clocks of some cores at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Clocks {
    /// How often they were slowed down since the system started.
    pub(super) throttles: Option<u64>,
    /// The fastest of them now, over its base clock. A core that idles may say less than it can: one that has just
    /// been busy does not.
    pub(super) over_base: Option<f64>,
}

impl Clocks {
    pub(super) fn read(root: &SysRoot, cores: &[u16]) -> Self {
        let file = |core: u16, name: &str| format!("{CPUS}/cpu{core}/{name}");
        let throttles = |core: &u16| -> Option<u64> {
            let count = |of: &str| {
                root.number::<u64>(file(*core, &format!("thermal_throttle/{of}_throttle_count")))
            };
            let (core, package) = (count("core"), count("package"));
            core.or(package).map(|_| core.unwrap_or(0) + package.unwrap_or(0))
        };
        let over_base = |core: &u16| -> Option<f64> {
            let now: f64 = root.number(file(*core, "cpufreq/scaling_cur_freq"))?;
            // Intel's driver tells kHz, ACPI's tables MHz.
            let base = root.number::<f64>(file(*core, "cpufreq/base_frequency"));
            let base = base
                .or_else(|| Some(root.number::<f64>(file(*core, "acpi_cppc/nominal_freq"))? * 1e3));
            base.filter(|base| *base > 0.0).map(|base| now / base)
        };
        Self {
            throttles: cores.iter().filter_map(throttles).reduce(|a, b| a + b),
            over_base: cores.iter().filter_map(over_base).reduce(f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_and_clocks_below_the_base_are_read_where_the_system_tells_them() {
        let scratch = tempfile::tempdir().unwrap();
        let root = SysRoot(scratch.path().to_path_buf());
        let write = |name: &str, text: &str| {
            let path = scratch.path().join(CPUS).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(Clocks::read(&root, &[0, 1]), Clocks::default());
        write("cpu0/thermal_throttle/core_throttle_count", "3\n");
        write("cpu0/thermal_throttle/package_throttle_count", "4\n");
        write("cpu0/cpufreq/scaling_cur_freq", "800000\n");
        write("cpu0/cpufreq/base_frequency", "2000000\n");
        write("cpu1/cpufreq/scaling_cur_freq", "1500000\n");
        let found = Clocks::read(&root, &[0, 1]);
        assert_eq!(found, Clocks { throttles: Some(7), over_base: Some(0.4) });
        write("cpu1/acpi_cppc/nominal_freq", "3000\n");
        assert_eq!(Clocks::read(&root, &[0, 1]).over_base, Some(0.5));
        assert_eq!(Clocks::read(&root, &[]), Clocks::default());
    }
}
