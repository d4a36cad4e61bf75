//! A sketch of what a shape takes, in some microseconds: it says which entries are worth a simulation, and for
//! long messages what each further chunk adds. It decides nothing that is close.

use crate::collectives::{Acks, Collective, Shape, Tree};
use crate::program::Rank;
use crate::simulated::{REQUEST, reader_ns};
use isochrone_machine::LineCosts;

/// What lines cost: each by itself, as flags do, and a chunk of several as if it were one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs<'a> {
    pub(super) line: &'a LineCosts,
    pub(super) whole: &'a LineCosts,
}

impl<'a> Costs<'a> {
    /// Where a chunk is one line.
    pub(super) const fn lines(line: &'a LineCosts) -> Self {
        Self { line, whole: line }
    }

    /// What a chunk takes from one rank to another whose poll has asked for its first line before.
    fn asked_ns(self, from: Rank, to: Rank) -> f64 {
        transfer_ns(self.whole, from, to) - REQUEST * transfer_ns(self.line, from, to)
    }
}

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

/// What a round in which two ranks write to each other at about the same time takes beside the transfer, as a part of
/// one of a line: one that its reader has polled meanwhile comes back first, which happens to about half of them.
const BACK: f64 = 0.5;

impl Sketch {
    /// Of a call in a shape, in which parents write a line for each of these groups: a transfer for each step, one
    /// after another for what a parent reads of its children, and what a rank that was polled meanwhile takes to have
    /// its line back.
    pub(super) fn of(
        collective: Collective,
        shape: &Shape,
        groups: &[u16],
        costs: Costs<'_>,
    ) -> Self {
        let down = |tree, begun| down_ns(tree, groups, costs, begun);
        let flags = Costs::lines(costs.line);
        let shape_ns = match (collective, shape) {
            (Collective::Broadcast, Shape::Tree(tree)) => {
                down(tree, false) + acknowledged_ns(tree, Acks::PerChild, costs.line, RING_HALF)
            }
            (Collective::Reduce(_), Shape::Tree(tree)) => up_ns(tree, costs, false),
            (Collective::Allreduce(_), Shape::Tree(tree)) => {
                up_ns(tree, costs, false) + down(tree, true)
            }
            (_, Shape::Tree(tree)) => up_ns(tree, flags, true) + down_ns(tree, groups, flags, true),
            (Collective::Barrier, Shape::Exchange) => {
                rounds_ns(flags, |rank, far, ranks| Some((rank + ranks - far % ranks) % ranks))
            }
            (Collective::Allgather, Shape::Exchange) => 0.0,
            (_, Shape::Exchange) => {
                rounds_ns(costs, |rank, far, ranks| Some(rank ^ far).filter(|other| *other < ranks))
            }
        };
        let common_ns = match collective {
            Collective::Allgather => most(costs.whole, |rank| all_others_ns(costs.whole, rank)),
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
fn rounds_ns(costs: Costs<'_>, other: impl Fn(usize, usize, usize) -> Option<usize>) -> f64 {
    let count = costs.line.cores();
    let mut ready = vec![0.0_f64; count];
    let mut far = 1;
    while far < count {
        let heard = |rank: usize| {
            let Some(other) = other(rank, far, count) else { return ready[rank] };
            let [line, whole] =
                [costs.line, costs.whole].map(|of| of.pair(other, rank).transfer_ns);
            ready[rank].max(ready[other]) + whole + BACK * line
        };
        ready = ranks(costs.line).map(heard).collect();
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
    costs: Costs<'_>,
) -> f64 {
    let Costs { line, whole } = costs;
    let Shape::Tree(tree) = shape else {
        let rounds = f64::from(usize::BITS - (whole.cores() - 1).leading_zeros());
        let each = |rank| match collective {
            Collective::Allgather => all_others_ns(whole, rank),
            _ => 2.0 * rounds * all_others_ns(whole, rank) / real(whole.cores() - 1),
        };
        return most(whole, each);
    };
    let read = |a: Rank, b: Rank| transfer_ns(whole, a, b);
    let above = |rank: Rank| tree.parent(rank).map_or(0.0, |parent| read(parent, rank));
    let down = |rank: Rank| above(rank) + 2.0 * written_ns(tree, rank, groups, line);
    let up = |rank: Rank| {
        above(rank) + tree.children(rank).iter().map(|child| read(*child, rank)).sum::<f64>()
    };
    let busy = |rank: Rank| match collective {
        Collective::Broadcast => down(rank),
        Collective::Reduce(_) => up(rank),
        Collective::Allgather => up(rank) + down(rank) + all_others_ns(whole, rank.index()),
        _ => up(rank) + down(rank),
    };
    (0..tree.ranks()).map(Rank).map(busy).fold(0.0, f64::max)
}

#[allow(clippy::cast_precision_loss, reason = "some ranks")]
const fn real(count: usize) -> f64 {
    count as f64
}

/// What a rank takes to have its lines back, one for each group of its children, and what these take to read it. It is
/// twice as much where chunks follow one another: children poll a slot that is claimed for the next chunk, and again
/// when that is written.
fn written_ns(tree: &Tree, rank: Rank, groups: &[u16], costs: &LineCosts) -> f64 {
    let children = tree.children(rank);
    let group = |rank: Rank| groups.get(rank.index());
    let firsts = children
        .iter()
        .enumerate()
        .filter(|(n, child)| children[..*n].iter().all(|before| group(*before) != group(**child)));
    let each = firsts.map(|(_, first)| {
        let readers = || children.iter().filter(|child| group(**child) == group(*first));
        let farthest = readers().map(|child| transfer_ns(costs, rank, *child)).fold(0.0, f64::max);
        let in_turn = real(readers().count()) * reader_ns(costs);
        back_ns(tree, rank, *first, groups, costs) + in_turn + (1.0 - REQUEST) * farthest
    });
    each.sum()
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

/// Down from the root, whose first line nobody polls yet unless all wait for it (`polled`). Who polls has asked again
/// by the time that its line is written. Readers of one line come one after another to its home, and lines one after
/// another over the link to where they are read.
fn down_ns(tree: &Tree, groups: &[u16], costs: Costs<'_>, polled: bool) -> f64 {
    let mut ready = vec![0.0_f64; usize::from(tree.ranks())];
    let (mut last, reader) = (0.0_f64, reader_ns(costs.line));
    let group = |rank: Rank| groups.get(rank.index());
    let (near, count) = nearest(costs.line);
    // For each group of children its line's word: when it is written, and how many read it so far.
    let mut lines: Vec<(Option<&u16>, f64, f64)> = Vec::new();
    let mut links = vec![0.0_f64; count];
    for rank in tree.preorder() {
        let mut now = ready[rank.index()];
        lines.clear();
        links.fill(0.0);
        for &child in tree.children(rank) {
            if !lines.iter().any(|(known, ..)| *known == group(child)) {
                if polled || rank != tree.root() {
                    now += back_ns(tree, rank, child, groups, costs.line);
                }
                lines.push((group(child), now, 0.0));
            }
            let written = lines.iter_mut().find(|(known, ..)| *known == group(child));
            let Some((_, written, readers)) = written else { continue };
            let link = &mut links[near[child.index()]];
            let wait = (*readers * reader).max(*link);
            *readers += 1.0;
            if near[child.index()] != near[rank.index()] {
                *link += costs.whole.pair(rank.index(), child.index()).congestion_ns;
            }
            let way_ns = if polled || rank != tree.root() {
                costs.asked_ns(rank, child)
            } else {
                transfer_ns(costs.whole, rank, child)
            };
            ready[child.index()] = *written + wait + way_ns;
            last = last.max(ready[child.index()]);
        }
    }
    last
}

/// For each rank the number of those to which lines cost as little as they cost at all, and how many there are: between
/// others there are links.
fn nearest(costs: &LineCosts) -> (Vec<usize>, usize) {
    let mut firsts: Vec<usize> = Vec::new();
    let number = |rank: usize| {
        let near = |&first: &usize| costs.class(rank, first) == costs.class(rank, rank);
        firsts.iter().position(near).unwrap_or_else(|| {
            firsts.push(rank);
            firsts.len() - 1
        })
    };
    let numbers = ranks(costs).map(number).collect();
    (numbers, firsts.len())
}

/// Up to the root. Flags alone that lie on lines of their own are polled together (`flags`); what is read of messages
/// is combined in between.
fn up_ns(tree: &Tree, costs: Costs<'_>, flags: bool) -> f64 {
    let mut ready = vec![0.0_f64; usize::from(tree.ranks())];
    let overlapped = costs.line.added.overlapped_ack_ns.filter(|_| flags);
    for rank in tree.preorder().into_iter().rev() {
        let mut now = ready[rank.index()];
        for (n, &child) in tree.children(rank).iter().enumerate() {
            let whole = transfer_ns(costs.whole, rank, child);
            let done = ready[child.index()];
            // Who writes while its parent polls has to take its line back.
            let polled = !tree.children(child).is_empty() && now < done;
            let back = transfer_ns(costs.line, rank, child);
            let written = if polled { done + back } else { done };
            now = if written < now {
                now + overlapped.filter(|_| n > 0).unwrap_or(whole)
            } else if polled {
                written + costs.asked_ns(rank, child)
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
        // Ranks 0 and 1 on one socket, 2 and 3 on the other: 35 and 94 ns, 5 ns of the home for each reader.
        let costs = sandy_bridge(2, 2);
        let tree = Tree::new(&[None, Some(Rank(0)), Some(Rank(0)), Some(Rank(2))]).expect("a tree");
        let sketch = |collective| {
            Sketch::of(collective, &Shape::Tree(tree.clone()), &[], Costs::lines(&costs)).ns()
        };
        let reduce = Collective::Reduce(Combine::Sum(Element::I32));
        // Rank 2 has read rank 3 after 35 ns, as rank 0 has read rank 1; nobody has polled rank 2's line yet.
        let up = 35.0 + 94.0;
        assert!((sketch(reduce) - up).abs() < 1e-9, "{}", sketch(reduce));
        // Rank 2 takes its line back from rank 3, which has asked again by then. Nobody polls that of rank 0 yet.
        let (further, looks) = (35.0 + 35.0 / 2.0, (35.0 + 94.0) / 8.0);
        let down = 5.0 + 94.0 + further;
        assert!((sketch(Collective::Broadcast) - (down + looks)).abs() < 1e-9);
        let (back, down) = (35.0 + 94.0, 5.0 + 94.0 / 2.0 + further);
        assert!((sketch(Collective::Barrier) - (up + back + down)).abs() < 1e-9);
        // A line for each socket: rank 0 has that of rank 1 back first.
        let shape = Shape::Tree(tree);
        let apart =
            Sketch::of(Collective::Barrier, &shape, &[0, 0, 1, 1], Costs::lines(&costs)).ns();
        // Rank 2 is the first reader of its line then.
        assert!((apart - (up + back + down - 5.0)).abs() < 1e-9, "{apart}");
    }
}
