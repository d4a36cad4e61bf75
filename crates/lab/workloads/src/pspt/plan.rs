//! How much of the paper is simulated, and by which pager.

use super::change::Change;

/// How much of the paper's area is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rows of a grid; the paper's have 8192 if they are twice as long as they are high.
    pub rows: u32,
    /// Sweeps that are measured.
    pub sweeps: u32,
    /// Frames for each worker where movers run ahead, at least.
    pub frames_of_a_worker: u32,
    /// Groups that a mover fetches for a fault.
    pub window: u32,
    /// Of them by one transfer.
    pub chunk: u32,
    /// Largest number of threads.
    pub most: u16,
    /// Of the spread of arithmetic.
    pub seed: u64,
    /// What is changed of the card.
    pub change: Change,
    /// Whether all cells are run under single changes as well.
    pub beside: bool,
}

impl Plan {
    /// The paper's figures.
    #[must_use]
    pub const fn paper(seed: u64) -> Self {
        Self {
            rows: 8192,
            sweeps: 2,
            frames_of_a_worker: 1024,
            window: 128,
            chunk: 16,
            most: 128,
            seed,
            change: Change::None,
            beside: true,
        }
    }

    /// The same figures, and nothing beside them.
    #[must_use]
    pub const fn quick(seed: u64) -> Self {
        Self { beside: false, ..Self::paper(seed) }
    }
}
