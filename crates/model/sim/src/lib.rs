//! Simulated hardware: machines that nobody here owns, or whose truth has to be known.
//!
//! [`synthetic`] is memory with known latencies and chosen noise, on which every estimator is
//! tested. [`lines`] is the coherence of cache lines, message by message, between threads of a small
//! machine; [`coherence`] is a machine of many sockets with its protocol, directories and links. [`paging`]
//! is a many-core processor with its page tables, interrupts and copy engines. This
//! crate never reads a clock, a file or the environment: time is virtual and every random draw follows
//! from a seed, so a run replays bit for bit.

pub mod coherence;
pub mod lines;
mod number;
pub mod paging;
mod random;
pub mod synthetic;
