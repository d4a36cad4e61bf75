//! Puts an atlas on disk so that no half file ever has its name.
//!
//! The bytes go to a file without a name in the same directory, are flushed to the device, and take the name in
//! one rename. Whatever fails before that, a kill too, leaves the old file as it was and nothing beside it. Only
//! a kill in the moment between the file's first, hidden name (`.isochrone-*.tmp`) and the rename leaves that.

use crate::contents::Contents;
use crate::encode::encode;
use crate::error::{SaveError, directory};
use crate::links::refuse_planted;
use isochrone_atlas::format::MAGIC;
use rustix::fs::{Access, AtFlags, CWD, access, linkat};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Saves an atlas under a name, replacing an older one. Returns its bytes.
///
/// # Errors
/// [`SaveError`]; then the file under this name is as it was.
pub fn save(contents: &Contents, path: &Path) -> Result<u64, SaveError> {
    let bytes = encode(contents)?;
    Destination::file(path)?.write(&bytes)?;
    Ok(bytes.len() as u64)
}

/// Saves text (figures, a report, a trace) under a name, replacing an older file. What takes bytes and is no file
/// (a terminal, a pipe, `/dev/null`) gets them and stays what it is.
///
/// # Errors
/// [`SaveError`]; then the file under this name is as it was.
pub fn save_text(text: &str, path: &Path) -> Result<(), SaveError> {
    Destination::text(path)?.write(text.as_bytes())
}

/// A place that was tried and takes what will be written later. Until then the old file is as it was, and nothing
/// new has a name: the space is that of a file without one, which ends with the process however that ends.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    /// The file without a name; none for a device or a pipe.
    file: Option<File>,
}

impl Destination {
    /// A regular file, there or not. A link is followed, so that it keeps pointing to what is written; not so one
    /// that another user made where everybody may (`links`).
    ///
    /// # Errors
    /// [`SaveError`] if nothing can be written in its directory, or the name is that of something else.
    pub fn file(path: &Path) -> Result<Self, SaveError> {
        refuse_planted(path)?;
        let path = resolve(path)?;
        let file = tempfile::tempfile_in(directory(&path))
            .map_err(|source| SaveError::from_io(path.clone(), source))?;
        Ok(Self { path, file: Some(file) })
    }

    /// A regular file, a device or a pipe. The last two are opened when there is something for them: opening a
    /// pipe waits for its reader, and closing it tells the reader that all was said. An atlas is no place for text.
    ///
    /// # Errors
    /// [`SaveError`] if nothing can be written there, or an atlas would be lost by it.
    pub fn text(path: &Path) -> Result<Self, SaveError> {
        if !takes_bytes(path) {
            let destination = Self::file(path)?;
            return if is_atlas(path) {
                Err(SaveError::Atlas(path.to_owned()))
            } else {
                Ok(destination)
            };
        }
        refuse_planted(path)?;
        access(path, Access::WRITE_OK)
            .map_err(|source| SaveError::from_io(path.to_owned(), source.into()))?;
        Ok(Self { path: path.to_owned(), file: None })
    }

