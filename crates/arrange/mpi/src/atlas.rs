//! By what shapes are chosen: the atlas of this machine, where there is one.
//!
//! The library is a guest in its program. It looks for an atlas once in a process, and only where a shape is to be
//! chosen and something lies where atlases do; it parses no description. One that cannot be used is a line of
//! the report, and shapes are those of the rule without distances.

use crate::config::Config;
use isochrone_distance::Distances;
use isochrone_places::{Check, Found};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What a look takes at most that finds an atlas, for the machine to be described and all bytes to be checked; after
/// the first one it takes nothing.
const LOOK: Duration = Duration::from_millis(20);

/// What was found. It stays: teams refer to it until the process ends.
static OURS: OnceLock<Result<Option<Found>, String>> = OnceLock::new();

/// What shapes are chosen by, at the first rank of a node; `None` where nothing is known.
pub(crate) fn distances(config: &Config) -> Option<Arc<dyn Distances + Send + Sync>> {
    let find = || config.places().of_this_machine(Check::Hash);
    let found = OURS.get_or_init(find).as_ref().ok()?.as_ref()?;
    Some(Arc::new(found.atlas.atlas().ok()?))
}

/// What [`distances`] may take now.
pub(crate) fn look_cost(config: &Config) -> Duration {
    let known = OURS.get().is_some() || !config.places().may_have_one();
    if known { Duration::ZERO } else { LOOK }
}

/// Which atlas was used, or why one was not; for the report.
pub(crate) fn outcome() -> (Option<String>, Option<String>) {
    match OURS.get() {
        Some(Ok(Some(found))) => (Some(found.path.display().to_string()), None),
        Some(Err(why)) => (None, Some(why.clone())),
        _ => (None, None),
    }
}
