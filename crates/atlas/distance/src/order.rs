//! In which order to fill cores.

use core::cmp::Ordering;

use crate::costs::Distances;
use isochrone_units::{CoreId, RegionId};

/// How to fill cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Each next core as near to those before as can be: whole groups, one after another.
    Compact,
    /// Each next core as far from those before as can be: a core of each outermost group in turn, and
    /// inside these of each group in turn.
    Spread,
    /// The cores that are nearest to a region first, compact among those that are equally near.
    Near(RegionId),
}

/// Sorts `cores` in the order in which they are to be filled. Cores of which nothing is known come last,
/// by their numbers.
pub fn order<D: Distances + ?Sized>(on: &D, fill: Fill, cores: &mut [CoreId]) {
    let ns = |core, region| {
        on.region(core, region).map_or(f64::INFINITY, |costs| costs.latency_ns.value)
    };
    cores.sort_unstable_by(|a, b| {
        let compact = compact(on, *a, *b);
        match fill {
            Fill::Compact | Fill::Spread => compact,
            Fill::Near(region) => ns(*a, region).total_cmp(&ns(*b, region)).then(compact),
        }
    });
    if fill == Fill::Spread {
        spread(on, on.levels(), cores);
    }
}

/// Groups from the outermost level inwards, then numbers.
fn compact<D: Distances + ?Sized>(on: &D, a: CoreId, b: CoreId) -> Ordering {
    let levels = (0..on.levels()).rev();
    let by = |level| match (on.group(level, a), on.group(level, b)) {
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (a, b) => a.cmp(&b),
    };
    levels.map(by).find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(&b))
}

/// From compact order, in which groups lie together: spreads each group of the level inside, then takes
/// one core of each group in turn.
fn spread<D: Distances + ?Sized>(on: &D, levels: usize, cores: &mut [CoreId]) {
    let Some(level) = levels.checked_sub(1) else { return };
    let same = |a: CoreId, b: CoreId| on.group(level, a) == on.group(level, b);
    for group in cores.chunk_by_mut(|a, b| same(*a, *b)) {
        spread(on, level, group);
    }
    let mut filled = 0;
    while filled < cores.len() {
        let mut at = filled;
        while at < cores.len() {
            // Those between keep their order, so that groups go on lying together.
            cores[filled..=at].rotate_right(1);
            let taken = cores[filled];
            filled += 1;
            at += 1;
            at += cores[at..].iter().take_while(|core| same(**core, taken)).count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::{Cost, RegionCosts};
    use isochrone_units::Reading;
    use std::vec::Vec;

    /// Two packages of two modules of two cores, numbered across: core 0 and 4 share a module. Region 1
    /// is nearer to odd modules.
    struct Nested;

    impl Distances for Nested {
        fn region(&self, core: CoreId, region: RegionId) -> Option<RegionCosts> {
            let ns = if core.0 % 2 == region.0 { 90.0 } else { 140.0 };
            let latency_ns = Cost::single(ns, Reading::Simulated);
            Some(RegionCosts { latency_ns, gb_per_s: None, gb_per_s_together: None })
        }

        fn levels(&self) -> usize {
            2
        }

        fn group(&self, level: usize, core: CoreId) -> Option<u16> {
            // Core 9 was not measured.
            (core.0 < 8).then_some([core.0 % 4, core.0 % 4 / 2][level])
        }
    }

    fn ordered(fill: Fill) -> Vec<u16> {
        let mut cores: Vec<CoreId> = [9, 3, 1, 7, 5, 0, 2, 6, 4].map(CoreId).to_vec();
        order(&Nested, fill, &mut cores);
        cores.into_iter().map(|core| core.0).collect()
    }

    #[test]
    fn compact_fills_whole_groups() {
        assert_eq!(ordered(Fill::Compact), [0, 4, 1, 5, 2, 6, 3, 7, 9]);
    }

    #[test]
    fn spread_takes_of_each_group_in_turn() {
        // Package 0, package 1, the core without a group; then the other modules; then second cores.
        assert_eq!(ordered(Fill::Spread), [0, 2, 9, 1, 3, 4, 6, 5, 7]);
    }

    #[test]
    fn near_a_region_come_its_own_cores_first() {
        assert_eq!(ordered(Fill::Near(RegionId(1)))[..4], [1, 5, 3, 7]);
    }
}
