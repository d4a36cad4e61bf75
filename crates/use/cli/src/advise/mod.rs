//! `isochrone advise`: what this machine offers a program, by its atlas; and which lever makes a program faster, by
//! runs that take turns.

pub(crate) mod findings;
mod machine;
mod system;
pub(crate) mod trial;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::AdviseArgs;
use isochrone_console::output::{Terminal, WrongUsage};

/// What is said where a program is named and nothing is to be run.
const TRY: &str =
    "what a program gains is measured and not predicted: isochrone advise --try -- CMD";

/// Runs the command.
pub(crate) fn run(args: &AdviseArgs, terminal: &Terminal) -> Result<ExitCode> {
    match (args.is_tried, args.command.is_empty()) {
        (true, _) => trial::run(args, terminal),
        (false, true) => machine::run(args, terminal),
        (false, false) => Err(WrongUsage::error(TRY.to_owned())),
    }
}
