//! Barriers: up and down a tree, or by dissemination.
//!
//! A barrier carries nothing, so a word is the number of the call and there is nothing to acknowledge.
//! A flag takes turns between two lines: while others look at one, its writer claims the other.

use super::layout::{Layout, Needs};
use super::ring::{Call, Cells, Piece};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Gone, Lines, Rank};

/// Arrivals go up the tree, the release comes down.
#[derive(Clone, Debug)]
pub(super) struct TreeBarrier {
    arrived: Cells,
    children: Vec<Cells>,
    released: Option<Cells>,
    releases: Vec<Cells>,
}

impl Way for TreeBarrier {
    const SHAPES: Shapes = Shapes::Trees;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        // Arrived, and one release for each group of children.
        Needs { turns: 1 + ranks.children(ranks.tree(), me).len(), ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let tree = ranks.tree();
        let release = |parent| layout.turns(parent, 1 + ranks.group_of(tree, parent, me));
        Self {
            arrived: layout.turns(me, 0),
            children: tree.children(me).iter().map(|&child| layout.turns(child, 0)).collect(),
            released: tree.parent(me).map(release),
            releases: (0..ranks.children(tree, me).len())
                .map(|group| layout.turns(me, 1 + group))
                .collect(),
        }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
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

/// Rounds of a dissemination among `ranks` ranks: the least `k` with `2^k >= ranks`.
const fn rounds(ranks: u16) -> usize {
    (u16::BITS - (ranks - 1).leading_zeros()) as usize
}

impl Way for Dissemination {
    const SHAPES: Shapes = Shapes::Exchange;

    fn needs(ranks: &Ranks<'_>, _me: Rank) -> Needs {
        Needs { turns: rounds(ranks.count), ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let count = ranks.count;
        let round = |k: usize| {
            let back = u16::try_from((1_u32 << k) % u32::from(count)).unwrap_or(0);
            let other = if me.0 >= back { me.0 - back } else { me.0 + (count - back) };
            (layout.turns(me, k), layout.turns(Rank(other), k))
        };
        Self { rounds: (0..rounds(count)).map(round).collect() }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let epoch = call.before + 1;
        for &(mine, other) in &self.rounds {
            mine.raise(lines, Piece::empty(epoch));
            other.wait(lines, epoch)?;
        }
        Ok(())
    }
}
