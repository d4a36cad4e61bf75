//! Which cores stand for all: a few of each last-level cache and region.
//!
//! What is learnt in full takes seconds a core, so on a machine of hundreds of cores some are learnt and the others
//! verified. Pure data: it knows what the system tells of the machine, and measures nothing.

use std::collections::{BTreeMap, BTreeSet};

use isochrone_machine::Machine;
use isochrone_units::CoreId;

use crate::seats::{Seat, Seats};

/// How many cores stand for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Of each last-level cache and region.
    pub each: usize,
    /// Of the whole machine, at least.
    pub least: usize,
    /// Of the whole machine, at most: then each region has one before a cache has two.
    pub most: usize,
}

impl Sample {
    /// Of cores that are learnt in full: four at least, as many as shapes of pages are learnt from together.
    const LEARNT: Self = Self { each: 2, least: 4, most: 16 };
    /// The same for a quick map.
    const LEARNT_QUICK: Self = Self { each: 1, least: 4, most: 4 };
    /// Of cores whose share of the last-level cache is measured.
    pub const SHARERS: Self = Self { each: 1, least: 2, most: 16 };

    /// Of cores that are learnt in full, in a full or a quick map.
    #[must_use]
    pub const fn learnt(quick: bool) -> Self {
        if quick { Self::LEARNT_QUICK } else { Self::LEARNT }
    }

    /// The cores that stand for `cores`: all of them, in their order, where they are few. Else the first of them, and
    /// then those of other regions and caches before others of the same. Of sibling threads one comes before both, and
    /// cores of one cache lie as far apart in the order of `cores` as they can.
    #[must_use]
    pub fn of(&self, machine: &Machine, cores: &[CoreId]) -> Vec<CoreId> {
        let seats = Seats::of(machine, cores);
        let groups = groups(machine, &seats);
        let each = self.each.max(self.least.div_ceil(groups.len().max(1)));
        if groups.iter().all(|group| group.len() <= each) && cores.len() <= self.most {
            return cores.to_vec();
        }
        let picked: BTreeSet<CoreId> = groups.iter().flat_map(|group| apart(group, each)).collect();
        let mut chosen = seats.only(&picked).in_turns();
        chosen.truncate(self.most);
        chosen
    }
}

/// Cores of one last-level cache in one region; those of a region of which no cache is known are together.
fn groups(machine: &Machine, seats: &Seats) -> Vec<Vec<Seat>> {
    let mut groups: BTreeMap<_, Vec<Seat>> = BTreeMap::new();
    for seat in seats.all() {
        let cache = machine.last_level_cache(seat.core).map(|_| seat.cache);
        groups.entry((seat.region, cache)).or_default().push(*seat);
    }
    groups.into_values().collect()
}

/// So many cores of a group, evenly spread over it, the first one first; threads that have a sibling before them only
/// where there are no others.
fn apart(group: &[Seat], count: usize) -> Vec<CoreId> {
    let mut physical = BTreeSet::new();
    let (first, second): (Vec<Seat>, Vec<Seat>) =
        group.iter().partition(|seat| physical.insert(seat.physical));
    let cores = |seats: Vec<Seat>| seats.iter().map(|seat| seat.core).collect::<Vec<_>>();
    let mut spread = evenly(&cores(first), count);
    spread.extend(evenly(&cores(second), count.saturating_sub(spread.len())));
    spread
}

fn evenly(cores: &[CoreId], count: usize) -> Vec<CoreId> {
    let count = count.min(cores.len());
    (0..count).map(|nth| cores[nth * cores.len() / count]).collect()
}

#[cfg(test)]
mod tests {
    use isochrone_machine::{Cache, Core, Region};

    use super::*;

