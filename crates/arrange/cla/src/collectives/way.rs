//! What a way of doing a collective says of itself: over which shapes it goes, which lines it needs, what a rank does.
//!
//! Each way stands in the file of its collective. Nothing here knows of any.

use super::layout::{Layout, Needs};
use super::options::{Options, Shape};
use super::ring::Call;
use super::tree::Tree;
use crate::program::{Gone, Lines, Rank};

/// One way of doing a collective: what one rank does, with line numbers and without lines.
pub(super) trait Way: Sized {
    /// Over which shapes it goes.
    const SHAPES: Shapes;
    /// Slots of a ring at least. Without acknowledgements a slot is free when everybody has begun the chunk after the
    /// next: that takes two.
    const RING_LEAST: u32 = 1;
    /// Whether `Send` and `Receive` of a rank may be the same memory.
    const IN_PLACE: bool = true;

    /// The lines that `me` writes.
    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs;

    /// What `me` does, with the lines of all.
    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self;

    /// One call.
    ///
    /// # Errors
    /// [`Gone`] when a rank that is waited for has ended.
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone>;
}

/// The shapes that a way goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shapes {
    Trees,
    Exchange,
    Any,
}

impl Shapes {
    /// Whether a shape is one of them.
    pub(super) const fn have(self, shape: &Shape) -> bool {
        match (self, shape) {
            (Self::Any, _) => true,
            (Self::Trees, Shape::Tree(_)) | (Self::Exchange, Shape::Exchange) => true,
            (Self::Trees, Shape::Exchange) | (Self::Exchange, Shape::Tree(_)) => false,
        }
    }
}

/// The ranks that do a collective together, and what was chosen for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranks<'a> {
    pub(super) count: u16,
    pub(super) options: &'a Options,
}

impl<'a> Ranks<'a> {
    /// The tree, for ways that go over trees alone.
    pub(super) fn tree(&self) -> &'a Tree {
        match &self.options.shape {
            Shape::Tree(tree) => tree,
            Shape::Exchange => unreachable!("a way over trees was given none"),
        }
    }

    /// The children of `rank` in a tree, group by group, in the order in which groups first come.
    pub(super) fn children(&self, tree: &Tree, rank: Rank) -> Vec<Vec<Rank>> {
        let mut found: Vec<(u16, Vec<Rank>)> = Vec::new();
        for &child in tree.children(rank) {
            let group = self.options.group(child.index());
            match found.iter_mut().find(|(known, _)| *known == group) {
                Some((_, members)) => members.push(child),
                None => found.push((group, vec![child])),
            }
        }
        found.into_iter().map(|(_, members)| members).collect()
    }

    /// In which of the groups of its parent's children `rank` is.
    pub(super) fn group_of(&self, tree: &Tree, parent: Rank, rank: Rank) -> usize {
        let groups = self.children(tree, parent);
        groups.iter().position(|members| members.contains(&rank)).unwrap_or(0)
    }
}
