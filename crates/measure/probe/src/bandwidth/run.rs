//! Runs a bandwidth plan, region by region, so that arrays are there once: every group on its memory, in rounds of
//! shuffled order.
//!
//! Bytes are those of the stated count (24 for each element of the triad: two read, one written;
//! the write-allocate read is not counted). Generic over [`TriadTarget`].

use std::collections::BTreeMap;

use isochrone_atlas_store::contents::Bandwidth;
use isochrone_stats::{Summary, derive_seed, rng, shuffle};
use isochrone_units::{CoreId, RegionId};

use super::interval::Spread;
use super::plan::{BandwidthOptions, BandwidthPlan};
use super::track::{Track, gb_per_s};
use crate::target::TargetError;
use crate::transfer::series::INTERRUPTED;

/// Of the groups that tell most of a region, how many run twice in its first round: the region's own cores, and one of
/// them alone.
const REPEATED: usize = 2;

/// How often a run is tried again when a thread was moved.
const MOVES_MAX: u32 = 3;

/// Memory on which groups of cores can run the triad.
pub trait TriadTarget {
    /// Runs `passes` passes of the triad on each of `cores` at once, each core on arrays of its
    /// own in `region`: what each of them did.
    ///
    /// # Errors
    /// [`TargetError::Moved`] when a thread did not stay on its core; others as they come.
    fn triad(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        passes: u32,
    ) -> Result<Vec<Track>, TargetError>;

    /// Has the arrays ready that a run of `cores` in `region` needs, which may take longer than the run.
    ///
    /// # Errors
    /// [`TargetError::Stopped`] as soon as `stop` says yes; others as they come.
    fn prepare(
        &mut self,
        _cores: &[CoreId],
        _region: RegionId,
        _stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), TargetError> {
        Ok(())
    }

    /// Gives the arrays of a region back, which is done with.
    fn give_back(&mut self, _region: RegionId) {}

    /// Seconds since the target was made.
    fn seconds(&mut self) -> f64;
}

/// What the experiment found.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthReport {
    /// One entry for each group and region that was measured.
    pub bandwidth: Vec<Bandwidth>,
    /// What could not be measured, and why, in one line each.
    pub missing: Vec<String>,
    /// Runs done again because a thread was moved.
    pub moves: u32,
    /// Groups of cores and regions that there was no time for.
    pub left_out: usize,
    /// Whether all was measured as planned (false if the caller stopped it, or a region's time was over before each
    /// group had run once).
    pub complete: bool,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Runs the plan: all groups on the memory of one region, then of the next. `stop` is asked before every run, and while
/// arrays are mapped; what was measured is kept. A group that cannot run on a region has no number there, and the
/// others run all the same.
///
/// # Errors
/// What the target says, where no group can run on any region.
pub fn run(
    target: &mut dyn TriadTarget,
    plan: &BandwidthPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<BandwidthReport, TargetError> {
    let begun = target.seconds();
    let regions = plan.regions.len();
    let groups = plan.groups.len();
    let cells = vec![vec![Found::default(); groups]; regions];
    let mut runner = Runner { target, plan, stop, cells, moves: 0, stopped: false };
    let mut order: Vec<usize> = (0..regions).collect();
    shuffle(&mut order, &mut rng(plan.options.seed));
    for (turn, region) in order.into_iter().enumerate() {
        let share = (turn + 1) as f64 / regions.max(1) as f64;
        let BandwidthOptions { budget_s, patience_s, .. } = plan.options;
        let ends_s = [budget_s.max(patience_s), budget_s].map(|seconds| begun + share * seconds);
        runner.region(region, ends_s);
        runner.target.give_back(plan.regions[region]);
    }
    let seconds = runner.target.seconds() - begun;
    runner.report(seconds)
}

/// What was found of a group in a region.
#[derive(Clone, Debug, Default)]
struct Found {
    gb_per_s: Vec<f64>,
    runs: u32,
    refused: Option<TargetError>,
}

struct Runner<'a> {
    target: &'a mut dyn TriadTarget,
    plan: &'a BandwidthPlan,
    stop: &'a mut dyn FnMut() -> bool,
    /// `[region][group]`.
    cells: Vec<Vec<Found>>,
    moves: u32,
    stopped: bool,
}

