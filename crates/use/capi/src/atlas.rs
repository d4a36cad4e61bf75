//! The atlas that this library goes by, in a program that may not know of it.

use isochrone_places::{Check, Found, HERE, Identity, Places, VARIABLE, cache_folder};
use std::path::{Path, PathBuf};

/// The atlas that was named, or the one that the environment, the current folder or the user's cache folder has.
/// `None` where there is none.
///
/// # Errors
/// In words, why one that was named by the caller or the environment, or the last of those that were there, cannot be
/// used.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<Found>, String> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let places = Places {
        named: named.map(Path::to_owned),
        variable: variable(VARIABLE).map(PathBuf::from),
        here: Some(PathBuf::from(HERE)),
        cache: cache_folder(variable("XDG_CACHE_HOME"), variable("HOME")),
    };
    let us = Identity::of_this_machine().map_err(|error| error.to_string())?;
    let mut answer = places.find(&us, Check::Hash).map_err(|refusal| refusal.to_string())?;
    match (answer.found, answer.passed_over.pop()) {
        (None, Some(refusal)) => Err(refusal.to_string()),
        (found, _) => Ok(found),
    }
}
