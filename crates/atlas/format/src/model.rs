//! The form that latencies follow:
//! `latency(core, page, i) = base[core][class(page)][i ^ key(page)]`.
//!
//! A code packs class and key so that one XOR finds the value: the code is `class * period + key`,
//! and `table[code ^ i]` is already `base[class][i ^ key]`, because the line index never reaches
//! the class bits. It never learns a pattern: `probe` does.

use core::fmt;

/// Entries of a pattern table: classes times period, at most. Sixteen classes of 64 lines: a hash
/// over a number of slices that is no power of two repeats after several pages (eight on a Granite
/// Rapids), and each page of such a run, on each node that memory lies on, is a class.
pub const TABLE_ENTRIES: usize = 1024;

/// Keys of the longest period.
const KEYS_MAX: usize = 256;

/// Lines after which the pattern repeats up to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// One 4 KiB page; up to sixteen classes of page.
    Lines64,
    /// Four pages (16 KiB), which share one code; up to four classes.
    Lines256,
}

impl Period {
    /// From a number of lines, as files store it.
    #[must_use]
    pub const fn from_lines(lines: u16) -> Option<Self> {
        match lines {
            64 => Some(Self::Lines64),
            256 => Some(Self::Lines256),
            _ => None,
        }
    }

    /// As a number of lines.
    #[must_use]
    pub const fn lines(self) -> usize {
        match self {
            Self::Lines64 => 64,
            Self::Lines256 => 256,
        }
    }

    /// Bits of a key.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Lines64 => 6,
            Self::Lines256 => 8,
        }
    }

    /// Mask that takes a line's index in its period from the low byte of its number.
    #[must_use]
    pub const fn mask(self) -> u8 {
        match self {
            Self::Lines64 => 63,
            Self::Lines256 => 255,
        }
    }

    /// Classes that fit into a table.
    #[must_use]
    pub const fn max_classes(self) -> usize {
        TABLE_ENTRIES / self.lines()
    }
}

/// What is known of a page, in two bytes: its class and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u16);

impl Code {
    /// The code of a page that was not decoded; no table has it.
    pub const UNKNOWN: Self = Self(u16::MAX);

    /// The code of a class and a key; `None` where the period has no such class or key.
    #[must_use]
    pub const fn new(period: Period, class: u8, key: u8) -> Option<Self> {
        if (class as usize) < period.max_classes() && key <= period.mask() {
            Some(Self((class as u16) << period.bits() | key as u16))
        } else {
            None
        }
    }

    /// The page class.
    #[must_use]
    pub const fn class(self, period: Period) -> u8 {
        let [class, _] = (self.0 >> period.bits()).to_le_bytes();
        class
    }

    /// The key that permutes the pattern.
    #[must_use]
    pub const fn key(self, period: Period) -> u8 {
        let [key, _] = self.0.to_le_bytes();
        key & period.mask()
    }
}

/// One base, laid out so that a code and a line index find a latency with one XOR.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternTable {
    values: [f32; TABLE_ENTRIES],
    period: Period,
    classes: u8,
}

