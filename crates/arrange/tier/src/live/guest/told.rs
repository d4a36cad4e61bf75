//! What a process is told by its environment: one variable, one line.

use super::settings::FAST_BYTES_MIN;
use crate::live::far::FarKind;

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

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { fast_bytes, large_bytes, far, reports } = self;
        // A folder's name may have blanks: so it is told how long the far tier's words are.
        let far = far.to_string();
        write!(f, "2 {fast_bytes} {large_bytes} {} {far} {reports}", far.len())
    }
}

impl Told {
    /// Reads what [`Self`] is written as; nothing of what is not.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        (words.next()? == "2").then_some(())?;
        let fast_bytes = words.next()?.parse().ok().filter(|bytes| *bytes >= FAST_BYTES_MIN)?;
        let large_bytes = words.next()?.parse().ok()?;
        let far_bytes = words.next()?.parse().ok()?;
        let (far, reports) = words.next()?.split_at_checked(far_bytes)?;
        let (far, reports) = (FarKind::parse(far).ok()?, reports.strip_prefix(' ')?.to_owned());
        Some(Self { fast_bytes, large_bytes, far, reports })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let reports = "/a folder/with blanks".to_owned();
        for far in ["lz4", "zstd", "file:/a folder/with blanks", "region:3"] {
            let far = FarKind::parse(far).unwrap();
            let told =
                Told { fast_bytes: 1 << 30, large_bytes: 1 << 20, far, reports: reports.clone() };
            assert_eq!(Told::parse(&told.to_string()), Some(told));
        }
        for text in [
            "",
            "1 1048576 1 lz4 /",
            "2 1 1048576 3 lz4 /",
            "2 1048576 1 4 tape /",
            "2 1048576 1 9 lz4 /",
            "2 1048576 1 2 lz4 /",
            "2 9999999",
        ] {
            assert_eq!(Told::parse(text), None, "{text}");
        }
    }
}
