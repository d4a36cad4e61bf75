//! Where cores sit by the machine's own word: who shares a physical core, a last-level cache, a memory region.
//!
//! From this follow the kinds of pairs of which a sample is drawn, and which cores stand for the others where there is
//! no time for all of them. What is found never depends on it: it decides what is measured first.

use std::collections::{BTreeMap, BTreeSet};

use isochrone_machine::Machine;
use isochrone_units::{CoreId, RegionId};

/// Cores of a run, and where each of them sits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    seats: Vec<Seat>,
}

/// Where one core sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The core.
    pub core: CoreId,
    /// Its physical core, by the least of its logical ones.
    pub physical: u16,
    /// Its last-level cache, by the least of the cores that share it in this region.
    pub cache: u16,
    /// The region whose memory is nearest by the machine's own word.
    pub region: RegionId,
}

/// What two cores have in common, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stratum {
    /// The physical core.
    Core,
    /// The last-level cache and the region.
    Cache,
    /// The region.
    Region,
    /// Nothing: they sit in these regions, the smaller first.
    Between(RegionId, RegionId),
}

impl Stratum {
    /// In words.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Core => "threads of one core".to_owned(),
            Self::Cache => "cores of one cache".to_owned(),
            Self::Region => "cores of one region".to_owned(),
            Self::Between(a, b) => format!("{a} and {b}"),
        }
    }
}

impl Seats {
    /// Where `cores` sit on a machine, in the order given. Of a core that it does not know nothing is said but that
    /// it sits in the first region.
    #[must_use]
    pub fn of(machine: &Machine, cores: &[CoreId]) -> Self {
        let known: BTreeMap<u16, _> = machine.cores.iter().map(|core| (core.id, core)).collect();
        let first = machine.regions.first().map_or(0, |region| region.id);
        let region_of = |core: u16| known.get(&core).map_or(first, |core| core.region);
        // By core: the level of the farthest cache that it can use, and the least core of its region there.
        let mut caches: BTreeMap<u16, (u8, u16)> = BTreeMap::new();
        for cache in &machine.caches {
            let mut least: BTreeMap<u16, u16> = BTreeMap::new();
            for &core in &cache.shared_by {
                let name = least.entry(region_of(core)).or_insert(core);
                *name = core.min(*name);
            }
            for &core in &cache.shared_by {
                let found = (cache.level, least[&region_of(core)]);
                let kept = caches.entry(core).or_insert(found);
                if found.0 > kept.0 {
                    *kept = found;
                }
            }
        }
        let seat = |&core: &CoreId| {
            let siblings = known.get(&core.0).map_or(&[][..], |core| &core.smt_siblings);
            let physical = siblings.iter().copied().fold(core.0, u16::min);
            let cache = caches.get(&core.0).map_or(physical, |(_, name)| *name);
            Seat { core, physical, cache, region: RegionId(region_of(core.0)) }
        };
        Self { seats: cores.iter().map(seat).collect() }
    }

    /// Where these cores sit, in their order. Of a core that has no seat nothing is said but that it sits in the first
    /// region.
    #[must_use]
    pub fn in_order_of(&self, cores: &[CoreId]) -> Self {
        let known: BTreeMap<CoreId, Seat> =
            self.seats.iter().map(|seat| (seat.core, *seat)).collect();
        let first = self.seats.iter().map(|seat| seat.region).min().unwrap_or(RegionId(0));
        let alone = |core| Seat { core, physical: core.0, cache: core.0, region: first };
        let seat = |core: &CoreId| known.get(core).copied().unwrap_or_else(|| alone(*core));
        Self { seats: cores.iter().map(seat).collect() }
    }

    /// Cores of which nothing is known: all of them sit in one region.
    #[must_use]
    pub fn unknown(cores: &[CoreId]) -> Self {
        Self::of(&Machine::default(), cores)
    }

    /// The seats, in the order of the cores.
    #[must_use]
    pub fn all(&self) -> &[Seat] {
        &self.seats
    }

    /// Some of them, in the same order.
    #[must_use]
    pub fn only(&self, cores: &BTreeSet<CoreId>) -> Self {
        let seats = self.seats.iter().copied().filter(|seat| cores.contains(&seat.core));
        Self { seats: seats.collect() }
    }

    /// What two cores have in common, by their places in the list.
    #[must_use]
    pub fn stratum(&self, a: usize, b: usize) -> Stratum {
        let (a, b) = (&self.seats[a], &self.seats[b]);
        if a.region != b.region {
            return Stratum::Between(a.region.min(b.region), a.region.max(b.region));
        }
        if a.physical == b.physical {
            Stratum::Core
        } else if a.cache == b.cache {
            Stratum::Cache
        } else {
            Stratum::Region
        }
    }

    /// All cores in the order of [`Self::spread`], so that those which come one after the other have little in common.
    #[must_use]
    pub fn in_turns(&self) -> Vec<CoreId> {
        self.spread().into_iter().map(|at| self.seats[at].core).collect()
    }

