//! The tree from which every package of one run is made, and what packages say of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::built::{Built, PACKAGES};
use super::floor::{FLOOR, Needs, Version};
use super::symbols;
use super::tree::{BINARIES, LICENCES, fill};
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
    /// Who is asked about packages.
    pub(super) maintainer: String,
    /// Of the machine where it is installed.
    pub(super) needs: Needs,
}

impl Stage {
    /// What was built, laid out, held against the floor, and its symbols split off.
    pub(super) fn of(root: &Path, built: &Built) -> Result<Self> {
        let folder = folder(root);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let (tree, debug) = (packed(root), folder.join("debug"));
        fill(root, built, &tree)?;
        let needs = Needs::of(&tree, &BINARIES)?;
        if let Some(promised) = built.promised {
            needs.hold(promised)?;
        }
        for (file, newest) in &needs.files {
            say(&format!("{file}: glibc {newest}"));
        }
        say(&format!("needs glibc {} or newer{}", needs.glibc, needs.beside()));
        symbols::split(&tree, &debug)?;
        licences(root, &tree)?;
        let maintainer = said(root, &["metadata", "package", "maintainer"])?;
        Ok(Self { folder, tree, debug, version: version(root)?, maintainer, needs })
    }

    /// The C library that packages name: the oldest that is supported, or a newer one that this build needs.
    pub(super) fn glibc(&self) -> Version {
        self.needs.glibc.max(FLOOR)
    }
}

/// Our licences, and those of what is linked in.
fn licences(root: &Path, tree: &Path) -> Result<()> {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        super::tree::put(&root.join(name), &tree.join(LICENCES).join(name))?;
    }
    let notices = tree.join(LICENCES).join("THIRD-PARTY");
    std::fs::write(&notices, super::notices::of(root, &PACKAGES)?)?;
    Ok(())
}

/// Where everything of a run lies.
fn folder(root: &Path) -> PathBuf {
    root.join("target/package/stage")
}

/// The tree that was packed last.
pub(crate) fn packed(root: &Path) -> PathBuf {
    folder(root).join("usr")
}

/// The version of everything here.
pub(super) fn version(root: &Path) -> Result<String> {
    said(root, &["package", "version"])
}

/// What the workspace's manifest says of all packages.
fn said(root: &Path, keys: &[&str]) -> Result<String> {
    let manifest: toml::Value = toml::from_str(&std::fs::read_to_string(root.join("Cargo.toml"))?)?;
    let value = keys.iter().try_fold(&manifest["workspace"], |table, key| table.get(key));
    let text = value.and_then(toml::Value::as_str);
    Ok(text
        .with_context(|| format!("Cargo.toml names no workspace.{}", keys.join(".")))?
        .to_owned())
}
