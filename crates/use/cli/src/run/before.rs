//! What is preloaded without us.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Result, anyhow};
use isochrone_console::output;
use isochrone_console::run::library;

use crate::args::RunArgs;

/// The allocator that was asked for, before what was there already.
pub(super) fn before(args: &RunArgs, scratch: &Path) -> Result<Option<OsString>> {
    let before = output::preloaded();
    let Some(named) = &args.malloc else { return Ok(before) };
    let allocator = library::allocator(named).map_err(|error| anyhow!("--malloc {error:#}"))?;
    library::first(&allocator, before.as_deref(), scratch).map(Some)
}
