//! A sketch of what a shape takes, in some microseconds: it says which entries are worth a simulation, and for
//! long messages what each further chunk adds. It decides nothing that is close.

use crate::collectives::{Acks, Collective, Shape, Tree};
use crate::program::Rank;
use isochrone_machine::LineCosts;

/// About what a call takes, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sketch {
    /// What depends on the shape.
    pub(super) shape_ns: f64,
    /// What does not.
    pub(super) common_ns: f64,
    /// By what factors simulated times were less than the sketches of shapes of its kind, and more than those of usual
    /// shapes, at most (`a_sketch_is_not_far_from_the_simulator`).
    pub(super) off: [f64; 2],
}

/// [`Sketch::off`] of trees.
const TREE_OFF: [f64; 2] = [0.7, 1.7];
/// The same of exchanges.
const EXCHANGE_OFF: [f64; 2] = [0.7, 1.7];

/// Transfers of a round in which two ranks write to each other at about the same time: one crosses, and a line that its
/// reader has polled meanwhile comes back first, which happens to about half of them.
const ROUND: f64 = 1.5;

impl Sketch {
    /// Of a call in a shape, in which parents write a line for each of these groups: a transfer for each step, one
    /// after another for what a parent reads of its children, and what a rank that was polled meanwhile takes to have
    /// its line back.
    pub(super) fn of(
        collective: Collective,
        shape: &Shape,
        groups: &[u16],
        costs: &LineCosts,
    ) -> Self {
        let down = |tree, begun| down_ns(tree, groups, costs, begun);
        let shape_ns = match (collective, shape) {
            (Collective::Broadcast, Shape::Tree(tree)) => {
                down(tree, false) + acknowledged_ns(tree, Acks::PerChild, costs, RING_HALF)
            }
            (Collective::Reduce(_), Shape::Tree(tree)) => up_ns(tree, costs, false),
            (Collective::Allreduce(_), Shape::Tree(tree)) => {
                up_ns(tree, costs, false) + down(tree, true)
            }
            (_, Shape::Tree(tree)) => up_ns(tree, costs, true) + down(tree, true),
            (Collective::Barrier, Shape::Exchange) => {
                rounds_ns(costs, |rank, far, ranks| Some((rank + ranks - far % ranks) % ranks))
            }
            (Collective::Allgather, Shape::Exchange) => 0.0,
            (_, Shape::Exchange) => {
                rounds_ns(costs, |rank, far, ranks| Some(rank ^ far).filter(|other| *other < ranks))
            }
        };
        let common_ns = match collective {
            Collective::Allgather => most(costs, |rank| all_others_ns(costs, rank)),
            _ => 0.0,
        };
        let off = if *shape == Shape::Exchange { EXCHANGE_OFF } else { TREE_OFF };
        Self { shape_ns, common_ns, off }
    }

    /// All of it.
    pub(super) fn ns(self) -> f64 {
        self.shape_ns + self.common_ns
    }

    /// Whether it may take less than `usual` by more than a part `gain` of it, if both are as wrong as they may be.
    pub(super) fn may_gain(self, usual: Self, gain: f64) -> bool {
        let least = self.common_ns + self.shape_ns * self.off[0];
        let most = usual.common_ns + usual.shape_ns * usual.off[1];
        least < most * (1.0 - gain)
    }

    /// Whether it takes less than `usual` by more than a part `gain` of it, however wrong both are.
    pub(super) fn surely_gains(self, usual: Self, gain: f64) -> bool {
        let most = self.common_ns + self.shape_ns * self.off[1];
        let least = usual.common_ns + usual.shape_ns * usual.off[0];
        most < least * (1.0 - gain)
    }
}

/// Calls from one acknowledgement to the next, with the usual ring.
const RING_HALF: u32 = 8;

fn ranks(costs: &LineCosts) -> impl Iterator<Item = usize> + use<> {
    0..costs.cores()
}

fn most(costs: &LineCosts, of: impl Fn(usize) -> f64) -> f64 {
    ranks(costs).map(of).fold(0.0, f64::max)
}

/// Everybody's line, one after another.
fn all_others_ns(costs: &LineCosts, rank: usize) -> f64 {
    let others = ranks(costs).filter(|other| *other != rank);
    others.map(|other| costs.pair(other, rank).transfer_ns).sum()
}

