//! A chain of lines in random order, each load waiting for the one before: what placement can
//! gain at most.

use isochrone_stats::{Xoshiro256PlusPlus, below, rng};

use super::{Outcome, PtrOf, Size, Structure};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{Fold, index, wide};

/// The shape of [`ChaseNode`].
#[derive(Clone, Copy, Debug)]
pub struct ChaseShape;

/// One link.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct ChaseNode<P> {
    next: Option<P>,
    tag: u64,
}

impl Shape for ChaseShape {
    type Node<P: Copy + Eq> = ChaseNode<P>;
}

impl<P> ChaseNode<P> {
    /// A link that leads nowhere yet; tags make the checksum.
    #[must_use]
    pub const fn new(tag: u64) -> Self {
        const { assert!(is_one_line::<Self>()) };
        Self { next: None, tag }
    }
}

/// A circle through lines.
#[derive(Clone, Debug)]
pub struct Chase<P> {
    lines: Vec<P>,
    at: Option<P>,
}

impl<P: Copy + Eq> Chase<P> {
    /// Links lines that the caller chose into one circle, in an order that depends on the seed
    /// and their number alone (a random cyclic permutation, Sattolo).
    pub fn through<N: Nodes<ChaseShape, Ptr = P>>(nodes: &mut N, lines: Vec<P>, seed: u64) -> Self {
        let mut random: Xoshiro256PlusPlus = rng(seed);
        let mut order: Vec<usize> = (0..lines.len()).collect();
        for last in (1..order.len()).rev() {
            let other = index(below(&mut random, wide(last)));
            order.swap(last, other);
        }
        for (from, to) in order.iter().enumerate() {
            let next = lines.get(*to).copied();
            nodes.write(lines[from], |node| node.next = next);
        }
        Self { at: lines.first().copied(), lines }
    }

    /// Follows this many links.
    pub fn follow<N: Nodes<ChaseShape, Ptr = P>>(&mut self, nodes: &N, links: u64) -> Outcome {
        let mut fold = Fold::default();
        let mut done = 0;
        while done < links
            && let Some(at) = self.at
        {
            let (next, tag) = nodes.read(at, |node| (node.next, node.tag));
            fold.take(tag);
            self.at = next;
            done += 1;
        }
        Outcome { operations: done, checksum: fold.sum() }
    }
}

impl<N: Nodes<ChaseShape>> Structure<N> for Chase<PtrOf<N, ChaseShape>> {
    const NAME: &'static str = "chase";

    fn build(nodes: &mut N, size: Size) -> Option<Self> {
        let new = |tag| nodes.new(ChaseNode::new(tag));
        let lines: Vec<_> = (0..wide(size.lines)).map(new).collect::<Option<_>>()?;
        Some(Self::through(nodes, lines, size.seed))
    }

    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome> {
        Some(self.follow(nodes, operations))
    }

    fn clear(self, nodes: &mut N) {
        self.lines.into_iter().for_each(|line| nodes.free(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Slab;

    #[test]
    fn the_circle_visits_every_line_once() {
        let mut slab = Slab::<ChaseShape>::new(1000);
        let mut chase = Chase::build(&mut slab, Size { lines: 1000, seed: 3 }).unwrap();
        let start = chase.at;
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            seen.insert(chase.at.unwrap());
            chase.follow(&slab, 1);
        }
        assert_eq!((seen.len(), chase.at), (1000, start));
    }

    #[test]
    fn an_empty_circle_is_followed_nowhere() {
        let mut slab = Slab::<ChaseShape>::new(1);
        let mut chase = Chase::through(&mut slab, Vec::new(), 1);
        assert_eq!(chase.follow(&slab, 5).operations, 0);
    }
}
