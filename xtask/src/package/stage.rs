//! The tree from which every package of one run is made, and what packages say of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::built::Built;
use super::floor::Needs;
use super::symbols;
use super::tree::{BINARIES, fill};
use crate::ci::say;

/// A tree that was built, without what only debuggers read, and what packages say of it.
#[derive(Debug)]
pub(super) struct Stage {
    /// Where everything of one run lies.
    pub(super) folder: PathBuf,
    /// The tree, as `cargo xtask install` makes it.
    pub(super) tree: PathBuf,
    /// A file for a debugger for each program and library.
    pub(super) debug: PathBuf,
    /// Of everything.
    pub(super) version: String,
    /// Of the machine where it is installed.
    pub(super) needs: Needs,
}

impl Stage {
    /// What was built, laid out, held against the floor, and its symbols split off.
    pub(super) fn of(root: &Path, built: &Built) -> Result<Self> {
        let folder = root.join("target/package/stage");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let (tree, debug) = (folder.join("usr"), folder.join("debug"));
        fill(root, built, &tree)?;
        let needs = Needs::of(&tree, &BINARIES)?;
        needs.hold()?;
        say(&format!("needs glibc {} or newer{}", needs.glibc, needs.beside()));
        symbols::split(&tree, &debug)?;
        Ok(Self { folder, tree, debug, version: version(root)?, needs })
    }
}

/// The version of everything here.
pub(super) fn version(root: &Path) -> Result<String> {
    let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let version = &manifest["workspace"]["package"]["version"];
    Ok(version.as_str().context("Cargo.toml names no version")?.to_owned())
}
