//! Where the ranks of a team are: a core for each, and their nested groups.

use isochrone_distance::{Distances, groups};
use isochrone_units::CoreId;

/// Levels of groups at most: a pair of threads, a complex, a part of a socket, a socket. Levels further
/// out are left away.
pub const LEVELS_MAX: usize = 4;

/// Nested groups of ranks, innermost level first: for each level the group of every rank. Levels that tell
/// nothing are not there: all ranks in one group, each in its own, or the groups of the level before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    levels: Vec<Vec<u16>>,
}

impl Groups {
    /// These levels, a group for each rank in each, as far as they tell something.
    #[must_use]
    pub fn new(levels: impl IntoIterator<Item = Vec<u16>>) -> Self {
        let mut kept: Vec<Vec<u16>> = Vec::new();
        for level in levels {
            let mut distinct = level.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let tells = distinct.len() > 1 && distinct.len() < level.len();
            if tells && kept.last() != Some(&level) && kept.len() < LEVELS_MAX {
                kept.push(level);
            }
        }
        Self { levels: kept }
    }

    /// The levels, innermost first.
    #[must_use]
    pub fn levels(&self) -> &[Vec<u16>] {
        &self.levels
    }
}

/// Where the ranks of a team are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// A core of each rank, another for each.
    pub cores: Vec<CoreId>,
    /// Their groups.
    pub groups: Groups,
}

/// Places ranks of which each may run on some cores. A rank with several of them counts as its group:
/// levels inside of which it has not all of them tell nothing. `None` where a rank has no core, its cores
/// are in no common group, or there is not a core for each rank.
pub fn placed<D: Distances + ?Sized>(on: &D, ranks: &[Vec<CoreId>]) -> Option<Placed> {
    let mut from = 0;
    for cores in ranks {
        let (first, others) = cores.split_first()?;
        let whole = |level: &usize| {
            let group = on.group(*level, *first);
            group.is_some() && others.iter().all(|core| on.group(*level, *core) == group)
        };
        if !others.is_empty() {
            from = from.max((0..on.levels()).find(whole)?);
        }
    }
    let cores = one_each(ranks)?;
    let level = |level: usize| {
        let mut of = vec![0; cores.len()];
        groups(on, level, &cores, &mut of);
        of
    };
    let groups = Groups::new((from..on.levels()).map(level));
    Some(Placed { groups, cores })
}

/// A core for each rank, those with the least choice first.
fn one_each(ranks: &[Vec<CoreId>]) -> Option<Vec<CoreId>> {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by_key(|&rank| ranks[rank].len());
    let mut taken: Vec<CoreId> = Vec::with_capacity(ranks.len());
    let mut of = vec![CoreId(0); ranks.len()];
    for rank in order {
        of[rank] = *ranks[rank].iter().find(|core| !taken.contains(core))?;
        taken.push(of[rank]);
    }
    Some(of)
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Synthetic;
    use super::*;

    fn on(cores: &[&[u16]]) -> Option<Placed> {
        let machine = Synthetic::new(&[2, 4, 8], &[20.0, 40.0, 90.0]);
        let list = |of: &&[u16]| of.iter().copied().map(CoreId).collect();
        placed(&machine, &cores.iter().map(list).collect::<Vec<_>>())
    }

    #[test]
    fn ranks_with_a_core_each_have_all_levels_that_tell_something() {
        let four = on(&[&[0], &[1], &[4], &[5]]).expect("known");
        assert_eq!(four.groups.levels(), [[0, 0, 1, 1]], "the second level is the same");
        let all = on(&[&[0], &[2], &[1], &[4]]).expect("known");
        assert_eq!(all.groups.levels(), [[0, 1, 0, 2], [0, 0, 0, 1]]);
        assert!(on(&[&[0], &[2]]).expect("known").groups.levels().is_empty());
    }

    #[test]
    fn a_rank_with_several_cores_counts_as_the_group_that_has_them() {
        let wide = on(&[&[0, 1, 2, 3], &[0], &[4, 5], &[6]]).expect("known");
        assert_eq!(wide.cores, [1, 0, 4, 6].map(CoreId), "the rank with one core has it");
        assert_eq!(wide.groups.levels(), [[0, 0, 1, 1]], "the pair tells nothing any more");
        assert_eq!(on(&[&[0, 9], &[1], &[2]]), None, "no group has both");
        assert_eq!(on(&[&[0, 1], &[0, 1], &[0, 1]]), None, "more ranks than cores");
        assert_eq!(on(&[&[], &[1], &[2]]), None, "nowhere");
        assert_eq!(on(&[&[3], &[3], &[2]]), None, "two on one core");
    }
}
