//! Where workers are and what memory costs them: the parameter that tells the scheduler everything it
//! knows of a machine.

use isochrone_machine::Machine;
use isochrone_units::{CoreId, RegionId};

/// Regions and the cost from each to each.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    regions: Vec<RegionId>,
    cores: Vec<(CoreId, usize)>,
    /// Row by row: how far a region is from another; a firmware's distance, or a latency in ns.
    costs: Vec<f64>,
    /// Row by row: what a byte takes that follows others, in the unit of `costs`; where it is not known, a byte
    /// costs in proportion to the distance.
    byte_costs: Option<Vec<f64>>,
}

impl Topology {
    /// One region with the cores `0..cores`.
    #[must_use]
    pub fn flat(cores: u16) -> Self {
        Self {
            regions: vec![RegionId(0)],
            cores: (0..cores).map(|core| (CoreId(core), 0)).collect(),
            costs: vec![10.0],
            byte_costs: None,
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
            byte_costs: None,
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
        Self { regions, cores, costs, byte_costs: None }
    }

    /// The same machine with other distances, such as an atlas's latencies: row by row, in nanoseconds or
    /// any other unit. Left as it is where the number of costs does not fit.
    #[must_use]
    pub fn with_costs(mut self, costs: Vec<f64>) -> Self {
        if costs.len() == self.costs.len() && costs.iter().all(|cost| *cost > 0.0) {
            (self.costs, self.byte_costs) = (costs, None);
        }
        self
    }

    /// The same machine, whose distances are latencies in nanoseconds, with the bandwidth that one core of a
    /// region has from another, GB/s, row by row. Left as it is where the number does not fit.
    #[must_use]
    pub fn with_bandwidths(mut self, gb_per_s: &[f64]) -> Self {
        if gb_per_s.len() == self.costs.len() && gb_per_s.iter().all(|rate| *rate > 0.0) {
            // 10^9 bytes a second is one byte a nanosecond.
            self.byte_costs = Some(gb_per_s.iter().map(|rate| 1.0 / rate).collect());
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

    /// How far memory of region `to` is from region `from`.
    #[must_use]
    pub fn cost(&self, from: usize, to: usize) -> f64 {
        self.costs.get(from * self.regions.len() + to).copied().unwrap_or(1.0)
    }

    /// What one more byte from region `to` costs region `from`.
    #[must_use]
    pub fn byte_cost(&self, from: usize, to: usize) -> f64 {
        let known = self.byte_costs.as_ref();
        known
            .and_then(|costs| costs.get(from * self.regions.len() + to).copied())
            .unwrap_or_else(|| self.cost(from, to))
    }

    /// What region `from` pays for so many bytes in so many ranges of memory of region `to`: where bandwidths
    /// are known, the latency for each range and the time that its bytes take; else the bytes times the
    /// distance. Only ratios matter.
    #[must_use]
    pub fn transfer(&self, from: usize, to: usize, ranges: f64, bytes: f64) -> f64 {
        let begun = if self.byte_costs.is_some() { ranges * self.cost(from, to) } else { 0.0 };
        begun + bytes * self.byte_cost(from, to)
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
    fn a_transfer_is_a_latency_and_its_bytes_where_bandwidths_are_known() {
        let plain = Topology::regular(2, 1, |a, b| if a == b { 100.0 } else { 300.0 });
        assert!((plain.transfer(0, 1, 2.0, 4096.0) - 300.0 * 4096.0).abs() < 1e-6);
        let known = plain.clone().with_bandwidths(&[10.0, 4.0, 5.0, 10.0]);
        let near = |found: f64, ns: f64| assert!((found - ns).abs() < 1e-6, "{found} {ns}");
        near(known.transfer(0, 1, 2.0, 4096.0), 2.0 * 300.0 + 1024.0);
        near(known.transfer(1, 0, 1.0, 4096.0), 300.0 + 819.2);
        near(known.transfer(1, 1, 1.0, 4096.0), 100.0 + 409.6);
        near(known.cost(0, 1), 300.0);
        assert_eq!(plain.clone().with_bandwidths(&[1.0]), plain, "too few");
        assert_eq!(plain.clone().with_bandwidths(&[1.0, 0.0, 1.0, 1.0]), plain, "no bandwidth");
        assert_eq!(known.with_costs(vec![1.0; 4]).transfer(0, 1, 1.0, 7.0), 7.0, "forgotten");
    }

    #[test]
    fn rings_go_from_near_to_far() {
        let rings = bullion().rings(5);
        assert_eq!(rings[0], [4]);
        assert_eq!((rings.len(), rings[1].len()), (2, 14));
    }
}
