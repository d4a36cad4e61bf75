//! What every benchmark gives: how its figures are written and told is the same for all.

use isochrone_report::json::Format;
use serde::Serialize;

/// What a benchmark found: a record for the file, tables for people.
pub(super) trait Findings: Serialize {
    /// What its file is.
    const FORMAT: Format;

    /// Tables of at most `width` characters, and what they say in words.
    fn text(&self, width: u16) -> String;
}
