//! A machine description from TOML text: parse, then check, then the value.
//!
//! `raw` mirrors the text and keeps the position of everything that can be wrong; the other
//! modules turn it into a [`Machine`] and refuse what cannot be. A number is never repaired and
//! never filled in: what a file leaves out stays unknown.

mod cells;
mod checker;
mod costs;
mod grids;
mod parts;
mod raw;

use isochrone_machine::{Machine, Source};

use self::checker::Checker;
use self::raw::RawMachine;

/// Largest description that is read; the largest in `machines/` is a hundredth of it.
pub(crate) const MAX_FILE_BYTES: usize = 1 << 20;

/// Why a machine description was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineFileError {
    /// The text is wrong at one place
    #[error("{file}:{line}:{column}: {problem}")]
    At {
        /// Name of the file, as the caller gave it.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// What is there and what was expected.
        problem: String,
    },
    /// The text is larger than a description can be
    #[error("{file} has {bytes} bytes; a machine description has at most {limit}")]
    TooLarge {
        /// Name of the file.
        file: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The file could not be read
    #[error("cannot read {file}: {why}; give the path of a machine description or one of: {known}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// The system's word.
        why: String,
        /// Names of the bundled descriptions.
        known: String,
    },
    /// The file that was named as one of hwloc's could not be read
    #[error("cannot read {file}: {why}; `lstopo --of xml {file}` writes one")]
    NoTopology {
        /// Name of the file.
        file: String,
        /// The system's word.
        why: String,
    },
    /// The file is an atlas
    #[error(
        "{file} is an atlas, not the description of a machine; `isochrone show {file}` reads it, and commands \
         that take --atlas go by it"
    )]
    Atlas {
        /// Name of the file.
        file: String,
    },
    /// The bytes are no text
    #[error(
        "{file} is no text; a machine is described in a .toml file, or in an .xml file of hwloc's"
    )]
    NoText {
        /// Name of the file.
        file: String,
    },
    /// There is no such machine
    #[error("no machine is called {name:?}; known are: {known}; or give the path of a .toml file")]
    NoSuchMachine {
        /// The name asked for.
        name: String,
        /// Names of the bundled descriptions.
        known: String,
    },
}

/// Reads a machine description; `file_name` only appears in errors.
///
/// # Errors
/// The first thing that is wrong, with its line and column and what was expected there.
pub fn machine_from_toml(text: &str, file_name: &str) -> Result<Machine, MachineFileError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(MachineFileError::TooLarge {
            file: file_name.to_owned(),
            bytes: text.len(),
            limit: MAX_FILE_BYTES,
        });
    }
    let raw: RawMachine = toml::from_str(text).map_err(|error| {
        let problem = error.message().trim().replace('\n', "; ");
        Checker::new(text, file_name, &[]).at(error.span().unwrap_or(0..0), problem)
    })?;
    let ids: Vec<&str> = raw.sources.iter().map(|source| source.id.get_ref().as_str()).collect();
    build(&raw, &Checker::new(text, file_name, &ids))
}

fn build(raw: &RawMachine, check: &Checker<'_>) -> Result<Machine, MachineFileError> {
    check.unique("source", raw.sources.iter().map(|source| &source.id))?;
    check.named(&raw.name)?;
    let mut machine = Machine {
        name: raw.name.get_ref().clone(),
        title: raw.title.clone(),
        sources: raw
            .sources
            .iter()
            .map(|source| Source { id: source.id.get_ref().clone(), text: source.text.clone() })
            .collect(),
        notes: raw.notes.clone(),
        assumed: raw.assumed.clone(),
        unknown: raw.unknown.clone(),
        ..Machine::default()
    };
    parts::regions(raw, check, &mut machine)?;
    parts::cores(raw, check, &mut machine)?;
    parts::caches(raw, check, &mut machine)?;
    parts::distances(raw, check, &mut machine)?;
    parts::controllers(raw, check, &mut machine)?;
    parts::interconnect(raw, check, &mut machine)?;
    costs::costs(raw, check, &mut machine)?;
    grids::floor_plan(raw, check, &mut machine)?;
    grids::grids(raw, check, &mut machine)?;
    Ok(machine)
}
