//! A binary search tree without balancing: keys inserted in random order, then looked up.

use isochrone_stats::{Xoshiro256PlusPlus, below, rng};

use super::{Outcome, PtrOf, Size, Structure};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{Fold, mixed, wide};

/// The shape of [`TreeNode`].
#[derive(Clone, Copy, Debug)]
pub struct TreeShape;

/// One key.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct TreeNode<P> {
    key: u64,
    value: u64,
    smaller: Option<P>,
    larger: Option<P>,
}

impl Shape for TreeShape {
    type Node<P: Copy + Eq> = TreeNode<P>;
}

/// The tree. Key `i` of the seed is a mixture of both, so keys come in random order.
#[derive(Clone, Debug)]
pub struct SearchTree<P> {
    root: Option<P>,
    keys: u64,
    seed: u64,
    random: Xoshiro256PlusPlus,
}

impl<P: Copy + Eq> SearchTree<P> {
    fn key(&self, of: u64) -> u64 {
        mixed(of ^ mixed(self.seed))
    }

    fn insert<N: Nodes<TreeShape, Ptr = P>>(&mut self, nodes: &mut N, key: u64) -> Option<()> {
        let new = nodes.new(TreeNode { key, value: mixed(key), smaller: None, larger: None })?;
        let Some(mut at) = self.root else {
            self.root = Some(new);
            return Some(());
        };
        loop {
            let next = nodes.write(at, |node| {
                let side = if key < node.key { &mut node.smaller } else { &mut node.larger };
                let next = *side;
                if next.is_none() {
                    *side = Some(new);
                }
                next
            });
            let Some(next) = next else { return Some(()) };
            at = next;
        }
    }

    fn find<N: Nodes<TreeShape, Ptr = P>>(&self, nodes: &N, key: u64) -> (Option<u64>, u64) {
        let mut at = self.root;
        let mut depth = 0;
        while let Some(ptr) = at {
            depth += 1;
            let (value, next) = nodes.read(ptr, |node| match key.cmp(&node.key) {
                core::cmp::Ordering::Less => (None, node.smaller),
                core::cmp::Ordering::Equal => (Some(node.value), None),
                core::cmp::Ordering::Greater => (None, node.larger),
            });
            if value.is_some() {
                return (value, depth);
            }
            at = next;
        }
        (None, depth)
    }
}

impl<N: Nodes<TreeShape>> Structure<N> for SearchTree<PtrOf<N, TreeShape>> {
    const NAME: &'static str = "tree";

    fn build(nodes: &mut N, size: Size) -> Option<Self> {
        const { assert!(is_one_line::<TreeNode<N::Ptr>>()) };
        let keys = wide(size.lines);
        let mut tree = Self { root: None, keys, seed: size.seed, random: rng(size.seed) };
        for of in 0..keys {
            tree.insert(nodes, tree.key(of))?;
        }
        Some(tree)
    }

    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome> {
        let mut fold = Fold::default();
        for _ in 0..operations {
            let of = below(&mut self.random, self.keys);
            let key = self.key(of);
            let (value, depth) = self.find(nodes, key);
            fold.take(value.unwrap_or(0) ^ depth);
        }
        Some(Outcome { operations, checksum: fold.sum() })
    }

    fn clear(self, nodes: &mut N) {
        let mut left: Vec<_> = self.root.into_iter().collect();
        while let Some(at) = left.pop() {
            left.extend(nodes.read(at, |node| [node.smaller, node.larger]).into_iter().flatten());
            nodes.free(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Slab;

    #[test]
    fn every_key_is_found_and_no_other() {
        let mut slab = Slab::<TreeShape>::new(2000);
        let tree = SearchTree::build(&mut slab, Size { lines: 2000, seed: 4 }).unwrap();
        let mut depths = 0;
        for of in 0..2000 {
            let (value, depth) = tree.find(&slab, tree.key(of));
            assert_eq!(value, Some(mixed(tree.key(of))));
            depths += depth;
        }
        // A random tree's mean depth is near 2 ln n: 2 * (ln 2000 + 0.58) - 3 = 13.4.
        assert!((12 * 2000..16 * 2000).contains(&depths), "{depths}");
        assert_eq!(tree.find(&slab, tree.key(2000)).0, None);
    }
}
