//! Papers whose figures stand beside ours, a folder for each: `latency_checker` is the poster, `hidden_numa` the
//! Euro-Par paper, `pspt` the CCGrid paper, `numa_aware` the TPDS paper, `cla` the paper on cache-line-aware programs.
//!
//! Nothing in the folders opens a file, prints or reads a clock; `command` does what the shell sees.

pub(crate) mod cla;
pub(crate) mod command;
pub(crate) mod hidden_numa;
pub(crate) mod latency_checker;
pub(crate) mod numa_aware;
pub(crate) mod pspt;

/// Seed of every simulated measurement unless told otherwise: grids are the same every time.
pub(crate) const SEED: u64 = 2020;