impl Runner<'_> {
    /// All groups on the memory of one region, in rounds: the first one, and all, end by these seconds.
    fn region(&mut self, region: usize, [first_s, all_s]: [f64; 2]) {
        let options = &self.plan.options;
        for round in 0..options.rounds_max {
            // The first round has the groups first that tell most, so that it may end anywhere; the first two run
            // again at once, so that something is known of how much runs differ.
            let mut order = self.plan.orders[region].clone();
            if round == 0 {
                order = order.iter().enumerate().flat_map(twice).collect();
            } else {
                let random = derive_seed(options.seed, u64::from(round));
                shuffle(&mut order, &mut rng(derive_seed(random, region as u64)));
            }
            for group in order {
                let ends = self.ends(if round == 0 { first_s } else { all_s });
                if self.stopped || ends && !self.is_lone(region, group) {
                    return;
                }
                self.cell(region, group);
            }
            let series = self.cells[region].iter().filter(|found| found.refused.is_none());
            let sure = is_sure(series.map(|found| &found.gb_per_s), options.half_width);
            if sure && round + 1 >= options.rounds_min {
                break;
            }
        }
    }

    fn ends(&mut self, end_s: f64) -> bool {
        self.stopped |= (self.stop)();
        self.stopped || self.target.seconds() > end_s
    }

    /// Whether it ran once and no group ran twice so far: of how much runs differ nothing is known without another run
    /// of it, whose arrays are there.
    fn is_lone(&self, region: usize, group: usize) -> bool {
        let runs = |found: &Found| found.gb_per_s.len();
        runs(&self.cells[region][group]) == 1 && self.cells.iter().flatten().all(|f| runs(f) < 2)
    }

    /// One run of a group on a region, unless it was refused before.
    fn cell(&mut self, region: usize, group: usize) {
        let found = &mut self.cells[region][group];
        if found.refused.is_some() {
            return;
        }
        let (id, cores) = (self.plan.regions[region], &self.plan.groups[group]);
        let prepared = self.target.prepare(cores, id, self.stop);
        let measured = prepared.and_then(|()| {
            measure(self.target, cores, id, self.plan.options.passes, &mut self.moves)
        });
        match measured {
            Ok(value) => {
                found.gb_per_s.extend(value);
                found.runs += 1;
            }
            Err(TargetError::Stopped) => self.stopped = true,
            Err(error) => found.refused = Some(error),
        }
    }

    fn report(self, seconds: f64) -> Result<BandwidthReport, TargetError> {
        let plan = self.plan;
        let mut bandwidth = Vec::new();
        let spread = Spread::of(self.cells.iter().flatten().map(|found| &found.gb_per_s));
        // Group by group, as they are listed.
        for (at, group) in plan.groups.iter().enumerate() {
            for (region, found) in plan.regions.iter().zip(&self.cells) {
                let cores: Vec<u16> = group.iter().map(|core| core.0).collect();
                let cell = Spread::cell(spread, &found[at].gb_per_s);
                bandwidth.extend(cell.map(|gb_per_s| Bandwidth {
                    cores,
                    region: region.0,
                    gb_per_s,
                }));
            }
        }
        let cells = || self.cells.iter().flatten();
        if let Some(error) = cells().find_map(|found| found.refused.clone())
            && bandwidth.is_empty()
        {
            return Err(error);
        }
        let left_out = cells().filter(|found| found.runs == 0 && found.refused.is_none()).count();
        Ok(BandwidthReport {
            missing: self.missing(),
            bandwidth,
            moves: self.moves,
            left_out,
            complete: !self.stopped && left_out == 0,
            seconds,
        })
    }

    fn missing(&self) -> Vec<String> {
        let cells = || self.cells.iter().flatten();
        let once = |found: &Found| found.gb_per_s.len() == 1;
        let unsure = (cells().any(once) && cells().all(|found| found.gb_per_s.len() < 2)).then(|| {
            "bandwidth: no group ran twice, so nothing is known of how much runs differ, and intervals have no width"
                .to_owned()
        });
        let of = cells().count();
        let line = |count: usize, why: &str| {
            format!("bandwidth of {count} of {of} groups of cores and regions: {why}")
        };
        let in_vain = cells().filter(|found| found.runs > 0 && found.gb_per_s.is_empty()).count();
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for error in cells().filter_map(|found| found.refused.as_ref()) {
            *refused.entry(error.to_string()).or_default() += 1;
        }
        let lines = refused.iter().map(|(why, count)| line(*count, why));
        let in_vain = (in_vain > 0).then(|| line(in_vain, INTERRUPTED));
        let plan = self.plan.missing.iter().cloned();
        plan.chain(unsure).chain(in_vain).chain(lines).collect()
    }
}

/// The first ones of an order run twice, at once.
fn twice((place, group): (usize, &usize)) -> impl Iterator<Item = usize> {
    std::iter::repeat_n(*group, if place < REPEATED { 2 } else { 1 })
}

fn measure(
    target: &mut dyn TriadTarget,
    group: &[CoreId],
    region: RegionId,
    passes: u32,
    moves: &mut u32,
) -> Result<Option<f64>, TargetError> {
    for _ in 0..MOVES_MAX {
        match target.triad(group, region, passes) {
            Err(TargetError::Moved { .. }) => *moves += 1,
            other => return Ok(gb_per_s(&other?)),
        }
    }
    Ok(gb_per_s(&target.triad(group, region, passes)?))
}

