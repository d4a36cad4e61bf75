//! What a number is: where it was read, how it stands, at which level, and in which unit.

use core::fmt;

/// Which reading a number comes from. A ratio lies within one of them, or names both
/// ([`Ratio`](crate::Ratio)).
///
/// With the feature `serde` it is written as its word, and any other word is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Reading {
    /// Timed on the machine that the program ran on.
    Measured,
    /// Derived from an atlas or a machine description.
    Predicted,
    /// Produced by a modelled machine in virtual time.
    Simulated,
    /// Printed in a paper or a manual.
    Published,
}

impl Reading {
    /// All readings.
    pub const ALL: [Self; 4] = [Self::Measured, Self::Predicted, Self::Simulated, Self::Published];

    /// The word that every output prints.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Predicted => "predicted",
            Self::Simulated => "simulated",
            Self::Published => "published",
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a number that goes into a model may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Standing {
    /// Published, reported, or following from such numbers by a stated rule.
    Known,
    /// A stand-in, to be swept over its interval.
    Assumed,
    /// Found so that other numbers than those it is judged by come out.
    Fitted,
    /// Found so that the very numbers it is judged by come out: agreement with them proves little.
    InSample,
}

impl Standing {
    /// All standings, best first.
    pub const ALL: [Self; 4] = [Self::Known, Self::Assumed, Self::Fitted, Self::InSample];

    /// The word that outputs print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Assumed => "assumed",
            Self::Fitted => "fitted",
            Self::InSample => "in-sample",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a line is when its latency is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// In the last-level cache and in no nearer one.
    Llc,
    /// In no cache.
    Dram,
}

impl Level {
    /// Both levels, nearest first.
    pub const ALL: [Self; 2] = [Self::Llc, Self::Dram];

    /// Lower-case name, as JSON and file formats write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Llc => "llc",
            Self::Dram => "dram",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Llc => "LLC",
            Self::Dram => "DRAM",
        })
    }
}

/// The coherence state that a line has in its owner's cache when another core asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineState {
    /// Written by the owner, different from memory.
    Modified,
    /// Read by the owner alone.
    Exclusive,
    /// Read by the owner and at least one other core.
    Shared,
}

impl LineState {
    /// All states, in the order in which tables print them.
    pub const ALL: [Self; 3] = [Self::Modified, Self::Exclusive, Self::Shared];

    /// Lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Modified => "modified",
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for LineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Cycles of the time-stamp counter: the raw result of one timed operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u32);
