//! Programs and libraries without what only debuggers read.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::arch::Arch;

/// A copy without what only debuggers read, which is most of it: a machine of little memory unpacks it.
pub(super) fn stripped(program: &Path, folder: &Path, arch: Arch) -> Result<PathBuf> {
    let copy = folder.join(program.file_name().context("a program without a name")?);
    let (tool, package) = match arch {
        Arch::X86 => ("strip", "binutils"),
        Arch::Arm(_) => ("aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"),
    };
    let status = Command::new(tool).arg("--strip-debug").arg("-o").arg(&copy).arg(program).status();
    let status = status
        .with_context(|| format!("{tool} cannot be started: install the package {package}"))?;
    ensure!(status.success(), "strip does not understand {}", program.display());
    Ok(copy)
}
