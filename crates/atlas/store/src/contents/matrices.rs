//! Matrices of cells: memory regions as cores see them, and line transfers between cores.

use isochrone_units::{CoreId, RegionId};
use serde::{Deserialize, Serialize};

use super::cell::Cell;

/// A rectangular matrix of cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Matrix {
    /// What a cell is, with its unit: `"core-to-region latency, ns"`.
    pub what: String,
    /// Row labels.
    pub rows: Vec<String>,
    /// Column labels.
    pub columns: Vec<String>,
    /// Row-major cells.
    pub cells: Vec<Option<Cell>>,
}

/// Core-to-region latency by dependent chase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegionMap {
    /// `"in-order"`, `"random"`, `"stride"` or `"one-class"` (lines of one class of the atlas).
    pub mode: String,
    /// Bytes chased through.
    pub buffer_bytes: u64,
    /// Stride where the mode has one.
    pub stride_bytes: Option<u64>,
    /// Rows are cores, columns regions; nanoseconds a load.
    pub latency_ns: Matrix,
    /// Cores that there was no time for; others stand for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u16>,
}

impl RegionMap {
    /// A chase without a stride. `cells` are row by row: one row for each core, one column for each region.
    #[must_use]
    pub fn of_chase(
        mode: &str,
        buffer_bytes: u64,
        cores: impl IntoIterator<Item = CoreId>,
        regions: impl IntoIterator<Item = RegionId>,
        cells: Vec<Option<Cell>>,
    ) -> Self {
        let latency_ns = Matrix {
            what: format!("core-to-region latency, {mode} chase, ns"),
            rows: cores.into_iter().map(|core| core.to_string()).collect(),
            columns: regions.into_iter().map(|region| region.to_string()).collect(),
            cells,
        };
        let left_out = Vec::new();
        Self { mode: mode.to_owned(), buffer_bytes, stride_bytes: None, latency_ns, left_out }
    }
}

/// Line transfers between pairs of cores, in one coherence state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferMap {
    /// `"modified"`, `"exclusive"`, `"shared"`, or `"cas"` (compare-and-swap ping-pong).
    pub state: String,
    /// What one cell is: `"one way"` (a timed load of the owner's line) or `"half round trip"`.
    pub what: String,
    /// Lines used for every pair.
    pub lines: u32,
    /// Rows own the line, columns ask for it; nanoseconds, median over lines.
    pub latency_ns: Matrix,
    /// For each pair the fastest line, nanoseconds; same layout.
    pub best_line_ns: Vec<Option<f64>>,
    /// Where pairs were left out: what those say that were measured. Empty where every pair has a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strata: Vec<PairStratum>,
}

/// Pairs of cores that have the same in common, some of which were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairStratum {
    /// What they have in common: `"threads of one core"`, `"cores of one cache"`, `"cores of one region"`, or the two
    /// regions in which they sit.
    pub what: String,
    /// How many pairs there are, both directions counted as one.
    pub pairs: u32,
    /// How many of them have a number.
    pub measured: u32,
    /// Median of those, nanoseconds; `None` where none has.
    pub median_ns: Option<f64>,
    /// A pair without a number lies within so many nanoseconds of the median in 95 of 100 cases, by the spread of those
    /// that have one; `None` of fewer than three.
    pub error_ns: Option<f64>,
}
