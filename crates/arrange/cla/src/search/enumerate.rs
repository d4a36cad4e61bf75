//! All rooted trees of a size: the oracle that the search is held against.
//!
//! Trees come as sequences of depths in preorder, each unlabelled tree once (Beyer and Hedetniemi,
//! "Constant time generation of rooted trees", SIAM Journal on Computing 9(4), 1980). There are 4766 of 12
//! nodes and 5 * 10^19 of 48, so this is for tests and small machines.

/// Rooted trees of one size, one after the other.
#[derive(Clone, Debug)]
pub struct RootedTrees {
    depths: Option<Vec<usize>>,
}

impl RootedTrees {
    /// All rooted trees of `nodes` nodes.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self { depths: (nodes > 0).then(|| (0..nodes).collect()) }
    }
}

impl Iterator for RootedTrees {
    type Item = Vec<usize>;

    /// The depths of the nodes of the next tree in preorder; the root's is 0.
    fn next(&mut self) -> Option<Vec<usize>> {
        let now = self.depths.clone()?;
        self.depths = successor(&now);
        Some(now)
    }
}

/// The next sequence: the last node that hangs below a child of the root moves one up, and what follows
/// repeats the subtree before it.
fn successor(depths: &[usize]) -> Option<Vec<usize>> {
    let moved = depths.iter().rposition(|&depth| depth > 1)?;
    let parent = (0..moved).rev().find(|&n| depths[n] + 1 == depths[moved])?;
    let mut next = depths.to_vec();
    for n in moved..next.len() {
        next[n] = next[n - (moved - parent)];
    }
    Some(next)
}

/// The parent of each node of a tree of depths; none for the root.
#[must_use]
pub fn parents(depths: &[usize]) -> Vec<Option<usize>> {
    let parent = |n: usize| (0..n).rev().find(|&m| depths[m] + 1 == depths[n]);
    (0..depths.len()).map(parent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_there_should_be() {
        // OEIS A000081.
        let counts = [1, 1, 2, 4, 9, 20, 48, 115, 286, 719, 1842, 4766];
        for (nodes, count) in (1..).zip(counts) {
            assert_eq!(RootedTrees::new(nodes).count(), count, "{nodes} nodes");
        }
        assert_eq!(RootedTrees::new(0).count(), 0);
    }

    #[test]
    fn parents_stand_one_above() {
        assert_eq!(parents(&[0, 1, 2, 1]), [None, Some(0), Some(1), Some(0)]);
    }
}