/// Rounds of an exchange: in each, a rank hears from the one that `other` says of it, of a distance that doubles, and
/// of how many ranks there are.
fn rounds_ns(costs: &LineCosts, other: impl Fn(usize, usize, usize) -> Option<usize>) -> f64 {
    let count = costs.cores();
    let mut ready = vec![0.0_f64; count];
    let mut far = 1;
    while far < count {
        let heard = |rank: usize| {
            let Some(other) = other(rank, far, count) else { return ready[rank] };
            ready[rank].max(ready[other]) + ROUND * costs.pair(other, rank).transfer_ns
        };
        ready = ranks(costs).map(heard).collect();
        far *= 2;
    }
    ready.into_iter().fold(0.0, f64::max)
}

/// What each further chunk of a message adds where chunks follow one another: as long as the busiest rank takes to read
/// it and to have its lines back, ns.
pub(super) fn stage_ns(
    collective: Collective,
    shape: &Shape,
    groups: &[u16],
    costs: &LineCosts,
) -> f64 {
    let Shape::Tree(tree) = shape else {
        let rounds = f64::from(usize::BITS - (costs.cores() - 1).leading_zeros());
        let each = |rank| match collective {
            Collective::Allgather => all_others_ns(costs, rank),
            _ => 2.0 * rounds * all_others_ns(costs, rank) / real(costs.cores() - 1),
        };
        return most(costs, each);
    };
    let whole = |a: Rank, b: Rank| transfer_ns(costs, a, b);
    let above = |rank: Rank| tree.parent(rank).map_or(0.0, |parent| whole(parent, rank));
    let down = |rank: Rank| above(rank) + written_ns(tree, rank, groups, costs);
    let up = |rank: Rank| {
        above(rank) + tree.children(rank).iter().map(|child| whole(*child, rank)).sum::<f64>()
    };
    let busy = |rank: Rank| match collective {
        Collective::Broadcast => down(rank),
        Collective::Reduce(_) => up(rank),
        Collective::Allgather => up(rank) + down(rank) + all_others_ns(costs, rank.index()),
        _ => up(rank) + down(rank),
    };
    (0..tree.ranks()).map(Rank).map(busy).fold(0.0, f64::max)
}

#[allow(clippy::cast_precision_loss, reason = "some ranks")]
const fn real(count: usize) -> f64 {
    count as f64
}

/// What a rank takes to have its lines back, one for each group of its children.
fn written_ns(tree: &Tree, rank: Rank, groups: &[u16], costs: &LineCosts) -> f64 {
    let children = tree.children(rank);
    let group = |rank: Rank| groups.get(rank.index());
    let firsts = children
        .iter()
        .enumerate()
        .filter(|(n, child)| children[..*n].iter().all(|before| group(*before) != group(**child)));
    firsts.map(|(_, child)| back_ns(tree, rank, *child, groups, costs)).sum()
}

/// What `rank` takes to have the line back that the group of `first` polls, one of its children.
fn back_ns(tree: &Tree, rank: Rank, first: Rank, groups: &[u16], costs: &LineCosts) -> f64 {
    let group = |rank: Rank| groups.get(rank.index());
    let sharers = tree.children(rank).iter().filter(|other| group(**other) == group(first));
    let each = sharers.enumerate().map(|(n, &of)| {
        let whole = transfer_ns(costs, rank, of);
        costs.added.rfo_sharer_ns.filter(|_| n > 0).unwrap_or(whole)
    });
    each.sum()
}

fn transfer_ns(costs: &LineCosts, parent: Rank, child: Rank) -> f64 {
    costs.pair(parent.index(), child.index()).transfer_ns
}

