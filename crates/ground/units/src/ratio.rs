//! Ratios that know where both of their numbers were read.
//!
//! A measured time over a predicted one is no speed-up. So a ratio is made within one reading, or across two
//! that it then names. It never guesses either.

use core::fmt;

use crate::Reading;

/// Where the two numbers of a ratio were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Readings {
    /// Both in the same way.
    One(Reading),
    /// In two ways, which every output must name.
    Both {
        /// The number above the line.
        above: Reading,
        /// The number under it.
        under: Reading,
    },
}

impl Readings {
    /// Of a number over another.
    #[must_use]
    pub fn of(above: Reading, under: Reading) -> Self {
        if above == under { Self::One(above) } else { Self::Both { above, under } }
    }
}

impl fmt::Display for Readings {
    /// `predicted`, or `measured over published`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(reading) => reading.fmt(f),
            Self::Both { above, under } => write!(f, "{above} over {under}"),
        }
    }
}

/// A number over another, with where both were read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    value: f64,
    readings: Readings,
}

impl Ratio {
    /// `above / under`, both of one reading.
    #[must_use]
    pub fn within(reading: Reading, above: f64, under: f64) -> Self {
        Self { value: above / under, readings: Readings::One(reading) }
    }

    /// `above / under`, each with its reading.
    #[must_use]
    pub fn across(above: (f64, Reading), under: (f64, Reading)) -> Self {
        Self { value: above.0 / under.0, readings: Readings::of(above.1, under.1) }
    }

    /// A ratio that is stated as one number, as papers do.
    #[must_use]
    pub const fn stated(reading: Reading, value: f64) -> Self {
        Self { value, readings: Readings::One(reading) }
    }

    /// The quotient.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.value
    }

    /// Where its numbers were read.
    #[must_use]
    pub const fn readings(self) -> Readings {
        self.readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading::{Measured, Predicted, Published};

    extern crate std;

    #[test]
    fn a_ratio_names_one_reading_or_both() {
        let within = Ratio::within(Predicted, 3.0, 2.0);
        assert_eq!((within.value(), within.readings()), (1.5, Readings::One(Predicted)));
        let across = Ratio::across((3.0, Measured), (2.0, Published));
        assert_eq!(
            (across.value(), std::format!("{}", across.readings())),
            (1.5, "measured over published".into())
        );
        let same = Ratio::across((3.0, Measured), (2.0, Measured));
        assert_eq!(std::format!("{}", same.readings()), "measured");
        assert_eq!(Ratio::stated(Published, 1.6).readings(), Readings::One(Published));
    }
}
