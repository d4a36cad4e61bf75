//! The tree that is installed, below whatever prefix: the only place that says where something of it lies.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::built::Built;
use super::tool;

/// The name under which programs ask for the shared library (`crates/use/capi/build.rs`).
pub(super) const SONAME: &str = "libisochrone.so.0";
/// The command.
pub(super) const COMMAND: &str = "bin/isochrone";
/// What it preloads.
pub(super) const PRELOADED: [&str; 3] =
    ["lib/libisochrone_malloc.so", "lib/libisochrone_mpi.so", "lib/libisochrone_pager.so"];
/// Programs and shared libraries: what has symbols, and needs a C library.
pub(super) const BINARIES: [&str; 6] = [
    COMMAND,
    "libexec/isochrone-lab",
    "lib/libisochrone.so.0",
    PRELOADED[0],
    PRELOADED[1],
    PRELOADED[2],
];
/// What cargo builds, and where it comes to lie.
const BUILT: [(&str, &str); 7] = [
    ("isochrone", COMMAND),
    ("isochrone-lab", "libexec/isochrone-lab"),
    ("libisochrone.so", "lib/libisochrone.so.0"),
    ("libisochrone.a", STATIC),
    ("libisochrone_malloc.so", PRELOADED[0]),
    ("libisochrone_mpi.so", PRELOADED[1]),
    ("libisochrone_pager.so", PRELOADED[2]),
];
/// The library to link into a program.
pub(super) const STATIC: &str = "lib/libisochrone.a";
/// Completions of the command: the shell, and where it looks for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/isochrone"),
    ("zsh", "share/zsh/site-functions/_isochrone"),
    ("fish", "share/fish/vendor_completions.d/isochrone.fish"),
];
/// Manual pages of both programs.
pub(super) const MANUALS: &str = "share/man/man1";
/// Licences, in packages.
pub(super) const LICENCES: &str = "share/doc/isochrone";
/// What C programs may look like.
const EXAMPLES: &str = "share/doc/isochrone/examples";

/// Puts everything below `prefix`. Each file is whole at every moment, also where an older one lies.
pub(crate) fn fill(root: &Path, built: &Built, prefix: &Path) -> Result<()> {
    for (name, place) in BUILT {
        put(&built.file(name)?, &prefix.join(place))?;
    }
    link(SONAME, &prefix.join("lib/libisochrone.so"))?;
    let capi = root.join("crates/use/capi");
    put(&capi.join("isochrone.pc"), &prefix.join("lib/pkgconfig/isochrone.pc"))?;
    for header in ["isochrone.h", "isochrone.hpp"] {
        put(&capi.join("include").join(header), &prefix.join("include").join(header))?;
    }
    for example in files(&capi.join("examples"))? {
        let name = example.file_name().unwrap_or_default();
        put(&example, &prefix.join(EXAMPLES).join(name))?;
    }
    words(prefix)
}

/// What the programs say of themselves: manual pages and completions.
fn words(prefix: &Path) -> Result<()> {
    for program in &BINARIES[..2] {
        let mut man = Command::new(prefix.join(program));
        man.arg("man").arg("--out").arg(prefix.join(MANUALS));
        tool::output(&mut man, "nothing: it was built here")?;
    }
    for (shell, place) in COMPLETIONS {
        let mut command = Command::new(prefix.join(BINARIES[0]));
        let text =
            tool::output(command.args(["completions", shell]), "nothing: it was built here")?;
        let place = prefix.join(place);
        fs::create_dir_all(place.parent().unwrap_or(prefix))?;
        fs::write(&place, text).with_context(|| place.display().to_string())?;
    }
    Ok(())
}

/// The files of a folder, in the order of their names.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Copies a file beside its place and renames it, so that no program sees half of a library.
pub(super) fn put(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a path without a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let beside = to.with_extension("new");
    fs::copy(from, &beside)
        .with_context(|| format!("{} to {}", from.display(), beside.display()))?;
    fs::rename(&beside, to).with_context(|| to.display().to_string())
}

/// A link in place of whatever was there.
pub(super) fn link(to: &str, place: &Path) -> Result<()> {
    if place.symlink_metadata().is_ok() {
        fs::remove_file(place).with_context(|| place.display().to_string())?;
    }
    symlink(to, place).with_context(|| place.display().to_string())
}
