//! Graphs of small tasks, after Task Bench (Slaughter et al., SC 2020): a rectangle of steps and points,
//! where a pattern says which points of the step before a task reads. What a system costs a task shows
//! where tasks get small.
//!
//! Every task checks that what it reads was written by the tasks that the pattern names, and mixes it into
//! what it writes; so the values of the last step tell whether the whole graph ran in order. The peers'
//! programs do the same arithmetic, and must end with the same number.

mod empty;
mod graph;
mod pattern;

pub use empty::{Empty, Nested, Overlapping, ThreeRanges, addresses};
pub use graph::{Graph, Points};
pub use pattern::Pattern;

/// Turns of the generator that a task spends its time with, from a value of its own.
///
/// Each is six dependent operations (Marsaglia, *Xorshift RNGs*, J. Statistical Software 8(14), 2003): no
/// compiler shortens them, and no two run at once.
#[must_use]
pub fn spend(seed: u64, turns: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..turns {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

/// One number for several, whose order counts (the finaliser of splitmix64).
#[must_use]
pub const fn mix(sum: u64, next: u64) -> u64 {
    let mut z = sum.rotate_left(7) ^ next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ z >> 27
}

#[cfg(test)]
mod tests;
