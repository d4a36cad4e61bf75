//! Finds `libisochrone_malloc.so`, and puts it first among what is preloaded.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

/// The library's file name.
pub const NAME: &str = "libisochrone_malloc.so";

/// Bytes of an ELF file with its type (`e_type`, elf(5)), the byte of it that tells, and that of shared objects: both
/// kinds of processor that this is built for have the lower byte first.
const HEAD_BYTES: usize = 18;
const TYPE_AT: usize = 16;
const SHARED: u8 = 3;

/// The library for MPI programs.
pub const MPI: &str = "libisochrone_mpi.so";
/// The command that makes it.
pub const BUILD_MPI: &str = "cargo build --release -p isochrone-mpi";

/// The library that pages large mappings.
pub const PAGER: &str = "libisochrone_pager.so";
/// The command that makes it.
pub const BUILD_PAGER: &str = "cargo preload --package isochrone-pager";

/// The library: the one that was named, or the one that was installed or built with this program.
pub fn find(named: Option<&Path>) -> Result<PathBuf> {
    find_as(NAME, "cargo preload", named)
}

/// The same for the library `file`, which `build` makes.
pub fn find_as(file: &str, build: &str, named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        return shared(named).map_err(|error| anyhow!("--preload {error:#}"));
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

/// A library that was named by its path. The linker leaves out what it cannot load, with words of its own, and the
/// program goes on without it.
///
/// # Errors
/// It is not there, or no shared object. The words begin with the path.
fn shared(named: &Path) -> Result<PathBuf> {
    let shown = named.display();
    let path = named.canonicalize().map_err(|_| anyhow!("{shown}: there is no such file"))?;
    let mut head = [0; HEAD_BYTES];
    let read = File::open(&path).and_then(|mut file| file.read_exact(&mut head));
    let is_shared = head.starts_with(b"\x7fELF") && head[TYPE_AT] == SHARED;
    match read {
        Ok(()) if is_shared => Ok(path),
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
            Err(error).with_context(|| format!("{shown} cannot be read"))
        }
        _ => bail!("{shown} is no shared library; name a file like {NAME}"),
    }
}

/// Allocators that programs are run over and measured beside: the name, files that it has by version, and Debian's
/// package.
const ALLOCATORS: [(&str, &[&str], &str); 4] = [
    ("mimalloc", &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"], "libmimalloc2.0"),
    ("jemalloc", &["libjemalloc.so.2", "libjemalloc.so"], "libjemalloc2"),
    (
        "tcmalloc",
        &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc.so"],
        "libtcmalloc-minimal4",
    ),
    ("snmalloc", &["libsnmallocshim.so"], ""),
];

/// Where libraries lie, but for those of the architecture.
const FOLDERS: [&str; 4] = ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib"];

/// The names of those that have one.
pub fn allocators() -> impl Iterator<Item = &'static str> {
    ALLOCATORS.iter().map(|(name, ..)| *name)
}

/// An allocator: a library by its path, or one of those that have a name.
///
/// # Errors
/// It is not there; then where it was looked for, and what installs it. The words begin with `named`.
pub fn allocator(named: &str) -> Result<PathBuf> {
    let own = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders: Vec<&Path> = std::iter::once(own.as_str()).chain(FOLDERS).map(Path::new).collect();
    allocator_in(named, &folders)
}

fn allocator_in(named: &str, folders: &[&Path]) -> Result<PathBuf> {
    if named.contains('/') {
        return shared(Path::new(named));
    }
    let Some((_, files, package)) = ALLOCATORS.iter().find(|(name, ..)| *name == named) else {
        let names = allocators().collect::<Vec<_>>().join(", ");
        bail!("{named}: neither a path nor one of {names}");
    };
    let mut places =
        files.iter().flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
    match places.find(|place| place.exists()) {
        Some(found) => Ok(found),
        None => {
            let debian = match package {
                &"" => String::new(),
                package => format!("install it (Debian: {package}), or "),
            };
            bail!(
                "{named}: {} lies in none of the usual folders: {debian}give its path",
                files.join(" or ")
            )
        }
    }
}

/// The value of `LD_PRELOAD` with `library` before what is there already. The linker splits the
/// value at blanks and colons, so a library below such a name is linked into `folder` first.
pub fn first(library: &Path, before: Option<&OsStr>, folder: &Path) -> Result<OsString> {
    let splits = |byte: &u8| matches!(byte, b' ' | b':');
    let path = if library.as_os_str().as_bytes().iter().any(splits) {
        let name = library.file_name().unwrap_or(OsStr::new(NAME)).as_bytes();
        let plain = |byte: &u8| if splits(byte) { b'_' } else { *byte };
        let link = folder.join(OsString::from_vec(name.iter().map(plain).collect()));
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
    fn an_allocator_is_found_by_name_or_path_or_named_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [Path::new("/nowhere"), folder.path()];
        let missing = allocator_in("mimalloc", &folders).unwrap_err().to_string();
        assert!(missing.contains("libmimalloc.so.2") && missing.contains("Debian: libmimalloc2.0"));
        let file = folder.path().join("libmimalloc.so.2");
        std::fs::write(
            &file,
            [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0"[..], b"rest"].concat(),
        )
        .unwrap();
        assert_eq!(allocator_in("mimalloc", &folders).unwrap(), file);
        let path = file.to_str().unwrap();
        assert_eq!(allocator_in(path, &[]).unwrap(), file.canonicalize().unwrap());
        let unknown = allocator_in("malloc", &folders).unwrap_err().to_string();
        assert!(unknown.contains("mimalloc, jemalloc, tcmalloc, snmalloc"), "{unknown}");
        assert!(allocator_in("./no.so", &folders).unwrap_err().to_string().contains("./no.so"));
    }

    #[test]
    fn what_the_linker_would_leave_out_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0";
        for (name, bytes) in
            [("short", &b"\x7fELF"[..]), ("text", &[b'x'; 100]), ("program", program)]
        {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            let error = find(Some(&file)).unwrap_err().to_string();
            assert!(error.starts_with("--preload /") && error.contains("is no shared"), "{error}");
            let error = allocator_in(file.to_str().unwrap(), &[]).unwrap_err().to_string();
            assert!(error.contains("is no shared library"), "{error}");
        }
        let error = find(Some(folder.path())).unwrap_err();
        assert!(format!("{error:#}").contains("directory"), "{error:#}");
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = find(Some(Path::new("/no/such.so"))).unwrap_err();
        assert!(error.to_string().contains("/no/such.so"), "{error}");
    }
}
