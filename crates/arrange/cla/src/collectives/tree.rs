//! Rooted trees over ranks: who hands on to whom.

use crate::program::Rank;

/// A rooted tree over ranks `0..n`; children are in the order in which they are served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    root: Rank,
    parent: Vec<Option<Rank>>,
    children: Vec<Vec<Rank>>,
}

/// Why a list of parents is no tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// No rank, or more than one, has no parent.
    #[error("a tree has one root, but {0} of the ranks have no parent")]
    Roots(usize),
    /// A parent is not a rank.
    #[error("{child} has parent {parent}, but ranks end at {last}")]
    Parent {
        /// Whose parent.
        child: Rank,
        /// The parent that does not exist.
        parent: Rank,
        /// The last rank.
        last: Rank,
    },
    /// Following parents from here never comes to the root.
    #[error("{0} does not hang below the root: its parents go in a circle")]
    Circle(Rank),
    /// More ranks than a [`Rank`] can number.
    #[error("{0} ranks are more than a program can have (65535)")]
    Ranks(usize),
}

/// Each rank with its children in brackets.
impl std::fmt::Display for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.below(self.root, f)
    }
}

impl Tree {
    /// The tree in which `parents[r]` is the parent of rank `r`; children are served in rank order.
    ///
    /// # Errors
    /// [`TreeError`] when the list is not one tree over its ranks.
    pub fn new(parents: &[Option<Rank>]) -> Result<Self, TreeError> {
        let ranks = u16::try_from(parents.len()).map_err(|_| TreeError::Ranks(parents.len()))?;
        let order: Vec<Rank> = (0..ranks).map(Rank).collect();
        Self::served_in(parents, &order)
    }

    /// The same with children served in the order in which they come in `order`; ranks that are not there
    /// come last.
    pub(crate) fn served_in(parents: &[Option<Rank>], order: &[Rank]) -> Result<Self, TreeError> {
        let count = u16::try_from(parents.len()).map_err(|_| TreeError::Ranks(parents.len()))?;
        let mut children = vec![Vec::new(); parents.len()];
        let mut roots = Vec::new();
        for (rank, parent) in (0..count).map(Rank).zip(parents) {
            match *parent {
                None => roots.push(rank),
                Some(parent) if parent.0 >= count => {
                    return Err(TreeError::Parent { child: rank, parent, last: Rank(count - 1) });
                }
                Some(parent) => children[parent.index()].push(rank),
            }
        }
        let [root] = roots[..] else { return Err(TreeError::Roots(roots.len())) };
        let mut place = vec![usize::MAX; parents.len()];
        for (at, rank) in order.iter().enumerate() {
            place[rank.index()] = at;
        }
        children.iter_mut().for_each(|of| of.sort_by_key(|rank| place[rank.index()]));
        let tree = Self { root, parent: parents.to_vec(), children };
        match tree.outside() {
            Some(rank) => Err(TreeError::Circle(rank)),
            None => Ok(tree),
        }
    }

    /// Everybody hangs directly below `root`.
    ///
    /// # Panics
    /// If `root` is not one of `ranks`.
    #[must_use]
    pub fn flat(ranks: u16, root: Rank) -> Self {
        Self::built(ranks, root, |_| 0)
    }

    /// Each rank has at most `degree` children, filled level by level; places are counted from the root.
    ///
    /// # Panics
    /// If `root` is not one of `ranks`, or `degree` is 0.
    #[must_use]
    pub fn regular(ranks: u16, root: Rank, degree: u16) -> Self {
        assert!(degree > 0, "a tree of degree 0 reaches nobody");
        Self::built(ranks, root, |place| (place - 1) / degree)
    }

    /// The binomial tree; places are counted from the root.
    ///
    /// # Panics
    /// If `root` is not one of `ranks`.
    #[must_use]
    pub fn binomial(ranks: u16, root: Rank) -> Self {
        Self::built(ranks, root, |place| place & (place - 1))
    }

