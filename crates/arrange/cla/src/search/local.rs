//! Any machine: a tree made better step by step.
//!
//! Where cores fall into no few classes, minimum broadcast time is NP-hard (Garey and Johnson, problem
//! ND49), so this starts from the best tree known and hangs ranks elsewhere, or exchanges two, as long as
//! that helps. What it finds is printed with a bound from below, never called the best.

use isochrone_stats as stats;

use crate::collectives::Tree;
use crate::program::Rank;

/// A tree that no single move makes better, or the best when `most` trees had been priced.
///
/// `price` says what a tree costs; `None` for one that cannot be priced. The order of moves is drawn from
/// `seed`.
pub fn improved(
    start: (Tree, f64),
    most: usize,
    seed: u64,
    mut price: impl FnMut(&Tree) -> Option<f64>,
) -> (Tree, f64) {
    let mut random = stats::rng(seed);
    let (mut tree, mut best) = start;
    let mut priced = 0;
    loop {
        let mut moves = moves(&tree);
        stats::shuffle(&mut moves, &mut random);
        let mut better = None;
        for step in moves {
            if priced == most {
                return (tree, best);
            }
            let Some(other) = step.of(&tree) else { continue };
            priced += 1;
            if let Some(ns) = price(&other).filter(|ns| *ns < best - 1e-9) {
                better = Some((other, ns));
                break;
            }
        }
        match better {
            Some((other, ns)) => (tree, best) = (other, ns),
            None => return (tree, best),
        }
    }
}

/// A change of a tree.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// The first rank, with all below it, goes below the second.
    Hang(Rank, Rank),
    /// Two ranks exchange their places.
    Exchange(Rank, Rank),
}

fn moves(tree: &Tree) -> Vec<Move> {
    let ranks = || (0..tree.ranks()).map(Rank);
    let mut moves = Vec::new();
    for a in ranks().filter(|&r| r != tree.root()) {
        moves.extend(
            ranks().filter(|&b| b != a && tree.parent(a) != Some(b)).map(|b| Move::Hang(a, b)),
        );
        moves.extend(ranks().filter(|&b| b > a && b != tree.root()).map(|b| Move::Exchange(a, b)));
    }
    moves
}

impl Move {
    /// The tree after the move; `None` if that is none.
    fn of(self, tree: &Tree) -> Option<Tree> {
        let mut parents: Vec<Option<Rank>> =
            (0..tree.ranks()).map(|r| tree.parent(Rank(r))).collect();
        match self {
            Self::Hang(rank, below) => parents[rank.index()] = Some(below),
            Self::Exchange(a, b) => {
                let name = |rank: Rank| match rank {
                    r if r == a => b,
                    r if r == b => a,
                    r => r,
                };
                let old = parents.clone();
                for (rank, parent) in (0..tree.ranks()).map(Rank).zip(old) {
                    parents[name(rank).index()] = parent.map(name);
                }
            }
        }
        Tree::new(&parents).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Depth as the price: from a chain the moves lead to a flat tree.
    #[test]
    fn moves_lead_where_it_is_better() {
        let depth = |tree: &Tree| {
            let of = |mut rank: Rank| {
                let mut depth = 0.0;
                while let Some(parent) = tree.parent(rank) {
                    rank = parent;
                    depth += 1.0;
                }
                depth
            };
            (0..tree.ranks()).map(Rank).map(of).sum::<f64>()
        };
        let chain = Tree::regular(6, Rank(0), 1);
        let (found, ns) = improved((chain, 15.0), 1000, 7, |tree| Some(depth(tree)));
        assert_eq!(found, Tree::flat(6, Rank(0)));
        assert!((ns - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_budget_is_kept() {
        let mut asked = 0;
        let chain = Tree::regular(6, Rank(0), 1);
        improved((chain, 15.0), 7, 7, |_| {
            asked += 1;
            None
        });
        assert_eq!(asked, 7);
    }
}
