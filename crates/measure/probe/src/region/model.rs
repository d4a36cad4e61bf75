//! Modelled regions: the pages of a synthetic memory's arena that lie in each region are its
//! buffer, and a chase is the sum of their latencies in virtual time.

use isochrone_sim::synthetic::{SampleError, SyntheticMemory};
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, LineAddr, PageAddr, RegionId};

use super::run::RegionTarget;
use crate::target::{TargetClock, TargetError};

/// The regions of a synthetic memory.
#[derive(Debug)]
pub struct ModelRegions {
    memory: SyntheticMemory,
    cores: Vec<CoreId>,
    regions: Vec<RegionId>,
    orders: Vec<Vec<LineAddr>>,
    places: Vec<usize>,
}

impl ModelRegions {
    /// All lines of the arena by region, to make a plan from (as
    /// [`Mode::OneClass`](super::plan::Mode::OneClass) takes them).
    #[must_use]
    pub fn lines(memory: &SyntheticMemory) -> Vec<(RegionId, Vec<LineAddr>)> {
        let mut found: Vec<(RegionId, Vec<LineAddr>)> = Vec::new();
        for page in (0..memory.pages()).map(PageAddr) {
            let Some(region) = memory.truth_region(page) else { continue };
            let first = page.0 * LINES_PER_PAGE as u64;
            let lines = (first..first + LINES_PER_PAGE as u64).map(LineAddr);
            match found.iter_mut().find(|(known, _)| *known == region) {
                Some((_, all)) => all.extend(lines),
                None => found.push((region, lines.collect())),
            }
        }
        found.sort_by_key(|(region, _)| *region);
        found
    }

    /// Chases through `orders`, one for each of `regions`, with lines of the whole arena.
    #[must_use]
    pub fn new(memory: SyntheticMemory, regions: &[RegionId], orders: &[Vec<LineAddr>]) -> Self {
        let cores = (0..memory.cores()).filter_map(|core| u16::try_from(core).ok().map(CoreId));
        Self {
            cores: cores.collect(),
            regions: regions.to_vec(),
            orders: orders.to_vec(),
            places: vec![0; orders.len()],
            memory,
        }
    }

    /// The memory, with its truth.
    #[must_use]
    pub fn memory(&self) -> &SyntheticMemory {
        &self.memory
    }
}

impl RegionTarget for ModelRegions {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn regions(&self) -> &[RegionId] {
        &self.regions
    }

    fn clock(&self) -> TargetClock {
        let timer = self.memory.timer();
        TargetClock { hz: timer.hz, tick: timer.tick_cycles, overhead: timer.overhead_cycles }
    }

    fn chase(
        &mut self,
        core: CoreId,
        region: usize,
        steps: u64,
        _flush: bool,
    ) -> Result<u64, TargetError> {
        let Some(order) = self.orders.get(region) else {
            return Err(TargetError::Unsupported(format!("there is no region {region}")));
        };
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        let lines: Vec<LineAddr> =
            order.iter().cycle().skip(self.places[region]).take(steps).copied().collect();
        self.places[region] = (self.places[region] + steps) % order.len().max(1);
        self.memory.chase(core, Level::Dram, &lines).map_err(|error| match error {
            SampleError::Moved { asked, found } => {
                TargetError::Moved { asked: asked.0, found: found.0 }
            }
            other => TargetError::Unsupported(other.to_string()),
        })
    }

    fn seconds(&mut self) -> f64 {
        self.memory.seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::plan::{Mode, RegionOptions, RegionPlan};
    use crate::region::run::{RegionReport, run};
    use isochrone_sim::synthetic::{Scheduled, SyntheticSpec, When};

    fn measure(
        spec: SyntheticSpec,
        options: impl Fn(Mode) -> RegionOptions,
    ) -> (RegionReport, ModelRegions) {
        let memory = SyntheticMemory::new(spec).unwrap();
        let (regions, lines): (Vec<_>, Vec<_>) = ModelRegions::lines(&memory).into_iter().unzip();
        let plan = RegionPlan::new(regions.len(), options(Mode::OneClass { lines })).unwrap();
        let mut target = ModelRegions::new(memory, &regions, &plan.orders);
        let report = run(&mut target, &plan, &mut || false).unwrap();
        (report, target)
    }

    /// Every line of a region once a chase, so that a cell's truth is the mean over the region.
    fn whole(mode: Mode) -> RegionOptions {
        RegionOptions { steps: 64 * 64, budget_s: 1e9, ..RegionOptions::new(mode, 11) }
    }

    #[test]
    fn every_core_and_region_gets_its_true_latency() {
        let spec = SyntheticSpec::mesh_knm_snc4(2).with_pages(256).with_small_pages();
        let (report, target) = measure(spec.with_cores(6), whole);
        let hz = target.memory().timer().hz;
        let columns = target.regions().len();
        assert!(columns > 1, "the machine has several regions");
        for (at, cell) in report.map.latency_ns.cells.iter().enumerate() {
            let (core, region) = (target.cores()[at / columns], target.regions()[at % columns]);
            let truth = target.memory().truth_region_latency(core, region).unwrap() * 1e9 / hz;
            let found = cell.unwrap();
            assert!((found.median / truth - 1.0).abs() < 0.01, "{found:?} against {truth}");
            assert!(found.lo <= found.median && found.median <= found.hi);
        }
        assert!(report.half_width.unwrap() < 0.005 && report.complete);
    }

    #[test]
    fn it_stops_when_sure_and_when_the_budget_is_spent() {
        let spec = || SyntheticSpec::ring_e5_2660(2).with_pages(128).with_cores(2);
        let (sure, _) = measure(spec().noiseless(), whole);
        assert_eq!(sure.series_ns[0][0].len(), 15, "the fewest rounds are enough without noise");
        let never = |mode| RegionOptions { half_width: 0.0, budget_s: 0.05, ..whole(mode) };
        let (spent, _) = measure(spec(), never);
        let rounds = spent.series_ns[0][0].len();
        assert!((1..400).contains(&rounds), "{rounds}");
    }

    #[test]
    fn a_moved_thread_is_told_and_its_chase_done_again() {
        let event = Scheduled::thread_moves(When::Seconds(1e-3), CoreId(1));
        let spec = SyntheticSpec::ring_e5_2660(2).with_pages(128).with_cores(2);
        let (report, _) = measure(spec.with_events([event]), whole);
        assert_eq!(report.drift.len(), 1);
        assert_eq!(
            (report.drift[0].kind.as_str(), report.drift[0].dropped_samples),
            ("thread moved", 4096)
        );
    }

    #[test]
    fn stopping_keeps_what_was_measured() {
        let memory = SyntheticMemory::new(SyntheticSpec::ring_e5_2660(2).with_pages(128)).unwrap();
        let (regions, lines): (Vec<_>, Vec<_>) = ModelRegions::lines(&memory).into_iter().unzip();
        let plan = RegionPlan::new(regions.len(), whole(Mode::OneClass { lines })).unwrap();
        let mut target = ModelRegions::new(memory, &regions, &plan.orders);
        let mut left = 3;
        let mut stop = || {
            left -= 1;
            left < 0
        };
        let report = run(&mut target, &plan, &mut stop).unwrap();
        assert_eq!(report.map.latency_ns.cells.iter().flatten().count(), 3);
        assert!(!report.complete);
    }
}
