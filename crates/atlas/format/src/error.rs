//! Why bytes are refused as an atlas, in words that say what to do next.

use core::fmt;

/// Why bytes are not a usable atlas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtlasError {
    /// The bytes do not begin as an atlas does.
    Foreign,
    /// The file ends early.
    Truncated {
        /// Bytes that are there.
        found: u64,
        /// Bytes that the header promises, or the size of a header.
        expected: u64,
    },
    /// The file goes on after its end.
    TooLong {
        /// Bytes that are there.
        found: u64,
        /// Bytes that the header promises.
        expected: u64,
    },
    /// The checksum does not fit the bytes.
    Checksum {
        /// Checksum of the bytes.
        found: u32,
        /// Checksum in the header.
        expected: u32,
    },
    /// The bytes were swapped by a conversion.
    ByteOrder,
    /// Written by an earlier version of the format, which had one byte for a code.
    Past {
        /// Its major version.
        found: u16,
        /// The oldest that is understood.
        known: u16,
    },
    /// Written by a later version of the format.
    Future {
        /// Its major version.
        found: u16,
        /// The newest that is understood.
        known: u16,
    },
    /// The checksum fits but a part contradicts another: a fault of the writer.
    Inconsistent {
        /// The part.
        part: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl fmt::Display for AtlasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = "copy the atlas again or measure anew";
        match self {
            Self::Foreign => {
                f.write_str("not an atlas: another kind of file; give one that `map` wrote")
            }
            Self::Truncated { found, expected } => {
                write!(f, "truncated: {found} of {expected} bytes are there; {again}")
            }
            Self::TooLong { found, expected } => {
                write!(f, "damaged: {found} bytes where the header says {expected}; {again}")
            }
            Self::Checksum { found, expected } => write!(
                f,
                "damaged: checksum {found:08x} where the header says {expected:08x}; {again}"
            ),
            Self::ByteOrder => {
                f.write_str("damaged: its byte order was changed; copy the atlas as it was written")
            }
            Self::Past { found, known } => write!(
                f,
                "written in format {found}, this program reads format {known} and later; measure anew"
            ),
            Self::Future { found, known } => write!(
                f,
                "written in format {found}, this program knows up to {known}; update the program"
            ),
            Self::Inconsistent { part, why } => {
                write!(f, "inconsistent: {part}: {why}; measure anew and report this file as a bug")
            }
        }
    }
}

impl core::error::Error for AtlasError {}
