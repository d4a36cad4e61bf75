//! How large a map is: how much memory each part takes, and about how long.
//!
//! Rates are those of a quiet EPYC 9004 guest of two cores; how far another machine is from them shows as soon as its
//! first experiment is over.

use std::collections::BTreeSet;
use std::time::Duration;

use isochrone_atlas_store::Experiment;
use isochrone_machine::Machine;
use isochrone_probe::sample::Sample;
use isochrone_probe::seats::Seats;
use isochrone_probe::{bandwidth, region, transfer};
use isochrone_report::fmt;
use isochrone_units::CoreId;

use crate::time::Schedule;

/// Memory whose pages are decoded unless told otherwise.
const MEMORY_BYTES: u64 = 1 << 30;
/// The same for `--quick`.
const QUICK_MEMORY_BYTES: u64 = 64 << 20;
/// The least that shows anything.
const MEMORY_LEAST_BYTES: u64 = 4 << 20;
/// Of the machine's memory, what is taken at most by pages, and by the arrays of all caches together.
const OF_MEMORY: u64 = 4;

/// Triad arrays of the cores of one last-level cache, in such caches.
const TRIAD_OF_LLC: u64 = 4;
/// The same where the system does not tell the size.
const TRIAD_BYTES: u64 = 256 << 20;
/// Triad arrays of the cores of one last-level cache, at most.
const TRIAD_BYTES_MAX: u64 = 512 << 20;
/// The same for `--quick`.
const QUICK_TRIAD_BYTES_MAX: u64 = TRIAD_BYTES_MAX / 4;
/// Triad arrays of the cores of one last-level cache, at least.
const TRIAD_BYTES_LEAST: u64 = 3 << 20;

/// Seconds that a GiB takes until it is there.
pub(crate) const MAP_GIB_S: f64 = 0.5;
/// Seconds that a core takes at both levels of block latency; the first for `--quick`.
const BLOCK_CORE_S: [f64; 2] = [0.7, 3.5];
/// The same where a core is verified and not learnt, and its base has to be measured: three times 12 ms of loads
/// (`crates/measure/probe/src/block`).
const VERIFIED_CORE_S: f64 = 0.04;
/// Seconds that a page takes to be decoded at both levels.
const PAGE_S: f64 = 15e-6;
/// Seconds that a core's share of a last-level cache takes, for each MiB of it.
const LLC_MIB_S: f64 = 0.04;
/// Line transfers: kinds, and seconds of a pair in all its sweeps.
const KINDS: f64 = 4.0;
const PAIR_S: [f64; 2] = [0.3, 0.8];
/// Seconds of several lines and of costs, with two cores, and with so many more as take part at most.
const MULTILINE_S: [f64; 2] = [0.25, 0.6];
const MULTILINE_CORES: f64 = 9.0;
const TERMS_S: [f64; 2] = [0.15, 0.4];
/// Region latency: modes, and seconds of a cell.
const MODES: f64 = 4.0;
const CELL_S: [f64; 2] = [0.3, 0.6];

/// What a map may take that was given no time, in times of what is estimated: beside others that take a core it takes
/// about twice as long, and beyond this more time does not make it better.
const PATIENCE: f64 = 3.0;
/// The same at least: an estimate of a second says little.
const PATIENCE_LEAST: Duration = Duration::from_secs(10);

/// How much of everything is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wishes {
    /// Less of everything.
    pub quick: bool,
    /// Bytes whose pages are decoded, where they were asked for.
    pub memory: Option<u64>,
    /// Buffer of each region, bytes.
    pub buffer: u64,
}

/// What a map measures, and with how much memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Cores that take part.
    pub cores: usize,
    /// Of them, those that are learnt in full.
    pub learnt: usize,
    /// Of them, those whose share of the last-level cache is measured.
    pub sharers: usize,
    /// Regions, at least one.
    pub regions: usize,
    /// Memory whose pages are decoded.
    pub memory_bytes: u64,
    /// Buffer of each region.
    pub buffer_bytes: u64,
    /// Last-level cache of a core, where it is known.
    pub llc_bytes: u64,
    /// Arrays of the cores of one last-level cache.
    pub triad_bytes: u64,
    quick: bool,
}

