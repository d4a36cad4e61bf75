//! What the bandwidth experiment does: which groups of cores run the triad together, on which
//! region's memory, with how large arrays. Pure data.

use std::collections::BTreeMap;

use isochrone_units::{CoreId, RegionId};

use crate::seats::Seats;
use crate::target::TargetError;

/// Single cores times regions, at most: where there are more, some cores stand for the others, one of each region at
/// least. Most of a core's time is spent on making its arrays present, some 80 ms: these take 5 s.
const SINGLE_CELLS: usize = 64;
/// Of a region's free bytes, what the arrays of a group take at most.
const OF_FREE: u64 = 4;
/// Arrays of one core, at least: what does not fit into a second-level cache.
const BYTES_LEAST: u64 = 3 << 20;

/// Seconds of the experiment at least, and for each region: so long does one round over all groups take with 2 regions,
/// and with 16 of 24 cores each. A map gives it an eighth of its time (32 s of 4 min with 16 regions).
const BUDGET_S: f64 = 6.0;
const BUDGET_REGION_S: f64 = 2.0;
/// How much longer the first rounds may take where a map has no limit: with 16 regions of 36 cores, whose arrays are
/// twice as many and twice as large, one takes 4.2 s. A group that never ran has no number at all.
const FIRST_ROUNDS: f64 = 2.5;
/// The same of a quick map, which has no more time for more regions.
const QUICK_BUDGET_S: f64 = 0.5;

/// Seconds that a map gives the experiment.
#[must_use]
pub fn budget_s(regions: usize, quick: bool) -> f64 {
    if quick { QUICK_BUDGET_S } else { BUDGET_S.max(BUDGET_REGION_S * regions as f64) }
}

/// Seconds in which the first rounds end where nothing else ends them, for an experiment of so many.
#[must_use]
pub fn first_rounds_s(budget_s: f64) -> f64 {
    FIRST_ROUNDS * budget_s
}

/// How much is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthOptions {
    /// Passes over the arrays in one timed run.
    pub passes: u32,
    /// Rounds over all groups of a region at least.
    pub rounds_min: u32,
    /// Rounds at most.
    pub rounds_max: u32,
    /// Enough when the 95 % interval's half-width of every cell's median, over its median, is
    /// below this.
    pub half_width: f64,
    /// Seconds after which no further run begins, even before [`Self::rounds_min`]; each region has its part of them,
    /// and what those before it left.
    pub budget_s: f64,
    /// The same in the first round of a region: on a slow machine that may take longer. The budget where that is more.
    pub patience_s: f64,
    /// Where the cores sit, so that those that run alone stand for the others where not all can; of cores of which
    /// nothing is said the first ones do.
    pub seats: Option<Seats>,
    /// Seed of the order.
    pub seed: u64,
}

impl BandwidthOptions {
    /// What `isochrone map` uses unless told otherwise. [`budget_s`] says what a map of more regions takes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            passes: 2,
            rounds_min: 6,
            rounds_max: 40,
            half_width: 0.02,
            budget_s: BUDGET_S,
            patience_s: 0.0,
            seats: None,
            seed,
        }
    }
}

/// Everything that will be done.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthPlan {
    /// How much.
    pub options: BandwidthOptions,
    /// Groups of cores, each ascending, none twice: single cores, the cores of each region, all.
    pub groups: Vec<Vec<CoreId>>,
    /// The regions whose memory is used.
    pub regions: Vec<RegionId>,
    /// For each region the groups, by their places, the most telling first: its own cores, one of them alone, all
    /// cores, then the others.
    pub orders: Vec<Vec<usize>>,
    /// Which single cores are left out, in one line, where some are.
    pub missing: Option<String>,
}

