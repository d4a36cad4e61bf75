//! A number with everything that must be said beside it: its unit, where it may lie, where it was read,
//! and how far it may be believed.
//!
//! It is for what is stored or printed; what computes takes the plain number out. Nothing here turns one
//! standing into another.

use alloc::string::String;

use isochrone_units::{Reading, Standing};

/// Where a number may lie: either end may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Lower end, in the unit of the number.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Interval {
    /// Nothing is said of it.
    pub const NONE: Self = Self { low: None, high: None };

    /// Between two ends.
    #[must_use]
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low: Some(low), high: Some(high) }
    }

    /// Both ends, where both are known.
    #[must_use]
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }
}

/// A number that is stored or printed. `T` is another type than `f64` where the number is several, or words.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<T = f64> {
    /// The number.
    pub number: T,
    /// Its unit: `"ns"`, `"GB/s"`, `"cycles"`, `"threads"`; empty where it has none.
    pub unit: String,
    /// What was published beside a known number; what is swept of an assumed one.
    pub interval: Interval,
    /// Where it was read.
    pub reading: Reading,
    /// How far it may be believed.
    pub standing: Standing,
    /// Where it stands, by which rule it follows, on what it was fitted, or why it was assumed.
    pub source: String,
}

impl<T> Value<T> {
    /// Published or reported: `source` says where.
    pub fn published(number: T, unit: impl Into<String>, source: impl Into<String>) -> Self {
        Self::of(number, unit, Reading::Published, Standing::Known, source)
    }

    /// Follows from known numbers by the rule that `source` states.
    pub fn derived(number: T, unit: impl Into<String>, source: impl Into<String>) -> Self {
        Self::of(number, unit, Reading::Predicted, Standing::Known, source)
    }

    /// A stand-in: `source` says why this one.
    pub fn assumed(number: T, unit: impl Into<String>, source: impl Into<String>) -> Self {
        Self::of(number, unit, Reading::Predicted, Standing::Assumed, source)
    }

    /// Fitted on what `source` says, which is not what it is judged by.
    pub fn fitted(number: T, unit: impl Into<String>, source: impl Into<String>) -> Self {
        Self::of(number, unit, Reading::Predicted, Standing::Fitted, source)
    }

    /// Fitted on the very numbers that it is judged by: `source` says which.
    pub fn in_sample(number: T, unit: impl Into<String>, source: impl Into<String>) -> Self {
        Self::of(number, unit, Reading::Predicted, Standing::InSample, source)
    }

    fn of(
        number: T,
        unit: impl Into<String>,
        reading: Reading,
        standing: Standing,
        source: impl Into<String>,
    ) -> Self {
        let (unit, source) = (unit.into(), source.into());
        Self { number, unit, interval: Interval::NONE, reading, standing, source }
    }

    /// The same, with where it may lie.
    #[must_use]
    pub fn within(self, interval: Interval) -> Self {
        Self { interval, ..self }
    }
}

impl Value {
    /// The values to sweep: the interval of an assumed number, any other number itself.
    #[must_use]
    pub fn sweep(&self) -> (f64, f64) {
        let range = (self.standing == Standing::Assumed).then(|| self.interval.ends()).flatten();
        range.unwrap_or((self.number, self.number))
    }
}

/// A named number that a model or a description rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant<V = Value> {
    /// What it is called, unique in its list: `"R_L"`, `"near latency"`.
    pub name: String,
    /// What the name means, in a few words; empty where the name says it.
    pub what: String,
    /// The number.
    pub value: V,
}

impl<V> Constant<V> {
    /// A constant whose name says what it is.
    pub fn new(name: impl Into<String>, value: V) -> Self {
        Self { name: name.into(), what: String::new(), value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_assumed_number_is_swept() {
        let range = Interval::between(2.0, 9.0);
        let published = Value::published(2.3, "ns", "a, 2").within(range);
        let assumed = Value::assumed(5.0, "ns", "x").within(range);
        assert_eq!((published.sweep(), assumed.sweep()), ((2.3, 2.3), (2.0, 9.0)));
        assert_eq!(Value::assumed(5.0, "ns", "x").sweep(), (5.0, 5.0));
        assert_eq!(Value::fitted(5.0, "ns", "x").within(range).sweep(), (5.0, 5.0));
    }

    #[test]
    fn a_word_is_written_as_it_is_printed_and_another_is_refused() {
        for reading in Reading::ALL {
            let text = serde_json::to_value(reading).expect("a word");
            assert_eq!(text, reading.as_str());
            assert_eq!(serde_json::from_value::<Reading>(text).ok(), Some(reading));
        }
        for standing in Standing::ALL {
            let text = serde_json::to_value(standing).expect("a word");
            assert_eq!(text, standing.as_str());
        }
        let refused = serde_json::from_str::<Reading>(r#""guessed""#).expect_err("no reading");
        let words = alloc::string::ToString::to_string(&refused);
        assert!(words.contains("`guessed`") && words.contains("`measured`"), "{words}");
    }
}
