//! Builds what is shipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::floor::{FLOOR, Version};
use super::zig::{self, Zig};
use crate::arm::PRELOAD;

/// The packages whose programs and libraries are shipped, but for what is preloaded, a workspace of its own.
pub(super) const PACKAGES: [&str; 4] =
    ["isochrone", "isochrone-lab", "isochrone-capi", "isochrone-mpi"];
/// The packages of that workspace: each is built by itself, since they define the same symbols.
const PRELOADED: [&str; 2] = ["isochrone-preload", "isochrone-pager"];

/// What was built.
#[derive(Debug)]
pub(crate) struct Built {
    /// Folders in which it lies.
    folders: Vec<PathBuf>,
    /// The newest glibc that it may need; nothing is promised of what is linked with this machine's.
    pub(super) promised: Option<Version>,
}

impl Built {
    /// What cargo has left in the folder of a profile: of tests, libraries lie in `deps`. What is preloaded is always
    /// built as it is shipped.
    pub(super) fn in_folder(folder: &Path) -> Self {
        let folders = ["", "deps", "../release"].map(|below| folder.join(below)).to_vec();
        Self { folders, promised: None }
    }

    /// One of the files.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf> {
        let places = self.folders.iter().map(|folder| folder.join(name));
        let found = places.into_iter().find(|place| place.is_file());
        found.with_context(|| format!("{name} was not built in {}", self.folders[0].display()))
    }
}

/// Builds everything that is shipped, linked with this machine's C library.
pub(crate) fn build(root: &Path, profile: &str) -> Result<Built> {
    all(root, profile, || {
        let mut cargo = Command::new("cargo");
        cargo.arg("build");
        Ok(cargo)
    })?;
    Ok(Built::in_folder(&target(root).join(folder(profile))))
}

/// Builds it for every C library from [`FLOOR`] on.
pub(super) fn build_for_floor(root: &Path, profile: &str, zig: &Zig) -> Result<Built> {
    all(root, profile, || zig.build(root))?;
    let built = Built::in_folder(&target(root).join(Zig::target()).join(folder(profile)));
    Ok(Built { promised: Some(FLOOR), ..built })
}

fn all(root: &Path, profile: &str, cargo: impl Fn() -> Result<Command>) -> Result<()> {
    let mut command = cargo()?;
    command.args(["--locked", "--profile", profile]);
    run(root, command.args(PACKAGES.iter().flat_map(|package| ["-p", package])))?;
    for package in PRELOADED {
        let mut command = cargo()?;
        command.args(["--locked", "--release", "--package", package, "--manifest-path", PRELOAD]);
        run(root, command.arg("--target-dir").arg(target(root)))?;
    }
    Ok(())
}

/// Builds the command without a C library of the system; the file. Musl comes with the compiler's target. What is in C
/// (zstd) asks for little but `memcpy`, so that this machine's compiler will do; what musl has not would not be linked.
pub(super) fn build_static(root: &Path, profile: &str) -> Result<PathBuf> {
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut command = Command::new("cargo");
    command.args(["build", "--locked", "--profile", profile, "-p", PACKAGES[0], "--target", &musl]);
    command.env("RUSTFLAGS", zig::flags(root));
    // Some compilers check calls by functions of glibc's, unasked.
    let flags = format!("CFLAGS_{}", musl.replace('-', "_"));
    command.env("TARGET_CC", "cc").env(flags, "-U_FORTIFY_SOURCE");
    run(root, &mut command).with_context(|| format!("`rustup target add {musl}` brings musl"))?;
    Built::in_folder(&target(root).join(musl).join(folder(profile))).file(PACKAGES[0])
}

/// Where cargo leaves what it builds.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Where it leaves what is of a profile.
fn folder(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// Runs a build to its end.
fn run(root: &Path, command: &mut Command) -> Result<()> {
    let status = command.current_dir(root).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}
