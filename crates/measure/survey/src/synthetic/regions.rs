//! Buffers in the regions of a synthetic machine, and chases through them.

use isochrone_probe::region::RegionTarget;
use isochrone_probe::target::{TargetClock, TargetError};
use isochrone_sim::synthetic::{SampleError, SyntheticMemory};
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, LineAddr, RegionId};

use super::clock::VirtualClock;
use super::costs::{FLUSH_S, MOVE_S, WARM_STEPS};
use crate::ground::{Buffers, Chased};

/// A synthetic memory of which each region has an equal share, its buffer.
#[derive(Debug)]
pub(super) struct VirtualBuffers {
    memory: SyntheticMemory,
    regions: Vec<RegionId>,
    clock: VirtualClock,
}

impl VirtualBuffers {
    /// Buffers in regions of a memory whose arena has a share of so many for each of them.
    pub(super) fn new(
        memory: SyntheticMemory,
        regions: Vec<RegionId>,
        clock: VirtualClock,
    ) -> Self {
        Self { memory, regions, clock }
    }
}

impl Buffers for VirtualBuffers {
    fn count(&self) -> usize {
        self.regions.len()
    }

    fn chase(
        &mut self,
        orders: &[Vec<LineAddr>],
        cores: &[CoreId],
        measure: &mut Chased<'_>,
    ) -> Result<(), TargetError> {
        if orders.len() != self.regions.len() {
            let (given, regions) = (orders.len(), self.regions.len());
            let why = format!("{given} orders are given for {regions} regions; give one for each");
            return Err(TargetError::Unsupported(why));
        }
        let begin_s = self.clock.seconds();
        let places = vec![0; orders.len()];
        measure(&mut VirtualRegions {
            buffers: self,
            orders,
            places,
            cores: cores.to_vec(),
            here: None,
            begin_s,
        })
    }
}

/// Linked buffers and a thread that chases through them.
struct VirtualRegions<'b> {
    buffers: &'b mut VirtualBuffers,
    orders: &'b [Vec<LineAddr>],
    /// Where the walk through each buffer stands.
    places: Vec<usize>,
    cores: Vec<CoreId>,
    here: Option<CoreId>,
    begin_s: f64,
}

impl VirtualRegions<'_> {
    /// The next `steps` lines of a walk, as lines of the arena.
    fn ahead(&mut self, region: usize, steps: usize) -> Vec<LineAddr> {
        let (order, place) = (&self.orders[region], self.places[region]);
        let pages = self.buffers.memory.pages() / self.buffers.regions.len() as u64;
        let first = region as u64 * pages * LINES_PER_PAGE as u64;
        let lines = (0..steps).map(|step| order[(place + step) % order.len()].0 + first);
        let lines = lines.map(LineAddr).collect();
        self.places[region] = (place + steps) % order.len();
        lines
    }

    fn walk(&mut self, core: CoreId, lines: &[LineAddr]) -> Result<u64, TargetError> {
        let memory = &mut self.buffers.memory;
        let begun_s = memory.seconds();
        let cycles = memory.chase(core, Level::Dram, lines).map_err(|error| match error {
            SampleError::Moved { asked, found } => {
                TargetError::Moved { asked: asked.0, found: found.0 }
            }
            other => TargetError::Unsupported(other.to_string()),
        })?;
        self.buffers.clock.pass(memory.seconds() - begun_s);
        Ok(cycles)
    }
}

impl RegionTarget for VirtualRegions<'_> {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn regions(&self) -> &[RegionId] {
        &self.buffers.regions
    }

    fn clock(&self) -> TargetClock {
        let timer = self.buffers.memory.timer();
        TargetClock { hz: timer.hz, tick: timer.tick_cycles, overhead: timer.overhead_cycles }
    }

    fn chase(
        &mut self,
        core: CoreId,
        region: usize,
        steps: u64,
        flush: bool,
    ) -> Result<u64, TargetError> {
        let clock = self.buffers.clock.clone();
        clock.modelled(|| {
            if self.here.replace(core) != Some(core) {
                clock.pass(MOVE_S);
            }
            let all = steps as f64;
            clock.pass(if flush { FLUSH_S * all } else { 0.0 });
            let lines = self.ahead(region, usize::try_from(steps).unwrap_or(usize::MAX));
            let cycles = self.walk(core, &lines)?;
            // What is walked before is as far, and is not timed.
            clock.pass(WARM_STEPS * cycles as f64 / all.max(1.0) / self.clock().hz);
            Ok(cycles)
        })
    }

    fn seconds(&mut self) -> f64 {
        self.buffers.clock.seconds() - self.begin_s
    }
}
