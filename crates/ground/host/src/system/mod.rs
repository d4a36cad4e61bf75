//! The machine that runs this program, as Linux describes it under `/proc` and `/sys`.
//!
//! Everything is read below a [`SysRoot`], so that a captured tree stands in for another machine.
//! What is missing is `None`; only a tree without any core is an error. Nothing is written.

mod caches;
mod cgroup;
mod clocks;
mod cpuinfo;
mod hypervisor;
mod interrupts;
mod lateness;
mod list;
mod meter;
mod midr;
mod node;
mod reach;
mod regions;
mod root;
mod state;
mod topology;
mod turn;

pub use interrupts::tlb_shootdowns;
pub use lateness::lateness;
pub use list::parse_list;
pub use meter::{Disturbance, Meter};
pub use node::{NodeIdentity, node_identity};
pub use reach::{Reach, reach};
pub use regions::region_free_bytes;
pub use root::SysRoot;
pub use state::machine_state;
pub use topology::this_machine;
pub use turn::Turn;

/// Why this machine could not be described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// No core is listed
    #[error("neither {online} nor {cpuinfo} lists a core; mount /proc and /sys and run again")]
    NoCores {
        /// The first file that was looked at.
        online: String,
        /// The second.
        cpuinfo: String,
    },
    /// A list of cores cannot be understood
    #[error("{path} holds {text:?}; expected a list of core numbers below 65536, such as 0-3,8")]
    BadList {
        /// The file.
        path: String,
        /// What it holds.
        text: String,
    },
}

/// Bytes in a base page, from the auxiliary vector that the kernel gave this process.
#[must_use]
pub fn page_bytes(root: &SysRoot) -> Option<u64> {
    /// `AT_PAGESZ` of `linux/auxvec.h`.
    const AT_PAGESZ: u64 = 6;
    let vector = root.bytes("proc/self/auxv")?;
    let mut pairs = vector.chunks_exact(16).filter_map(|pair| {
        let (key, value) = pair.split_at(8);
        Some((u64::from_ne_bytes(key.try_into().ok()?), u64::from_ne_bytes(value.try_into().ok()?)))
    });
    pairs.find(|&(key, _)| key == AT_PAGESZ).map(|(_, value)| value)
}

/// Memory of the machine that the kernel manages.
#[must_use]
pub fn total_memory_bytes(root: &SysRoot) -> Option<u64> {
    let kibibytes = list::field(&root.text("proc/meminfo")?, "MemTotal")?;
    list::kibibytes(&kibibytes)
}

/// Whether this process runs with the effective user id 0.
#[must_use]
pub fn is_root(root: &SysRoot) -> Option<bool> {
    let ids = list::field(&root.text("proc/self/status")?, "Uid")?;
    Some(ids.split_whitespace().nth(1)? == "0")
}

/// The signals that this process ignores, from what started it: signal `n` is bit `n - 1` (proc_pid_status(5)).
#[must_use]
pub fn ignored_signals(root: &SysRoot) -> Option<u64> {
    let mask = list::field(&root.text("proc/self/status")?, "SigIgn")?;
    u64::from_str_radix(mask.trim(), 16).ok()
}