    /// Takes `bytes` of space now, so that a full disk is found before there is anything to lose.
    ///
    /// # Errors
    /// [`SaveError::Full`], or what else the system says.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), SaveError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(&vec![0; bytes])
            .map_err(|source| SaveError::from_io(self.path.clone(), source))
    }

    /// Where it goes, links followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it another name in the same directory.
    #[must_use]
    pub fn named(mut self, name: &OsStr) -> Self {
        self.path.set_file_name(name);
        self
    }

    /// Whether both are one file, by whatever spelling, link or second name. Devices and pipes never are: they
    /// take any number of texts.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        if self.file.is_none() || other.file.is_none() {
            return false;
        }
        let inode = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        match (inode(&self.path), inode(&other.path)) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (None, None) => {
                self.path.file_name() == other.path.file_name()
                    && inode(directory(&self.path)) == inode(directory(&other.path))
            }
            _ => false,
        }
    }

    /// Writes all of it, and nothing else under this name.
    ///
    /// # Errors
    /// [`SaveError`]; then a file under this name is as it was.
    pub fn write(self, bytes: &[u8]) -> Result<(), SaveError> {
        self.fill(|file| file.write_all(bytes))
    }

    fn fill(self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), SaveError> {
        let fail = |source| SaveError::from_io(self.path.clone(), source);
        let Some(mut file) = self.file else {
            refuse_planted(&self.path)?;
            let opened = File::options().write(true).open(&self.path);
            return opened.and_then(|mut device| write(&mut device)).map_err(fail);
        };
        write_whole(&mut file, write).map_err(fail)?;
        let hidden = hidden_name(&mut file, directory(&self.path)).map_err(fail)?;
        // A rename would put the file in the place of a device that has appeared here.
        if fs::symlink_metadata(&self.path)
            .is_ok_and(|found| !found.is_file() && !found.is_symlink())
        {
            return Err(SaveError::NotAFile(self.path));
        }
        hidden.persist(&self.path).map_err(|failed| fail(failed.error))?;
        // The rename itself survives a crash only once the directory is on the device. Some file
        // systems cannot flush a directory; the file is complete either way.
        if let Ok(directory) = File::open(directory(&self.path)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

/// Writes over what was reserved, and cuts off what is left of it.
fn write_whole(file: &mut File, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    file.rewind()?;
    write(file)?;
    let end = file.stream_position()?;
    file.set_len(end)?;
    file.sync_all()
}

/// A first name for a file without one: a link to it, or to a copy where the file system links no such file.
fn hidden_name(file: &mut File, directory: &Path) -> io::Result<TempPath> {
    let mut hidden = tempfile::Builder::new();
    hidden.prefix(".isochrone-").suffix(".tmp");
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| {
        linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    };
    if let Ok(linked) = hidden.make_in(directory, link) {
        return Ok(linked.into_temp_path());
    }
    // As any new file: the umask takes away what the user does not want to share.
    hidden.permissions(Permissions::from_mode(0o666));
    let mut copy = hidden.tempfile_in(directory)?;
    file.rewind()?;
    io::copy(file, copy.as_file_mut())?;
    copy.as_file().sync_all()?;
    Ok(copy.into_temp_path())
}

/// Whether bytes may be written there as they come. Not so a disk: nobody wants figures over its file system.
fn takes_bytes(path: &Path) -> bool {
    let kind = fs::metadata(path).map(|found| found.file_type());
    kind.is_ok_and(|kind| kind.is_char_device() || kind.is_fifo())
}

/// Whether a file begins as every atlas does.
fn is_atlas(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == MAGIC
}

/// Follows links, so that a link keeps pointing to the atlas, and refuses devices and directories,
/// which a rename would replace.
fn resolve(path: &Path) -> Result<PathBuf, SaveError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            if !path.is_symlink() {
                return Ok(path.to_owned());
            }
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

    fn replace(
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), SaveError> {
        Destination::file(path)?.fill(write)
    }

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
    fn text_replaces_no_atlas() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.atlas");
        let begun = [&MAGIC[..], b"the rest of it"].concat();
        fs::write(&path, &begun).unwrap();
        assert!(matches!(save_text("words", &path), Err(SaveError::Atlas(_))));
        assert_eq!(fs::read(&path).unwrap(), begun);
        assert_eq!(names(directory.path()), ["a.atlas"]);
        fs::write(&path, &MAGIC[..7]).unwrap();
        save_text("words", &path).unwrap();
    }

    #[test]
    fn what_is_reserved_has_no_name_and_what_is_written_has_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.atlas");
        fs::write(&path, b"old").unwrap();
        let reserved = || {
            let mut destination = Destination::file(&path).unwrap();
            destination.reserve(1 << 16).unwrap();
            destination
        };
        let dropped = reserved();
        assert_eq!(names(directory.path()), ["a.atlas"]);
        drop(dropped);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        reserved().write(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        reserved().named(OsStr::new("b.atlas")).write(b"other").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read(directory.path().join("b.atlas")).unwrap(), b"other");
        assert_eq!(names(directory.path()), ["a.atlas", "b.atlas"]);
    }

    #[test]
    fn one_file_is_known_by_all_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        std::os::unix::fs::symlink(at("sub"), at("also")).unwrap();
        fs::write(at("old"), b"").unwrap();
        std::os::unix::fs::symlink(at("old"), at("link")).unwrap();
        fs::hard_link(at("old"), at("hard")).unwrap();
        let is_same = |a: &str, b: &str| {
            let open = |name| Destination::text(&at(name)).unwrap();
            open(a).is_same(&open(b))
        };
        for (a, b) in
            [("old", "link"), ("old", "hard"), ("new", "sub/../new"), ("sub/new", "also/new")]
        {
            assert!(is_same(a, b), "{a} {b}");
        }
        for (a, b) in [("old", "new"), ("new", "newer"), ("new", "sub/new")] {
            assert!(!is_same(a, b), "{a} {b}");
        }
        let null = || Destination::text(Path::new("/dev/null")).unwrap();
        assert!(!null().is_same(&null()), "it takes any number of texts");
    }

    #[test]
    fn a_pipe_that_appears_meanwhile_stays_a_pipe() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.html");
        let destination = Destination::text(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(matches!(destination.write(b"words"), Err(SaveError::NotAFile(_))));
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names(directory.path()), ["a.html"]);
    }

    /// Some file systems cannot link what has no name; they say so as for a file that was unlinked.
    #[test]
    fn what_cannot_be_linked_is_copied() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.atlas");
        let options = &mut File::options();
        let mut unlinked = options.read(true).write(true).create_new(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        unlinked.write_all(b"words").unwrap();
        hidden_name(&mut unlinked, directory.path()).unwrap().persist(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"words");
        assert_eq!(names(directory.path()), ["a.atlas"]);
    }

    #[test]
    fn what_cannot_be_written_is_found_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Destination::file(&directory.path().join("no/"));
        assert!(matches!(missing, Err(SaveError::NoDirectory(_))), "{missing:?}");
        // Nobody makes files there, root neither.
        let read_only = Destination::text(Path::new("/sys/a.html"));
        assert!(matches!(read_only, Err(SaveError::Permission(_))), "{read_only:?}");
    }

    #[test]
    fn a_directory_that_was_removed_is_told_from_one_without_permission() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        fs::create_dir(&gone).unwrap();
        // As whoever has changed to it has it still.
        let held = File::open(&gone).unwrap();
        fs::remove_dir(&gone).unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}/a.atlas", held.as_raw_fd()));
        let found = Destination::file(&path);
        assert!(matches!(found, Err(SaveError::Removed(_))), "{found:?}");
        assert!(found.unwrap_err().to_string().contains("was removed"));
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let says = |path: &Path| replace(path, |_| Ok(())).unwrap_err().to_string();
        let missing = says(&directory.path().join("no/such/a.atlas"));
        assert!(missing.contains("there is no directory"), "{missing}");
        assert!(missing.ends_with("no/such) or choose another"), "{missing}");
        assert!(says(directory.path()).ends_with("not a regular file; choose another name"));
        assert!(says(Path::new("/dev/null")).ends_with("not a regular file; choose another name"));
        let file = directory.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(says(&file.join("a.atlas")).contains("there is no directory"));
        let kinds = [
            (io::ErrorKind::PermissionDenied, "no permission to write there"),
            (io::ErrorKind::ReadOnlyFilesystem, "the file system there is read-only"),
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
