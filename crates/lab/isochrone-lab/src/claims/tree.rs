//! The sources, as claims look at them: README, and the folder of what was recorded.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_console::output::read_text;

use super::list::List;

/// The page with the figures, below the sources' folder.
const README: &str = "README.md";
/// Where recorded files lie.
const RESULTS: &str = "docs/results";
/// The list of claims, beside them.
pub(super) const LIST: &str = "claims.toml";
/// The longest page or list that is read.
const TEXT_MAX: u64 = 1 << 20;

/// The sources: README, and what was recorded.
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The folder of the sources.
    pub(super) fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(super) fn results(&self) -> PathBuf {
        self.root.join(RESULTS)
    }

    pub(super) fn readme(&self) -> Result<String> {
        read(&self.root.join(README))
    }

    pub(super) fn list(&self) -> Result<List> {
        let path = self.results().join(LIST);
        List::read(&read(&path)?).with_context(|| path.display().to_string())
    }
}

pub(super) fn read(path: &Path) -> Result<String> {
    read_text(path, TEXT_MAX)
        .context("--tree names the folder of the sources, with README.md in it")
}
