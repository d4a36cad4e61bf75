//! Simulated hardware: machines that nobody here owns, or whose truth has to be known.
//!
//! [`synthetic`] is memory with known latencies and chosen noise, on which every estimator is
//! tested. This crate never reads a clock, a file or the environment: time is virtual and every
//! random draw follows from the seed of the spec, so a run replays bit for bit.

mod number;
mod random;
pub mod synthetic;
