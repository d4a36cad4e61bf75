//! Infers from latencies alone where cores and memory controllers sit, as the Latency Checker
//! poster did by eye: a ring or a grid with its mirror images stated, or "cannot tell" with the
//! reason. Works on numbers only; it never measures and never reads the machine's own tables.
//!
//! ```text
//! latencies -> tiles merged -> a sample of many -> best ring, best grid -> evidence -> places of all -> controllers
//! ```

mod apart;
mod arrange;
mod assign;
mod controllers;
mod embed;
mod error;
mod evidence;
mod findings;
mod fit;
mod guesses;
mod infer;
mod latencies;
mod line;
mod means;
mod observations;
mod origin;
mod sample;
mod search;
mod shapes;
mod space;
mod tiles;
mod unfold;

#[cfg(test)]
mod many_tests;
#[cfg(test)]
mod poster_tests;
#[cfg(test)]
mod synthetic_tests;

pub use apart::{Apart, ColumnError, apart};
pub use controllers::{ControllerFit, locate_controller};
pub use error::PlacementError;
pub use findings::{Findings, Residual, ShapeFit};
pub use infer::{Observed, infer, infer_while};
pub use latencies::{ColumnLatencies, PairLatencies};
pub use space::Shape;
