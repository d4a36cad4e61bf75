//! `isochrone advise`: what this machine offers a program, by its atlas; what each lever can take off a run of one at
//! most; and which lever makes it faster, by runs that take turns.

pub(crate) mod findings;
mod kept;
mod machine;
mod system;
#[cfg(test)]
mod tests;
pub(crate) mod trial;
pub(crate) mod watched;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::AdviseArgs;
use isochrone_console::output::Terminal;

/// Runs the command.
pub(crate) fn run(args: &AdviseArgs, terminal: &Terminal) -> Result<ExitCode> {
    match (args.is_tried, args.command.is_empty()) {
        (true, _) => trial::run(args, terminal),
        (false, true) => machine::run(args, terminal),
        (false, false) => watched::run(args, terminal),
    }
}
