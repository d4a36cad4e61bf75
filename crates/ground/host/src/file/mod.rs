//! A machine description from TOML text: parse, then check, then the value.
//!
//! `raw` mirrors the text and keeps the position of everything that can be wrong; the other
//! modules turn it into a [`Machine`] and refuse what cannot be. A number is never repaired and
//! never filled in: what a file leaves out stays unknown.

mod cells;
mod checker;
mod costs;
mod error;
mod grids;
mod parts;
mod raw;

use isochrone_machine::{Machine, Source};

use self::checker::Checker;
pub use self::error::MachineFileError;
use self::raw::RawMachine;

/// Largest description that is read; the largest in `machines/` is a hundredth of it.
pub(crate) const MAX_FILE_BYTES: usize = 1 << 20;

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