impl PatternTable {
    /// From one pattern a class, each `period` long, in cycles.
    ///
    /// # Errors
    /// [`ModelError`] for a wrong number of classes, a wrong length, or a value that is not a
    /// finite number.
    pub fn new<'p>(
        period: Period,
        patterns: impl IntoIterator<Item = &'p [f32]>,
    ) -> Result<Self, ModelError> {
        let mut values = [f32::NAN; TABLE_ENTRIES];
        let mut classes = 0_u8;
        for pattern in patterns {
            if usize::from(classes) == period.max_classes() {
                return Err(ModelError::TooManyClasses { most: period.max_classes() });
            }
            if pattern.len() != period.lines() {
                return Err(ModelError::PatternLength {
                    found: pattern.len(),
                    expected: period.lines(),
                });
            }
            if !pattern.iter().all(|value| value.is_finite()) {
                return Err(ModelError::NotFinite);
            }
            let start = usize::from(classes) * period.lines();
            values[start..start + period.lines()].copy_from_slice(pattern);
            classes += 1;
        }
        if classes == 0 {
            return Err(ModelError::NoClasses);
        }
        Ok(Self { values, period, classes })
    }

    /// From a full table as files store it. `None` unless the first `classes` patterns are finite.
    pub(crate) fn from_values(
        period: Period,
        classes: u8,
        values: [f32; TABLE_ENTRIES],
    ) -> Option<Self> {
        let used = usize::from(classes) * period.lines();
        let known = used > 0 && values.get(..used)?.iter().all(|value| value.is_finite());
        known.then_some(Self { values, period, classes })
    }

    /// Latency in cycles of a line of a page with this code; `line` is the line's number modulo
    /// 256. NaN where the code names a class that the table has not.
    #[must_use]
    pub fn latency_cycles(&self, code: Code, line: u8) -> f32 {
        let place = usize::from(code.0 ^ u16::from(line & self.period.mask()));
        self.values.get(place).copied().unwrap_or(f32::NAN)
    }

    /// Lines after which the pattern repeats.
    #[must_use]
    pub const fn period(&self) -> Period {
        self.period
    }

    /// Page classes.
    #[must_use]
    pub const fn classes(&self) -> u8 {
        self.classes
    }

    /// Codes in use: `0..codes()`.
    #[must_use]
    pub const fn codes(&self) -> usize {
        self.classes as usize * self.period.lines()
    }

    /// The values by code, NaN beyond the last class.
    #[must_use]
    pub const fn values(&self) -> &[f32; TABLE_ENTRIES] {
        &self.values
    }

    /// Pearson correlation between the patterns that two keys give, the lowest over the classes.
    /// A pattern without any difference between its lines correlates perfectly with itself.
    #[must_use]
    pub fn key_correlation(&self, a: u8, b: u8) -> f32 {
        let shift = usize::from((a ^ b) & self.period.mask());
        self.values[..self.codes()]
            .chunks_exact(self.period.lines())
            .map(|pattern| shifted_correlation(pattern, shift))
            .fold(1.0, f32::min)
    }

    /// For every key the smallest key whose pattern correlates with it at `at_least` or more.
    /// Entries beyond the period are 0.
    #[must_use]
    pub fn canonical_keys(&self, at_least: f32) -> [u8; KEYS_MAX] {
        let mut alike = [false; KEYS_MAX];
        let mut canonical = [0; KEYS_MAX];
        for shift in 0..=self.period.mask() {
            alike[usize::from(shift)] = self.key_correlation(0, shift) >= at_least;
        }
        for key in 0..=self.period.mask() {
            let smallest = (0..=key).find(|&other| alike[usize::from(other ^ key)]);
            canonical[usize::from(key)] = smallest.unwrap_or(key);
        }
        canonical
    }
}

/// Correlation of a pattern with itself, line indices XORed with `shift`.
fn shifted_correlation(pattern: &[f32], shift: usize) -> f32 {
    let (mut sum, mut squares, mut products) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (index, &value) in pattern.iter().enumerate() {
        let other = pattern.get(index ^ shift).copied().unwrap_or(value);
        sum += f64::from(value);
        squares += f64::from(value) * f64::from(value);
        products += f64::from(value) * f64::from(other);
    }
    let count = lines_f64(pattern.len());
    let variance = squares / count - (sum / count) * (sum / count);
    let covariance = products / count - (sum / count) * (sum / count);
    // Below this the differences are rounding of the sums, not of the memory.
    if variance <= 1e-9 * (squares / count) { 1.0 } else { narrow(covariance / variance) }
}

/// A count of lines as a number; exact, since no pattern is longer than 256.
fn lines_f64(count: usize) -> f64 {
    u16::try_from(count).map_or(f64::MAX, f64::from)
}

/// Rounds to the precision that tables hold.
#[allow(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
pub(crate) const fn narrow(value: f64) -> f32 {
    value as f32
}

/// Why patterns make no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// There is no pattern at all.
    NoClasses,
    /// More classes than a table holds.
    TooManyClasses {
        /// Most that fit with this period.
        most: usize,
    },
    /// A pattern is not one period long.
    PatternLength {
        /// Its length.
        found: usize,
        /// The period.
        expected: usize,
    },
    /// A pattern, share or noise is not a finite positive number.
    NotFinite,
    /// A list of canonical keys or shares has the wrong length or names a code that is not there.
    CodeList {
        /// Entries given.
        found: usize,
        /// Entries expected.
        expected: usize,
    },
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClasses => f.write_str("a base needs at least one pattern; learn it first"),
            Self::TooManyClasses { most } => {
                write!(f, "a table holds at most {most} classes; merge the nearest ones")
            }
            Self::PatternLength { found, expected } => {
                write!(f, "a pattern has {found} lines where its period has {expected}")
            }
            Self::NotFinite => {
                f.write_str("a latency, share or noise is not finite; measure that line again")
            }
            Self::CodeList { found, expected } => write!(
                f,
                "a list by code has {found} entries, or one out of range; give {expected} or none"
            ),
        }
    }
}

