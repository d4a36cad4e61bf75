//! What a process is to have.

use crate::live::far::FarKind;

/// Least fast memory: what handlers and neighbours of a fault take at once.
pub const FAST_BYTES_MIN: usize = 1 << 20;

/// What a process is to have.
#[derive(Clone, Debug)]
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
