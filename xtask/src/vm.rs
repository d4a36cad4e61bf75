//! `cargo xtask vm`: boots Debian's cloud kernel on an emulated machine with 33 cores, 16 memory
//! regions and the distances of a bullion S, and runs the checks of `tests/vm` as its first process.
//!
//! Places of pages and counts of interrupts are real there; times are not. The kernel and the
//! emulator are Debian's packages; the kernel is only unpacked, never installed.

mod archive;
mod kernel;
mod machine;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Builds the checks, boots with those whose names hold one of the words (all where there are none), and fails if
/// a check failed or the machine did not end by itself.
pub(crate) fn run(root: &Path, only: &[String]) -> Result<()> {
    let folder = root.join("target/vm");
    std::fs::create_dir_all(&folder)?;
    let kernel = kernel::find(&folder)?;
    let init = build(root, &folder)?;
    let archive = folder.join("checks.cpio");
    std::fs::write(&archive, archive::with_init(&std::fs::read(&init)?)?)?;
    machine::boot(&kernel, &archive, only)
}

/// The checks as one static program: the machine has no files but this.
fn build(root: &Path, folder: &Path) -> Result<PathBuf> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let arguments =
        ["build", "--release", "--locked", "--package", "isochrone-vm-tests", "--target", TARGET];
    let status = Command::new("cargo")
        .args(arguments)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_TARGET_DIR", folder)
        .current_dir(root)
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "the checks do not build");
    Ok(folder.join(TARGET).join("release/isochrone-vm-tests"))
}
