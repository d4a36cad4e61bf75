//! The words that every part of Isochrone shares: identifiers, units, and which reading a
//! number comes from.
//!
//! This crate has no dependency and allocates nothing, so that it can stand below the malloc
//! replacement as well as below the simulator. It never does arithmetic beyond conversion.

#![no_std]

mod ids;
mod reading;

pub use ids::{CoreId, LINE_BYTES, LINES_PER_PAGE, LineAddr, PAGE_BYTES, PageAddr, RegionId};
pub use reading::{Cycles, Level, LineState, Reading};
