//! Comparisons of arms that do the same and take turns: the raw series, ratios within blocks with their
//! intervals, and when a difference is one.

mod ratio;
mod series;

pub use ratio::{BLOCKS_LEAST, Costs, Ratio, Verdict, blocks_for, geometric_mean, p_value};
pub use series::{Block, Run, Series};
