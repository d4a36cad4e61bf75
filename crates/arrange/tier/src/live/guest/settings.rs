//! What a process is to have.

use isochrone_units::RegionId;

/// Least fast memory: what handlers and neighbours of a fault take at once.
pub const FAST_BYTES_MIN: usize = 1 << 20;

/// Where pages are that are not in fast memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarKind {
    /// Compressed, in memory.
    Lz4,
    /// In a region of memory.
    Region(RegionId),
}

/// What a process is to have.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of its large mappings that may be in fast memory: [`FAST_BYTES_MIN`] or more.
    pub fast_bytes: usize,
    /// Addresses for large mappings, where there are so many; twice the fast memory at least.
    pub window_bytes: usize,
    /// Where the rest is.
    pub far: FarKind,
    /// Threads that resolve faults: 2 or more.
    pub handlers: u16,
}
