//! `cargo xtask arm`: everything that ships, built for AArch64; with `--full` the unit tests of the crates that time
//! nothing as well, under an emulator of single programs (qemu-user).
//!
//! Nobody here has such a machine: what is built is never said to work on one. A host that emulates orders memory
//! as x86-64 does, so that a missing barrier shows nowhere here.

mod cross;
mod emulated;
mod programs;

use std::path::Path;

use anyhow::{Result, bail};

use super::ci::say;
pub(crate) use cross::{FOLDER, LINKER, TARGET, cargo, command, ready};

/// Not built: they serve whoever develops here.
const NOT_SHIPPED: [&str; 3] = ["xtask", "isochrone-vm-tests", "isochrone-schemas"];
/// Settings for a build that is the sooner done: nothing of it is run.
const CHEAP: [&str; 3] = [
    "profile.dev.opt-level=0",
    "profile.dev.overflow-checks=false",
    "profile.dev.debug-assertions=false",
];
/// Those of single crates: what `Cargo.toml` optimises for the sake of tests.
const OPTIMISED: [&str; 10] =
    ["alloc", "atlas", "decode", "malloc", "os", "placement", "probe", "sim", "stats", "survey"];
/// The preloaded library is a workspace of its own (see its manifest).
pub(crate) const PRELOAD: &str = "crates/arrange/preload/Cargo.toml";

/// Builds, and with `--full` tests.
pub(crate) fn run(root: &Path, mut words: impl Iterator<Item = String>) -> Result<()> {
    let full = match (words.next().as_deref(), words.next()) {
        (None, _) => false,
        (Some("--full"), None) => true,
        (Some(other), _) => bail!("unknown word {other:?}: cargo xtask arm [--full]"),
    };
    if let Err(why) = ready() {
        say(&format!("aarch64 was not checked: {why:#}"));
        return Ok(());
    }
    programs::check(root)?;
    build(root)?;
    if full { emulated::test(root) } else { Ok(()) }
}

/// Everything that ships, and the preloaded libraries.
fn build(root: &Path) -> Result<()> {
    let settings =
        OPTIMISED.map(|name| format!("profile.dev.package.isochrone-{name}.opt-level=0"));
    let mut words = vec!["build", "--workspace", "--locked"];
    words.extend(NOT_SHIPPED.iter().flat_map(|package| ["--exclude", package]));
    words.extend(CHEAP.iter().flat_map(|setting| ["--config", setting]));
    words.extend(settings.iter().flat_map(|setting| ["--config", setting]));
    cargo(root, &words)?;
    for package in ["isochrone-preload", "isochrone-pager"] {
        cargo(root, &["build", "--locked", "--manifest-path", PRELOAD, "--package", package])?;
    }
    say("aarch64: built; never run on Arm hardware");
    Ok(())
}
