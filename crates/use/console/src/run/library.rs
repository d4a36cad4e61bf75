//! Finds `libisochrone_malloc.so`, and puts it first among what is preloaded.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The library's file name.
pub const NAME: &str = "libisochrone_malloc.so";

/// The library for MPI programs.
pub const MPI: &str = "libisochrone_mpi.so";
/// The command that makes it.
pub const BUILD_MPI: &str = "cargo build --release -p isochrone-mpi";

/// The library: the one that was named, or the one that was installed or built with this program.
pub fn find(named: Option<&Path>) -> Result<PathBuf> {
    find_as(NAME, "cargo preload", named)
}

/// The same for the library `file`, which `build` makes.
pub fn find_as(file: &str, build: &str, named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        return named
            .canonicalize()
            .with_context(|| format!("--preload {}: there is no such file", named.display()));
    }
    let program = std::env::current_exe().context("this program does not know where it lies")?;
    let program = program.canonicalize().unwrap_or(program);
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(file), folder.join("../lib").join(file)];
    match places.iter().find_map(|place| place.canonicalize().ok()) {
        Some(found) => Ok(found),
        None => bail!(
            "{file} lies neither in {} nor in ../lib: build it with \
             `{build}`, or name it with --preload",
            folder.display()
        ),
    }
}

/// The value of `LD_PRELOAD` with `library` before what is there already. The linker splits the
/// value at blanks and colons, so a library below such a name is linked into `folder` first.
pub fn first(library: &Path, before: Option<&OsStr>, folder: &Path) -> Result<OsString> {
    let splits = |byte: &u8| matches!(byte, b' ' | b':');
    let path = if library.as_os_str().as_bytes().iter().any(splits) {
        let link = folder.join(NAME);
        if !link.exists() {
            std::os::unix::fs::symlink(library, &link).with_context(|| {
                format!("{} has a blank or a colon and cannot be linked", library.display())
            })?;
        }
        link
    } else {
        library.to_path_buf()
    };
    let mut value = path.into_os_string();
    if let Some(before) = before.filter(|value| !value.is_empty()) {
        value.push(":");
        value.push(before);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_before_comes_after() {
        let folder = Path::new("/nowhere");
        let value = |before: Option<&str>| {
            first(Path::new("/lib/x.so"), before.map(OsStr::new), folder).unwrap()
        };
        assert_eq!(value(None), "/lib/x.so");
        assert_eq!(value(Some("")), "/lib/x.so");
        assert_eq!(value(Some("libeatmydata.so other.so")), "/lib/x.so:libeatmydata.so other.so");
    }

    #[test]
    fn a_blank_in_the_path_does_not_split_it() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("my libraries").join(NAME);
        std::fs::create_dir(library.parent().unwrap()).unwrap();
        std::fs::write(&library, b"x").unwrap();
        let value = first(&library, None, folder.path()).unwrap();
        assert!(!value.as_bytes().contains(&b' '), "{value:?}");
        assert_eq!(Path::new(&value).canonicalize().unwrap(), library.canonicalize().unwrap());
        assert_eq!(first(&library, None, folder.path()).unwrap(), value, "a second time");
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = find(Some(Path::new("/no/such.so"))).unwrap_err();
        assert!(error.to_string().contains("/no/such.so"), "{error}");
    }
}
