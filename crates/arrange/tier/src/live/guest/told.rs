//! What a process is told by its environment: one variable, one line.

use isochrone_os::OsError;
use isochrone_units::{PAGE_BYTES, RegionId};

use super::settings::{FAST_BYTES_MIN, FarKind};
use crate::live::far::Memory;

/// The variable.
pub const VARIABLE: &str = "ISOCHRONE_PAGER";

/// How a record's file is named.
pub const SUFFIX: &str = ".pager";

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Bytes of its large mappings that may be in fast memory.
    pub fast_bytes: usize,
    /// Mappings of so many bytes and more are paged.
    pub large_bytes: usize,
    /// Where the rest is.
    pub far: FarKind,
    /// The folder for records.
    pub reports: String,
}

impl FarKind {
    /// Reads `lz4` or `region:N`.
    ///
    /// # Errors
    /// What is offered.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const OFFERED: &str = "lz4 or region:N (file: and zstd are not offered)";
        if text == "lz4" {
            return Ok(Self::Lz4);
        }
        let number = text.strip_prefix("region:").and_then(|number| number.parse().ok());
        number.map(|number| Self::Region(RegionId(number))).ok_or(OFFERED)
    }
}

impl FarKind {
    /// Whether it can be had here.
    ///
    /// # Errors
    /// [`OsError`] where there is no such region, or it may not be used.
    pub fn check(self) -> Result<(), OsError> {
        match self {
            Self::Lz4 => Ok(()),
            Self::Region(region) => Memory::new(PAGE_BYTES, Some(region)).map(drop),
        }
    }
}

impl std::fmt::Display for FarKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lz4 => f.write_str("lz4"),
            Self::Region(region) => write!(f, "region:{}", region.0),
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { fast_bytes, large_bytes, far, reports } = self;
        write!(f, "1 {fast_bytes} {large_bytes} {far} {reports}")
    }
}

impl Told {
    /// Reads what [`Self`] is written as; nothing of what is not.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        (words.next()? == "1").then_some(())?;
        let fast_bytes = words.next()?.parse().ok().filter(|bytes| *bytes >= FAST_BYTES_MIN)?;
        let large_bytes = words.next()?.parse().ok()?;
        let far = FarKind::parse(words.next()?).ok()?;
        Some(Self { fast_bytes, large_bytes, far, reports: words.next()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let reports = "/a folder/with blanks".to_owned();
        for far in [FarKind::Lz4, FarKind::Region(RegionId(3))] {
            let told =
                Told { fast_bytes: 1 << 30, large_bytes: 1 << 20, far, reports: reports.clone() };
            assert_eq!(Told::parse(&told.to_string()), Some(told));
        }
        for text in ["", "2 1 1 lz4 /", "1 1 1048576 lz4 /", "1 1048576 1 zstd /", "1 9999999"] {
            assert_eq!(Told::parse(text), None, "{text}");
        }
    }
}
