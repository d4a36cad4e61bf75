//! What a machine is, as plain values: cores, memory regions, caches, distances, costs and
//! published latency grids, each number with its source.
//!
//! The same [`Machine`] describes the machine that a program runs on (filled in by `host` from
//! the system) and a machine that nobody here owns (filled in from a text file with the numbers
//! of a paper). This crate never reads a file, never measures and never asks the system; a
//! number that is not known is missing or says why, and is never 0.

#![no_std]

extern crate alloc;

mod caveats;
mod cost;
mod description;
mod grid;
mod interconnect;
mod line_costs;
mod spans;
mod state;
mod value;

pub use cost::{Cost, Unknown};
pub use description::{
    Cache, CacheKind, Controller, Core, Cpu, Machine, Origin, Place, Region, RegionKind, Source,
};
pub use grid::{Grid, GridLabels};
pub use interconnect::{Interconnect, RingStop};
pub use line_costs::{AddedTerms, ClassCost, LineCosts, PairClass};
pub use spans::{spans, strides};
pub use state::{HugePages, MachineState};
pub use value::{Constant, Interval, Value};
