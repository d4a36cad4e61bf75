//! Trees by nested groups: within a group ranks hang below its first, these below the first of the next group outside.

use super::form::Form;
use crate::collectives::Tree;
use crate::program::Rank;

/// In which order a rank serves its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// What goes farthest leaves first.
    FarFirst,
    /// What comes from near is read first: it is there first.
    NearFirst,
}

/// The tree in which ranks hang below the first of their innermost group, these below the first of the next
/// one outside, and so on: in each group by `form`.
pub(super) fn nested(
    ranks: u16,
    root: Rank,
    levels: &[Vec<u16>],
    form: Form,
    order: Order,
) -> Option<Tree> {
    if levels.is_empty() {
        return Some(form.tree(ranks, root));
    }
    let mut parents = vec![None; usize::from(ranks)];
    // All but the root, with the level at which they hang; in each group in the order in which they are served.
    let mut hung: Vec<(usize, Rank)> = Vec::with_capacity(parents.len());
    // The root leads wherever it is; others by rank.
    let others = (0..ranks).map(Rank).filter(|rank| *rank != root);
    let mut leaders: Vec<Rank> = std::iter::once(root).chain(others).collect();
    let all = vec![0; usize::from(ranks)];
    let mut known: Vec<u16> = Vec::new();
    for (at, level) in levels.iter().chain([&all]).enumerate() {
        let group = |rank: &Rank| level.get(rank.index()).copied();
        known.clear();
        for leader in &leaders {
            let group = group(leader)?;
            if !known.contains(&group) {
                known.push(group);
            }
        }
        let mut firsts = Vec::with_capacity(known.len());
        for of in &known {
            let members = leaders.iter().copied().filter(|rank| group(rank) == Some(*of));
            let members: Vec<Rank> = members.collect();
            let count = u16::try_from(members.len()).ok()?;
            for (place, &member) in (1..).zip(members.iter().skip(1)) {
                parents[member.index()] = Some(members[usize::from(form.parent(count, place))]);
                hung.push((at, member));
            }
            firsts.push(members[0]);
        }
        leaders = firsts;
    }
    // They were hung from the innermost level outwards.
    if order == Order::FarFirst {
        hung.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    }
    let served: Vec<Rank> = hung.into_iter().map(|(_, rank)| rank).collect();
    Tree::served_in(&parents, &served).ok()
}
