//! Zig's linker, which links with an older C library than this machine's: it brings the names of every glibc. Cargo
//! calls it by cargo-zigbuild; pip brings both.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::floor::FLOOR;
use super::tool::{Venv, venv};

const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];
/// Where sources lie in the eyes of a debugger, whoever builds: no package names a folder of the machine that made it.
const SOURCES: &str = "/usr/src/isochrone";

/// The linker, in an environment of Python's own.
#[derive(Debug)]
pub(super) struct Zig(Venv);

impl Zig {
    /// Brings it, or finds it.
    ///
    /// # Errors
    /// Pip cannot bring it.
    pub(super) fn brought(root: &Path) -> Result<Self> {
        Ok(Self(venv(&root.join("target/package/zig"), &TOOLS)?))
    }

    /// This processor with glibc, as cargo names it.
    pub(super) fn target() -> String {
        format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
    }

    /// `cargo build`, to which the rest of its words are to be added.
    ///
    /// # Errors
    /// `PATH` cannot be extended.
    pub(super) fn build(&self, root: &Path) -> Result<Command> {
        let program = self.0.program("cargo-zigbuild");
        let folder = program.parent().context("a program in a folder")?.to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path)))?;
        let mut command = Command::new(program);
        command.arg("zigbuild").arg("--target").arg(format!("{}.{FLOOR}", Self::target()));
        command.env("PATH", path).env("RUSTFLAGS", flags(root));
        Ok(command)
    }
}

/// What was asked of the compiler, and the names of folders.
pub(super) fn flags(root: &Path) -> String {
    let asked = std::env::var("RUSTFLAGS").unwrap_or_default();
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let crates = home.map(|home| {
        format!(" --remap-path-prefix={}={SOURCES}/crates.io", home.join("registry/src").display())
    });
    let here = format!("--remap-path-prefix={}={SOURCES}", root.display());
    format!("{asked} {here}{}", crates.unwrap_or_default()).trim().to_owned()
}
