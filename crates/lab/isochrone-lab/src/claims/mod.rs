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

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::ClaimsArgs;
use isochrone_console::codes;
use isochrone_console::output::{Terminal, read_text};
use list::List;

/// The page with the figures, below the sources' folder.
const README: &str = "README.md";
/// Where recorded files lie.
const RESULTS: &str = "docs/results";
/// The list of claims, beside them.
const LIST: &str = "claims.toml";
/// The longest page or list that is read.
const TEXT_MAX: u64 = 1 << 20;

/// The sources: README, and what was recorded.
struct Tree {
    root: PathBuf,
}

impl Tree {
    fn results(&self) -> PathBuf {
        self.root.join(RESULTS)
    }

    fn readme(&self) -> Result<String> {
        read(&self.root.join(README))
    }

    fn list(&self) -> Result<List> {
        let path = self.results().join(LIST);
        List::read(&read(&path)?).with_context(|| path.display().to_string())
    }
}

fn read(path: &Path) -> Result<String> {
    read_text(path, TEXT_MAX)
        .context("--tree names the folder of the sources, with README.md in it")
}

/// Runs the command.
pub(crate) fn run(args: &ClaimsArgs, terminal: &Terminal) -> Result<ExitCode> {
    let tree = Tree { root: args.tree.clone() };
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
