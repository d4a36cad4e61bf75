//! What an emulated machine has on its disk: the first process, the two programs with the library that is preloaded,
//! and the shared libraries that they need, where the loader looks for them.

mod cross;
mod examples;
mod library;
mod root;
mod stripped;
mod suites;

pub(super) use cross::ATLAS;
pub(super) use suites::Suite;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::arch::Arch;
use super::archive::File;
use crate::arm;
use library::libraries;
use stripped::stripped;

/// What is built as the first process.
const FIRST: &str = "isochrone-vm-tests";
/// The programs, in `/bin`.
const PROGRAMS: [&str; 2] = ["isochrone", "isochrone-lab"];
const PRELOAD: &str = "libisochrone_malloc.so";
/// Where tests of the library find it on a machine (`crates/arrange/malloc/tests/preload/support.rs`).
const PRELOAD_THERE: &str = "lib/libisochrone_malloc.so";

/// The first process; `with_programs` the two programs and the library too. `folder` is for what is made of them.
pub(super) fn files(
    root: &Path,
    folder: &Path,
    arch: Arch,
    with_programs: bool,
) -> Result<Vec<File>> {
    if arch.is_arm() {
        arm::ready()?;
    }
    build(root, arch)?;
    let target = target(root, arch);
    let mut places = vec![("init".to_owned(), target.join("debug").join(FIRST))];
    if with_programs {
        build_preload(root, arch)?;
        let of = |name: &str| (format!("bin/{name}"), target.join("debug").join(name));
        places.extend(PROGRAMS.map(of));
        places.push((format!("bin/{PRELOAD}"), target.join("release").join(PRELOAD)));
    }
    let (mut files, mut needed) = (Vec::new(), Vec::new());
    for (place, built) in places {
        files.push(File::program(&place, &stripped(&built, folder, arch)?));
        needed.extend(match arch {
            Arch::X86 => libraries(&built)?,
            Arch::Arm(_) => cross::libraries(&built)?,
        });
    }
    if arch == Arch::X86 {
        files.extend(examples::files(root, &target.join("debug"), folder, &mut needed)?);
    }
    needed.sort_unstable();
    needed.dedup();
    for library in needed {
        files.push(File::program(&library.place, &library.here));
    }
    if arch.is_arm() && with_programs {
        files.push(cross::atlas(root));
    }
    Ok(files)
}

/// Debian as the root of a machine, with the first process, the suites, and the library that is preloaded; and the
/// suites, to be started there.
pub(super) fn suites(root: &Path, folder: &Path, arch: Arch) -> Result<(Vec<File>, Vec<Suite>)> {
    arm::ready()?;
    // With the features of what is built for the suites, which are fewer crates than all.
    arm::cargo(root, &["build", "--locked", "-p", FIRST])?;
    build_preload(root, arch)?;
    let suites = suites::build(root)?;
    let mut files = root::files(folder)?;
    let target = target(root, arch);
    for (place, built) in
        [("init", format!("debug/{FIRST}")), (PRELOAD_THERE, format!("release/{PRELOAD}"))]
    {
        files.push(File::program(place, &stripped(&target.join(built), folder, arch)?));
    }
    files.extend(suites::files(root, &suites, folder)?);
    Ok((files, suites))
}

/// Builds all programs as tests have them: no time is judged there. Features are unified over what is built together,
/// and with a test among it they are those of `cargo test --workspace`. So after the tests of the gate all libraries
/// are there.
fn build(root: &Path, arch: Arch) -> Result<()> {
    let mut words = vec!["build", "--workspace", "--locked", "--lib", "--test", "e2e"];
    for name in PROGRAMS.iter().chain([&FIRST]) {
        words.extend(["--bin", name]);
    }
    match arch {
        Arch::X86 => cargo(root, &words),
        Arch::Arm(_) => arm::cargo(root, &words),
    }
}

/// The command of this machine's, as the tests of the gate have it.
pub(super) fn program_here(root: &Path) -> Result<PathBuf> {
    build(root, Arch::X86)?;
    Ok(target(root, Arch::X86).join("debug").join(PROGRAMS[0]))
}

/// Where cargo puts what it builds.
fn target(root: &Path, arch: Arch) -> PathBuf {
    match arch {
        Arch::X86 => {
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
        }
        Arch::Arm(_) => root.join(arm::FOLDER).join(arm::TARGET),
    }
}

/// The library as it is shipped.
fn build_preload(root: &Path, arch: Arch) -> Result<()> {
    match arch {
        Arch::X86 => cargo(root, &["preload", "--locked"]),
        Arch::Arm(_) => {
            arm::cargo(root, &["build", "--release", "--locked", "--manifest-path", arm::PRELOAD])
        }
    }
}

fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(words).current_dir(root).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "`cargo {}` failed", words.join(" "));
    Ok(())
}
