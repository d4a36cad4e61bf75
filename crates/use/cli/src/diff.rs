//! `isochrone diff`: what moved between two atlases.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_atlas_store::{diff, load};

use crate::args::DiffArgs;
use crate::output::Terminal;

/// Runs the command.
pub(crate) fn run(args: &DiffArgs, terminal: &Terminal) -> Result<ExitCode> {
    let found = diff(&load(&args.a)?, &load(&args.b)?);
    if args.json {
        terminal.print(&serde_json::to_string_pretty(&found)?)?;
    } else {
        if found.is_empty() {
            terminal.print("nothing differs beyond what measuring again would show")?;
        }
        for line in found.lines() {
            terminal.print(&line)?;
        }
    }
    let differs = args.check && !found.is_empty();
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
