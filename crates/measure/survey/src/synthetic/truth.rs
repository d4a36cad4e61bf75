//! What a map of a synthetic machine ought to have found.

use isochrone_probe::capacity;
use isochrone_probe::transfer::Kind;
use isochrone_sim::synthetic::{SpecError, SyntheticMemory, SyntheticSpec};
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, LineAddr, LineState, PAGE_BYTES, RegionId};

use super::{PAGES_PER_HUGE, near, share};

/// The truth of a machine, in the units of an atlas.
#[derive(Debug)]
pub struct Truth {
    /// One region, of which a few pages are there.
    near: SyntheticMemory,
    /// All regions.
    all: SyntheticMemory,
}

impl Truth {
    /// Of a machine as it begins.
    ///
    /// # Errors
    /// For a machine that does not fit together.
    pub fn new(spec: &SyntheticSpec) -> Result<Self, SpecError> {
        let memory = |spec: SyntheticSpec| SyntheticMemory::new(spec.with_pages(PAGES_PER_HUGE));
        Ok(Self { near: memory(near(spec))?, all: memory(spec.clone())? })
    }

    fn ns(&self, cycles: f64) -> f64 {
        cycles * 1e9 / self.all.timer().hz
    }

    /// A cell of line transfers: the median over lines of every home. Half a round trip of compare-and-swap is a
    /// transfer of a modified line.
    #[must_use]
    pub fn transfer_ns(&self, state: &str, owner: CoreId, asker: CoreId) -> Option<f64> {
        let is_cas = state == Kind::Cas { trips: 1 }.state_name();
        let states = [LineState::Modified, LineState::Exclusive, LineState::Shared];
        let named = || states.into_iter().find(|one| one.as_str() == state);
        let state = if is_cas { LineState::Modified } else { named()? };
        let lines: Vec<LineAddr> = (0..LINES_PER_PAGE as u64).map(LineAddr).collect();
        let cycles = self.near.truth_transfer_median(owner, asker, state, &lines).ok()?;
        Some(self.ns(cycles))
    }

    /// A cell of region latency: the mean over lines of the region.
    #[must_use]
    pub fn region_ns(&self, core: CoreId, region: RegionId) -> Option<f64> {
        let bases = self.all.truth_base(core, Level::Dram).ok()?;
        let classes = bases.len() / self.all.spec().regions.len();
        let of = bases.chunks(classes.max(1)).nth(usize::from(region.0))?;
        Some(self.ns(isochrone_stats::mean(&of.concat())?))
    }

    /// 10^9 bytes a second of cores together.
    #[must_use]
    pub fn gb_per_s(&self, cores: &[CoreId], region: RegionId) -> Option<f64> {
        self.all.truth_bandwidth(cores, region)
    }

    /// The share of the last-level cache that rings ought to show, by the sizes of its caches.
    #[must_use]
    pub fn llc_share_bytes(&self, core: CoreId, l2_bytes: u64, llc_bytes: u64) -> Option<u64> {
        share::truth(&self.near, core, &capacity::sizes(l2_bytes, llc_bytes))
    }

    /// The memory that block latency had: the same frames, and the latency of every line.
    ///
    /// # Errors
    /// For a machine that does not fit together.
    pub fn memory(spec: &SyntheticSpec, bytes: u64) -> Result<SyntheticMemory, SpecError> {
        SyntheticMemory::new(near(spec).with_pages(bytes / PAGE_BYTES as u64))
    }
}
