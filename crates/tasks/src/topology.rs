//! Where workers are and what memory costs them: the parameter that tells the scheduler everything it
//! knows of a machine.

use isochrone_machine::Machine;
use isochrone_units::{CoreId, RegionId};

/// Regions and the cost from each to each.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    regions: Vec<RegionId>,
    cores: Vec<(CoreId, usize)>,
    /// Row by row: what a region pays for memory of another; only ratios matter.
    costs: Vec<f64>,
}

impl Topology {
    /// One region with the cores `0..cores`.
    #[must_use]
    pub fn flat(cores: u16) -> Self {
        Self {
            regions: vec![RegionId(0)],
            cores: (0..cores).map(|core| (CoreId(core), 0)).collect(),
            costs: vec![10.0],
        }
    }

    /// Regions of equal size whose costs are what `cost` says: region `r` has the cores from
    /// `r * cores_each` on.
    #[must_use]
    pub fn regular(regions: u16, cores_each: u16, cost: impl Fn(u16, u16) -> f64) -> Self {
        let pairs = (0..regions).flat_map(|a| (0..regions).map(move |b| (a, b)));
        Self {
            regions: (0..regions).map(RegionId).collect(),
            cores: (0..regions * cores_each)
                .map(|core| (CoreId(core), usize::from(core / cores_each)))
                .collect(),
            costs: pairs.map(|(a, b)| cost(a, b)).collect(),
        }
    }

    /// A machine's cores and regions, with the firmware's distances for costs; 10 for the region itself
    /// and 20 for others where the firmware says nothing, as Linux has it.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let mut regions: Vec<RegionId> = machine.regions.iter().map(|r| RegionId(r.id)).collect();
        if regions.is_empty() {
            regions.push(RegionId(0));
        }
        let index = |id: u16| regions.iter().position(|region| region.0 == id).unwrap_or(0);
        let cores =
            machine.cores.iter().map(|core| (CoreId(core.id), index(core.region))).collect();
        let cost = |a: RegionId, b: RegionId| {
            let said = machine.distance(a, b).map(f64::from);
            said.unwrap_or(if a == b { 10.0 } else { 20.0 })
        };
        let pairs = regions.iter().flat_map(|a| regions.iter().map(|b| (*a, *b)));
        let costs = pairs.map(|(a, b)| cost(a, b)).collect();
        Self { regions, cores, costs }
    }

    /// The same machine with other costs, such as an atlas's latencies: row by row, in nanoseconds or
    /// any other unit. Left as it is where the number of costs does not fit.
    #[must_use]
    pub fn with_costs(mut self, costs: Vec<f64>) -> Self {
        if costs.len() == self.costs.len() && costs.iter().all(|cost| *cost > 0.0) {
            self.costs = costs;
        }
        self
    }

    /// How many regions.
    #[must_use]
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// The system's number of a region.
    #[must_use]
    pub fn region_id(&self, region: usize) -> RegionId {
        self.regions.get(region).copied().unwrap_or(RegionId(0))
    }

    /// The number here of the system's region.
    #[must_use]
    pub fn region_index(&self, id: RegionId) -> Option<usize> {
        self.regions.iter().position(|region| *region == id)
    }

    /// All cores.
    pub fn cores(&self) -> impl Iterator<Item = CoreId> {
        self.cores.iter().map(|(core, _)| *core)
    }

    /// The region of a core.
    #[must_use]
    pub fn region_of(&self, core: CoreId) -> Option<usize> {
        self.cores.iter().find(|(id, _)| *id == core).map(|(_, region)| *region)
    }

    /// What region `from` pays for memory of region `to`.
    #[must_use]
    pub fn cost(&self, from: usize, to: usize) -> f64 {
        self.costs.get(from * self.regions.len() + to).copied().unwrap_or(1.0)
    }

    /// Cores for `count` workers out of `allowed`, in the order of workers: spread evenly over the
    /// regions, as the paper does (section 5). Cores are used again where there are too few.
    #[must_use]
    pub fn spread(&self, allowed: &[CoreId], count: usize) -> Vec<(CoreId, usize)> {
        let mut by_region: Vec<Vec<CoreId>> = vec![Vec::new(); self.regions.len()];
        for (core, region) in self.cores.iter().filter(|(core, _)| allowed.contains(core)) {
            by_region[*region].push(*core);
        }
        let used: Vec<(usize, Vec<CoreId>)> =
            by_region.into_iter().enumerate().filter(|(_, cores)| !cores.is_empty()).collect();
        if used.is_empty() {
            return Vec::new();
        }
        let mut places: Vec<(CoreId, usize)> = (0..count)
            .map(|worker| {
                let (region, cores) = &used[worker % used.len()];
                (cores[worker / used.len() % cores.len()], *region)
            })
            .collect();
        places.sort_by_key(|(core, region)| (*region, core.0));
        places
    }

    /// Regions by what `from` pays for them, itself left out, in groups of equal cost.
    #[must_use]
    pub fn rings(&self, from: usize) -> Vec<Vec<usize>> {
        let mut others: Vec<usize> = (0..self.regions.len()).filter(|to| *to != from).collect();
        others.sort_by(|a, b| self.cost(from, *a).total_cmp(&self.cost(from, *b)));
        let mut rings: Vec<Vec<usize>> = Vec::new();
        for to in others {
            // Measured costs of like regions differ a little: the bullion's near regions by 1 %.
            let same = rings
                .last()
                .is_some_and(|ring| self.cost(from, to) <= 1.1 * self.cost(from, ring[0]));
            match rings.last_mut() {
                Some(ring) if same => ring.push(to),
                _ => rings.push(vec![to]),
            }
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bullion() -> Topology {
        Topology::regular(16, 18, |a, b| match (a == b, a / 2 == b / 2) {
            (true, _) => 10.0,
            (_, true) => 15.0,
            _ => 40.0,
        })
    }

    #[test]
    fn workers_are_spread_evenly_and_stay_in_the_order_of_regions() {
        let all: Vec<CoreId> = (0..288).map(CoreId).collect();
        let places = bullion().spread(&all, 32);
        assert_eq!(places.len(), 32);
        for region in 0..16 {
            assert_eq!(places.iter().filter(|(_, r)| *r == region).count(), 2);
        }
        let few = bullion().spread(&[CoreId(3), CoreId(200)], 4);
        assert_eq!(few, [(CoreId(3), 0), (CoreId(3), 0), (CoreId(200), 11), (CoreId(200), 11)]);
        assert!(bullion().spread(&[], 4).is_empty());
    }

    #[test]
    fn rings_go_from_near_to_far() {
        let rings = bullion().rings(5);
        assert_eq!(rings[0], [4]);
        assert_eq!((rings.len(), rings[1].len()), (2, 14));
    }
}
