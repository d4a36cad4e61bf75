//! What is numbered: groups of pages, who moves them, and the page tables that map them.

use std::fmt;

/// Bytes of a page of every machine that this pager runs on or models.
pub const PAGE_BYTES: u64 = 4096;

/// A group of neighbouring pages that come and go together, counted from the start of the area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group(pub u32);

impl Group {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}", self.0)
    }
}

/// Whoever changes the directory: a worker, or a mover. Workers come first, so that a worker's number is
/// its actor's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Actor(pub u16);

impl Actor {
    /// Most actors that a directory can tell apart.
    pub const MOST: u16 = 8191;

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One set of page tables. With threads all workers have one, with processes each has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Space(pub u16);

impl Space {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a program does to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only reads.
    Read,
    /// It writes, or nobody knows.
    Write,
}

/// Neighbouring groups that are treated by one call of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: Group,
    /// How many.
    pub groups: u32,
}

impl Run {
    /// A run of one.
    #[must_use]
    pub const fn of(group: Group) -> Self {
        Self { first: group, groups: 1 }
    }

    /// The groups, in ascending order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Group> {
        (self.first.0..self.first.0.saturating_add(self.groups)).map(Group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_counts_its_groups() {
        let run = Run { first: Group(7), groups: 3 };
        assert_eq!(run.iter().collect::<Vec<_>>(), [Group(7), Group(8), Group(9)]);
        assert_eq!(Run::of(Group(4)).iter().count(), 1);
    }
}
