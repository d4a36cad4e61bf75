//! A set of nodes in one machine word.

/// Nodes of a machine, at most 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSet(u64);

impl NodeSet {
    /// No node.
    pub const EMPTY: Self = Self(0);

    /// One node.
    #[must_use]
    pub const fn one(node: u8) -> Self {
        Self(1 << node)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether `node` is one of them.
    #[must_use]
    pub const fn has(self, node: u8) -> bool {
        self.0 >> node & 1 == 1
    }

    /// These and `node`.
    #[must_use]
    pub const fn with(self, node: u8) -> Self {
        Self(self.0 | 1 << node)
    }

    /// These but not `node`.
    #[must_use]
    pub const fn without(self, node: u8) -> Self {
        Self(self.0 & !(1 << node))
    }

    /// In both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// In either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// In this and not in the other.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The lowest.
    #[must_use]
    pub fn first(self) -> Option<u8> {
        u8::try_from(self.0.trailing_zeros()).ok().filter(|_| self.0 != 0)
    }

    /// In ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let node = rest.first()?;
            rest = rest.without(node);
            Some(node)
        })
    }
}

impl FromIterator<u8> for NodeSet {
    fn from_iter<I: IntoIterator<Item = u8>>(nodes: I) -> Self {
        nodes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_it_was_given() {
        let set: NodeSet = [0, 5, 63].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert!(set.has(63) && !set.has(62) && set.len() == 3);
        assert_eq!(set.without(5).minus(NodeSet::one(0)).first(), Some(63));
        assert!(NodeSet::EMPTY.is_empty() && NodeSet::EMPTY.first().is_none());
    }
}
