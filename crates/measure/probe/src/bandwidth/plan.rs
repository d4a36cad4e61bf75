//! What the bandwidth experiment does: which groups of cores run the triad together, on which
//! region's memory. Pure data.

use isochrone_units::{CoreId, RegionId};

/// How much is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthOptions {
    /// Passes over the arrays in one timed run.
    pub passes: u32,
    /// Rounds over all groups and regions at least.
    pub rounds_min: u32,
    /// Rounds at most.
    pub rounds_max: u32,
    /// Enough when the 95 % interval's half-width of every cell's median, over its median, is
    /// below this.
    pub half_width: f64,
    /// Seconds after which no further round begins, even before [`Self::rounds_min`].
    pub budget_s: f64,
    /// Seed of the order.
    pub seed: u64,
}

impl BandwidthOptions {
    /// What `isochrone map` uses unless told otherwise.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { passes: 2, rounds_min: 6, rounds_max: 40, half_width: 0.02, budget_s: 3.0, seed }
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
}

impl BandwidthPlan {
    /// Plans all groups of the cores that each region has. A region without cores has memory to
    /// be measured all the same.
    #[must_use]
    pub fn new(cores_of: &[(RegionId, Vec<CoreId>)], options: BandwidthOptions) -> Self {
        let mut all: Vec<CoreId> = cores_of.iter().flat_map(|(_, cores)| cores.clone()).collect();
        all.sort_unstable();
        all.dedup();
        let singles = all.iter().map(|&core| vec![core]);
        let by_region = cores_of.iter().map(|(_, cores)| {
            let mut cores = cores.clone();
            cores.sort_unstable();
            cores.dedup();
            cores
        });
        let mut groups: Vec<Vec<CoreId>> = Vec::new();
        for group in singles.chain(by_region).chain([all.clone()]) {
            if !group.is_empty() && !groups.contains(&group) {
                groups.push(group);
            }
        }
        let regions = cores_of.iter().map(|(region, _)| *region).collect();
        Self { options, groups, regions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
