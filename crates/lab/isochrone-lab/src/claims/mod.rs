//! `isochrone-lab claims`: every figure of README stands in a file that was recorded, and the figures of this machine
//! can be taken again.
//!
//! What is claimed is a list, `docs/results/claims.toml`. It compares and prints, and never changes README.

mod check;
mod list;
mod measure;
mod numbers;
mod source;
#[cfg(test)]
mod tests;
mod tree;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::ClaimsArgs;
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use tree::Tree;

/// Runs the command.
pub(crate) fn run(args: &ClaimsArgs, terminal: &Terminal) -> Result<ExitCode> {
    let tree = Tree::of(&args.tree);
    if args.measure {
        return measure::run(args, &tree, terminal);
    }
    let list = tree.list()?;
    let wrong = check::check(&tree.readme()?, &list, &tree.results());
    let mut lines = wrong.clone();
    lines.push(format!(
        "{} figures of README are claimed, of {} files; {} of them differ or are missing",
        list.claims.len(),
        list.files().len(),
        wrong.len()
    ));
    terminal.say(&lines.join("\n"))?;
    Ok(codes::checked(!wrong.is_empty()))
}
