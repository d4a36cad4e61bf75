//! What an allocator is made for, and why there is none: plain values.

use core::fmt;
use isochrone_alloc::Policy;
use isochrone_atlas::AtlasError;
use isochrone_os::OsError;
use isochrone_units::CoreId;

/// What an allocator is made for.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The bytes of an atlas of this machine.
    pub atlas: &'a [u8],
    /// How lines are placed.
    pub policy: Policy,
    /// The most memory that is used for lines, bytes.
    pub arena_bytes_max: u64,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    /// The cores that will use the memory: pages are decoded by these (four at most), and an
    /// oracle measures lines from the first two. None: the first core that asks.
    pub cores: &'a [CoreId],
}

/// Why there is no allocator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InstanceError {
    /// The atlas cannot be read.
    Atlas(AtlasError),
    /// The atlas has no core, or nothing of its levels.
    Empty,
    /// The system refused memory, or timing.
    Os(OsError),
    /// More pools than 2^32 were made.
    TooManyPools,
}

impl fmt::Display for InstanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Atlas(error) => error.fmt(f),
            Self::Empty => f.write_str("the atlas describes no core; run `isochrone map` again"),
            Self::Os(error) => error.fmt(f),
            Self::TooManyPools => f.write_str("too many pools were made; keep those there are"),
        }
    }
}

impl core::error::Error for InstanceError {}

impl From<AtlasError> for InstanceError {
    fn from(error: AtlasError) -> Self {
        Self::Atlas(error)
    }
}

impl From<OsError> for InstanceError {
    fn from(error: OsError) -> Self {
        Self::Os(error)
    }
}