impl core::error::Error for ModelError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn ramp(len: usize) -> Vec<f32> {
        (0..len).map(|i| f32::from(u16::try_from(i * 37 % len).unwrap())).collect()
    }

    #[test]
    fn a_code_is_its_class_and_key() {
        for class in 0..16 {
            for key in 0..64 {
                let code = Code::new(Period::Lines64, class, key).unwrap();
                assert_eq!((code.class(Period::Lines64), code.key(Period::Lines64)), (class, key));
            }
        }
        assert_eq!(Code::new(Period::Lines64, 16, 0), None);
        assert_eq!(Code::new(Period::Lines64, 0, 64), None);
        assert_eq!(Code::new(Period::Lines256, 4, 0), None);
        assert_eq!(Code::new(Period::Lines256, 3, 200), Some(Code(968)));
        assert_eq!(Code(200).key(Period::Lines256), 200);
    }

    #[test]
    fn one_xor_is_the_form() {
        let shifted = |by: f32| ramp(64).iter().map(|value| value + by).collect();
        let patterns: Vec<Vec<f32>> = [0.0, 100.0, 200.0].into_iter().map(shifted).collect();
        let table = PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice)).unwrap();
        for class in 0..3_u8 {
            for key in 0..64_u8 {
                for line in 0..64_u8 {
                    let code = Code::new(Period::Lines64, class, key).unwrap();
                    let expected = patterns[usize::from(class)][usize::from(line ^ key)];
                    assert_eq!(table.latency_cycles(code, line), expected);
                    assert_eq!(table.latency_cycles(code, line + 64), expected);
                }
            }
        }
        assert!(table.latency_cycles(Code(192), 0).is_nan());
        assert!(table.latency_cycles(Code::UNKNOWN, 0).is_nan());
        let wide = PatternTable::new(Period::Lines256, [ramp(256).as_slice()]).unwrap();
        assert_eq!(wide.latency_cycles(Code(5), 250), ramp(256)[250 ^ 5]);
    }

    #[test]
    fn bad_patterns_are_refused() {
        let short = ramp(63);
        assert_eq!(
            PatternTable::new(Period::Lines64, [short.as_slice()]),
            Err(ModelError::PatternLength { found: 63, expected: 64 })
        );
        let none: [&[f32]; 0] = [];
        assert_eq!(PatternTable::new(Period::Lines64, none), Err(ModelError::NoClasses));
        let long = ramp(256);
        assert_eq!(
            PatternTable::new(Period::Lines256, [long.as_slice(); 5]),
            Err(ModelError::TooManyClasses { most: 4 })
        );
        let mut holed = ramp(64);
        holed[7] = f32::NAN;
        assert_eq!(
            PatternTable::new(Period::Lines64, [holed.as_slice()]),
            Err(ModelError::NotFinite)
        );
    }

    #[test]
    fn keys_of_an_eight_line_pattern_fall_into_eight_classes() {
        let eight = [3.0, -4.0, 1.5, 5.0, -4.5, 0.0, -2.0, 1.0_f32];
        let pattern: Vec<f32> = (0..64).map(|i| 44.0 + eight[i % 8]).collect();
        let table = PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap();
        let canonical = table.canonical_keys(0.98);
        for (key, canonical) in canonical.iter().take(64).enumerate() {
            assert_eq!(usize::from(*canonical), key % 8);
        }
    }

    #[test]
    fn a_flat_pattern_has_one_key() {
        let table = PatternTable::new(Period::Lines64, [[360.1_f32; 64].as_slice()]).unwrap();
        assert!(table.canonical_keys(0.98).iter().all(|&key| key == 0));
        let ramp = ramp(64);
        let table = PatternTable::new(Period::Lines64, [ramp.as_slice()]).unwrap();
        let canonical = table.canonical_keys(0.98);
        assert!((0..64).all(|key| usize::from(canonical[key]) == key));
    }
}
