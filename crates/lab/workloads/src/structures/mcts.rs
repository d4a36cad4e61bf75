//! Monte-Carlo tree search (UCT; Kocsis and Szepesvari, "Bandit Based Monte-Carlo Planning",
//! ECML 2006) playing connect four: every iteration walks down lists of children, plays a game
//! at random, and walks back up.

use isochrone_stats::{Rng, Xoshiro256PlusPlus, rng};

use super::connect_four::{COLUMNS, Position};
use super::{Outcome, PtrOf, Size, Structure};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{Fold, wide};

/// Weight of exploration in UCT: the square root of 2, as in the paper.
const EXPLORATION: f64 = core::f64::consts::SQRT_2;
/// Visits after which a leaf gets children.
const VISITS_TO_EXPAND: u32 = 1;

/// The shape of [`MctsNode`].
#[derive(Clone, Copy, Debug)]
pub struct MctsShape;

/// One position that was reached by a move.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct MctsNode<P> {
    visits: u32,
    /// Twice the games won by whoever moved here, draws counted once.
    score: u32,
    column: u8,
    parent: Option<P>,
    child: Option<P>,
    sibling: Option<P>,
}

impl Shape for MctsShape {
    type Node<P: Copy + Eq> = MctsNode<P>;
}

/// The tree. Once it has its lines it grows no more, and iterations only read and update it.
#[derive(Clone, Debug)]
pub struct Mcts<P> {
    root: P,
    held: usize,
    most: usize,
    random: Xoshiro256PlusPlus,
}

impl<P: Copy + Eq> Mcts<P> {
    fn leaf(column: u8, parent: Option<P>, sibling: Option<P>) -> MctsNode<P> {
        MctsNode { visits: 0, score: 0, column, parent, child: None, sibling }
    }

    /// The child that UCT would visit; the first of the unvisited ones before all others.
    fn select<N: Nodes<MctsShape, Ptr = P>>(nodes: &N, first: P, parent_visits: u32) -> (P, u8) {
        let explore = EXPLORATION * f64::from(parent_visits.max(1)).ln().sqrt();
        let mut best: Option<(f64, P, u8)> = None;
        let mut at = Some(first);
        while let Some(ptr) = at {
            let (visits, score, column, sibling) =
                nodes.read(ptr, |node| (node.visits, node.score, node.column, node.sibling));
            if visits == 0 {
                return (ptr, column);
            }
            let visits = f64::from(visits);
            let value = 0.5 * f64::from(score) / visits + explore / visits.sqrt();
            if best.is_none_or(|(best, ..)| value > best) {
                best = Some((value, ptr, column));
            }
            at = sibling;
        }
        best.map_or((first, 0), |(_, ptr, column)| (ptr, column))
    }

    fn expand<N: Nodes<MctsShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        at: P,
        position: Position,
    ) -> Option<()> {
        let mut sibling = None;
        for column in position.open() {
            sibling = Some(nodes.new(Self::leaf(column, Some(at), sibling))?);
            self.held += 1;
        }
        nodes.write(at, |node| node.child = sibling);
        Some(())
    }

    /// Plays at random to the end: 2 if whoever moves first wins, 1 for a draw, 0 otherwise.
    fn playout(&mut self, mut position: Position) -> u32 {
        let mut first_moves = true;
        loop {
            // One draw and a walk to the next open column: cheap, and fair enough for a playout.
            let start = self.random.next_u64() >> 32;
            let columns = u64::from(COLUMNS);
            let open = (start..start + columns)
                .filter_map(|column| u8::try_from(column % columns).ok())
                .find(|column| position.is_open(*column));
            let Some(column) = open else { return 1 };
            position = position.after(column);
            if position.is_won() {
                return if first_moves { 2 } else { 0 };
            }
            first_moves = !first_moves;
        }
    }

    fn iterate<N: Nodes<MctsShape, Ptr = P>>(&mut self, nodes: &mut N) -> Option<u64> {
        let (mut at, mut position, mut depth) = (self.root, Position::default(), 0_u32);
        loop {
            let (child, visits) = nodes.read(at, |node| (node.child, node.visits));
            let over = position.is_won();
            match child {
                Some(first) => {
                    let (next, column) = Self::select(nodes, first, visits);
                    (at, position) = (next, position.after(column));
                    depth += 1;
                }
                None if !over
                    && visits >= VISITS_TO_EXPAND
                    && self.held + usize::from(COLUMNS) <= self.most
                    && position.open().next().is_some() =>
                {
                    self.expand(nodes, at, position)?;
                }
                None => break,
            }
        }
        // For whoever moved last: the opposite of what the next to move gets.
        let result = if position.is_won() { 2 } else { 2 - self.playout(position) };
        let mut gets = result;
        let mut up = Some(at);
        while let Some(ptr) = up {
            up = nodes.write(ptr, |node| {
                node.visits += 1;
                node.score += gets;
                node.parent
            });
            gets = 2 - gets;
        }
        Some(u64::from(depth) << 2 | u64::from(result))
    }
}

