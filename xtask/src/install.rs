//! Puts the library for programs in C where compilers and loaders look: header, libraries, package file; and beside it
//! the libraries that `isochrone run` preloads, which it looks for in `../lib`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The name under which programs ask for the shared library (`crates/use/capi/build.rs`).
const SONAME: &str = "libisochrone.so.0";

/// The packages of preloaded libraries, each built by itself, and what each makes.
const PRELOADED: [(&str, &str); 2] =
    [("isochrone-preload", "libisochrone_malloc.so"), ("isochrone-pager", "libisochrone_pager.so")];

/// Builds the libraries and installs them below the folder that is named.
pub(crate) fn run(root: &Path, mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let prefix = arguments.next().context("name a folder: cargo xtask install /usr/local")?;
    cargo(root, &["build", "--profile", "dist", "--locked", "-p", "isochrone-capi"])?;
    for (package, _) in PRELOADED {
        cargo(root, &["preload", "--locked", "--package", package])?;
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let (built, capi) = (target.join("dist"), root.join("crates/use/capi"));
    let library = Path::new(&prefix).join("lib");
    for (from, to) in [
        (built.join("libisochrone.so"), library.join(SONAME)),
        (built.join("libisochrone.a"), library.join("libisochrone.a")),
        (capi.join("isochrone.pc"), library.join("pkgconfig/isochrone.pc")),
        (capi.join("include/isochrone.h"), Path::new(&prefix).join("include/isochrone.h")),
        (capi.join("include/isochrone.hpp"), Path::new(&prefix).join("include/isochrone.hpp")),
    ] {
        put(&from, &to)?;
    }
    for (_, name) in PRELOADED {
        put(&target.join("release").join(name), &library.join(name))?;
    }
    let link = library.join("libisochrone.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link).with_context(|| link.display().to_string())?;
    }
    std::os::unix::fs::symlink(SONAME, &link).with_context(|| link.display().to_string())?;
    super::ci::say(&format!("installed below {prefix}; a loader may need `ldconfig`"));
    Ok(())
}

fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(words).current_dir(root).status();
    let built = status.context("cargo cannot be started")?.success();
    ensure!(built, "`cargo {}` failed", words.join(" "));
    Ok(())
}

/// Copies a file beside its place and renames it, so that no program sees half of a library.
fn put(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a path without a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let beside = to.with_extension("new");
    fs::copy(from, &beside)
        .with_context(|| format!("{} to {}", from.display(), beside.display()))?;
    fs::rename(&beside, to).with_context(|| to.display().to_string())
}
