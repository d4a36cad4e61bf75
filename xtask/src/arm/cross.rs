//! Cargo for AArch64, and whether this machine has what that takes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What is built for.
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
/// The linker of that target, of Debian's gcc-aarch64-linux-gnu.
pub(crate) const LINKER: &str = "aarch64-linux-gnu-gcc";
/// Where it is built: artefacts of both targets need no place in common.
pub(crate) const FOLDER: &str = "target/arm";
/// What runs a program of the target: Debian's qemu-user-static, with the C library of libc6-dev-arm64-cross.
const RUNNER: &str = "qemu-aarch64-static -L /usr/aarch64-linux-gnu";

/// Whether there are a standard library, a linker and a C library.
pub(crate) fn ready() -> Result<()> {
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    let added = added.context("rustup cannot be started")?;
    let words = String::from_utf8_lossy(&added.stderr);
    let last = words.lines().last().unwrap_or("it says nothing");
    ensure!(added.status.success(), "`rustup target add {TARGET}` failed: {last}");
    // It prints where a file lies, or the bare name where it has none.
    let found = Command::new(LINKER).arg("-print-file-name=crt1.o").output();
    let found = found.with_context(|| {
        format!("{LINKER} cannot be started: install the package gcc-aarch64-linux-gnu")
    })?;
    let place = String::from_utf8_lossy(&found.stdout);
    ensure!(place.starts_with('/'), "no C library: install the package libc6-dev-arm64-cross");
    Ok(())
}

/// Cargo for that target.
pub(crate) fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = command(root, words)?.status().context("cargo cannot be started")?;
    ensure!(status.success(), "`cargo {} --target {TARGET}` failed", words.join(" "));
    Ok(())
}

/// The same, to be started by the caller.
pub(crate) fn command(root: &Path, words: &[&str]) -> Result<Command> {
    let (first, rest) = words.split_first().context("a command")?;
    let mut command = Command::new("cargo");
    command
        .args([first, "--target", TARGET, "--target-dir", FOLDER])
        .args(rest)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", RUNNER)
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(root);
    Ok(command)
}
