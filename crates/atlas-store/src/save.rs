//! Puts an atlas on disk so that no half file ever has its name.
//!
//! The bytes go to a temporary file in the same directory, are flushed to the device, and take the
//! name in one rename. Whatever fails before that leaves the old file as it was and removes the
//! temporary one; only a kill in between leaves a hidden `.isochrone-*.tmp`, never a half atlas.

use crate::contents::Contents;
use crate::encode::encode;
use crate::error::SaveError;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Saves an atlas under a name, replacing an older one.
///
/// # Errors
/// [`SaveError`]; then the file under this name is as it was.
pub fn save(contents: &Contents, path: &Path) -> Result<u64, SaveError> {
    let bytes = encode(contents)?;
    replace(path, |file| file.write_all(&bytes))?;
    Ok(bytes.len() as u64)
}

/// Saves text (figures, a report, a trace) under a name, replacing an older file. What takes bytes and is no file
/// (a terminal, a pipe, `/dev/null`) gets them and stays what it is.
///
/// # Errors
/// [`SaveError`]; then the file under this name is as it was.
pub fn save_text(text: &str, path: &Path) -> Result<(), SaveError> {
    let write = |file: &mut File| file.write_all(text.as_bytes());
    if !takes_bytes(path) {
        return replace(path, write);
    }
    let opened = File::options().write(true).open(path);
    let written = opened.and_then(|mut device| write(&mut device));
    written.map_err(|source| SaveError::from_io(path.to_owned(), source))
}

/// Whether bytes may be written there as they come. Not so a disk: nobody wants figures over its file system.
fn takes_bytes(path: &Path) -> bool {
    let kind = fs::metadata(path).map(|found| found.file_type());
    kind.is_ok_and(|kind| kind.is_char_device() || kind.is_fifo())
}

/// Writes a whole file or nothing.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), SaveError> {
    let target = resolve(path)?;
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let fail = |source| SaveError::from_io(target.clone(), source);
    let mut temporary = tempfile::Builder::new()
        .prefix(".isochrone-")
        .suffix(".tmp")
        // As any new file: the umask takes away what the user does not want to share.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(fail)?;
    write(temporary.as_file_mut()).map_err(fail)?;
    temporary.as_file().sync_all().map_err(fail)?;
    temporary.persist(&target).map_err(|failed| fail(failed.error))?;
    // The rename itself survives a crash only once the directory is on the device. Some file
    // systems cannot flush a directory; the file is complete either way.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// Follows links, so that a link keeps pointing to the atlas, and refuses devices and directories,
/// which a rename would replace.
fn resolve(path: &Path) -> Result<PathBuf, SaveError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            path.canonicalize().map_err(|source| SaveError::from_io(path.to_owned(), source))
        }
        Ok(_) => Err(SaveError::NotAFile(path.to_owned())),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(source) => Err(SaveError::from_io(path.to_owned(), source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_interrupted_save_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.atlas");
        fs::write(&path, b"old").unwrap();
        let failed = replace(&path, |file| {
            file.write_all(b"half of the ne")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(matches!(failed, Err(SaveError::Full(_))), "{failed:?}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["a.atlas"]);
        replace(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["a.atlas"]);
    }

    #[test]
    fn a_link_keeps_pointing_to_the_atlas() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("a.atlas"), directory.path().join("latest"));
        fs::write(&path, b"old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, |file| file.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    /// As root a rename would put a file in the place of the device, for every program of the machine.
    #[test]
    fn a_device_or_a_pipe_takes_text_and_stays_what_it_is() {
        save_text("words", Path::new("/dev/null")).unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        save_text("words", &pipe).unwrap();
        assert_eq!(reader.join().unwrap(), "words");
        assert_eq!(names(directory.path()), ["pipe"]);
        assert!(matches!(save_text("words", directory.path()), Err(SaveError::NotAFile(_))));
    }

    #[test]
    fn text_replaces_a_file_and_is_as_readable_as_any() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("a.json"), directory.path().join("other"));
        fs::write(&other, b"").unwrap();
        save_text("old", &path).unwrap();
        save_text("new", &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let says = |path: &Path| replace(path, |_| Ok(())).unwrap_err().to_string();
        let missing = says(&directory.path().join("no/such/a.atlas"));
        assert!(missing.ends_with("the directory does not exist; create it or choose another"));
        assert!(says(directory.path()).ends_with("not a regular file; choose another name"));
        assert!(says(Path::new("/dev/null")).ends_with("not a regular file; choose another name"));
        let file = directory.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(says(&file.join("a.atlas")).contains("the directory does not exist"));
        let kinds = [
            (io::ErrorKind::PermissionDenied, "no permission to write there"),
            (io::ErrorKind::ReadOnlyFilesystem, "no permission to write there"),
            (io::ErrorKind::StorageFull, "no space left"),
            (io::ErrorKind::QuotaExceeded, "no space left"),
            (io::ErrorKind::Interrupted, "cannot be written"),
        ];
        for (kind, words) in kinds {
            let said = replace(&file, |_| Err(io::Error::from(kind))).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}
