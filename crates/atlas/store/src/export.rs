//! An atlas in other programs' formats: JSON, CSV, and hwloc's XML.
//!
//! Each makes text and leaves it to the caller to put it somewhere. Missing values are null in
//! JSON and empty in CSV, never 0.

mod csv;
mod hwloc;
mod hwloc_tree;

use crate::contents::Contents;

pub use csv::csv;
pub use hwloc::{HwlocError, hwloc_xml};

/// The records as JSON text; page table and penalties, which are binary, are left out.
///
/// # Errors
/// If a number cannot be written, which [`crate::encode`] would have refused as well.
pub fn json(contents: &Contents) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(contents)
}

#[cfg(test)]
mod tests;
