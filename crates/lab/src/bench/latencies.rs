//! What an atlas says of cores and regions, for benchmarks on machines with several regions of memory.

use isochrone_atlas_store::contents::RegionMap;
use isochrone_units::{CoreId, RegionId};

/// What a core waits for memory of a region, ns; `None` where it is not known.
fn of(maps: &[RegionMap], core: CoreId, region: RegionId) -> Option<f64> {
    let matrix = &maps.first()?.latency_ns;
    let row = matrix.rows.iter().position(|name| *name == core.to_string())?;
    let column = matrix.columns.iter().position(|name| *name == region.to_string())?;
    Some(matrix.cells.get(row * matrix.columns.len() + column)?.as_ref()?.median)
}

/// The region that is nearest to these cores in the mean, of those that are known for all of them.
pub(super) fn nearest(
    maps: &[RegionMap],
    cores: &[CoreId],
    regions: impl Iterator<Item = RegionId>,
) -> Option<RegionId> {
    let sum = |region: RegionId| {
        cores.iter().map(|core| of(maps, *core, region)).sum::<Option<f64>>().map(|ns| (ns, region))
    };
    regions.filter_map(sum).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, region)| region)
}

#[cfg(test)]
mod tests {
    use isochrone_atlas_store::contents::Cell;

    use super::*;

    /// Four cores and two regions.
    fn map(ns: [f64; 8]) -> RegionMap {
        let cells = ns.map(|ns| Some(Cell::single(ns))).to_vec();
        RegionMap::of_chase("random", 1, (0..4).map(CoreId), (0..2).map(RegionId), cells)
    }

    #[test]
    fn the_nearest_region_is_that_of_all_cores_together() {
        let mut maps = [map([90.0, 150.0, 110.0, 170.0, 140.0, 80.0, 160.0, 100.0])];
        let nearest_to = |maps: &[RegionMap], cores: &[u16]| {
            let cores: Vec<CoreId> = cores.iter().copied().map(CoreId).collect();
            nearest(maps, &cores, (0..3).map(RegionId))
        };
        assert_eq!(nearest_to(&maps, &[0, 1]), Some(RegionId(0)));
        assert_eq!(nearest_to(&maps, &[2, 3]), Some(RegionId(1)));
        assert_eq!(nearest_to(&maps, &[0, 2]), Some(RegionId(0)), "230 ns and 230 ns: the first");
        assert_eq!(nearest_to(&maps, &[0, 2, 3]), Some(RegionId(1)));
        assert_eq!(nearest_to(&maps, &[7]), None, "a core that is not in the atlas");
        maps[0].latency_ns.cells[5] = None;
        assert_eq!(nearest_to(&maps, &[2, 3]), Some(RegionId(0)), "the other is not known for all");
        assert_eq!(nearest_to(&[], &[0]), None);
    }
}
