//! What only debuggers read is split off: a file beside each program and library, found by its name (gdb, "Debugging
//! Information in Separate Files").

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tool;
use super::tree::{BINARIES, STATIC};

/// The debugger's file of a program or library, below a folder of such files.
pub(super) fn place(binary: &str) -> PathBuf {
    PathBuf::from(format!("{binary}.debug"))
}

/// Splits all of a tree; the files for debuggers come below `debug`, at the same places.
pub(super) fn split(tree: &Path, debug: &Path) -> Result<()> {
    BINARIES.iter().try_for_each(|binary| split_one(tree, debug, binary))?;
    let mut archive = Command::new("strip");
    archive.args(["--strip-debug", "--enable-deterministic-archives"]).arg(tree.join(STATIC));
    tool::run(&mut archive, "binutils")?;
    set_mode(&tree.join(STATIC), 0o644)
}

/// Splits one program or library of a tree.
pub(super) fn split_one(tree: &Path, debug: &Path, binary: &str) -> Result<()> {
    let (file, beside) = (tree.join(binary), debug.join(place(binary)));
    fs::create_dir_all(beside.parent().context("a path without a folder")?)?;
    let mut keep = objcopy();
    keep.args(["--only-keep-debug", "--compress-debug-sections"]).arg(&file).arg(&beside);
    tool::run(&mut keep, "binutils")?;
    let mut strip = Command::new("strip");
    strip.args(["--strip-unneeded", "--remove-section=.comment"]).arg(&file);
    tool::run(&mut strip, "binutils")?;
    let mut link = objcopy();
    link.arg(format!("--add-gnu-debuglink={}", beside.display())).arg(&file);
    tool::run(&mut link, "binutils")?;
    // A library is loaded and never run.
    set_mode(&file, if binary.starts_with("lib/") { 0o644 } else { 0o755 })?;
    set_mode(&beside, 0o644)
}

fn objcopy() -> Command {
    Command::new("objcopy")
}

fn set_mode(file: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(mode))
        .with_context(|| file.display().to_string())
}