fn is_sure<'s>(mut series: impl Iterator<Item = &'s Vec<f64>>, half_width: f64) -> bool {
    series.all(|values| {
        Summary::of(values).is_some_and(|s| (s.hi - s.lo) / 2.0 < half_width * s.median)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::model::ModelTriad;
    use isochrone_atlas_store::contents::Cell;
    use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};

    #[test]
    fn the_model_s_bandwidth_is_found_for_every_group_and_region() {
        let memory = SyntheticMemory::new(SyntheticSpec::ring_knc(1).with_pages(64)).unwrap();
        let truth = |cores: &[CoreId]| memory.truth_bandwidth(cores, RegionId(0)).unwrap();
        let cores: Vec<CoreId> = (0..60).map(CoreId).collect();
        let options = BandwidthOptions { budget_s: 1e9, ..BandwidthOptions::new(1) };
        let plan = BandwidthPlan::new(&[(RegionId(0), cores.clone())], options);
        let mut target = ModelTriad::new(memory.clone(), 0.03, 5);
        let report = run(&mut target, &plan, &mut || false).unwrap();
        assert_eq!((report.bandwidth.len(), report.missing.len()), (61, 0));
        for found in &report.bandwidth {
            let group: Vec<CoreId> = found.cores.iter().copied().map(CoreId).collect();
            let off = found.gb_per_s.median / truth(&group) - 1.0;
            assert!(off.abs() < 0.05, "{found:?}");
        }
    }

    #[test]
    fn intervals_cover_the_truth_however_few_runs_there_were() {
        let memory = SyntheticMemory::new(SyntheticSpec::ring_knc(1).with_pages(64)).unwrap();
        let cores: Vec<CoreId> = (0..6).map(CoreId).collect();
        for rounds in 1..=7 {
            let (mut covered, mut all) = (0_u32, 0_u32);
            for trial in 0..400 {
                let options = BandwidthOptions {
                    budget_s: 1e9,
                    rounds_max: rounds,
                    half_width: 0.0,
                    ..BandwidthOptions::new(trial)
                };
                let plan = BandwidthPlan::new(&[(RegionId(0), cores.clone())], options);
                let mut target = ModelTriad::new(memory.clone(), 0.02, 1000 + trial);
                for found in run(&mut target, &plan, &mut || false).unwrap().bandwidth {
                    let group: Vec<CoreId> = found.cores.iter().copied().map(CoreId).collect();
                    let truth = memory.truth_bandwidth(&group, RegionId(0)).unwrap();
                    let Cell { lo, hi, n, .. } = found.gb_per_s;
                    assert!(n >= rounds && n <= rounds + 1, "{n} runs in {rounds} rounds");
                    covered += u32::from((lo..=hi).contains(&truth));
                    all += 1;
                }
            }
            let share = f64::from(covered) / f64::from(all);
            assert!(share > 0.93, "{share} of intervals cover after {rounds} rounds");
        }
    }

    #[test]
    fn a_region_that_is_not_there_is_an_error_and_stopping_keeps_what_was_measured() {
        let memory = SyntheticMemory::new(SyntheticSpec::ring_knc(1).with_pages(64)).unwrap();
        let of = |region| {
            let near = [(region, vec![CoreId(0), CoreId(1)])];
            BandwidthPlan::new(&near, BandwidthOptions::new(1))
        };
        let mut target = ModelTriad::new(memory, 0.0, 5);
        assert!(run(&mut target, &of(RegionId(7)), &mut || false).is_err());
        let mut left = 3;
        let mut stop = || {
            left -= 1;
            left < 0
        };
        let report = run(&mut target, &of(RegionId(0)), &mut stop).unwrap();
        assert_eq!((report.bandwidth.len(), report.complete), (2, false));
    }

    /// Two of its regions cannot be used.
    struct Broken(ModelTriad, Vec<RegionId>);

    impl TriadTarget for Broken {
        fn triad(
            &mut self,
            cores: &[CoreId],
            region: RegionId,
            passes: u32,
        ) -> Result<Vec<Track>, TargetError> {
            if region.0 % 2 == 1 {
                return Err(TargetError::Unsupported("it has no memory".to_owned()));
            }
            assert!(!self.1.contains(&region), "arrays are given back once");
            self.0.triad(cores, region, passes)
        }

        fn give_back(&mut self, region: RegionId) {
            self.1.push(region);
        }

        fn seconds(&mut self) -> f64 {
            self.0.seconds()
        }
    }

    fn four_regions(options: BandwidthOptions) -> (Broken, BandwidthPlan) {
        let spec = SyntheticSpec::mesh_knm_snc4(2).with_pages(64).with_small_pages();
        let target = ModelTriad::new(SyntheticMemory::new(spec).unwrap(), 0.01, 5);
        let cores = |region: u16| (region * 16..region * 16 + 16).map(CoreId).collect();
        let near: Vec<_> = (0..4).map(|region| (RegionId(region), cores(region))).collect();
        (Broken(target, Vec::new()), BandwidthPlan::new(&near, options))
    }

    #[test]
    fn a_region_that_fails_costs_its_cells_and_a_line() {
        let options = BandwidthOptions { budget_s: 1e9, ..BandwidthOptions::new(1) };
        let (mut target, plan) = four_regions(options);
        let report = run(&mut target, &plan, &mut || false).unwrap();
        assert_eq!(report.bandwidth.len(), 2 * plan.groups.len());
        assert!(report.bandwidth.iter().all(|found| found.region % 2 == 0) && report.complete);
        let groups = plan.groups.len();
        let line = format!("bandwidth of {} of {} groups", 2 * groups, 4 * groups);
        assert!(
            report.missing.iter().any(|missing| missing.starts_with(&line)),
            "{:?}",
            report.missing
        );
        assert!(report.missing.iter().any(|missing| missing.ends_with("it has no memory")));
        assert_eq!(target.1.len(), 4, "each region's arrays are given back");
    }

    #[test]
    fn every_region_has_its_part_of_the_time() {
        let (mut target, plan) =
            four_regions(BandwidthOptions { budget_s: 1e9, ..BandwidthOptions::new(1) });
        target.triad(&plan.groups[0], RegionId(0), 2).unwrap();
        let budget_s = 40.0 * target.seconds();
        let (mut target, plan) =
            four_regions(BandwidthOptions { budget_s, ..BandwidthOptions::new(1) });
        let report = run(&mut target, &plan, &mut || false).unwrap();
        assert!(!report.complete && report.seconds < 1.3 * budget_s, "{}", report.seconds);
        for region in [0, 2] {
            let own: Vec<u16> = (region * 16..region * 16 + 16).collect();
            let here = |found: &&Bandwidth| found.region == region;
            assert!(report.bandwidth.iter().filter(here).any(|found| found.cores == own));
            assert!(report.bandwidth.iter().filter(here).any(|found| found.cores.len() == 64));
        }
    }

    #[test]
    fn without_time_one_group_runs_twice_so_that_its_interval_has_a_width() {
        let (mut target, plan) =
            four_regions(BandwidthOptions { budget_s: 0.0, ..BandwidthOptions::new(1) });
        let report = run(&mut target, &plan, &mut || false).unwrap();
        let [found] = &report.bandwidth[..] else { panic!("{report:?}") };
        let Cell { lo, hi, n, .. } = found.gb_per_s;
        assert!(n == 2 && lo < hi, "{found:?}");
        assert!(!report.missing.iter().any(|line| line.contains("no width")), "{report:?}");
        let memory = SyntheticMemory::new(SyntheticSpec::ring_knc(1).with_pages(64)).unwrap();
        let plan = BandwidthPlan::new(&[(RegionId(0), vec![CoreId(0)])], BandwidthOptions::new(1));
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked > 1
        };
        let report = run(&mut ModelTriad::new(memory, 0.01, 5), &plan, &mut stop).unwrap();
        assert!(report.missing.iter().any(|line| line.contains("no width")), "{report:?}");
    }

    #[test]
    fn the_first_rounds_may_take_longer_than_the_others() {
        let all = |patience_s| {
            let options =
                BandwidthOptions { budget_s: 0.0, patience_s, ..BandwidthOptions::new(1) };
            let (mut target, plan) = four_regions(options);
            run(&mut target, &plan, &mut || false).unwrap()
        };
        let report = all(1e9);
        assert!(report.complete, "{report:?}");
        assert!(report.bandwidth.iter().all(|found| found.gb_per_s.n <= 2));
        assert!(all(0.0).left_out > 0);
    }

    #[test]
    fn a_group_whose_cores_are_hardly_ever_free_together_has_no_number_and_is_named() {
        let cores = [CoreId(0), CoreId(1), CoreId(2), CoreId(3)];
        let spec = SyntheticSpec::ring_knc(1).with_pages(64).with_neighbours(cores, 0.9);
        let options = BandwidthOptions { rounds_max: 2, ..BandwidthOptions::new(1) };
        let plan = BandwidthPlan::new(&[(RegionId(0), cores.to_vec())], options);
        let mut target = ModelTriad::new(SyntheticMemory::new(spec).unwrap(), 0.0, 5);
        let report = run(&mut target, &plan, &mut || false).unwrap();
        assert!(report.bandwidth.iter().all(|found| found.cores.len() == 1), "{report:?}");
        assert!(report.missing[0].starts_with("bandwidth of 1 of 5 groups"), "{report:?}");
    }
}
