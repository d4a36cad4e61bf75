//! The words that every part of Isochrone shares: identifiers, units, and which reading a
//! number comes from.
//!
//! This crate allocates nothing and has no dependency but, where words are written or read, serde
//! (feature `serde`), so that it can stand below the malloc replacement as well as below the simulator.
//! It never does arithmetic beyond conversion.

#![no_std]

mod experiment;
mod grade;
mod ids;
mod ratio;
mod reading;
mod size;

pub use experiment::Experiment;
pub use grade::Grade;
pub use ids::{CoreId, LINE_BYTES, LINES_PER_PAGE, LineAddr, PAGE_BYTES, PageAddr, RegionId};
pub use ratio::{Ratio, Readings};
pub use reading::{Cycles, Level, LineState, Reading, Standing};
pub use size::{SizeError, parse_size, scaled_bytes};
