//! The folder that stands for `/`: the real one, or a captured tree. Reads are bounded and fail
//! silently to `None`, because on some machine every one of these files is missing.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most that is read of one file; `/proc/cpuinfo` of a thousand cores has about two MiB.
const MAX_BYTES: u64 = 16 << 20;

/// The folder under which `proc` and `sys` are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysRoot(pub PathBuf);

impl SysRoot {
    /// The machine that runs this program.
    #[must_use]
    pub fn live() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A path below the root; a leading `/` does not leave it.
    pub(super) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        let relative = relative.as_ref();
        self.0.join(relative.strip_prefix("/").unwrap_or(relative))
    }

    pub(super) fn bytes(&self, relative: impl AsRef<Path>) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        let file = File::open(self.path(relative)).ok()?;
        file.take(MAX_BYTES).read_to_end(&mut content).ok()?;
        Some(content)
    }

    pub(super) fn text(&self, relative: impl AsRef<Path>) -> Option<String> {
        String::from_utf8(self.bytes(relative)?).ok()
    }

    /// The file's only line, trimmed; `None` if it is empty.
    pub(super) fn line(&self, relative: impl AsRef<Path>) -> Option<String> {
        let text = self.text(relative)?;
        let line = text.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    pub(super) fn number<T: std::str::FromStr>(&self, relative: impl AsRef<Path>) -> Option<T> {
        self.line(relative)?.parse().ok()
    }

    /// The numbers that follow `prefix` in the names of a folder, ascending: 0 and 12 for `node`
    /// where the folder has `node0`, `node12` and `online`.
    pub(super) fn numbered(&self, folder: impl AsRef<Path>, prefix: &str) -> Vec<u16> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut numbers: Vec<u16> = entries
            .filter_map(|entry| {
                entry.ok()?.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// The names in a folder, ascending.
    pub(super) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}
