//! `isochrone map`: measure, save the atlas, write the report, say what was found; alone, or as one of a fleet.

mod fleet;
mod job;
mod measure;
mod neighbours;
mod one;
mod plan;
mod replace;
mod so_far;
mod targets;
mod timed;
mod turn;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::MapArgs;
use isochrone_console::output::Terminal;

/// Runs the command.
pub(crate) fn run(args: &MapArgs, terminal: &Terminal) -> Result<ExitCode> {
    match &args.fleet {
        Some(folder) => fleet::run(args, folder, terminal),
        None => one::one(args, None, terminal),
    }
}