impl BandwidthPlan {
    /// Plans all groups of the cores that each region has. A region without cores has memory to
    /// be measured all the same.
    #[must_use]
    pub fn new(cores_of: &[(RegionId, Vec<CoreId>)], options: BandwidthOptions) -> Self {
        let mut all: Vec<CoreId> = cores_of.iter().flat_map(|(_, cores)| cores.clone()).collect();
        all.sort_unstable();
        all.dedup();
        let most = (SINGLE_CELLS / cores_of.len().max(1)).max(cores_of.len());
        let singles = singles(&all, options.seats.as_ref(), most);
        let missing = (singles.len() < all.len()).then(|| {
            format!(
                "bandwidth: {} of {} cores run alone, those first that stand for a region or a last-level cache; the \
                 others have no number of their own",
                singles.len(),
                all.len()
            )
        });
        let own: Vec<Vec<CoreId>> = cores_of
            .iter()
            .map(|(_, cores)| {
                let mut cores = cores.clone();
                cores.sort_unstable();
                cores.dedup();
                cores
            })
            .collect();
        let mut groups: Vec<Vec<CoreId>> = Vec::new();
        let alone = singles.iter().map(|&core| vec![core]);
        for group in alone.chain(own.iter().cloned()).chain([all]) {
            if !group.is_empty() && !groups.contains(&group) {
                groups.push(group);
            }
        }
        let orders = own.iter().map(|own| telling(&groups, own)).collect();
        let regions = cores_of.iter().map(|(region, _)| *region).collect();
        Self { options, groups, regions, orders, missing }
    }

    /// The same groups on the memory of these of its regions alone: of those whose memory can be had.
    #[must_use]
    pub fn on(self, regions: &[RegionId]) -> Self {
        let all = self.regions.into_iter().zip(self.orders);
        let (regions, orders) = all.filter(|(region, _)| regions.contains(region)).unzip();
        Self { regions, orders, ..self }
    }
}

/// The cores that run alone, at most so many, ascending.
fn singles(all: &[CoreId], seats: Option<&Seats>, most: usize) -> Vec<CoreId> {
    if all.len() <= most {
        return all.to_vec();
    }
    let unknown = Seats::unknown(all);
    let seats = seats.unwrap_or(&unknown);
    let cores = seats.in_turns().into_iter();
    let mut found: Vec<CoreId> =
        cores.filter(|core| all.binary_search(core).is_ok()).take(most).collect();
    found.sort_unstable();
    found
}

/// The groups in the order in which they tell most of a region with these cores.
fn telling(groups: &[Vec<CoreId>], own: &[CoreId]) -> Vec<usize> {
    let is_near = |group: &[CoreId]| group.len() == 1 && own.binary_search(&group[0]).is_ok();
    let near = groups.iter().position(|group| is_near(group));
    let last = groups.len().saturating_sub(1);
    let rank = |at: &usize| match &groups[*at] {
        group if group == own => 0,
        _ if Some(*at) == near => 1,
        _ if *at == last => 2,
        group if group.len() > 1 => 3,
        _ => 4,
    };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|at| (rank(at), *at));
    order
}

/// How large the arrays of cores are.
#[derive(Clone, Debug, PartialEq)]
pub struct ArraySizes {
    seats: Seats,
    alone_bytes: u64,
}

impl ArraySizes {
    /// A core alone has arrays of `alone_bytes` in all, which should be several times its last-level cache. Those that
    /// share one share these bytes as well: together they go through as much.
    #[must_use]
    pub const fn new(seats: Seats, alone_bytes: u64) -> Self {
        Self { seats, alone_bytes }
    }

    /// As [`Self::of`] in this region.
    ///
    /// # Errors
    /// [`TargetError::System`] where it has too few bytes free.
    pub fn in_region(
        &self,
        group: &[CoreId],
        region: RegionId,
        free_bytes: Option<u64>,
    ) -> Result<Vec<u64>, TargetError> {
        self.of(group, free_bytes).ok_or_else(|| TargetError::System {
            what: format!("cannot have arrays in {region}"),
            why: format!("{} MiB of it are free", free_bytes.unwrap_or(0) >> 20),
            advice: "free some, or measure fewer cores".to_owned(),
        })
    }

