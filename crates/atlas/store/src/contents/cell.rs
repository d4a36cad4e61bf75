//! A number with its spread, as atlases hold it.

use serde::{Deserialize, Serialize};

/// One measured quantity with its spread. The unit is in the name of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Median over samples (or over lines, where the field says so).
    pub median: f64,
    /// Lower end of the 95 % confidence interval of the median.
    pub lo: f64,
    /// Upper end of the 95 % confidence interval of the median.
    pub hi: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 95th percentile.
    pub p95: f64,
    /// How many values stand behind the cell.
    pub n: u32,
}

impl Cell {
    /// One value, whose spread is not known.
    #[must_use]
    pub const fn single(value: f64) -> Self {
        Self { median: value, lo: value, hi: value, p5: value, p95: value, n: 1 }
    }
}
