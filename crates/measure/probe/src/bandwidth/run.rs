//! Runs a bandwidth plan: every group on every region, in rounds of shuffled order.
//!
//! Bytes are those of the stated count (24 for each element of the triad: two read, one written;
//! the write-allocate read is not counted). Generic over [`TriadTarget`].

use isochrone_atlas_store::contents::Bandwidth;
use isochrone_stats::{Summary, derive_seed, rng, shuffle};
use isochrone_units::{CoreId, RegionId};

use super::plan::BandwidthPlan;
use super::track::{Track, gb_per_s};
use crate::target::TargetError;
use crate::transfer::series::cell;

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
    /// Whether all was measured as planned (false if the caller stopped it).
    pub complete: bool,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Runs the plan. `stop` is asked before every run, and while arrays are mapped; what was measured is kept.
///
/// # Errors
/// What the target says.
pub fn run(
    target: &mut dyn TriadTarget,
    plan: &BandwidthPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<BandwidthReport, TargetError> {
    let options = &plan.options;
    let begun = target.seconds();
    let pairs: Vec<(&Vec<CoreId>, RegionId)> = plan
        .groups
        .iter()
        .flat_map(|group| plan.regions.iter().map(move |&region| (group, region)))
        .collect();
    let mut series: Vec<Vec<f64>> = vec![Vec::new(); pairs.len()];
    let mut runs = vec![0_u32; pairs.len()];
    let (mut moves, mut complete) = (0, true);
    'rounds: for round in 0..options.rounds_max {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        shuffle(&mut order, &mut rng(derive_seed(options.seed, u64::from(round))));
        for at in order {
            let (group, region) = pairs[at];
            let prepared = match stop() {
                true => Err(TargetError::Stopped),
                false => target.prepare(group, region, stop),
            };
            match prepared {
                Err(TargetError::Stopped) => {
                    complete = false;
                    break 'rounds;
                }
                other => other?,
            }
            series[at].extend(measure(target, group, region, options.passes, &mut moves)?);
            runs[at] += 1;
        }
        let spent = target.seconds() - begun > options.budget_s;
        let sure = is_sure(&series, options.half_width);
        if spent || sure && round + 1 >= options.rounds_min {
            break;
        }
    }
    let bandwidth = pairs.iter().zip(&series).filter_map(|((group, region), values)| {
        let cores = group.iter().map(|core| core.0).collect();
        Some(Bandwidth { cores, region: region.0, gb_per_s: cell(values)? })
    });
    let in_vain = runs.iter().zip(&series).filter(|(runs, values)| **runs > 0 && values.is_empty());
    Ok(BandwidthReport {
        bandwidth: bandwidth.collect(),
        missing: missing(in_vain.count(), pairs.len()),
        moves,
        complete,
        seconds: target.seconds() - begun,
    })
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

fn missing(in_vain: usize, of: usize) -> Vec<String> {
    let why = "somebody else had one of the cores nearly all the time; stop what else runs";
    let line = format!("bandwidth of {in_vain} of {of} groups of cores and regions: {why}");
    if in_vain > 0 { vec![line] } else { Vec::new() }
}

fn is_sure(series: &[Vec<f64>], half_width: f64) -> bool {
    series.iter().all(|values| {
        Summary::of(values).is_some_and(|s| (s.hi - s.lo) / 2.0 < half_width * s.median)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::model::ModelTriad;
    use crate::bandwidth::plan::BandwidthOptions;
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
    fn a_region_that_is_not_there_is_an_error_and_stopping_keeps_what_was_measured() {
        let memory = SyntheticMemory::new(SyntheticSpec::ring_knc(1).with_pages(64)).unwrap();
        let of = |region| {
            let near = [(region, vec![CoreId(0), CoreId(1)])];
            BandwidthPlan::new(&near, BandwidthOptions::new(1))
        };
        let mut target = ModelTriad::new(memory, 0.0, 5);
        assert!(run(&mut target, &of(RegionId(7)), &mut || false).is_err());
        let mut left = 2;
        let mut stop = || {
            left -= 1;
            left < 0
        };
        let report = run(&mut target, &of(RegionId(0)), &mut stop).unwrap();
        assert_eq!((report.bandwidth.len(), report.complete), (2, false));
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
