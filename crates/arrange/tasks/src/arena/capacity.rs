//! How much an arena holds: what a program says of it, and what is the same for all.

/// How much an arena holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Tasks that are registered and not finished; whoever registers more runs some first.
    pub tasks: u32,
    /// Pairs of a task and one that waits for it.
    pub edges: u32,
    /// Ranges of tasks with more than five of them, in tens.
    pub blocks: u32,
    /// Pieces of data, over the whole run.
    pub data: u32,
    /// Tasks of each worker that a trace keeps; 0 for no trace.
    pub trace: u32,
}

impl Default for Capacity {
    /// 8192 tasks: two MiB, which a second-level cache holds.
    fn default() -> Self {
        Self { tasks: 8192, edges: 1 << 18, blocks: 1 << 14, data: 1 << 16, trace: 0 }
    }
}

/// Whether loom follows every atomic word: then there must be few.
pub(super) const MODELLED: bool = cfg!(all(loom, test));

/// Kernels that a run may have.
pub(crate) const KERNELS_MAX: usize = if MODELLED { 1 } else { 1024 };
/// Tokens of commutative and reducing ranges; two that share one only wait for each other.
pub(crate) const TOKENS: u16 = if MODELLED { 1 } else { 1024 };

/// Ranges that count as undone one by one, at most.
pub(super) const BROKEN: u32 = if MODELLED { 1 } else { 256 };

/// Numbers that a worker counts.
pub(crate) const COUNTS: usize = 24;

/// Words of a failure's text; what is longer is cut.
pub(crate) const FAILURE_WORDS: usize = if MODELLED { 1 } else { 32 };

/// Words of an entry of the trace.
pub(crate) const TRACE_WORDS: usize = 6;
