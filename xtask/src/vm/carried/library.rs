//! A shared library that a program on an emulated machine needs.

use std::path::PathBuf;

/// Where it lies, here and there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Library {
    /// Where the loader of the machine looks for it, without the first slash.
    pub(super) place: String,
    /// Where it lies here.
    pub(super) here: PathBuf,
}
