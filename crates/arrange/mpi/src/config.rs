//! What a process is told, and what it leaves: the record that `isochrone run --mpi` writes and the
//! reports that it reads.
//!
//! The library reads one environment variable of its own, the path of the record. Without it everything has its
//! default and nothing is reported, so that preloading the library alone is enough. Where atlases lie is said by
//! the variables that say so to every part of Isochrone.

use isochrone_cla::live::{Chosen, Team};
use isochrone_places::Places;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The environment variable that holds the record's path.
pub const CONFIG_VARIABLE: &str = "ISOCHRONE_MPI";

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether collectives are done in lines at all.
    pub enabled: bool,
    /// Calls on a communicator that its MPI still does. Then, and each time that there were as many again, its
    /// ranks agree on whether it is done in lines from now on.
    pub calls_before: u32,
    /// How many times what a take-over costs a communicator must have lived before: it then costs its program
    /// no more than such a part, however many communicators come and go. 0: none.
    pub costs_before: u32,
    /// Bytes from or to each rank up to which a call is done in lines.
    pub bytes_max: usize,
    /// Whether ranks measure which lines they hand over fastest, for two milliseconds at most.
    pub choose_lines: bool,
    /// Communicators that are done in lines at most, at a time.
    pub communicators_max: usize,
    /// Whether communicators of one rank are done in lines as well: what a call then takes is what the way
    /// through this library takes beside what ranks tell one another.
    pub alone: bool,
    /// The atlas by which shapes are chosen; none: the one that every part of Isochrone goes by.
    pub atlas: Option<PathBuf>,
    /// Pretends that a node ends after so many ranks: for trying what is done across nodes.
    pub ranks_per_node: Option<u32>,
    /// Pretends that the ranks of a node run on these cores, in their order: for trying what distances choose.
    pub cores: Option<Vec<u16>>,
    /// The folder for reports.
    pub reports: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            calls_before: 1023,
            costs_before: 20,
            bytes_max: 64 << 10,
            choose_lines: true,
            communicators_max: 64,
            alone: false,
            atlas: None,
            ranks_per_node: None,
            cores: None,
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

    /// Where an atlas may lie.
    pub(crate) fn places(&self) -> Places {
        Places::of(self.atlas.as_deref(), |name| std::env::var_os(name))
    }
}

/// How often something was done in lines and by the MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// In lines.
    pub lines: u64,
    /// In lines within each node, by the MPI between the leaders of nodes.
    pub across: u64,
    /// By the MPI.
    pub mpi: u64,
}

/// A shape that was chosen by distances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenShape {
    /// Ranks of the communicator that share a node.
    pub ranks: u32,
    /// Of which calls: `bcast`, `barrier`, ...
    pub call: String,
    /// Up to how many bytes.
    pub bytes: u32,
    /// From or to which rank of the node.
    pub root: u32,
    /// How they are done, in words.
    pub way: String,
}

/// Communicators that were left to the MPI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// Ranks of each; 0: all communicators, whatever ranks they have.
    pub ranks: u32,
    /// How many communicators.
    pub communicators: u32,
    /// Why they were left, in words.
    pub why: String,
}

/// What a process leaves at `MPI_Finalize`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Its rank in `MPI_COMM_WORLD`; of an MPI that is not known, what its launcher says.
    pub rank: u32,
    /// What the MPI says of itself.
    pub mpi: String,
    /// Communicators whose collectives were done in lines.
    pub communicators: u32,
    /// Of them, those whose lines were chosen by measurement; counted at their first ranks alone.
    pub chosen: u32,
    /// The atlas by which shapes were chosen; said by the ranks that chose.
    #[serde(default)]
    pub atlas: Option<String>,
    /// Why an atlas that is there was not used; said by the same.
    #[serde(default)]
    pub atlas_refused: Option<String>,
    /// Shapes that were chosen by distances and are not those of the rule without, a few at most.
    #[serde(default)]
    pub shapes: Vec<ChosenShape>,
    /// Communicators that were left to the MPI, by ranks and reason, a few at most.
    pub refusals: Vec<Refusal>,
    /// Calls by name: `bcast`, `barrier`, ...
    pub calls: std::collections::BTreeMap<String, Counts>,
}

impl Report {
    /// Refusals that are reported at most.
    const REFUSALS_MAX: usize = 16;
    /// The same of shapes.
    const SHAPES_MAX: usize = 64;

    /// Notes what was chosen for a team.
    pub(crate) fn note_shapes(&mut self, team: &mut Team) {
        let ranks = team.ranks().into();
        let shape = |chosen: Chosen| ChosenShape {
            ranks,
            call: chosen.kind.name().to_owned(),
            bytes: chosen.bytes,
            root: chosen.root.0.into(),
            way: chosen.options.to_string(),
        };
        for shape in team.chosen().into_iter().map(shape) {
            if self.shapes.len() < Self::SHAPES_MAX && !self.shapes.contains(&shape) {
                self.shapes.push(shape);
            }
        }
    }

    /// Notes a communicator of `ranks` ranks that is left to the MPI.
    pub(crate) fn refuse(&mut self, ranks: u32, why: &str) {
        let same = |refusal: &&mut Refusal| refusal.ranks == ranks && refusal.why == why;
        if let Some(known) = self.refusals.iter_mut().find(same) {
            known.communicators = known.communicators.saturating_add(1);
        } else if self.refusals.len() < Self::REFUSALS_MAX {
            self.refusals.push(Refusal { ranks, communicators: 1, why: why.to_owned() });
        }
    }

    /// Leaves it in `folder`.
    pub(crate) fn leave(&self, folder: &Path) {
        let path = folder.join(format!("{}.json", std::process::id()));
        if let Ok(text) = serde_json::to_string_pretty(self) {
            // Never into what is there: the name can be guessed. A report that cannot be written is missed by
            // whoever asked for it.
            let mut new = OpenOptions::new();
            let file = new.write(true).create_new(true).mode(0o600).open(path);
            let _written = file.and_then(|mut file| file.write_all((text + "\n").as_bytes()));
        }
    }
}

/// A number that the launcher of this job tells its processes by one of these names.
pub(crate) fn launched(names: &[&str]) -> Option<u32> {
    let told = |name: &&str| std::env::var(name).ok()?.parse().ok();
    names.iter().find_map(told)
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
