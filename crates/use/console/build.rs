//! Gives the command and the laboratory one name for the sources that they are built of, by which each knows the
//! other again. Nothing is asked of git: a clone, an archive and a package of the same sources have the same name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// FNV-1a, 64 bits (Fowler, Noll and Vo, <http://www.isthe.com/chongo/tech/comp/fnv/>).
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

#[allow(clippy::print_stdout, reason = "how cargo is told")]
fn main() -> io::Result<()> {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    let mut hash = OFFSET;
    // This crate alone, outside of its workspace, has nothing but its version.
    if let Some(root) = here.ancestors().skip(1).find(|folder| folder.join("Cargo.lock").is_file())
    {
        let mut sources =
            vec![root.join("Cargo.lock"), root.join("Cargo.toml"), root.join("machines")];
        crates(&root.join("crates"), &mut sources)?;
        for source in &sources {
            println!("cargo::rerun-if-changed={}", source.display());
        }
        let mut all = Vec::new();
        for source in sources {
            files(source, &mut all)?;
        }
        all.sort();
        for file in all {
            let name = file.strip_prefix(root).unwrap_or(&file);
            add(&mut hash, name.as_os_str().as_encoded_bytes());
            add(&mut hash, &fs::read(&file)?);
        }
    }
    println!("cargo::rustc-env=ISOCHRONE_BUILD={}-{hash:016x}", env!("CARGO_PKG_VERSION"));
    Ok(())
}

/// The sources of every crate below a folder: its manifest, its build script, its `src`.
fn crates(folder: &Path, sources: &mut Vec<PathBuf>) -> io::Result<()> {
    if folder.join("Cargo.toml").is_file() {
        let parts = ["Cargo.toml", "build.rs", "src"].map(|part| folder.join(part));
        sources.extend(parts.into_iter().filter(|part| part.exists()));
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            crates(&entry.path(), sources)?;
        }
    }
    Ok(())
}

fn files(place: PathBuf, all: &mut Vec<PathBuf>) -> io::Result<()> {
    if place.is_dir() {
        for entry in fs::read_dir(place)? {
            files(entry?.path(), all)?;
        }
    } else {
        all.push(place);
    }
    Ok(())
}

/// A zero byte ends each piece, so that no two lists of pieces run into one another.
fn add(hash: &mut u64, bytes: &[u8]) {
    for byte in bytes.iter().chain(&[0]) {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}
