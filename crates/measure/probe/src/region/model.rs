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

    /// One region of it cannot be chased through, by this error, and one has no buffer.
    struct Broken(ModelRegions, TargetError);

    impl RegionTarget for Broken {
        fn cores(&self) -> &[CoreId] {
            self.0.cores()
        }

        fn regions(&self) -> &[RegionId] {
            self.0.regions()
        }

        fn clock(&self) -> TargetClock {
            self.0.clock()
        }

        fn has_buffer(&self, region: usize) -> bool {
            region != 2
        }

        fn chase(
            &mut self,
            core: CoreId,
            region: usize,
            steps: u64,
            flush: bool,
        ) -> Result<u64, TargetError> {
            match region {
                1 => Err(self.1.clone()),
                2 => panic!("it has no buffer"),
                _ => self.0.chase(core, region, steps, flush),
            }
        }

        fn seconds(&mut self) -> f64 {
            self.0.seconds()
        }
    }

    /// Four regions and so many cores, with so much virtual time.
    fn four_regions(cores: u16, budget_s: f64) -> (ModelRegions, RegionPlan) {
        let spec = SyntheticSpec::mesh_knm_snc4(2).with_pages(128).with_small_pages();
        let memory = SyntheticMemory::new(spec.with_cores(cores)).unwrap();
        let (regions, lines): (Vec<_>, Vec<_>) = ModelRegions::lines(&memory).into_iter().unzip();
        let options = RegionOptions {
            steps: 1024,
            budget_s,
            rounds_min: 8,
            rounds_max: 8,
            ..RegionOptions::new(Mode::OneClass { lines }, 11)
        };
        let plan = RegionPlan::new(regions.len(), options).unwrap();
        (ModelRegions::new(memory, &regions, &plan.orders), plan)
    }

    #[test]
    fn a_region_that_fails_leaves_the_others() {
        for cores in [2, 40] {
            let (target, plan) = four_regions(cores, 1e9);
            let gone = TargetError::Unsupported("it is gone".to_owned());
            let report = run(&mut Broken(target, gone), &plan, &mut || false).unwrap();
            for (at, cell) in report.map.latency_ns.cells.iter().enumerate() {
                assert_eq!(cell.is_some(), matches!(at % 4, 0 | 3), "{at}");
            }
            assert!(report.complete && report.missing.len() == 1, "{:?}", report.missing);
            let line = &report.missing[0];
            assert!(line.contains(&format!("{cores} cells (core ")), "{line}");
            assert!(line.ends_with("and region 1 first): it is gone"), "{line}");
        }
    }

    #[test]
    fn a_cell_whose_thread_never_stays_costs_itself() {
        let (target, plan) = four_regions(2, 1e9);
        let moved = TargetError::Moved { asked: 0, found: 1 };
        let report = run(&mut Broken(target, moved), &plan, &mut || false).unwrap();
        for (at, cell) in report.map.latency_ns.cells.iter().enumerate() {
            assert_eq!(cell.is_some(), matches!(at % 4, 0 | 3), "{at}");
        }
        assert!(report.missing[0].contains(": 2 cells (core "), "{:?}", report.missing);
        assert_eq!(report.drift.len(), 2 * 3, "it is tried again three times");
    }

    #[test]
    fn where_all_fails_there_is_an_error() {
        struct Gone(ModelRegions);
        impl RegionTarget for Gone {
            fn cores(&self) -> &[CoreId] {
                self.0.cores()
            }
            fn regions(&self) -> &[RegionId] {
                self.0.regions()
            }
            fn clock(&self) -> TargetClock {
                self.0.clock()
            }
            fn chase(&mut self, _: CoreId, _: usize, _: u64, _: bool) -> Result<u64, TargetError> {
                Err(TargetError::Unsupported("nothing is there".to_owned()))
            }
            fn seconds(&mut self) -> f64 {
                self.0.seconds()
            }
        }
        let (target, plan) = four_regions(2, 1e9);
        let refused = run(&mut Gone(target), &plan, &mut || false).unwrap_err();
        assert_eq!(refused.to_string(), "nothing is there");
    }

    /// Whatever the number of cells, it ends in time, and what is measured is near the truth.
    #[test]
    fn time_that_holds_some_cores_is_kept_and_cores_are_left_out() {
        let chase_s = |cores: u16| {
            let (mut target, plan) = four_regions(cores, 1e9);
            target.chase(CoreId(0), 0, plan.options.steps, false).unwrap();
            target.seconds()
        };
        for cores in [40, 68] {
            let budget_s = 10.0 * 4.0 * 6.0 * chase_s(cores);
            let (mut target, mut plan) = four_regions(cores, budget_s);
            let all: Vec<CoreId> = (0..cores).map(CoreId).collect();
            plan.options.seats = Some(crate::seats::Seats::unknown(&all));
            let report = run(&mut target, &plan, &mut || false).unwrap();
            let columns = target.regions().len();
            let cells = &report.map.latency_ns.cells;
            let measured = cells.chunks(columns).filter(|row| row.iter().any(Option::is_some));
            let measured = measured.count();
            assert!((8..usize::from(cores)).contains(&measured), "{measured} of {cores}");
            assert!(report.complete && report.seconds < 1.05 * budget_s, "{}", report.seconds);
            let line = format!("from {measured} of {cores} cores");
            assert!(report.missing[0].contains(&line), "{:?}", report.missing);
            let hz = target.memory().timer().hz;
            for (at, cell) in cells.iter().enumerate() {
                let Some(found) = cell else { continue };
                let (core, region) = (target.cores()[at / columns], target.regions()[at % columns]);
                let truth = target.memory().truth_region_latency(core, region).unwrap() * 1e9 / hz;
                assert!((found.median / truth - 1.0).abs() < 0.03, "{found:?} against {truth}");
            }
        }
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
