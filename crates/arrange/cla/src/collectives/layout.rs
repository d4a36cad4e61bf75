//! Which line is whose: the numbers of a plan's lines.
//!
//! Every flag has one writer and lies on a line of its own. Lines are numbered rank by rank, so that
//! what one rank writes lies together.

use super::options::Options;
use super::ring::{Cells, Ring};
use crate::program::{Line, Rank};

/// How many of each kind of lines a rank writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Rings: for broadcasting one for each group of children, for exchanging one for each round.
    pub(super) rings: usize,
    /// Flags that take turns between two lines.
    pub(super) turns: usize,
    /// Single lines: flags and acknowledgements.
    pub(super) flags: usize,
}

/// The lines of one rank, in the order of [`Needs`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Own {
    rings: Vec<Line>,
    turns: Vec<Line>,
    flags: Vec<Line>,
}

/// The numbers of a plan's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    own: Vec<Own>,
    chunk_lines: u32,
    ring: Ring,
    claims: bool,
    lines: u32,
}

impl Layout {
    /// The layout for ranks that need so much, rank 0 first.
    pub(super) fn new(options: &Options, needs: impl Iterator<Item = Needs>) -> Self {
        let mut layout = Self {
            own: Vec::new(),
            chunk_lines: options.chunk_lines,
            ring: Ring::new(options.ring),
            claims: options.claims,
            lines: 0,
        };
        let chunks = options.ring * options.chunk_lines;
        let turns = layout.turning().slots();
        for needs in needs {
            let mut lines = |count, each| (0..count).map(|_| layout.take(each)).collect();
            let own = Own {
                rings: lines(needs.rings, chunks),
                turns: lines(needs.turns, turns),
                flags: lines(needs.flags, 1),
            };
            layout.own.push(own);
        }
        layout
    }

    fn take(&mut self, lines: u32) -> Line {
        let first = Line(self.lines);
        self.lines += lines;
        first
    }

    /// How many lines in all.
    pub(super) const fn lines(&self) -> u32 {
        self.lines
    }

    /// The ring that all ways of the plan share.
    pub(super) const fn ring(&self) -> Ring {
        self.ring
    }

    /// First line and number of the lines of each chunk that has several.
    pub(super) fn runs(&self) -> Vec<(u32, u32)> {
        if self.chunk_lines < 2 {
            return Vec::new();
        }
        let firsts = self.own.iter().flat_map(|own| &own.rings);
        let slots = |first: &Line| {
            let first = *first;
            (0..self.ring.slots())
                .map(move |slot| (first.0 + slot * self.chunk_lines, self.chunk_lines))
        };
        firsts.flat_map(slots).collect()
    }

    /// Ring `n` of a rank.
    pub(super) fn cells(&self, rank: Rank, n: usize) -> Cells {
        Cells::new(self.own[rank.index()].rings[n], self.chunk_lines, self.ring, self.claims)
    }

    /// Flag `n` of a rank that takes turns.
    pub(super) fn turns(&self, rank: Rank, n: usize) -> Cells {
        Cells::new(self.own[rank.index()].turns[n], 1, self.turning(), self.claims)
    }

    /// The lines of a flag that takes turns: as many as a ring has slots, at most two. While readers look at one,
    /// the writer has claimed the other.
    const fn turning(&self) -> Ring {
        Ring::new(if self.ring.slots() < 2 { 1 } else { 2 })
    }

    /// Single line `n` of a rank.
    pub(super) fn flag(&self, rank: Rank, n: usize) -> Line {
        self.own[rank.index()].flags[n]
    }
}
