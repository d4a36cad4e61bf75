//! What can go wrong between records and files, in words that say what to do next.

use isochrone_atlas::{AtlasError, ModelError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why contents cannot be written as an atlas: a fault of whoever filled them in.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A list has the wrong length
    #[error("{what} has {found} entries where {expected} belong; this is a bug, report it")]
    Length {
        /// Which list.
        what: String,
        /// Its length.
        found: usize,
        /// The right length.
        expected: usize,
    },
    /// A word is not one of the format's
    #[error("{what} is \"{found}\", expected {expected}; this is a bug, report it")]
    Word {
        /// Which field.
        what: &'static str,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// A base does not make a table
    #[error("{what}: {source}")]
    Base {
        /// Which base.
        what: String,
        /// What is wrong with it.
        source: ModelError,
    },
    /// A number points nowhere
    #[error("{what} names {found}, which is not there; this is a bug, report it")]
    Missing {
        /// Which field.
        what: String,
        /// What it names.
        found: String,
    },
    /// Page blocks overlap or are not aligned
    #[error(
        "page block {first_frame:#x} overlaps another or is not aligned; this is a bug, report it"
    )]
    Blocks {
        /// Its first frame.
        first_frame: u64,
    },
    /// More measured lines than a file may hold
    #[error("{found} pages were measured line by line and an atlas holds {most}; keep fewer")]
    TooManyLines {
        /// How many there are.
        found: usize,
        /// How many fit.
        most: usize,
    },
    /// A number is NaN or infinite, which the text part cannot hold
    #[error("a number is not finite; a missing value is none, not NaN: {0}")]
    NotFinite(String),
    /// The finished bytes are refused by the reader
    #[error("the finished atlas cannot be read back: {0}")]
    Unreadable(AtlasError),
    /// The text part could not be made
    #[error("the description cannot be written as text: {0}")]
    Text(#[from] serde_json::Error),
    /// A part is larger than the format's counters
    #[error("{0} is larger than an atlas can count; map less memory")]
    TooLarge(&'static str),
}

/// Why an atlas was not saved. The old file, if there was one, is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The contents are faulty
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The directory does not exist
    #[error(
        "{}: there is no directory {}; make it first (mkdir -p {}) or choose another",
        .0.display(), directory(.0).display(), directory(.0).display()
    )]
    NoDirectory(PathBuf),
    /// The directory was removed while somebody was in it
    #[error("{}: this directory was removed; go to one that is there (cd) or name one", .0.display())]
    Removed(PathBuf),
    /// Writing there is not allowed
    #[error("{}: no permission to write there; choose a directory of your own", .0.display())]
    Permission(PathBuf),
    /// Nobody may write to the file system
    #[error("{}: the file system there is read-only; choose a directory of another one", .0.display())]
    ReadOnly(PathBuf),
    /// The file system is full
    #[error("{}: no space left; free some or choose another file system", .0.display())]
    Full(PathBuf),
    /// Something that is not a regular file has that name
    #[error("{}: exists and is not a regular file; choose another name", .0.display())]
    NotAFile(PathBuf),
    /// A link that another user may have laid for this one
    #[error(
        "{}: user {owner} made this link in a folder where everybody may, so it is not followed; remove the link or \
         choose another name", link.display()
    )]
    PlantedLink {
        /// The link.
        link: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// An atlas, which no text replaces
    #[error("{}: is an atlas, which no text replaces; name another file", .0.display())]
    Atlas(PathBuf),
    /// The system refused for another reason
    #[error("{}: cannot be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// The directory in which a file lies. `no/such/` names a directory, whether it is there or not.
pub(crate) fn directory(file: &Path) -> &Path {
    if file.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return file;
    }
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Whether the directory of a file has no name any more: who is in it still reaches it.
fn is_removed(file: &Path) -> bool {
    std::fs::metadata(directory(file)).is_ok_and(|found| found.is_dir() && found.nlink() == 0)
}

impl SaveError {
    /// Sorts an error of the system by what its reader can do.
    pub(crate) fn from_io(path: PathBuf, source: io::Error) -> Self {
        match source.kind() {
            // The system says that there is no such file, or no permission.
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if is_removed(&path) => {
                Self::Removed(path)
            }
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NoDirectory(path),
            io::ErrorKind::PermissionDenied => Self::Permission(path),
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(path),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path),
            _ => Self::Io { path, source },
        }
    }
}

/// Why a file was not read as an atlas.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such file
    #[error("{}: no atlas: run `isochrone map`", .0.display())]
    NoAtlas(PathBuf),
    /// A directory, a device or a pipe has that name
    #[error("{}: not an atlas: no regular file; give one that `map` wrote", .0.display())]
    NotAFile(PathBuf),
    /// The file cannot be read
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The file is no usable atlas
    #[error("{}: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: AtlasError,
    },
    /// The bytes are no usable atlas
    #[error(transparent)]
    Atlas(#[from] AtlasError),
    /// The text part does not hold the records of this version
    #[error("the description is not one that this program knows: {0}; measure anew")]
    Text(#[from] serde_json::Error),
    /// The parts contradict each other
    #[error("inconsistent: {0}; measure anew")]
    Inconsistent(&'static str),
}

impl LoadError {
    /// A file that cannot be read, sorted by what its reader can do.
    pub(crate) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NoAtlas(path),
            io::ErrorKind::IsADirectory => Self::NotAFile(path),
            _ => Self::Io { path, source },
        }
    }

    /// Names the file in an error about its bytes.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Atlas(source) => Self::Refused { path: path.to_owned(), source },
            other => other,
        }
    }
}
