//! Far tiers by their names, for programs that are told by words.

use std::path::PathBuf;

use isochrone_os::OsError;
use isochrone_units::{PAGE_BYTES, RegionId};

use super::{Compressed, Far, File, Lz4, Memory, Zstd};

/// What the names are.
const OFFERED: &str = "lz4, zstd, file:DIR or region:N";
/// Room that what is written to a store needs before what it replaces is freed.
const SPARE_BYTES: usize = 1 << 20;

/// A far tier of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarKind {
    /// Compressed, in memory: the fastest.
    Lz4,
    /// Compressed, in memory: shorter.
    Zstd,
    /// A file without a name in a folder.
    File(PathBuf),
    /// A region of memory.
    Region(RegionId),
}

impl FarKind {
    /// Reads `lz4`, `zstd`, `file:DIR` or `region:N`.
    ///
    /// # Errors
    /// What is offered.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text.split_once(':') {
            None if text == "lz4" => Ok(Self::Lz4),
            None if text == "zstd" => Ok(Self::Zstd),
            Some(("file", folder)) if !folder.is_empty() => Ok(Self::File(folder.into())),
            Some(("region", number)) => {
                let number = number.parse().map_err(|_| OFFERED)?;
                Ok(Self::Region(RegionId(number)))
            }
            _ => Err(OFFERED),
        }
    }

    /// Makes it, for pages of this process alone, of an area of so many bytes.
    ///
    /// # Errors
    /// [`OsError`] where there is no such region or no such folder, it may not be used, or there are not so many
    /// addresses.
    pub(in super::super) fn make(&self, area_bytes: usize) -> Result<Box<dyn Far>, OsError> {
        let room = area_bytes.saturating_add(SPARE_BYTES);
        Ok(match self {
            Self::Lz4 => Box::new(Compressed::private(&Lz4, area_bytes, PAGE_BYTES, room)?),
            Self::Zstd => Box::new(Compressed::private(&Zstd, area_bytes, PAGE_BYTES, room)?),
            Self::File(folder) => Box::new(File::private(folder, area_bytes)?),
            Self::Region(region) => Box::new(Memory::new(area_bytes, Some(*region))?),
        })
    }

    /// Whether it can be had here.
    ///
    /// # Errors
    /// [`OsError`] where there is no such region or no such folder, or it may not be used.
    pub fn check(&self) -> Result<(), OsError> {
        self.make(PAGE_BYTES).map(drop)
    }
}

impl std::fmt::Display for FarKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd => f.write_str("zstd"),
            Self::File(folder) => write!(f, "file:{}", folder.display()),
            Self::Region(region) => write!(f, "region:{}", region.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["lz4", "zstd", "file:/a folder", "file:/with:a colon", "region:3"] {
            assert_eq!(FarKind::parse(name).unwrap().to_string(), name);
        }
        for name in
            ["", "lz4:", "zstd:3", "file", "file:", "region", "region:", "region:x", "tape:/"]
        {
            assert_eq!(FarKind::parse(name), Err(OFFERED), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for kind in [FarKind::Lz4, FarKind::Zstd, FarKind::File(folder.path().to_owned())] {
            kind.check().unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        let missing = FarKind::File(folder.path().join("missing")).check().unwrap_err();
        assert!(missing.to_string().contains("no such file"), "{missing}");
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let file = FarKind::File(file).check().unwrap_err();
        assert!(file.to_string().contains("not a folder"), "{file}");
    }
}