    /// So many cores in caches and regions of equal size; with `threads`, core `i` and `i + cores / 2` are siblings.
    fn machine(cores: u16, of_cache: u16, of_region: u16, threads: bool) -> Machine {
        let half = cores / 2;
        let sibling = |id: u16| if id < half { id + half } else { id - half };
        let place = |id: u16| if threads { id % half } else { id };
        let core = |id: u16| Core {
            id,
            region: place(id) / of_region,
            smt_siblings: if threads { vec![sibling(id)] } else { Vec::new() },
            ..Core::default()
        };
        let places = if threads { half } else { cores };
        let of = |size: u16, number: u16| -> Vec<u16> {
            (0..cores).filter(|id| place(*id) / size == number).collect()
        };
        Machine {
            cores: (0..cores).map(core).collect(),
            regions: (0..places.div_ceil(of_region))
                .map(|id| Region { id, cores: of(of_region, id), ..Region::default() })
                .collect(),
            caches: (0..places.div_ceil(of_cache))
                .map(|number| Cache {
                    level: 3,
                    shared_by: of(of_cache, number),
                    ..Cache::default()
                })
                .collect(),
            ..Machine::default()
        }
    }

    fn of(sample: Sample, machine: &Machine) -> Vec<u16> {
        let cores: Vec<CoreId> = machine.core_ids().collect();
        sample.of(machine, &cores).iter().map(|core| core.0).collect()
    }

    const TWO: Sample = Sample::learnt(false);

    #[test]
    fn where_there_are_few_cores_all_stand_for_themselves() {
        for cores in 1..=4 {
            assert_eq!(of(TWO, &machine(cores, 8, 8, false)), (0..cores).collect::<Vec<u16>>());
        }
        // Two sibling threads, and eight cores whose caches are small.
        assert_eq!(of(TWO, &machine(2, 1, 1, true)), [0, 1]);
        assert_eq!(of(TWO, &machine(8, 2, 8, false)), (0..8).collect::<Vec<u16>>());
        assert_eq!(TWO.of(&Machine::default(), &[]), []);
    }

    #[test]
    fn a_few_of_each_cache_and_region_stand_for_all() {
        assert_eq!(of(TWO, &machine(64, 64, 64, false)), [0, 16, 32, 48], "one cache: four of it");
        assert_eq!(of(TWO, &machine(64, 32, 64, false)), [0, 32, 16, 48], "another cache first");
        // Four regions of two caches each: regions take turns.
        let chosen = of(TWO, &machine(64, 8, 16, false));
        assert_eq!(chosen[..8], [0, 16, 32, 48, 8, 24, 40, 56]);
        assert_eq!(chosen[8..], [4, 20, 36, 52, 12, 28, 44, 60]);
        // A cache that two regions divide, as with sub-NUMA clusters.
        assert_eq!(of(TWO, &machine(64, 64, 32, false)), [0, 32, 16, 48]);
    }

    #[test]
    fn of_many_caches_each_region_has_one_before_others_have_two() {
        let chosen = of(TWO, &machine(576, 8, 36, false));
        assert_eq!(chosen.len(), 16);
        assert!((0..16).all(|region| chosen.iter().any(|core| core / 36 == region)), "{chosen:?}");
        assert_eq!(chosen[0], 0);
    }

    #[test]
    fn sibling_threads_come_last() {
        // 32 cores of two threads, four caches of eight cores.
        let chosen = of(TWO, &machine(64, 8, 32, true));
        assert_eq!(chosen, [0, 8, 16, 24, 4, 12, 20, 28]);
        let all: Vec<CoreId> = machine(8, 2, 4, true).core_ids().collect();
        let order = Seats::of(&machine(8, 2, 4, true), &all).in_turns();
        assert_eq!(order, [0, 2, 1, 3, 4, 6, 5, 7].map(CoreId));
        let one = Sample { each: 3, least: 1, most: 16 };
        // Caches of one core: both its threads, and no third.
        assert_eq!(of(one, &machine(4, 1, 2, true)), [0, 1, 2, 3]);
        assert_eq!(of(Sample { each: 1, ..one }, &machine(4, 1, 2, true)), [0, 1]);
    }
}
