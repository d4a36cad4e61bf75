//! PARSEC's streamcluster (Bienia et al., PACT 2008): online clustering of points that stream by in
//! chunks, by local search for cheap sets of centres.
//!
//! * [`points`]: the points of a block, and the passes over them that a task does.
//! * [`search`]: the algorithm that decides which passes are done, over [`search::Passes`]; serial or on
//!   tasks, the same decisions follow from the same sums.
//! * [`serial`]: the reference.
//! * [`tasks`]: the passes as tasks over `arrays`; `port` what those of the public OmpSs port declare.
//! * [`stream`]: chunk after chunk, then the centres of all chunks.

mod arrays;
pub mod points;
mod port;
pub mod search;
pub mod serial;
pub mod stream;
pub mod tasks;
#[cfg(test)]
mod tests;

/// The size and the bounds of a problem. Names as in PARSEC's usage text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Fewest centres allowed.
    pub k_min: usize,
    /// Most centres allowed.
    pub k_max: usize,
    /// Coordinates of a point.
    pub dimensions: usize,
    /// Points in the stream.
    pub points: usize,
    /// Points handled in one step.
    pub chunk: usize,
    /// Most intermediate centres.
    pub centres: usize,
    /// Points of a block, which is what one task passes over.
    pub block: usize,
}

impl Parameters {
    /// The paper's input (section 5); it does not say how many points a task takes.
    pub const PAPER: Self = Self {
        k_min: 10,
        k_max: 20,
        dimensions: 128,
        points: 7_200_000,
        chunk: 1_440_000,
        centres: 5000,
        block: 5000,
    };
}