    /// The tree whose place `p > 0` hangs below place `parent(p) < p`; place 0 is the root, and places
    /// go round from there by rank.
    fn built(ranks: u16, root: Rank, parent: impl Fn(u16) -> u16) -> Self {
        assert!(root.0 < ranks, "{root} is not one of {ranks} ranks");
        let at = |place: u16| {
            Rank(
                u16::try_from((u32::from(root.0) + u32::from(place)) % u32::from(ranks))
                    .unwrap_or(0),
            )
        };
        let mut parents = vec![None; usize::from(ranks)];
        for place in 1..ranks {
            parents[at(place).index()] = Some(at(parent(place)));
        }
        let mut children = vec![Vec::new(); usize::from(ranks)];
        for place in 1..ranks {
            children[at(parent(place)).index()].push(at(place));
        }
        Self { root, parent: parents, children }
    }

    fn below(&self, rank: Rank, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", rank.0)?;
        for (at, &child) in self.children(rank).iter().enumerate() {
            f.write_str(if at == 0 { "(" } else { " " })?;
            self.below(child, f)?;
        }
        f.write_str(if self.children(rank).is_empty() { "" } else { ")" })
    }

    /// A rank that does not hang below the root.
    fn outside(&self) -> Option<Rank> {
        let mut reached = vec![false; self.parent.len()];
        let mut open = vec![self.root];
        while let Some(rank) = open.pop() {
            reached[rank.index()] = true;
            open.extend(&self.children[rank.index()]);
        }
        (0..self.ranks()).map(Rank).find(|rank| !reached[rank.index()])
    }

    /// How many ranks.
    #[must_use]
    pub fn ranks(&self) -> u16 {
        u16::try_from(self.parent.len()).unwrap_or(u16::MAX)
    }

    /// The root.
    #[must_use]
    pub const fn root(&self) -> Rank {
        self.root
    }

    /// The parent of a rank; none for the root.
    #[must_use]
    pub fn parent(&self, rank: Rank) -> Option<Rank> {
        self.parent[rank.index()]
    }

    /// All ranks, parents before their children and children in the order in which they are served.
    #[must_use]
    pub fn preorder(&self) -> Vec<Rank> {
        let mut order = Vec::with_capacity(self.parent.len());
        let mut open = vec![self.root];
        while let Some(rank) = open.pop() {
            order.push(rank);
            open.extend(self.children[rank.index()].iter().rev());
        }
        order
    }

    /// Whether everybody hangs directly below the root.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.children[self.root.index()].len() + 1 == self.parent.len()
    }

    /// The children of a rank, in the order in which they are served.
    #[must_use]
    pub fn children(&self, rank: Rank) -> &[Rank] {
        &self.children[rank.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_written_with_children_in_brackets() {
        let tree = Tree::new(&[None, Some(Rank(0)), Some(Rank(0)), Some(Rank(1))]).unwrap();
        assert_eq!(tree.to_string(), "0(1(3) 2)");
    }

    #[test]
    fn families_hang_as_they_should() {
        let flat = Tree::flat(4, Rank(2));
        assert_eq!(flat.children(Rank(2)), [Rank(3), Rank(0), Rank(1)]);
        assert!(flat.is_flat());
        let binary = Tree::regular(7, Rank(0), 2);
        assert_eq!(binary.preorder(), [0, 1, 3, 4, 2, 5, 6].map(Rank));
        assert!(!binary.is_flat());
        assert_eq!(binary.children(Rank(1)), [Rank(3), Rank(4)]);
        let binomial = Tree::binomial(8, Rank(0));
        assert_eq!(binomial.children(Rank(0)), [Rank(1), Rank(2), Rank(4)]);
        assert_eq!(binomial.parent(Rank(7)), Some(Rank(6)));
    }

    #[test]
    fn what_is_no_tree_is_refused_with_the_reason() {
        let two = [None, None];
        assert_eq!(Tree::new(&two), Err(TreeError::Roots(2)));
        let far = [None, Some(Rank(9))];
        assert_eq!(
            Tree::new(&far),
            Err(TreeError::Parent { child: Rank(1), parent: Rank(9), last: Rank(1) })
        );
        let circle = [None, Some(Rank(2)), Some(Rank(1))];
        assert_eq!(Tree::new(&circle), Err(TreeError::Circle(Rank(1))));
    }
}
