//! A sketch of what a tree takes, in some hundred nanoseconds: it says which entries are worth a simulation,
//! and decides nothing.

use crate::collectives::{Collective, Tree};
use crate::program::Rank;
use isochrone_machine::LineCosts;

/// About what a collective takes along a tree, ns: a transfer for each step, one after another for what a parent reads
/// of its children, and what a rank that was polled meanwhile takes to have its line back.
pub(super) fn sketch_ns(
    collective: Collective,
    tree: &Tree,
    groups: &[u16],
    costs: &LineCosts,
) -> f64 {
    let down = |begun| down_ns(tree, groups, costs, begun);
    match collective {
        Collective::Broadcast => down(false) + acknowledged_ns(tree, costs, RING_HALF),
        Collective::Reduce(_) => up_ns(tree, costs),
        _ => up_ns(tree, costs) + down(true),
    }
}

/// Calls from one acknowledgement to the next, with the usual ring.
const RING_HALF: u32 = 8;

fn transfer_ns(costs: &LineCosts, parent: Rank, child: Rank) -> f64 {
    costs.pair(parent.index(), child.index()).transfer_ns
}

/// Down from the root, whose first line nobody polls yet unless all wait for it (`polled`).
fn down_ns(tree: &Tree, groups: &[u16], costs: &LineCosts, polled: bool) -> f64 {
    let mut ready = vec![0.0_f64; usize::from(tree.ranks())];
    let mut last = 0.0_f64;
    let group = |rank: Rank| groups.get(rank.index());
    for rank in tree.preorder() {
        let mut now = ready[rank.index()];
        let mut lines: Vec<(Option<&u16>, f64)> = Vec::new();
        for &child in tree.children(rank) {
            if !lines.iter().any(|(known, _)| *known == group(child)) {
                let sharers =
                    tree.children(rank).iter().filter(|other| group(**other) == group(child));
                let back: f64 = sharers
                    .enumerate()
                    .map(|(n, &of)| {
                        let whole = transfer_ns(costs, rank, of);
                        costs.added.rfo_sharer_ns.filter(|_| n > 0).unwrap_or(whole)
                    })
                    .sum();
                if polled || rank != tree.root() {
                    now += back;
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

fn up_ns(tree: &Tree, costs: &LineCosts) -> f64 {
    let mut ready = vec![0.0_f64; usize::from(tree.ranks())];
    for rank in tree.preorder().into_iter().rev() {
        for &child in tree.children(rank) {
            let whole = transfer_ns(costs, rank, child);
            let back = if tree.children(child).is_empty() { 0.0 } else { whole };
            let came = ready[rank.index()].max(ready[child.index()] + back);
            ready[rank.index()] = came + whole;
        }
    }
    ready[tree.root().index()]
}

/// What the look at acknowledgements adds to a call in the mean, where a parent looks once in `calls` calls at a
/// line of each child, ns: that of the parent with most to look at.
pub(super) fn acknowledged_ns(tree: &Tree, costs: &LineCosts, calls: u32) -> f64 {
    let overlapped = costs.added.overlapped_ack_ns;
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
        let sketch = |collective| sketch_ns(collective, &tree, &[], &costs);
        let reduce = Collective::Reduce(Combine::Sum(Element::I32));
        // Rank 2 has read rank 3 after 35 ns and its line back after 94 more, of which 0 reads after 94.
        let up = 35.0 + 94.0 + 94.0;
        assert!((sketch(reduce) - up).abs() < 1e-9, "{}", sketch(reduce));
        let (down, looks) = (3.0 + 94.0 + 35.0 + 35.0, (35.0 + 94.0) / 8.0);
        assert!((sketch(Collective::Broadcast) - (down + looks)).abs() < 1e-9);
        let back = 35.0 + 94.0;
        assert!((sketch(Collective::Barrier) - (up + back + down)).abs() < 1e-9);
        // A line for each socket: rank 0 has that of rank 1 back first.
        let apart = sketch_ns(Collective::Barrier, &tree, &[0, 0, 1, 1], &costs);
        assert!((apart - (up + back + down)).abs() < 1e-9, "{apart}");
    }
}