impl Size {
    /// Of a map of these cores of this machine, which has so much memory.
    #[must_use]
    pub fn of(wishes: &Wishes, machine: &Machine, cores: &[CoreId], total: Option<u64>) -> Self {
        let llc = cores.first().and_then(|core| machine.last_level_cache(*core));
        Self {
            cores: cores.len(),
            learnt: Sample::learnt(wishes.quick).of(machine, cores).len(),
            sharers: if wishes.quick { 1 } else { Sample::SHARERS.of(machine, cores).len() },
            regions: machine.regions.len().max(1),
            memory_bytes: Memory::of(wishes, total).bytes,
            buffer_bytes: wishes.buffer,
            llc_bytes: llc.and_then(|cache| cache.bytes).unwrap_or(0),
            triad_bytes: triad_bytes(machine, cores, wishes.quick, total),
            quick: wishes.quick,
        }
    }

    /// About how many seconds an experiment takes where nothing ends it.
    #[must_use]
    pub fn estimate_s(&self, experiment: Experiment) -> f64 {
        let full = usize::from(!self.quick);
        let (cores, regions) = (self.cores as f64, self.regions as f64);
        let pairs = cores * (cores - 1.0) / 2.0;
        let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
        match experiment {
            Experiment::Block => {
                let pages = self.memory_bytes as f64 / 4096.0;
                let (learnt, sharers) = (self.learnt as f64, self.sharers as f64);
                MAP_GIB_S * gib(self.memory_bytes)
                    + BLOCK_CORE_S[full] * learnt
                    + VERIFIED_CORE_S * (cores - learnt)
                    + PAGE_S * pages / cores.clamp(1.0, 4.0)
                    + sharers * LLC_MIB_S * 1024.0 * gib(self.llc_bytes)
            }
            Experiment::Transfer => {
                KINDS * (PAIR_S[full] * pairs).min(transfer::budget_s(self.cores, self.quick))
            }
            Experiment::Multiline => MULTILINE_S[full] * (cores - 1.0).clamp(0.0, MULTILINE_CORES),
            Experiment::Terms => TERMS_S[full] * (cores - 1.0).clamp(0.0, 2.0),
            Experiment::Region => {
                MAP_GIB_S * regions * gib(self.buffer_bytes)
                    + MODES
                        * (CELL_S[full] * cores * regions)
                            .min(region::budget_s(self.cores * self.regions, self.quick))
            }
            // Its arrays are mapped within its time, but for the last ones.
            Experiment::Bandwidth => {
                bandwidth::budget_s(self.regions, self.quick) + MAP_GIB_S * gib(self.triad_bytes)
            }
            Experiment::Placement => 0.0,
        }
    }

    /// A schedule with an end: where no time was asked for, some times what each experiment is estimated to take.
    #[must_use]
    pub fn bounded(&self, schedule: Schedule) -> Schedule {
        let estimates_s = self.estimates_s(&schedule);
        let most_s = PATIENCE * estimates_s.iter().sum::<f64>();
        schedule.bounded(Duration::from_secs_f64(most_s).max(PATIENCE_LEAST), &estimates_s)
    }

    /// About how many seconds each experiment of a schedule takes, its end counted.
    #[must_use]
    pub fn estimates_s(&self, schedule: &Schedule) -> Vec<f64> {
        let ends = |experiment| schedule.share(experiment).as_ref().map(Duration::as_secs_f64);
        let one = |experiment: &Experiment| {
            let free = self.estimate_s(*experiment);
            ends(*experiment).map_or(free, |share| free.min(share))
        };
        schedule.experiments.iter().map(one).collect()
    }
}

/// The memory whose pages are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// So many.
    pub bytes: u64,
    /// Where it is not what was asked for: so, and why.
    pub note: Option<String>,
}

