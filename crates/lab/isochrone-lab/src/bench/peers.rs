//! The allocators that others use, where their packages are installed.

use std::path::{Path, PathBuf};

/// A known allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its name as an arm.
    pub(crate) name: &'static str,
    /// Debian's package.
    pub(crate) package: &'static str,
    /// What the package installs.
    file: &'static str,
}

/// All that are looked for.
pub(crate) const PEERS: [Peer; 3] = [
    Peer { name: "mimalloc", package: "libmimalloc2.0", file: "libmimalloc.so.2" },
    Peer { name: "jemalloc", package: "libjemalloc2", file: "libjemalloc.so.2" },
    Peer { name: "tcmalloc", package: "libtcmalloc-minimal4", file: "libtcmalloc_minimal.so.4" },
];

/// Where libraries lie: Debian's folders first.
const FOLDERS: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

impl Peer {
    /// Its library.
    pub(crate) fn find(self) -> Option<PathBuf> {
        FOLDERS.iter().map(|folder| Path::new(folder).join(self.file)).find(|p| p.is_file())
    }

    /// What to do where it is missing, in one line.
    pub(crate) fn advice(self) -> String {
        format!(
            "{} is not installed and has no figures: apt-get install {}",
            self.name, self.package
        )
    }
}
