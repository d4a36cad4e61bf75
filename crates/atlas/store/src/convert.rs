//! Small conversions from the records of an atlas to those of its file, which all sections share.

use crate::contents::{Cell, LevelMap};
use crate::error::EncodeError;
use isochrone_atlas::format::{CellRecord, NONE_U16};
use isochrone_units::Level;

/// The level of a map by its name.
pub(crate) fn level_of(map: &LevelMap) -> Result<Level, EncodeError> {
    let level = Level::ALL.into_iter().find(|level| level.as_str() == map.level);
    level.ok_or_else(|| EncodeError::Word {
        what: "a level",
        found: map.level.clone(),
        expected: "llc or dram",
    })
}

/// A cell with its fastest line, NaN where there is none.
pub(crate) fn cell_record(cell: &Cell, best: f32) -> CellRecord {
    let [median, lo, hi, p5, p95] = [cell.median, cell.lo, cell.hi, cell.p5, cell.p95].map(single);
    CellRecord { values: [median, lo, hi, p5, p95, best], n: cell.n }
}

/// The number at the end of a label ("core 12"), which is how labels name cores and regions.
pub(crate) fn number_of(label: &str) -> u16 {
    let digits = label.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    label[digits..].parse().unwrap_or(NONE_U16)
}

/// Rounds to the precision of the binary sections; the text part keeps all digits.
#[allow(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
pub(crate) const fn single(value: f64) -> f32 {
    value as f32
}
