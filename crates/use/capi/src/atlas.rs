//! The atlas that this library goes by, in a program that may not know of it.

use isochrone_distance::Distances;
use isochrone_places::{Check, Found, Places};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The atlas that was named, or the one that the environment, the current folder or the user's cache folder has.
/// `None` where there is none.
///
/// # Errors
/// In words, why one that was named by the caller or the environment, or the last of those that were there, cannot be
/// used.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<Found>, String> {
    places(named).of_this_machine(Check::Hash)
}

/// Where these atlases lie.
pub(crate) fn places(named: Option<&Path>) -> Places {
    Places::of(named, |name| std::env::var_os(name))
}

/// What all teams of this process go by, with the words of [`find`]; looked for once.
pub(crate) fn distances() -> Result<Option<Arc<dyn Distances + Send + Sync>>, String> {
    /// It stays: a team may be there until the process ends.
    static OURS: OnceLock<Result<Option<Found>, String>> = OnceLock::new();
    let Some(found) = OURS.get_or_init(|| find(None)).as_ref().map_err(Clone::clone)? else {
        return Ok(None);
    };
    let atlas = found.atlas.atlas().map_err(|error| error.to_string())?;
    Ok(Some(Arc::new(atlas)))
}
