//! A tree whose nodes have classes, before ranks are put on it.

use super::level::{Counts, Levels};
use crate::collectives::{Tree, TreeError};
use crate::program::Rank;

/// A node with its class and what hangs below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// The class of the node's core.
    pub class: usize,
    /// What hangs below it.
    pub children: Vec<Shape>,
}

impl Shape {
    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        1 + self.children.iter().map(Self::nodes).sum::<usize>()
    }

    /// How many children the node has, by class.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for child in &self.children {
            counts[child.class] += 1;
        }
        counts
    }

    /// How many nodes there are of each class.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        total[self.class] += 1;
        for child in &self.children {
            let below = child.total();
            total.iter_mut().zip(below).for_each(|(sum, n)| *sum += n);
        }
        total
    }

    /// Takes one leaf of a class off below the root of this tree; whether there was one.
    pub(super) fn drop_leaf(&mut self, class: usize) -> bool {
        if self.children.iter_mut().any(|child| child.drop_leaf(class)) {
            return true;
        }
        let bare = |child: &Self| child.class == class && child.children.is_empty();
        let at = self.children.iter().position(bare);
        at.map(|at| self.children.remove(at)).is_some()
    }

    /// The time of the tree by its levels, ns.
    #[must_use]
    pub fn time_ns(&self, levels: &Levels) -> f64 {
        self.below_ns(levels, true)
    }

    fn below_ns(&self, levels: &Levels, root: bool) -> f64 {
        let level = if root { &levels.root[self.class] } else { &levels.inner[self.class] };
        let counts = self.counts();
        let child = |c: &Self| level.delay_ns(counts, c.class) + c.below_ns(levels, false);
        self.children.iter().map(child).fold(0.0, f64::max)
    }

    /// The tree with ranks in the order of `ranks[class]`, each subtree's deepest child first.
    ///
    /// # Errors
    /// [`TreeError`] when `ranks` are not one for each node.
    pub fn tree(&self, ranks: [&[Rank]; 2]) -> Result<Tree, TreeError> {
        let count = ranks[0].len() + ranks[1].len();
        let mut parents = vec![None; count];
        let mut used = [0; 2];
        self.place(None, ranks, &mut used, &mut parents);
        Tree::new(&parents)
    }

    fn place(
        &self,
        parent: Option<Rank>,
        ranks: [&[Rank]; 2],
        used: &mut [usize; 2],
        parents: &mut [Option<Rank>],
    ) {
        let Some(&rank) = ranks[self.class].get(used[self.class]) else { return };
        used[self.class] += 1;
        parents[rank.index()] = parent;
        for child in &self.children {
            child.place(Some(rank), ranks, used, parents);
        }
    }

    /// The tree in one line: a node is its children in brackets, equal ones counted, far ones marked.
    #[must_use]
    pub fn words(&self) -> String {
        let mark = if self.class == 0 { "" } else { "'" };
        if self.children.is_empty() {
            return format!("o{mark}");
        }
        let mut parts: Vec<(String, usize)> = Vec::new();
        for child in &self.children {
            let words = child.words();
            match parts.iter_mut().find(|(known, _)| *known == words) {
                Some((_, count)) => *count += 1,
                None => parts.push((words, 1)),
            }
        }
        let part = |(words, count): &(String, usize)| match count {
            1 => words.clone(),
            n => format!("{n}{words}"),
        };
        format!("o{mark}({})", parts.iter().map(part).collect::<Vec<_>>().join(" "))
    }
}
