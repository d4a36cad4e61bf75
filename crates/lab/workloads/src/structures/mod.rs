//! Recursive data structures whose nodes are one line each: what a program that follows
//! pointers looks like to an allocator.
//!
//! The paper on hidden non-uniformity names linked structures as what gains from near lines, and
//! EM3D, Barnes-Hut and Monte-Carlo tree search as its future work. Each structure is built in
//! one call and worked on in another, so that the caller times the work alone; arrays beside the
//! nodes (hash heads, lists of bodies) are the program's ordinary memory in every arm.

mod barnes_hut;
mod chase;
mod connect_four;
mod em3d;
mod lru;
mod mcts;
mod skip_list;
mod tree;

pub use barnes_hut::{BarnesHut, BarnesHutNode, BarnesHutShape};
pub use chase::{Chase, ChaseNode, ChaseShape};
pub use em3d::{Em3d, Em3dNode, Em3dShape};
pub use lru::{Lru, LruNode, LruShape};
pub use mcts::{Mcts, MctsNode, MctsShape};
pub use skip_list::{SkipList, SkipListNode, SkipListShape};
pub use tree::{SearchTree, TreeNode, TreeShape};

use isochrone_units::LINE_BYTES;

use crate::nodes::Nodes;
use crate::number::index;

/// How large a structure is and where its randomness comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Nodes, each one line.
    pub lines: usize,
    /// Of everything random.
    pub seed: u64,
}

impl Size {
    /// As many lines as these bytes hold, at least two.
    #[must_use]
    pub fn of_bytes(bytes: u64, seed: u64) -> Self {
        Self { lines: index(bytes / LINE_BYTES as u64).max(2), seed }
    }
}

/// What some work came to. Equal in every arm, or an arm did other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Operations done.
    pub operations: u64,
    /// Of everything the operations found, in order.
    pub checksum: u64,
}

/// A structure over an allocator `N`.
pub trait Structure<N>: Sized {
    /// What it is called in tables.
    const NAME: &'static str;

    /// Builds it; `None` when memory is refused.
    fn build(nodes: &mut N, size: Size) -> Option<Self>;

    /// Does this many operations; `None` when memory is refused. Randomness goes on where the
    /// call before left it.
    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome>;

    /// Gives all nodes back.
    fn clear(self, nodes: &mut N);
}

/// Builds a structure, works on it, and gives its nodes back: the whole life of one arm, for
/// tests and warm-up.
pub fn build_and_run<N, S: Structure<N>>(
    nodes: &mut N,
    size: Size,
    operations: u64,
) -> Option<Outcome> {
    let mut structure = S::build(nodes, size)?;
    let outcome = structure.run(nodes, operations);
    structure.clear(nodes);
    outcome
}

/// Names a node's pointer type without repeating its shape.
pub(crate) type PtrOf<N, S> = <N as Nodes<S>>::Ptr;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::{Boxed, Chest, Shape, Slab, SlabPtr};

    /// All arms agree, twice the operations in two calls are those in one, nothing is leaked.
    fn arms_agree<S: Shape, A, B>(lines: usize, operations: u64) -> Outcome
    where
        A: Structure<Slab<S>>,
        B: InBoxes,
    {
        let size = Size { lines, seed: 7 };
        let mut slab = Slab::<S>::new(4 * lines + 64);
        let outcome = build_and_run::<_, A>(&mut slab, size, operations).expect("fits");
        assert_eq!(slab.live(), 0, "{} gives every node back", A::NAME);
        assert_eq!(outcome.operations, operations);
        // Places are handed out last freed first: in another order than before.
        assert_eq!(build_and_run::<_, A>(&mut slab, size, operations), Some(outcome), "again");
        assert_eq!(B::run(size, operations), Some(outcome), "{} boxed", A::NAME);
        let other = Size { seed: 8, ..size };
        let mut slab = Slab::<S>::new(4 * lines + 64);
        let another = build_and_run::<_, A>(&mut slab, other, operations).expect("fits");
        assert_ne!(another.checksum, outcome.checksum, "{} depends on its seed", A::NAME);
        let mut small = Slab::<S>::new(lines / 2);
        assert_eq!(build_and_run::<_, A>(&mut small, size, operations), None, "memory refused");
        outcome
    }

    /// Runs a structure over boxes: a trait, since its type depends on the chest's lifetime.
    trait InBoxes {
        fn run(size: Size, operations: u64) -> Option<Outcome>;
    }

    macro_rules! agree {
        ($($test:ident: $structure:ident, $shape:ident, $lines:expr, $operations:expr;)+) => {$(
            #[test]
            fn $test() {
                struct Arm;
                impl InBoxes for Arm {
                    fn run(size: Size, operations: u64) -> Option<Outcome> {
                        let chest = Chest::<$shape>::new();
                        let mut nodes = Boxed::new(&chest);
                        build_and_run::<_, $structure<PtrOf<Boxed<'_, $shape>, $shape>>>(
                            &mut nodes, size, operations,
                        )
                    }
                }
                arms_agree::<$shape, $structure<SlabPtr>, Arm>($lines, $operations);
            }
        )+};
    }

    agree! {
        chases_agree: Chase, ChaseShape, 500, 2000;
        lru_caches_agree: Lru, LruShape, 500, 5000;
        search_trees_agree: SearchTree, TreeShape, 500, 2000;
        skip_lists_agree: SkipList, SkipListShape, 500, 2000;
        em3d_graphs_agree: Em3d, Em3dShape, 500, 2000;
        n_bodies_agree: BarnesHut, BarnesHutShape, 500, 700;
        tree_searches_agree: Mcts, MctsShape, 500, 300;
    }
}