    /// Bytes of each core of a group, in its order, in a region that has so many free where that is known; `None`
    /// where it has too few. All of a group have as much as the one that shares its cache with fewest: who had less to
    /// do would be done early, and the others' last part would count as the group's.
    #[must_use]
    pub fn of(&self, group: &[CoreId], free_bytes: Option<u64>) -> Option<Vec<u64>> {
        let seats: BTreeMap<CoreId, _> = self.seats.all().iter().map(|s| (s.core, s)).collect();
        let cache = |core: &CoreId| seats.get(core).map(|seat| (seat.region, seat.cache));
        let mut sharers: BTreeMap<_, u64> = BTreeMap::new();
        for core in group {
            *sharers.entry(cache(core)).or_default() += 1;
        }
        let of = |core: &CoreId| match cache(core) {
            Some(_) => self.alone_bytes / sharers[&cache(core)],
            None => self.alone_bytes,
        };
        let wanted = group.iter().map(of).fold(BYTES_LEAST, u64::max);
        let most = free_bytes.map_or(u64::MAX, |free| free / OF_FREE) / group.len().max(1) as u64;
        (most >= BYTES_LEAST).then(|| vec![wanted.min(most); group.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seats::tests::{ids, machine};

    fn cores(ids: &[u16]) -> Vec<CoreId> {
        ids.iter().copied().map(CoreId).collect()
    }

    #[test]
    fn groups_are_single_cores_regions_and_all_without_repetition() {
        let options = BandwidthOptions::new(1);
        let near = [(RegionId(0), cores(&[0, 1])), (RegionId(1), cores(&[3, 2]))];
        let plan = BandwidthPlan::new(&near, options.clone());
        let expected: Vec<Vec<CoreId>> =
            [&[0][..], &[1], &[2], &[3], &[0, 1], &[2, 3], &[0, 1, 2, 3]].map(cores).to_vec();
        assert_eq!(plan.groups, expected);
        let one = BandwidthPlan::new(&[(RegionId(0), cores(&[0, 1]))], options.clone());
        assert_eq!(one.groups, [cores(&[0]), cores(&[1]), cores(&[0, 1])]);
        let far = [(RegionId(0), cores(&[0])), (RegionId(1), vec![])];
        let memory_only = BandwidthPlan::new(&far, options);
        assert_eq!(memory_only.groups, [cores(&[0])]);
        assert_eq!(memory_only.regions.len(), 2);
        assert_eq!((&plan.orders[1][..3], &plan.missing), (&[5, 2, 6][..], &None));
        let second = plan.clone().on(&[RegionId(1)]);
        assert_eq!(
            (second.regions, second.orders),
            (vec![RegionId(1)], vec![plan.orders[1].clone()])
        );
        assert_eq!(second.groups, plan.groups);
    }

    #[test]
    fn of_hundreds_of_cores_one_of_each_region_runs_alone_at_least() {
        let machine = machine(16, 3, 4);
        let all = ids(&machine);
        let seats = Seats::of(&machine, &all);
        let of = |r: &isochrone_machine::Region| (RegionId(r.id), cores(&r.cores));
        let near: Vec<_> = machine.regions.iter().map(of).collect();
        let options = BandwidthOptions { seats: Some(seats), ..BandwidthOptions::new(1) };
        let plan = BandwidthPlan::new(&near, options);
        assert_eq!(plan.groups.len(), 16 + 16 + 1);
        assert!(plan.missing.is_some_and(|line| line.contains("16 of 384 cores")));
        for (region, order) in plan.orders.iter().enumerate() {
            let [own, alone, every] = [0, 1, 2].map(|place| &plan.groups[order[place]]);
            assert_eq!((own.len(), alone.len(), every.len()), (24, 1, 384));
            assert!(own.contains(&alone[0]) && *own == near[region].1);
        }
    }

    #[test]
    fn arrays_are_several_caches_together_and_never_more_than_a_region_bears() {
        let machine = machine(2, 2, 4);
        let all = ids(&machine);
        let sizes = ArraySizes::new(Seats::of(&machine, &all), 128 << 20);
        let total = |group: &[CoreId], free| {
            sizes.of(group, free).map(|bytes| bytes.into_iter().sum::<u64>())
        };
        assert_eq!(total(&all[..1], None), Some(128 << 20));
        assert_eq!(total(&all[..4], None), Some(128 << 20), "one cache");
        assert_eq!(total(&all, None), Some((4 * 128) << 20), "four caches");
        assert_eq!(total(&all, Some(1 << 30)), Some(256 << 20));
        assert_eq!(total(&all, Some(100 << 20)), None);
        // The second cache has one core only: the others have as much to do.
        let uneven = [all[0], all[1], all[2], all[3], all[4]];
        assert_eq!(sizes.of(&uneven, None), Some(vec![128 << 20; 5]));
    }
}
