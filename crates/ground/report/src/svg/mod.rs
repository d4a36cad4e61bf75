//! Figures as standalone SVG text. Each figure is a plain struct of numbers and words, and one
//! function that draws it.
//!
//! A figure follows the page it stands on: text and lines take their colours from the CSS
//! variables `--fig-ink`, `--fig-muted`, `--fig-rule`, `--fig-paper` and `--fig-0` to `--fig-7`,
//! and where these are not set from the reader's preference for a light or dark page. Colours
//! that carry a number are the same on both. A figure never holds a script or an address outside
//! itself, and any input gives well-formed XML.

mod canvas;
mod clusters;
mod dots;
mod floor_plan;
mod grouped;
mod heat_map;
mod histogram;
mod key_map;
mod legend;
mod line_chart;
mod strip;

pub use crate::scale::Scale;
pub(crate) use canvas::escape;
pub use clusters::Cluster;
pub use floor_plan::{FloorPlan, Outline, Place, PlaceKind, Verdict, floor_plan};
pub use grouped::{Group, GroupMark, GroupPanel, Grouped, grouped};
pub use heat_map::{HeatMap, heat_map};
pub use histogram::{Histogram, HistogramPanel, HistogramSeries, histogram};
pub use key_map::{KeyMap, key_map};
pub use line_chart::{Axis, LineChart, LineSeries, Mark, Point, TickText, line_chart};
pub use strip::{Strip, StripRow, strip};

#[cfg(test)]
mod tests;
