//! Block latency: how far every line is from every core, and how to know it from a few of them.
//!
//! The way of the data: a [`plan`] chooses pages; [`rounds`] times their lines again and again,
//! cut where the vCPU moved; `survey` seeks rare pages far away; [`learn`] finds classes, base and
//! keys; [`lines`] chooses which lines to probe first; `dictionary` and `current` say what the current base
//! of a core is;
//! `verify` asks the cores that were not learnt in full, `abreast` several at the same time;
//! [`decode`] gives every page its code, `team` on several cores at the same time; [`score`] judges all of
//! it on pages that were held out;
//! [`moves`] brings the measuring thread back where something else moved it; [`run`] joins the
//! steps.

mod abreast;
mod apart;
pub mod base;
mod books;
mod current;
pub mod decode;
mod decoding_core;
mod dictionary;
mod explained;
mod far;
mod fit;
mod forks;
mod heldout;
mod keys;
pub mod learn;
mod left_out;
mod level;
pub mod lines;
pub mod moves;
mod number;
mod pass;
pub mod plan;
pub mod residuals;
pub mod rounds;
pub mod run;
pub mod score;
mod shapes;
mod survey;
mod team;
mod verify;
mod views;
mod walsh;

pub use plan::BlockPlan;
pub use run::{BlockMap, UNKNOWN_CODE, map_blocks};

#[cfg(test)]
mod in_the_way;
#[cfg(test)]
mod region_tests;
#[cfg(test)]
mod sampled_tests;
#[cfg(test)]
mod tests;
