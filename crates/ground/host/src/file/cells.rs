//! One cell of a drawing as text has it: a number, `"?"` for a core whose number is not
//! readable, `"-"` for a place where nothing is drawn. TOML has no null, so words stand for it.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    Whole(u32),
    Number(f64),
    Unreadable,
    Empty,
}

impl Cell {
    /// The number, whether written with a decimal point or without.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Whole(whole) => Some(f64::from(whole)),
            Self::Number(number) => Some(number),
            Self::Unreadable | Self::Empty => None,
        }
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl Visitor<'_> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"?\" where it is not readable, or \"-\" where nothing is drawn")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Cell, E> {
        Ok(Cell::Number(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Cell, E> {
        // Core numbers and latencies are far below 2^32; a larger one is refused, not rounded.
        match u32::try_from(value) {
            Ok(small) => Ok(Cell::Whole(small)),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Cell, E> {
        match text {
            "?" => Ok(Cell::Unreadable),
            "-" => Ok(Cell::Empty),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}
