//! Debian's kernel, unpacked from its package into the build folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::arch::{Arch, Pages};
use super::debian::{Debian, unpack};

/// The kernel image in `folder`; downloads the package where it is not there yet.
pub(super) fn find(folder: &Path, arch: Arch) -> Result<PathBuf> {
    let (place, newest) = match arch {
        Arch::X86 => ("kernel", "linux-image-cloud-amd64"),
        Arch::Arm(Pages::Kib4) => ("kernel", "linux-image-cloud-arm64"),
        Arch::Arm(Pages::Kib16) => ("kernel-16k", "linux-image-arm64-16k"),
    };
    let unpacked = folder.join(place);
    if let Some(kernel) = image(&unpacked)? {
        return Ok(kernel);
    }
    let debian = match arch {
        Arch::X86 => Debian::here(folder),
        // Write-protection of shared memory, on which tiering stands, came to that kind with Linux 6.10.
        Arch::Arm(_) => Debian::arm64(folder, "bookworm-backports")?,
    };
    unpack(&debian.archive(&debian.newest(newest)?)?, &unpacked)?;
    image(&unpacked)?.context("the kernel's package has no image in boot/")
}

fn image(unpacked: &Path) -> Result<Option<PathBuf>> {
    let boot = unpacked.join("boot");
    if !boot.is_dir() {
        return Ok(None);
    }
    for entry in std::fs::read_dir(boot)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz")) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
