//! What a process is told, and what it leaves: the record that `isochrone run --mpi` writes and the
//! reports that it reads.
//!
//! The library reads one environment variable, the path of the record. Without it everything has its
//! default and nothing is reported, so that preloading the library alone is enough.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The environment variable that holds the record's path.
pub const CONFIG_VARIABLE: &str = "ISOCHRONE_MPI";

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether collectives are done in lines at all.
    pub enabled: bool,
    /// Calls on a communicator that its MPI still does: short-lived communicators pay for nothing.
    pub calls_before: u32,
    /// Bytes from or to each rank up to which a call is done in lines.
    pub bytes_max: usize,
    /// Whether ranks measure which lines they hand over fastest, some milliseconds for each communicator.
    pub choose_lines: bool,
    /// Communicators that are done in lines at most, at a time.
    pub communicators_max: usize,
    /// Whether communicators of one rank are done in lines as well: what a call then takes is what the way
    /// through this library takes beside what ranks tell one another.
    pub alone: bool,
    /// Pretends that a node ends after so many ranks: for trying what is done across nodes.
    pub ranks_per_node: Option<u32>,
    /// The folder for reports.
    pub reports: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            calls_before: 4,
            bytes_max: 64 << 10,
            choose_lines: true,
            communicators_max: 64,
            alone: false,
            ranks_per_node: None,
            reports: None,
        }
    }
}

impl Config {
    /// What this process is told. What cannot be read counts for nothing: a program runs the same.
    #[must_use]
    pub fn here() -> Self {
        let path = std::env::var_os(CONFIG_VARIABLE);
        let text = path.and_then(|path| std::fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

/// How often something was done in lines and by the MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// In lines.
    pub lines: u64,
    /// In lines within each node, by the MPI between the leaders of nodes.
    pub across: u64,
    /// By the MPI.
    pub mpi: u64,
}

/// A communicator that was left to the MPI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Its ranks.
    pub ranks: u32,
    /// Why.
    pub why: String,
}

/// What a process leaves at `MPI_Finalize`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// What the MPI says of itself.
    pub mpi: String,
    /// Communicators whose collectives were done in lines.
    pub communicators: u32,
    /// Communicators of several ranks that were left to the MPI, at most a few of them.
    pub refusals: Vec<Refusal>,
    /// Calls by name: `bcast`, `barrier`, ...
    pub calls: std::collections::BTreeMap<String, Counts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_has_its_default() {
        let config: Config = serde_json::from_str(r#"{"calls_before": 1}"#).expect("valid");
        assert_eq!(config, Config { calls_before: 1, ..Config::default() });
        assert!(serde_json::from_str::<Config>(r#"{"calls": 1}"#).is_err(), "no such field");
    }
}
