//! Turns numbers into something to read: tables, SVG figures, one self-contained HTML page,
//! pictures for the terminal, and JSON with the name of its format.
//!
//! This crate knows numbers and words, not parts: of Isochrone it depends on the units alone, so a
//! new part is reported without touching it. It never measures, never touches a file, a clock or
//! the network, and never prints: every function returns text.
//!
//! A missing number is `None` and is drawn as missing (hatched, or a dash), never as 0. A number
//! that is not finite counts as missing. All text is escaped here, so callers pass it plain.
//!
//! ```
//! use isochrone_report::{html, svg, table};
//! use isochrone_units::Reading;
//!
//! let map = svg::HeatMap {
//!     title: "Core-to-core line transfer".into(),
//!     unit: "ns".into(),
//!     rows: vec!["core 0".into(), "core 1".into()],
//!     columns: vec!["core 0".into(), "core 1".into()],
//!     cells: vec![None, Some(59.8), Some(60.4), None],
//!     ..svg::HeatMap::default()
//! };
//! let mut numbers = table::Table::new(["from", "to", "ns"]);
//! numbers.row(["core 0".into(), "core 1".into(), table::Cell::number(59.8, "59.8")]);
//! let page = html::Page {
//!     title: "Latency atlas".into(),
//!     badges: vec![html::Badge::Reading(Reading::Measured)],
//!     sections: vec![html::Section {
//!         id: "pairs".into(),
//!         heading: "Between cores".into(),
//!         figures: vec![html::Figure {
//!             svg: svg::heat_map(&map),
//!             caption: "Median over 64 lines.".into(),
//!             table: Some(numbers),
//!             ..html::Figure::default()
//!         }],
//!         ..html::Section::default()
//!     }],
//!     ..html::Page::default()
//! };
//! assert!(page.render().starts_with("<!doctype html>"));
//! ```

mod cast;
mod colour;
pub mod fmt;
pub mod html;
mod inline;
pub mod json;
pub mod lines;
mod png;
mod scale;
pub mod svg;
pub mod table;
pub mod term;
