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

/// How far ranks are put on a tree over clusters.
struct Placed<'a> {
    clusters: &'a [Vec<Rank>],
    /// Ranks of each cluster that have a place.
    used: Vec<usize>,
    /// The cluster that is entered next.
    next: usize,
    /// By rank.
    parents: Vec<Option<Rank>>,
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

    /// Where nodes of class 1 stand for clusters: how many nodes of its own cluster the tree has, and how
    /// many clusters below it or with it.
    #[must_use]
    pub fn of_clusters(&self) -> Counts {
        let mut sum = if self.class == 0 { [1, 0] } else { [0, 1] };
        for child in &self.children {
            let [near, clusters] = child.of_clusters();
            sum[0] += if self.class == 0 { near } else { 0 };
            sum[1] += clusters;
        }
        sum
    }

    /// Takes one leaf of a class off below the root of this tree; whether there was one. Where class 1
    /// stands for clusters, a cluster without others below it is such a leaf, and clusters are not
    /// looked into for one of class 0.
    pub(super) fn drop_leaf(&mut self, class: usize, clusters: bool) -> bool {
        let closed = |child: &Self| clusters && class == 0 && child.class == 1;
        let within = self.children.iter_mut().filter(|child| !closed(child));
        if within.into_iter().any(|child| child.drop_leaf(class, clusters)) {
            return true;
        }
        let bare = |child: &Self| {
            let none = if clusters && class == 1 {
                child.of_clusters()[1] == 1
            } else {
                child.children.is_empty()
            };
            child.class == class && none
        };
        let at = self.children.iter().position(bare);
        at.map(|at| self.children.remove(at)).is_some()
    }

    /// The tree over ranks by class, or over clusters where there are more than two lists.
    pub(super) fn clustered_or_classed(&self, ranks: &[Vec<Rank>]) -> Result<Tree, TreeError> {
        match ranks {
            [one] => self.tree([one, &[]]),
            [one, two] => self.tree([one, two]),
            more => self.clustered_tree(more),
        }
    }

    /// The tree over clusters of ranks, the root's first: nodes of class 1 enter the next of them. Where a
    /// cluster has fewer ranks than the shape has places, what would hang below a missing one hangs below
    /// its parent.
    ///
    /// # Errors
    /// [`TreeError`] when the shape has fewer places than there are ranks.
    pub fn clustered_tree(&self, clusters: &[Vec<Rank>]) -> Result<Tree, TreeError> {
        let parents = vec![None; clusters.iter().map(Vec::len).sum()];
        let mut placed = Placed { clusters, used: vec![0; clusters.len()], next: 1, parents };
        self.place_in(None, 0, &mut placed);
        Tree::new(&placed.parents)
    }

    fn place_in(&self, parent: Option<Rank>, cluster: usize, placed: &mut Placed<'_>) {
        let ranks = placed.clusters.get(cluster);
        let rank = ranks.and_then(|ranks| ranks.get(placed.used[cluster])).copied();
        let here = rank.or(parent);
        if let Some(rank) = rank {
            placed.used[cluster] += 1;
            placed.parents[rank.index()] = parent;
        }
        for child in &self.children {
            let of = if child.class == 1 { placed.next } else { cluster };
            if of >= placed.clusters.len() {
                continue;
            }
            if child.class == 1 {
                placed.next += 1;
            }
            child.place_in(here, of, placed);
        }
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
