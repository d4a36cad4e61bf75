//! Barriers: up and down a tree, or by dissemination.
//!
//! A barrier carries nothing, so a word is the number of the call, one line a flag is enough, and there
//! is nothing to acknowledge.

use super::layout::{Layout, group_of, groups, rounds};
use super::options::Options;
use super::ring::Call;
use super::tree::Tree;
use crate::program::{Compare, Gone, Line, Lines, Rank};

/// Arrivals go up the tree, the release comes down.
#[derive(Clone, Debug)]
pub(super) struct TreeBarrier {
    arrived: Line,
    children: Vec<Line>,
    released: Option<Line>,
    releases: Vec<Line>,
}

impl TreeBarrier {
    pub(super) fn new(layout: &Layout, options: &Options, tree: &Tree, me: Rank) -> Self {
        let release = |parent| layout.flag(parent, 1 + group_of(options, tree, parent, me));
        Self {
            arrived: layout.flag(me, 0),
            children: tree.children(me).iter().map(|&child| layout.flag(child, 0)).collect(),
            released: tree.parent(me).map(release),
            releases: (0..groups(options, tree, me).len())
                .map(|group| layout.flag(me, 1 + group))
                .collect(),
        }
    }

    #[inline]
    pub(super) fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let epoch = call.before + 1;
        for &child in &self.children {
            lines.wait(child, Compare::AtLeast, epoch)?;
        }
        if let Some(released) = self.released {
            lines.write(self.arrived, epoch);
            lines.wait(released, Compare::AtLeast, epoch)?;
        }
        for &release in &self.releases {
            lines.write(release, epoch);
        }
        Ok(())
    }
}

/// In round `k` each rank tells the one `2^k` further on, and hears from the one `2^k` before: after all
/// rounds everybody has heard of everybody (Hensgen, Finkel and Manber 1988).
#[derive(Clone, Debug)]
pub(super) struct Dissemination {
    /// What this rank writes and what it waits for, round by round.
    rounds: Vec<(Line, Line)>,
}

impl Dissemination {
    pub(super) fn new(layout: &Layout, ranks: u16, me: Rank) -> Self {
        let round = |k: usize| {
            let back = u16::try_from((1_u32 << k) % u32::from(ranks)).unwrap_or(0);
            let other = if me.0 >= back { me.0 - back } else { me.0 + (ranks - back) };
            (layout.flag(me, k), layout.flag(Rank(other), k))
        };
        Self { rounds: (0..rounds(ranks)).map(round).collect() }
    }

    #[inline]
    pub(super) fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let epoch = call.before + 1;
        for &(mine, other) in &self.rounds {
            lines.write(mine, epoch);
            lines.wait(other, Compare::AtLeast, epoch)?;
        }
        Ok(())
    }
}
