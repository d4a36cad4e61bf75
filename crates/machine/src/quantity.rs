//! A number and how far it may be trusted: published, assumed, or not known at all.
//!
//! Every cost in a machine description is one of the three, so that no output can use an assumed
//! number without being able to say so. Nothing here turns one kind into another.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A number with its standing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Published or reported.
    Known {
        /// The number.
        value: f64,
        /// The smallest value published beside it, where there is one.
        min: Option<f64>,
        /// The largest value published beside it, where there is one.
        max: Option<f64>,
        /// Where it stands: a source's id, then section or table.
        source: String,
    },
    /// Not published; a stand-in, to be swept over its range.
    Assumed {
        /// The stand-in.
        value: f64,
        /// Lowest value to sweep.
        low: f64,
        /// Highest value to sweep.
        high: f64,
        /// Why this value and this range.
        why: String,
    },
    /// Not published, and nothing stands in for it.
    Unknown {
        /// What was looked for and where.
        why: String,
    },
}

impl Quantity {
    /// The number, if there is one; assumed or not.
    #[must_use]
    pub const fn value(&self) -> Option<f64> {
        match self {
            Self::Known { value, .. } | Self::Assumed { value, .. } => Some(*value),
            Self::Unknown { .. } => None,
        }
    }

    /// Whether the number was published or reported.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        matches!(self, Self::Known { .. })
    }

    /// The values to sweep: the range of an assumed number, the number itself where it is known.
    #[must_use]
    pub const fn sweep(&self) -> Option<(f64, f64)> {
        match self {
            Self::Known { value, .. } => Some((*value, *value)),
            Self::Assumed { low, high, .. } => Some((*low, *high)),
            Self::Unknown { .. } => None,
        }
    }
}

/// A named number of a machine: a latency, a bandwidth, a clock rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// What it is called, unique in its machine: `"R_L"`, `"near latency"`.
    pub name: String,
    /// What the name means, in a few words.
    pub what: String,
    /// Its unit: `"ns"`, `"GB/s"`, `"cycles"`, `"threads"`.
    pub unit: String,
    /// The number and its standing.
    pub value: Quantity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_number_is_known_and_only_an_assumed_one_has_a_range() {
        let known = Quantity::Known { value: 2.3, min: None, max: None, source: "a, 2".into() };
        let assumed = Quantity::Assumed { value: 5.0, low: 2.0, high: 9.0, why: "x".into() };
        let unknown = Quantity::Unknown { why: "x".into() };
        assert_eq!((known.value(), known.sweep()), (Some(2.3), Some((2.3, 2.3))));
        assert_eq!((assumed.value(), assumed.sweep()), (Some(5.0), Some((2.0, 9.0))));
        assert_eq!((unknown.value(), unknown.sweep()), (None, None));
        assert!(known.is_known() && !assumed.is_known() && !unknown.is_known());
    }
}
