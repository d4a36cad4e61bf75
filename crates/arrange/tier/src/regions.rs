//! Which regions of memory are fast and far for the cores that use them, by distances.

use isochrone_distance::{Distances, FarKind};
use isochrone_units::{CoreId, RegionId};

/// Regions for the pages of an area; `None` where distances say nothing, and then pages come from where they are
/// touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// Where fast memory comes from.
    pub fast: Option<RegionId>,
    /// Where a far tier in memory comes from.
    pub far: Option<RegionId>,
}

impl Regions {
    /// Of `all` regions, the one with the least latency to these cores in the mean for fast memory, and for the far
    /// tier the one that is nearest of the others. Only regions that are known for all cores are looked at; with one
    /// region there is nothing to choose.
    #[must_use]
    pub fn choose(by: &dyn Distances, cores: &[CoreId], all: &[RegionId]) -> Self {
        if all.len() < 2 || cores.is_empty() {
            return Self::default();
        }
        let fast =
            nearest(all, cores, |core, region| Some(by.region(core, region)?.latency_ns.value));
        let others: Vec<RegionId> =
            all.iter().copied().filter(|region| Some(*region) != fast).collect();
        let ns = |core, region| Some(by.far(core, FarKind::Region(region))?.latency_ns.value);
        let far = fast.and_then(|_| nearest(&others, cores, ns));
        Self { fast, far }
    }
}

/// The region with the least sum over cores, the first of equal ones.
fn nearest(
    regions: &[RegionId],
    cores: &[CoreId],
    ns: impl Fn(CoreId, RegionId) -> Option<f64>,
) -> Option<RegionId> {
    let sum = |&region: &RegionId| {
        cores.iter().map(|core| ns(*core, region)).sum::<Option<f64>>().map(|ns| (ns, region))
    };
    let found = regions.iter().filter_map(sum).min_by(|a, b| a.0.total_cmp(&b.0));
    found.map(|(_, region)| region)
}

#[cfg(test)]
mod tests {
    use isochrone_atlas::Atlas;
    use isochrone_atlas_store::contents::{Cell, Clock, Contents, RegionMap};
    use isochrone_atlas_store::encode;
    use isochrone_distance::Unknown;
    use isochrone_machine::{Core, Machine};

    use super::*;

    /// Four cores, two regions: what an atlas with these latencies chooses for some of the cores.
    fn chosen(ns: [Option<f64>; 8], cores: &[u16], regions: u16) -> [Option<u16>; 2] {
        let machine_cores = (0..4).map(|id| Core { id, ..Core::default() }).collect();
        let cells = ns.map(|ns| ns.map(Cell::single)).to_vec();
        let map = RegionMap::of_chase("random", 1, (0..4).map(CoreId), (0..2).map(RegionId), cells);
        let contents = Contents {
            regions: vec![map],
            ..Contents::begun(
                isochrone_units::Reading::Measured,
                Machine { name: "made".to_owned(), cores: machine_cores, ..Machine::default() },
                Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 },
            )
        };
        let bytes = encode(&contents).expect("a sound atlas");
        let atlas = Atlas::open(&bytes).expect("just encoded");
        let cores: Vec<CoreId> = cores.iter().copied().map(CoreId).collect();
        let all: Vec<RegionId> = (0..regions).map(RegionId).collect();
        let found = Regions::choose(&atlas, &cores, &all);
        [found.fast, found.far].map(|region| region.map(|region| region.0))
    }

    const NS: [f64; 8] = [90.0, 150.0, 110.0, 170.0, 140.0, 80.0, 160.0, 100.0];

    #[test]
    fn the_nearest_region_of_all_cores_together_is_fast_and_another_far() {
        let ns = NS.map(Some);
        assert_eq!(chosen(ns, &[0, 1], 2), [Some(0), Some(1)]);
        assert_eq!(chosen(ns, &[2, 3], 3), [Some(1), Some(0)], "region 2 is not known");
        assert_eq!(chosen(ns, &[0, 2], 2)[0], Some(0), "230 ns and 230 ns: the first");
        assert_eq!(chosen(ns, &[0, 2, 3], 2)[0], Some(1));
        assert_eq!(chosen(ns, &[7], 2), [None, None], "a core that is not in the atlas");
        assert_eq!(chosen(ns, &[0], 1), [None, None], "there is no choice");
        let mut one = ns;
        one[5] = None;
        assert_eq!(chosen(one, &[2, 3], 2), [Some(0), None], "the other is not known for all");
    }

    #[test]
    fn only_the_atlas_changes_and_the_regions_change() {
        let mut swapped = NS;
        swapped.chunks_mut(2).for_each(|row| row.swap(0, 1));
        assert_eq!(chosen(NS.map(Some), &[0, 1], 2), [Some(0), Some(1)]);
        assert_eq!(chosen(swapped.map(Some), &[0, 1], 2), [Some(1), Some(0)]);
        let regions = [RegionId(0), RegionId(1)];
        let none = Regions::choose(&Unknown, &[CoreId(0)], &regions);
        assert_eq!(none, Regions::default());
    }
}
