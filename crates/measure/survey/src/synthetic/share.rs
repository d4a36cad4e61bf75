//! Shares of the last-level cache of a synthetic machine: rings of growing size in a cache with random replacement.

use isochrone_atlas_store::contents::LlcShare;
use isochrone_probe::capacity;
use isochrone_probe::target::TargetError;
use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_stats::{derive_seed, mean, normal, rng};
use isochrone_units::{CoreId, LINE_BYTES, Level};

use super::clock::VirtualClock;
use super::costs::{MOVE_S, mapping_s};

/// Of what the system lists, what a core of the machine gets.
const GOT: u64 = 4;
/// Loads that are timed at most, and between two looks at whether to go on, as live ones are.
const TIMED_STEPS: u64 = 1 << 20;
const PART_STEPS: u64 = 1 << 18;
/// Relative standard deviation of a ring's time a load.
const SD: f64 = 0.01;

/// Nanoseconds a load in a warm ring of so many bytes, without noise.
fn truth_ns(memory: &SyntheticMemory, core: CoreId, capacity: u64, bytes: u64) -> Option<f64> {
    let of = |level: Level| {
        let bases = memory.truth_base(core, level).ok()?;
        Some(mean(&bases.concat())? * 1e9 / memory.timer().hz)
    };
    let hits = (capacity as f64 / bytes as f64).min(1.0);
    Some(of(Level::Llc)? * hits + of(Level::Dram)? * (1.0 - hits))
}

/// What a core gets of a cache whose largest ring is half as large again as what is listed.
fn capacity(sizes: &[u64]) -> u64 {
    sizes.last().map_or(0, |largest| largest / 3 * 2 / GOT)
}

/// The share that rings of these sizes ought to show.
pub(super) fn truth(memory: &SyntheticMemory, core: CoreId, sizes: &[u64]) -> Option<u64> {
    let of = |bytes: &u64| Some((*bytes, truth_ns(memory, core, capacity(sizes), *bytes)?));
    capacity::half_way(&sizes.iter().map(of).collect::<Option<Vec<_>>>()?)
}

/// Measures the shares, one core after the other.
pub(super) fn measure(
    memory: &SyntheticMemory,
    cores: &[CoreId],
    sizes: &[u64],
    seed: u64,
    clock: &VirtualClock,
    keep_going: &dyn Fn() -> bool,
) -> Result<Vec<LlcShare>, TargetError> {
    let Some(largest) = sizes.last() else { return Ok(Vec::new()) };
    clock.pass(mapping_s(*largest));
    let mut random = rng(derive_seed(seed, 3));
    let mut chase = |asked: &[CoreId], bytes: u64| {
        let mut found = Vec::with_capacity(asked.len());
        for &core in asked {
            clock.pass(MOVE_S);
            let ns = truth_ns(memory, core, capacity(sizes), bytes).ok_or_else(no_cache)?;
            let ns = ns * (1.0 + SD * normal(&mut random));
            let steps = bytes / LINE_BYTES as u64;
            let mut left = steps;
            while left > 0 && keep_going() {
                let part = left.min(PART_STEPS);
                clock.pass(ns * 1e-9 * part as f64);
                left -= part;
            }
            if left > 0 {
                break;
            }
            clock.pass(ns * 1e-9 * steps.min(TIMED_STEPS) as f64);
            found.push(ns);
        }
        Ok(found)
    };
    capacity::measure(cores, sizes, &mut chase, keep_going)
}

fn no_cache() -> TargetError {
    TargetError::Unsupported("the synthetic machine has no last-level cache".to_owned())
}
