//! How far a search has come: what both shapes keep beside their sets of nodes.

use super::puzzle::Puzzle;
use super::{Ended, Found};
use crate::number::{Fold, wide};

/// The course of one search.
#[derive(Clone, Debug)]
pub(super) struct Course<P> {
    /// Nodes that it may hold.
    most: usize,
    goal: Option<P>,
    found: Found,
    fold: Fold,
}

impl<P: Copy> Course<P> {
    /// Of a search that holds the first node alone.
    pub(super) fn new(most: usize) -> Self {
        let found = Found { held: 1, ..Found::default() };
        Self { most, goal: None, found, fold: Fold::default() }
    }

    /// Why no further node is expanded, if so. An expansion is done whole or not at all, so it needs
    /// room for four successors.
    pub(super) fn ended(&self) -> Option<Ended> {
        if self.goal.is_some() {
            return Some(Ended::Solved);
        }
        (self.found.held + 4 > wide(self.most)).then_some(Ended::Budget)
    }

    /// How a call ended that has done all expansions asked for.
    pub(super) fn paused(&self) -> Ended {
        if self.goal.is_some() { Ended::Solved } else { Ended::Paused }
    }

    /// Node `at` is expanded, of this board and so many moves from the start. Whether it is the goal.
    pub(super) fn expands(&mut self, at: P, board: u64, cost: u16, is_goal: bool) -> bool {
        self.found.expanded += 1;
        self.fold.take(board);
        if is_goal {
            self.goal = Some(at);
            self.found.moves = Some(u32::from(cost));
        }
        is_goal
    }

    /// A successor is made.
    pub(super) fn generates(&mut self) {
        self.found.generated += 1;
    }

    /// One node more is held.
    pub(super) fn holds(&mut self) {
        self.found.held += 1;
    }

    pub(super) fn found(&self) -> Found {
        Found { checksum: self.fold.sum(), ..self.found }
    }

    /// The boards from the start to the goal, of nodes of which `read` tells board and parent.
    pub(super) fn solution(&self, read: impl Fn(P) -> (u64, Option<P>)) -> Vec<Puzzle> {
        let mut path = Vec::new();
        let mut at = self.goal;
        while let Some(ptr) = at {
            let (board, parent) = read(ptr);
            path.push(Puzzle::from_packed(board));
            at = parent;
        }
        path.reverse();
        path
    }

    /// The goal is given back with all nodes.
    pub(super) fn clear(&mut self) {
        self.goal = None;
    }
}