/// Down from the root, whose first line nobody polls yet unless all wait for it (`polled`).
fn down_ns(tree: &Tree, groups: &[u16], costs: &LineCosts, polled: bool) -> f64 {
    let mut ready = vec![0.0_f64; usize::from(tree.ranks())];
    let mut last = 0.0_f64;
    let group = |rank: Rank| groups.get(rank.index());
    let mut lines: Vec<(Option<&u16>, f64)> = Vec::new();
    for rank in tree.preorder() {
        let mut now = ready[rank.index()];
        lines.clear();
        for &child in tree.children(rank) {
            if !lines.iter().any(|(known, _)| *known == group(child)) {
                if polled || rank != tree.root() {
                    now += back_ns(tree, rank, child, groups, costs);
                }
                lines.push((group(child), now));
            }
            let written = lines.iter_mut().find(|(known, _)| *known == group(child));
            let Some((_, link)) = written else { continue };
            *link += costs.pair(rank.index(), child.index()).congestion_ns;
            ready[child.index()] = *link + transfer_ns(costs, rank, child);
            last = last.max(ready[child.index()]);
        }
    }
    last
}

/// Up to the root. Flags alone that lie on lines of their own are polled together (`flags`); what is read of messages
/// is combined in between.
fn up_ns(tree: &Tree, costs: &LineCosts, flags: bool) -> f64 {
    let mut ready = vec![0.0_f64; usize::from(tree.ranks())];
    let overlapped = costs.added.overlapped_ack_ns.filter(|_| flags);
    for rank in tree.preorder().into_iter().rev() {
        let mut now = ready[rank.index()];
        for (n, &child) in tree.children(rank).iter().enumerate() {
            let whole = transfer_ns(costs, rank, child);
            let done = ready[child.index()];
            // Who writes while its parent polls has to take its line back.
            let polled = !tree.children(child).is_empty() && now < done;
            let written = if polled { done + whole } else { done };
            now = if written < now {
                now + overlapped.filter(|_| n > 0).unwrap_or(whole)
            } else {
                written + whole
            };
        }
        ready[rank.index()] = now;
    }
    ready[tree.root().index()]
}

/// What the look at acknowledgements adds to a call in the mean, where a parent looks once in `calls` calls at a
/// line of each child, or at one to which all have added one after another, ns: that of the parent with most to look
/// at.
pub(super) fn acknowledged_ns(tree: &Tree, acks: Acks, costs: &LineCosts, calls: u32) -> f64 {
    let overlapped = costs.added.overlapped_ack_ns.filter(|_| acks == Acks::PerChild);
    let looks = |rank: Rank| {
        let each = tree.children(rank).iter().enumerate().map(|(n, &child)| {
            let whole = transfer_ns(costs, rank, child);
            overlapped.filter(|_| n > 0).map_or(whole, |ns| ns.min(whole))
        });
        each.sum::<f64>()
    };
    let most = (0..tree.ranks()).map(Rank).map(looks).fold(0.0, f64::max);
    most / f64::from(calls.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicted::sandy_bridge;
    use crate::program::{Combine, Element};

    #[test]
    fn a_tree_of_four_is_what_its_steps_say() {
        // Ranks 0 and 1 on one socket, 2 and 3 on the other: 35 and 94 ns, 3 ns of the link for each far line.
        let costs = sandy_bridge(2, 2);
        let tree = Tree::new(&[None, Some(Rank(0)), Some(Rank(0)), Some(Rank(2))]).expect("a tree");
        let sketch =
            |collective| Sketch::of(collective, &Shape::Tree(tree.clone()), &[], &costs).ns();
        let reduce = Collective::Reduce(Combine::Sum(Element::I32));
        // Rank 2 has read rank 3 after 35 ns, as rank 0 has read rank 1; nobody has polled rank 2's line yet.
        let up = 35.0 + 94.0;
        assert!((sketch(reduce) - up).abs() < 1e-9, "{}", sketch(reduce));
        let (down, looks) = (3.0 + 94.0 + 35.0 + 35.0, (35.0 + 94.0) / 8.0);
        assert!((sketch(Collective::Broadcast) - (down + looks)).abs() < 1e-9);
        let back = 35.0 + 94.0;
        assert!((sketch(Collective::Barrier) - (up + back + down)).abs() < 1e-9);
        // A line for each socket: rank 0 has that of rank 1 back first.
        let shape = Shape::Tree(tree);
        let apart = Sketch::of(Collective::Barrier, &shape, &[0, 0, 1, 1], &costs).ns();
        assert!((apart - (up + back + down)).abs() < 1e-9, "{apart}");
    }
}
