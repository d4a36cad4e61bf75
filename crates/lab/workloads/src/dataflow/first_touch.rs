//! What the benchmarks have in common beside the run that takes their tasks.

/// Who touches the data first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstTouch {
    /// One task for each tile or block, which is what NUMA-aware scheduling deals round.
    #[default]
    Blocks,
    /// One task for each column of tiles; for matrices only.
    Panels,
    /// One task for each block of the input; a result lies where it is computed first.
    Inputs,
    /// One task for everything: all data lie in one region, as where one thread sets them up.
    Serial,
}
