//! What an order is made of and for: the latencies of a core, and what is wished.

use crate::groups::INDICES;
use crate::policy::Mode;
use isochrone_atlas::PatternTable;

/// The current bases of a core: its latencies in cycles by canonical index (`code ^ line`), NaN where the
/// level has no such index; `None` where nothing is known of the level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurrentBases {
    /// In the last-level cache.
    pub llc: Option<[f32; INDICES]>,
    /// In memory.
    pub dram: Option<[f32; INDICES]>,
}

impl CurrentBases {
    /// From the bases that a core has now.
    #[must_use]
    pub fn of(llc: Option<&PatternTable>, dram: Option<&PatternTable>) -> Self {
        Self { llc: llc.map(|table| *table.values()), dram: dram.map(|table| *table.values()) }
    }

    /// True if nothing is known of any level.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.llc.is_none() && self.dram.is_none()
    }
}

/// What an order is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// Which bins come first.
    pub mode: Mode,
    /// The share of units that counts as near, at least.
    pub near: f32,
    /// What is live, equally often in use.
    pub live_bytes: u64,
    /// The last-level cache that it has for itself.
    pub llc_bytes: u64,
    /// The second-level cache of the core.
    pub l2_bytes: u64,
    /// The memory whose translations a core holds; 0 where that is not known, and then all of it.
    pub tlb_bytes: u64,
}
