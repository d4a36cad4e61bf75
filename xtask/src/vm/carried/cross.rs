//! What a machine with another kind of processor has besides: libraries of the cross compiler's C library, and an atlas
//! that was made here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::archive::File;
use super::library::Library;
use crate::arm;

/// The dynamic loader, which no program lists among its libraries.
const LOADER: &str = "ld-linux-aarch64.so.1";
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

/// The names in `0x... (NEEDED)  Shared library: [libm.so.6]`.
fn names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let (_, rest) = line.split_once("(NEEDED)")?.1.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// The atlas.
pub(super) fn atlas(root: &Path) -> File {
    File::program(ATLAS.1, &root.join(ATLAS.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read() {
        let text = "Dynamic section at offset 0x10:\n  Tag        Type      Name/Value\n \
                    0x01 (NEEDED)             Shared library: [libc.so.6]\n \
                    0x0e (SONAME)             Library soname: [libx.so]\n";
        assert_eq!(names(text), ["libc.so.6"]);
    }

    #[test]
    fn the_atlas_is_there() {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(ATLAS.0).exists());
    }
}
