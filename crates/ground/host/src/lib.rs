//! Machines as values: the one that runs this program, and the ones that text files describe.
//!
//! [`this_machine`] and [`machine_state`] read what Linux says under `/proc` and `/sys`; the root
//! of both is a parameter, so a captured tree stands in for a machine that is not here.
//! [`machine_from_toml`] reads a description with a source for every number and refuses a bad one
//! with file, line and column; [`machine_from_hwloc`] reads a topology that hwloc wrote. This crate
//! never measures, never changes a setting and never prints.

mod bundled;
mod file;
mod fingerprint;
mod hwloc;
mod system;

pub use bundled::{bundled_machines, bundled_names, find_machine, read_hwloc};
pub use file::{MachineFileError, machine_from_toml};
pub use fingerprint::{counted_hash, fingerprint, first_difference, text_hash};
pub use hwloc::machine_from_hwloc;
pub use system::{
    Disturbance, HostError, Meter, NodeIdentity, Reach, SysRoot, Turn, ignored_signals, is_root,
    lateness, machine_state, node_identity, page_bytes, parse_list, reach, region_free_bytes,
    this_machine, tlb_shootdowns, total_memory_bytes,
};
