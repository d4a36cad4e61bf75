//! What a machine with another kind of processor has besides: libraries of the cross compiler's C library, programs in
//! C on ours, and an atlas that was made here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::archive::File;
use super::library::Library;
use crate::arm;

/// The dynamic loader, which no program lists among its libraries.
const LOADER: &str = "ld-linux-aarch64.so.1";
/// Our library for C: as it is built, and as programs ask for it.
const SHARED: (&str, &str) = ("libisochrone.so", "libisochrone.so.0");
/// Where header, examples and test programs of that library lie.
const C: &str = "crates/use/capi";
/// The programs in C, each with its source, which checks what it did itself. Not `roots.c`: teams of up to twelve ranks
/// that poll on four emulated cores do not end in two minutes.
pub(in super::super) const PROGRAMS: [(&str, &str); 6] = [
    ("c-collectives", "examples/collectives.c"),
    ("c-tasks", "examples/tasks.c"),
    ("c-tier", "examples/tier.c"),
    ("c-wrong", "tests/programs/wrong.c"),
    ("c-tasks-wrong", "tests/programs/tasks_wrong.c"),
    ("c-wrong-tier", "tests/programs/wrong_tier.c"),
];
/// An atlas that x86-64 has written: here, and on the machine.
pub(in super::super) const ATLAS: (&str, &str) =
    ("fuzz/corpus/atlas_reader/valid-words", "here.atlas");

/// The shared libraries of a program, those that they need in turn, and the loader.
pub(super) fn libraries(program: &Path) -> Result<Vec<Library>> {
    let mut found: Vec<Library> = vec![library(LOADER)?];
    let mut asked = vec![program.to_owned()];
    while let Some(next) = asked.pop() {
        for name in needed(&next)? {
            let library = library(&name)?;
            if !found.contains(&library) {
                asked.push(library.here.clone());
                found.push(library);
            }
        }
    }
    Ok(found)
}

/// The one of this name that the cross compiler links with.
fn library(name: &str) -> Result<Library> {
    let asked = Command::new(arm::LINKER).arg(format!("-print-file-name={name}")).output();
    let asked = asked.with_context(|| format!("{} cannot be started", arm::LINKER))?;
    let here = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    ensure!(here.is_absolute(), "{} has no {name}", arm::LINKER);
    Ok(Library { place: format!("lib/{name}"), here })
}

fn needed(program: &Path) -> Result<Vec<String>> {
    let asked = Command::new("aarch64-linux-gnu-readelf").arg("-d").arg(program).output();
    let asked = asked.context("aarch64-linux-gnu-readelf cannot be started")?;
    ensure!(asked.status.success(), "readelf does not understand {}", program.display());
    Ok(names(&String::from_utf8_lossy(&asked.stdout)))
}

/// The names in `0x... (NEEDED)  Shared library: [libm.so.6]`; ours is carried anyway.
fn names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let (_, rest) = line.split_once("(NEEDED)")?.1.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    };
    text.lines().filter_map(name).filter(|name| name != SHARED.1).collect()
}

/// The programs, our library, and the atlas. `target` is where cargo has put what it built.
pub(super) fn files(root: &Path, folder: &Path, target: &Path) -> Result<Vec<File>> {
    let built = target.join("debug").join(SHARED.0);
    // As it is named where it is installed: the linker writes that name into programs.
    let beside = folder.join(SHARED.0);
    std::fs::copy(&built, &beside).with_context(|| built.display().to_string())?;
    let mut files = vec![File::program(&format!("lib/{}", SHARED.1), &beside)?];
    for (name, source) in PROGRAMS {
        let program = folder.join(name);
        compile(&root.join(C), source, folder, &program)?;
        files.push(File::program(&format!("bin/{name}"), &program)?);
    }
    files.push(File::program(ATLAS.1, &root.join(ATLAS.0))?);
    Ok(files)
}

fn compile(place: &Path, source: &str, folder: &Path, program: &Path) -> Result<()> {
    let status = Command::new(arm::LINKER)
        .args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-I"])
        .arg(place.join("include"))
        .arg(place.join(source))
        .arg("-o")
        .arg(program)
        .arg(format!("-L{}", folder.display()))
        .arg("-lisochrone")
        .status()
        .with_context(|| format!("{} cannot be started", arm::LINKER))?;
    ensure!(status.success(), "{source} cannot be compiled for {}", arm::TARGET);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_and_ours_is_left_to_be_carried() {
        let text = "Dynamic section at offset 0x10:\n  Tag        Type      Name/Value\n \
                    0x01 (NEEDED)             Shared library: [libisochrone.so.0]\n \
                    0x01 (NEEDED)             Shared library: [libc.so.6]\n \
                    0x0e (SONAME)             Library soname: [libx.so]\n";
        assert_eq!(names(text), ["libc.so.6"]);
    }

    #[test]
    fn sources_and_atlas_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (_, source) in PROGRAMS {
            assert!(root.join(C).join(source).exists(), "{source}");
        }
        assert!(root.join(ATLAS.0).exists());
    }
}
