//! The latency atlas as a program uses it: the form of the pattern, the matched filter that
//! decodes a page from a few timed loads, and a reader over the bytes of an atlas file.
//!
//! It stands below the malloc replacement, so nothing here allocates, panics on any input,
//! reads a clock, or talks to the system. It never writes an atlas: `isochrone-atlas-store` does.
//!
//! ```
//! use isochrone_atlas::{Code, Codebook, Decoder, Noise, PatternTable, Period};
//!
//! let base: Vec<f32> = (0..64).map(|line| 50.0 + (line * 37 % 64) as f32).collect();
//! let table = PatternTable::new(Period::Lines64, [base.as_slice()]).unwrap();
//! let book = Codebook::new(&table, &[], &[], Noise::heavy_tailed(8.0)).unwrap();
//! let mut decoder = Decoder::new(&book);
//! for line in [3, 17, 22, 28, 33, 40, 46, 51, 60] {
//!     // What a page with key 45 shows.
//!     decoder.add(&book, line, base[usize::from(line ^ 45)] + 1.0);
//! }
//! let decision = decoder.best(&book);
//! assert_eq!(decision.code, Code(45));
//! assert!(decision.error < 0.01);
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod codebook;
mod cost_queries;
mod costs;
mod error;
mod filter;
pub mod format;
mod identify;
mod matrices;
mod model;
mod packed;
mod pages;
mod penalties;
mod query;
mod reader;
mod sections;

pub use codebook::Codebook;
pub use costs::{BandwidthView, GroupLevel, HistogramView};
pub use error::AtlasError;
pub use filter::{Decision, Decoder};
pub use identify::{BaseContest, BaseMatch, CodedSample, identify_base};
pub use matrices::{Spread, TransferSpread};
pub use model::{Code, ModelError, PatternTable, Period, TABLE_ENTRIES};
pub use packed::{PackedCell, PackedMatrix};
pub use pages::PageBlockView;
pub use penalties::{Noise, PENALTY_ENTRIES, Penalties};
pub use query::LevelView;
pub use reader::{Atlas, LevelInfo};
