//! Barriers: up and down a tree, or by dissemination.
//!
//! A barrier carries nothing, so a word is the number of the call and there is nothing to acknowledge.
//! A flag takes turns between two lines: while others look at one, its writer claims the other.

use super::layout::{Layout, group_of, groups, rounds};
use super::options::Options;
use super::ring::{Call, Cells, Piece};
use super::tree::Tree;
use crate::program::{Gone, Lines, Rank};

/// Arrivals go up the tree, the release comes down.
#[derive(Clone, Debug)]
pub(super) struct TreeBarrier {
    arrived: Cells,
    children: Vec<Cells>,
    released: Option<Cells>,
    releases: Vec<Cells>,
}

impl TreeBarrier {
    pub(super) fn new(layout: &Layout, options: &Options, tree: &Tree, me: Rank) -> Self {
        let release = |parent| layout.turns(parent, 1 + group_of(options, tree, parent, me));
        Self {
            arrived: layout.turns(me, 0),
            children: tree.children(me).iter().map(|&child| layout.turns(child, 0)).collect(),
            released: tree.parent(me).map(release),
            releases: (0..groups(options, tree, me).len())
                .map(|group| layout.turns(me, 1 + group))
                .collect(),
        }
    }

    #[inline]
    pub(super) fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let epoch = call.before + 1;
        for &child in &self.children {
            child.wait(lines, epoch)?;
        }
        if let Some(released) = self.released {
            self.arrived.raise(lines, Piece::empty(epoch));
            released.wait(lines, epoch)?;
        }
        for &release in &self.releases {
            release.raise(lines, Piece::empty(epoch));
        }
        Ok(())
    }
}

/// In round `k` each rank tells the one `2^k` further on, and hears from the one `2^k` before: after all
/// rounds everybody has heard of everybody (Hensgen, Finkel and Manber 1988).
#[derive(Clone, Debug)]
pub(super) struct Dissemination {
    /// What this rank writes and what it waits for, round by round.
    rounds: Vec<(Cells, Cells)>,
}

impl Dissemination {
    pub(super) fn new(layout: &Layout, ranks: u16, me: Rank) -> Self {
        let round = |k: usize| {
            let back = u16::try_from((1_u32 << k) % u32::from(ranks)).unwrap_or(0);
            let other = if me.0 >= back { me.0 - back } else { me.0 + (ranks - back) };
            (layout.turns(me, k), layout.turns(Rank(other), k))
        };
        Self { rounds: (0..rounds(ranks)).map(round).collect() }
    }

    #[inline]
    pub(super) fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let epoch = call.before + 1;
        for &(mine, other) in &self.rounds {
            mine.raise(lines, Piece::empty(epoch));
            other.wait(lines, epoch)?;
        }
        Ok(())
    }
}
