//! Registered data: where they lie, and what is done to them.

/// Registered data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// Where memory of registered data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Where it is touched first.
    FirstTouch,
    /// Chunk by chunk over all nodes in turn. A kernel does so page by page; over a chunk of many pages that
    /// comes to the same, since its pages are then alike to all.
    Interleaved,
    /// All at one node.
    At(u8),
}

/// What a task does to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Read,
    /// Writes it, or reads and writes it: a cache fetches a line that it writes.
    Write,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) first: u32,
    pub(super) bytes: u64,
    pub(super) gone: bool,
}

impl Region {
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
