//! Bandwidth of a synthetic machine, with the time until arrays are there.

use std::collections::BTreeMap;

use isochrone_probe::bandwidth::{ArraySizes, ModelTriad, Track, TriadTarget};
use isochrone_probe::target::TargetError;
use isochrone_units::{CoreId, RegionId};

use super::clock::VirtualClock;
use super::costs::{THREAD_S, mapping_s};

/// Threads that make memory of one region present at once before they hinder each other: assumed, as some GB/s each.
const TOGETHER: f64 = 8.0;

/// Arrays of a synthetic machine, made present at first use by the cores that use them, as live ones are.
#[derive(Debug)]
pub(super) struct VirtualTriad {
    pub(super) inner: ModelTriad,
    /// Bytes that each core has, all in one region.
    pub(super) present: BTreeMap<CoreId, u64>,
    /// Where they are.
    pub(super) region: Option<RegionId>,
    pub(super) sizes: ArraySizes,
    /// Memory of a region.
    pub(super) region_bytes: Option<u64>,
    pub(super) clock: VirtualClock,
    pub(super) begin_s: f64,
}

impl VirtualTriad {
    /// Bytes of each core's arrays, which are there.
    fn map(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<u64>, TargetError> {
        if self.region.replace(region) != Some(region) {
            self.present.clear();
        }
        let sizes = self.sizes.in_region(cores, region, self.region_bytes)?;
        let (mut most, mut all) = (0, 0);
        for (&core, &bytes) in cores.iter().zip(&sizes) {
            let present = self.present.entry(core).or_default();
            let lacking = bytes.saturating_sub(*present);
            *present += lacking;
            most = lacking.max(most);
            all += lacking;
        }
        if all > 0 && stop() {
            return Err(TargetError::Stopped);
        }
        self.clock.pass(mapping_s(most).max(mapping_s(all) / TOGETHER));
        Ok(sizes)
    }
}

impl TriadTarget for VirtualTriad {
    fn triad(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        passes: u32,
    ) -> Result<Vec<Track>, TargetError> {
        let bytes = self.map(cores, region, &mut || false)?;
        let begun_s = self.inner.seconds();
        let inner = &mut self.inner;
        let tracks = self.clock.modelled(|| inner.sized(cores, region, passes, &bytes));
        self.clock.pass(self.inner.seconds() - begun_s + THREAD_S * cores.len() as f64);
        tracks
    }

    fn prepare(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), TargetError> {
        self.map(cores, region, stop).map(|_| ())
    }

    fn give_back(&mut self, _: RegionId) {
        self.present.clear();
    }

    fn seconds(&mut self) -> f64 {
        self.clock.seconds() - self.begin_s
    }
}