impl<N: Nodes<MctsShape>> Structure<N> for Mcts<PtrOf<N, MctsShape>> {
    const NAME: &'static str = "mcts";

    fn build(nodes: &mut N, size: Size) -> Option<Self> {
        const { assert!(is_one_line::<MctsNode<N::Ptr>>()) };
        let root = nodes.new(Self::leaf(0, None, None))?;
        let random = rng(size.seed);
        let mut search = Self { root, held: 1, most: size.lines, random };
        // A bound, so that a game that ends early everywhere ends the building too.
        for _ in 0..8 * wide(size.lines) {
            if search.held + usize::from(COLUMNS) > search.most {
                break;
            }
            search.iterate(nodes)?;
        }
        Some(search)
    }

    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome> {
        let mut fold = Fold::default();
        for _ in 0..operations {
            fold.take(self.iterate(nodes)?);
        }
        Some(Outcome { operations, checksum: fold.sum() })
    }

    fn clear(self, nodes: &mut N) {
        let mut left = vec![self.root];
        while let Some(at) = left.pop() {
            left.extend(nodes.read(at, |node| [node.child, node.sibling]).into_iter().flatten());
            nodes.free(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Slab;

    #[test]
    fn it_opens_in_the_middle_and_counts_every_iteration_once() {
        let mut slab = Slab::<MctsShape>::new(30_000);
        let mut search = Mcts::build(&mut slab, Size { lines: 30_000, seed: 1 }).unwrap();
        search.run(&mut slab, 20_000).unwrap();
        assert!(slab.live() > 29_990 && slab.live() <= 30_000, "{}", slab.live());
        let (visits, child) = slab.read(search.root, |node| (node.visits, node.child));
        let (mut at, mut sum, mut most) = (child, 0, (0, 0));
        while let Some(ptr) = at {
            let node = slab.read(ptr, |node| *node);
            sum += node.visits;
            most = most.max((node.visits, node.column));
            assert!(node.score <= 2 * node.visits);
            at = node.sibling;
        }
        assert_eq!(sum + VISITS_TO_EXPAND, visits, "all but those before the root was expanded");
        assert_eq!(most.1, 3, "the middle column is the known best opening");
    }

    #[test]
    fn a_won_position_is_not_played_on() {
        let mut slab = Slab::<MctsShape>::new(4000);
        let search = Mcts::build(&mut slab, Size { lines: 4000, seed: 1 }).unwrap();
        let mut left = vec![(search.root, Position::default())];
        while let Some((at, position)) = left.pop() {
            let mut child = slab.read(at, |node| node.child);
            assert!(child.is_none() || !position.is_won());
            while let Some(ptr) = child {
                let (column, sibling) = slab.read(ptr, |node| (node.column, node.sibling));
                left.push((ptr, position.after(column)));
                child = sibling;
            }
        }
    }
}
