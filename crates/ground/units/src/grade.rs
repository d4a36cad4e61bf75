//! How far what was measured may be believed.

use core::fmt;

/// How far an experiment may be believed: what else the machine did meanwhile, and what that left of it.
///
/// With the feature `serde` it is written as its word, and any other word is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Grade {
    /// Not to be gone by.
    Unusable = 0,
    /// Measured beside other work: intervals hold, but a shift that lasted throughout is in them.
    Disturbed = 1,
    /// Measured alone.
    Quiet = 2,
}

impl Grade {
    /// All grades, worst first; files number them so.
    pub const ALL: [Self; 3] = [Self::Unusable, Self::Disturbed, Self::Quiet];

    /// The least grade that an arranger goes by. What is worse counts as not measured.
    pub const USABLE: Self = Self::Disturbed;

    /// The word that outputs print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unusable => "unusable",
            Self::Disturbed => "disturbed",
            Self::Quiet => "quiet",
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
