//! What may change on a machine without its being another machine: clock, governor, huge pages,
//! limits of the control group.
//!
//! It is taken when an atlas is measured and printed beside every result. What could not be read
//! is `None`.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The pool of huge pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugePages {
    /// Size of one page.
    pub page_bytes: u64,
    /// Pages in the pool.
    pub total: u64,
    /// Pages of the pool that nobody uses.
    pub free: u64,
}

/// The state of a machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineState {
    /// The hypervisor's name; `"unnamed"` if the processor says that there is one and nothing
    /// names it; `None` on bare metal or where the system does not say.
    pub hypervisor: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
    /// The kernel's clock source: `"tsc"`.
    pub clocksource: Option<String>,
    /// The frequency governor of each online core, where there is one.
    pub governors: Vec<(u16, Option<String>)>,
    /// Whether the processor may run above its nominal frequency.
    pub turbo: Option<bool>,
    /// Transparent huge pages: `"always"`, `"madvise"` or `"never"`.
    pub thp: Option<String>,
    /// The pools of huge pages, by size.
    pub huge_pages: Vec<HugePages>,
    /// Whether the kernel moves pages between regions by itself.
    pub autonuma: Option<bool>,
    /// Cores that the scheduler leaves alone.
    pub isolated_cores: Vec<u16>,
    /// Cores that this process may run on (affinity and control group together).
    pub allowed_cores: Option<Vec<u16>>,
    /// Regions that this process may take memory from.
    pub allowed_regions: Option<Vec<u16>>,
    /// The control group's limit of memory.
    pub memory_max_bytes: Option<u64>,
    /// The control group's limit of processor time, in cores: 1.5 is 150 ms in every 100 ms.
    pub cpu_quota_cores: Option<f64>,
    /// Load averages over 1, 5 and 15 minutes.
    pub loadavg: Option<[f64; 3]>,
}