impl Memory {
    /// What was asked for, on a machine that has so much.
    #[must_use]
    pub fn of(wishes: &Wishes, total: Option<u64>) -> Self {
        let default = if wishes.quick { QUICK_MEMORY_BYTES } else { MEMORY_BYTES };
        let wanted = wishes.memory.unwrap_or(default);
        let bytes = wanted.min(part_of(total)).max(MEMORY_LEAST_BYTES);
        let why =
            if bytes == MEMORY_LEAST_BYTES { "the least" } else { "a quarter of the machine's" };
        let note = wishes.memory.filter(|asked| *asked != bytes).map(|asked| {
            let [bytes, asked] = [bytes, asked].map(fmt::bytes);
            format!("--memory {asked}: {bytes} are decoded instead, {why}")
        });
        Self { bytes, note }
    }
}

/// Arrays of the cores of one last-level cache: several times that cache, and those of all caches together no more than
/// the machine bears.
pub(crate) fn triad_bytes(
    machine: &Machine,
    cores: &[CoreId],
    quick: bool,
    total: Option<u64>,
) -> u64 {
    let llc = cores.first().and_then(|core| machine.last_level_cache(*core)).and_then(|c| c.bytes);
    let most = if quick { QUICK_TRIAD_BYTES_MAX } else { TRIAD_BYTES_MAX };
    let bytes = llc.map_or(TRIAD_BYTES, |bytes| bytes * TRIAD_OF_LLC).min(most);
    let seats = Seats::of(machine, cores);
    let caches: BTreeSet<_> = seats.all().iter().map(|seat| (seat.region, seat.cache)).collect();
    bytes.min(part_of(total) / caches.len().max(1) as u64).max(TRIAD_BYTES_LEAST)
}

fn part_of(total: Option<u64>) -> u64 {
    total.map_or(u64::MAX, |bytes| bytes / OF_MEMORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cores: usize, quick: bool) -> Size {
        Size {
            cores,
            learnt: cores.min(4),
            sharers: cores.min(2),
            regions: 1,
            memory_bytes: if quick { QUICK_MEMORY_BYTES } else { MEMORY_BYTES },
            buffer_bytes: 100 << 20,
            llc_bytes: 32 << 20,
            triad_bytes: 128 << 20,
            quick,
        }
    }

    #[test]
    fn a_quick_map_is_short_and_more_cores_take_longer() {
        let all_s = |size: &Size| -> f64 {
            Experiment::ALL.into_iter().map(|experiment| size.estimate_s(experiment)).sum()
        };
        assert!(all_s(&size(2, true)) < 10.0);
        let full_s = all_s(&size(2, false));
        assert!((20.0..60.0).contains(&full_s), "{full_s}");
        assert!(all_s(&size(64, false)) > 2.0 * full_s);
        let one = size(1, false);
        assert!(Experiment::ALL.into_iter().all(|experiment| one.estimate_s(experiment) >= 0.0));
    }

    #[test]
    fn no_estimate_is_longer_than_what_there_is_for_it() {
        let schedule = Schedule::of(&[], Some(Duration::from_secs(10)), false);
        let estimates = size(64, false).estimates_s(&schedule);
        assert!(estimates.iter().sum::<f64>() <= 10.0, "{estimates:?}");
    }

    #[test]
    fn a_map_without_a_time_ends_after_some_times_its_estimate_and_has_room_for_all_of_it() {
        for (cores, only) in [(2, &[][..]), (64, &[]), (2, &[Experiment::Terms])] {
            let size = size(cores, false);
            let free = Schedule::of(only, None, false);
            let bounded = size.bounded(free.clone());
            let all_s: f64 = size.estimates_s(&free).iter().sum();
            let most_s = bounded.budget.unwrap().as_secs_f64();
            assert!((most_s - (3.0 * all_s).max(10.0)).abs() < 1e-6, "{most_s} for {all_s}");
            assert_eq!(size.estimates_s(&bounded), size.estimates_s(&free), "nothing is cut");
            assert_eq!(size.bounded(bounded.clone()).budget, bounded.budget);
        }
        let asked = Schedule::of(&[], Some(Duration::from_secs(7)), false);
        assert_eq!(size(2, false).bounded(asked).budget, Some(Duration::from_secs(7)));
    }
}
