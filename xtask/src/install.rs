//! Builds what people use and puts it below a folder: programs, libraries, header, package file, manual pages,
//! completions. Packages hold the same tree.

use std::path::Path;

use anyhow::{Context, Result};

use super::package::{build, fill};

/// Builds and installs below the folder that is named.
pub(crate) fn run(root: &Path, mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let prefix = arguments.next().context("name a folder: cargo xtask install /usr/local")?;
    let built = build(root, "dist")?;
    fill(root, &built, Path::new(&prefix))?;
    super::ci::say(&format!("installed below {prefix}; a loader may need `ldconfig`"));
    Ok(())
}
