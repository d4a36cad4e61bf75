//! The costs of a machine: a number with its standing, or why there is none.
//!
//! No output can use an assumed number without being able to say so. The text of a description has its own
//! fields for each kind of number; they are here and nowhere else.

use alloc::string::String;

use isochrone_units::Standing;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::{Constant, Interval, Value};

/// A number that nobody published, and for which nothing stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The unit that it would have.
    pub unit: String,
    /// What was looked for and where.
    pub why: String,
}

/// A named number of a machine: a latency, a bandwidth, a clock rate.
pub type Cost = Constant<Result<Value, Unknown>>;

impl Cost {
    /// The number, if there is one; assumed or not.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        self.value.as_ref().ok().map(|value| value.number)
    }

    /// The values to sweep, if there is a number.
    #[must_use]
    pub fn sweep(&self) -> Option<(f64, f64)> {
        self.value.as_ref().ok().map(Value::sweep)
    }

    /// Its unit.
    #[must_use]
    pub fn unit(&self) -> &str {
        match &self.value {
            Ok(value) => &value.unit,
            Err(unknown) => &unknown.unit,
        }
    }

    /// The value, if it was published or reported.
    #[must_use]
    pub fn known(&self) -> Option<&Value> {
        self.of(Standing::Known)
    }

    /// The value, if it is a stand-in.
    #[must_use]
    pub fn assumed(&self) -> Option<&Value> {
        self.of(Standing::Assumed)
    }

    fn of(&self, standing: Standing) -> Option<&Value> {
        self.value.as_ref().ok().filter(|value| value.standing == standing)
    }
}

/// A cost as descriptions store it.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Stored {
    name: String,
    what: String,
    unit: String,
    value: StoredValue,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum StoredValue {
    Known { value: f64, min: Option<f64>, max: Option<f64>, source: String },
    Assumed { value: f64, low: f64, high: f64, why: String },
    Unknown { why: String },
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = match &self.value {
            Err(unknown) => StoredValue::Unknown { why: unknown.why.clone() },
            Ok(value) if value.standing == Standing::Known => StoredValue::Known {
                value: value.number,
                min: value.interval.low,
                max: value.interval.high,
                source: value.source.clone(),
            },
            Ok(value) if value.standing == Standing::Assumed => {
                let (low, high) = value.sweep();
                StoredValue::Assumed { value: value.number, low, high, why: value.source.clone() }
            }
            Ok(value) => {
                let word = value.standing.as_str();
                return Err(serde::ser::Error::custom(alloc::format!(
                    "cost {:?} is {word}; a description holds known, assumed and unknown costs",
                    self.name
                )));
            }
        };
        let (name, what, unit) = (self.name.clone(), self.what.clone(), self.unit().into());
        Stored { name, what, unit, value }.serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Cost {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Stored::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { name, what, unit, value } = Stored::deserialize(deserializer)?;
        let value = match value {
            StoredValue::Known { value, min, max, source } => {
                let interval = Interval { low: min, high: max };
                Ok(Value::published(value, unit, source).within(interval))
            }
            StoredValue::Assumed { value, low, high, why } => {
                Ok(Value::assumed(value, unit, why).within(Interval::between(low, high)))
            }
            StoredValue::Unknown { why } => Err(Unknown { unit, why }),
        };
        Ok(Self { name, what, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(value: Result<Value, Unknown>) -> Cost {
        Cost { name: "n".into(), what: "w".into(), value }
    }

    #[test]
    fn a_cost_is_stored_with_the_fields_of_its_kind() {
        let interval = Interval { low: None, high: Some(3.0) };
        let known = cost(Ok(Value::published(2.5, "ns", "a, 2").within(interval)));
        let range = Interval::between(2.0, 9.0);
        let assumed = cost(Ok(Value::assumed(5.0, "B", "x").within(range)));
        let unknown = cost(Err(Unknown { unit: "ns".into(), why: "y".into() }));
        for (cost, text) in [
            (
                &known,
                r#""ns","value":{"known":{"value":2.5,"min":null,"max":3.0,"source":"a, 2"}}}"#,
            ),
            (&assumed, r#""B","value":{"assumed":{"value":5.0,"low":2.0,"high":9.0,"why":"x"}}}"#),
            (&unknown, r#""ns","value":{"unknown":{"why":"y"}}}"#),
        ] {
            let text = alloc::format!(r#"{{"name":"n","what":"w","unit":{text}"#);
            assert_eq!(serde_json::to_string(cost).ok(), Some(text.clone()));
            assert_eq!(serde_json::from_str::<Cost>(&text).ok().as_ref(), Some(cost));
        }
        assert_eq!(
            (known.number(), assumed.number(), unknown.number()),
            (Some(2.5), Some(5.0), None)
        );
        assert!(known.known().is_some() && known.assumed().is_none());
        assert!(assumed.known().is_none() && assumed.assumed().is_some());
        assert!(unknown.known().is_none() && unknown.assumed().is_none());
    }

    #[test]
    fn a_description_holds_no_fitted_cost() {
        let fitted = cost(Ok(Value::fitted(1.0, "ns", "x")));
        assert!(serde_json::to_string(&fitted).is_err());
    }
}