    /// All cores by their places, those first that stand for most of the others: one of each region, the first core's
    /// before others, then one of each last-level cache, then the others by turns.
    #[must_use]
    pub fn spread(&self) -> Vec<usize> {
        let mut threads: BTreeMap<u16, usize> = BTreeMap::new();
        let thread: Vec<usize> =
            self.seats.iter().map(|s| next(&mut threads, s.physical)).collect();
        // Second threads of a core come when every core of their cache has come.
        let mut by_thread: Vec<usize> = (0..self.seats.len()).collect();
        by_thread.sort_by_key(|&at| (thread[at], at));
        let mut in_cache: BTreeMap<(RegionId, u16), usize> = BTreeMap::new();
        let mut caches: BTreeMap<RegionId, usize> = BTreeMap::new();
        let mut cache_place: BTreeMap<(RegionId, u16), usize> = BTreeMap::new();
        let mut region_place: BTreeMap<RegionId, usize> = BTreeMap::new();
        for (at, seat) in self.seats.iter().enumerate() {
            region_place.entry(seat.region).or_insert(at);
        }
        let mut turns = vec![(0, 0); self.seats.len()];
        for at in by_thread {
            let Seat { region, cache, .. } = self.seats[at];
            let place =
                *cache_place.entry((region, cache)).or_insert_with(|| next(&mut caches, region));
            turns[at] = (next(&mut in_cache, (region, cache)), place);
        }
        let mut order: Vec<usize> = (0..self.seats.len()).collect();
        order.sort_by_key(|&at| (turns[at], region_place[&self.seats[at].region], at));
        order
    }
}

/// Counts a name: how often it came before.
fn next<K: Ord>(counts: &mut BTreeMap<K, usize>, name: K) -> usize {
    let count = counts.entry(name).or_insert(0);
    *count += 1;
    *count - 1
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use isochrone_machine::{Cache, Core, Region};

    /// A machine of so many regions with so many caches of so many cores of two threads each; second threads are
    /// numbered behind all first ones, as Linux does it.
    pub(crate) fn machine(regions: u16, caches: u16, cores: u16) -> Machine {
        let (each, all) = (caches * cores, regions * caches * cores);
        let region_of = |id: u16| id % all / each;
        let core = |id: u16| Core {
            id,
            region: region_of(id),
            smt_siblings: vec![(id + all) % (2 * all)],
            ..Core::default()
        };
        let members = |first: u16, count: u16| -> Vec<u16> {
            (first..first + count).chain(first + all..first + all + count).collect()
        };
        let region = |id| Region { id, cores: members(id * each, each), ..Region::default() };
        let cache = |n: u16| Cache {
            level: 3,
            bytes: Some(32 << 20),
            shared_by: members(n * cores, cores),
            ..Cache::default()
        };
        Machine {
            cores: (0..2 * all).map(core).collect(),
            regions: (0..regions).map(region).collect(),
            caches: (0..regions * caches).map(cache).collect(),
            ..Machine::default()
        }
    }

    pub(crate) fn ids(machine: &Machine) -> Vec<CoreId> {
        machine.cores.iter().map(|core| CoreId(core.id)).collect()
    }

    #[test]
    fn pairs_have_in_common_what_the_machine_says() {
        let machine = machine(2, 2, 3);
        let seats = Seats::of(&machine, &ids(&machine));
        let between = Stratum::Between(RegionId(0), RegionId(1));
        for (b, expected) in [
            (12, Stratum::Core),
            (1, Stratum::Cache),
            (14, Stratum::Cache),
            (3, Stratum::Region),
            (6, between),
            (23, between),
        ] {
            assert_eq!((seats.stratum(0, b), seats.stratum(b, 0)), (expected, expected), "{b}");
        }
        let unknown = Seats::unknown(&ids(&machine));
        assert_eq!(unknown.stratum(0, 12), Stratum::Region);
    }

    #[test]
    fn a_cache_that_reaches_over_regions_does_not_join_them() {
        let mut machine = machine(2, 1, 2);
        machine.caches = vec![Cache { level: 3, shared_by: (0..8).collect(), ..Cache::default() }];
        let seats = Seats::of(&machine, &ids(&machine));
        assert_eq!(seats.stratum(0, 2), Stratum::Between(RegionId(0), RegionId(1)));
        assert_eq!((seats.stratum(0, 1), seats.stratum(2, 3)), (Stratum::Cache, Stratum::Cache));
    }

    #[test]
    fn seats_go_by_the_order_of_the_cores_that_are_asked_for() {
        let machine = machine(2, 2, 3);
        let seats = Seats::of(&machine, &ids(&machine));
        let asked = [9, 99, 0, 12].map(CoreId);
        let found = seats.in_order_of(&asked);
        assert_eq!(found.all().iter().map(|seat| seat.core).collect::<Vec<_>>(), asked);
        assert_eq!(found.stratum(2, 3), Stratum::Core, "threads of core 0");
        assert_eq!(found.stratum(0, 2), Stratum::Between(RegionId(0), RegionId(1)));
        assert_eq!(found.stratum(1, 2), Stratum::Region, "of core 99 nothing is known");
    }

    #[test]
    fn the_first_cores_stand_for_regions_then_for_caches_then_for_cores() {
        let machine = machine(4, 3, 4);
        let seats = Seats::of(&machine, &ids(&machine));
        let order = seats.spread();
        let seat = |at: &usize| seats.all()[*at];
        let distinct = |places: &[usize], of: &dyn Fn(Seat) -> u16| {
            places.iter().map(|at| of(seat(at))).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(distinct(&order[..4], &|seat| seat.region.0), 4);
        assert_eq!(distinct(&order[..12], &|seat| seat.cache), 12);
        assert_eq!(distinct(&order[..48], &|seat| seat.physical), 48);
        let mut all = order.clone();
        all.sort_unstable();
        assert_eq!(all, (0..96).collect::<Vec<_>>());
    }
}
