//! Builds what is shipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arm::PRELOAD;

/// The packages whose programs and libraries are shipped, but for what is preloaded, a workspace of its own.
const PACKAGES: [&str; 4] = ["isochrone", "isochrone-lab", "isochrone-capi", "isochrone-mpi"];
/// The packages of that workspace: each is built by itself, since they define the same symbols.
const PRELOADED: [&str; 2] = ["isochrone-preload", "isochrone-pager"];

/// Folders in which what was built lies.
#[derive(Debug)]
pub(crate) struct Built(Vec<PathBuf>);

impl Built {
    /// What cargo has left in the folder of a profile: of tests, libraries lie in `deps`. What is preloaded is always
    /// built as it is shipped.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(["", "deps", "../release"].map(|below| folder.join(below)).to_vec())
    }

    /// One of the files.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf> {
        let places = self.0.iter().map(|folder| folder.join(name));
        let found = places.into_iter().find(|place| place.is_file());
        found.with_context(|| format!("{name} was not built in {}", self.0[0].display()))
    }
}

/// Builds everything that is shipped.
pub(crate) fn build(root: &Path, profile: &str) -> Result<Built> {
    let mut words = vec!["build", "--locked", "--profile", profile];
    words.extend(PACKAGES.iter().flat_map(|package| ["-p", package]));
    cargo(root, &words)?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let place = target.display().to_string();
    let preload = ["--locked", "--manifest-path", PRELOAD, "--target-dir", &place];
    for package in PRELOADED {
        cargo(root, &[&["build", "--release", "--package", package], &preload[..]].concat())?;
    }
    Ok(Built::in_folder(&target.join(if profile == "dev" { "debug" } else { profile })))
}

fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(words).current_dir(root).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "`cargo {}` failed", words.join(" "));
    Ok(())
}
