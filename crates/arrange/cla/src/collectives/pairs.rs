//! Lines for every pair of ranks: what a rank gives to another one goes a way of its own.

use super::layout::{Layout, Needs};
use super::ring::{Cells, Piece, Ring};
use super::way::Ranks;
use crate::program::{Compare, Gone, Line, Lines, Rank, Span};

/// The ways of one rank.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    ring: Ring,
    /// To the others and back, in their order.
    pub(super) others: Vec<Other>,
}

/// The ways to another rank and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    pub(super) rank: Rank,
    /// Own chunks for it, and where it says how far it has read.
    to: Cells,
    read_there: Line,
    /// Its chunks for this rank, and where this rank says how far it has read.
    from: Cells,
    read_here: Line,
}

impl Pairs {
    /// The lines that a rank writes.
    pub(super) fn needs(ranks: &Ranks<'_>) -> Needs {
        let others = usize::from(ranks.count) - 1;
        Needs { rings: others, flags: others, ..Needs::default() }
    }

    pub(super) fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        // A rank has lines for all others, in their order.
        let place = |of: Rank, to: Rank| usize::from(if to.0 < of.0 { to.0 } else { to.0 - 1 });
        let other = |rank: Rank| Other {
            rank,
            to: layout.cells(me, place(me, rank)),
            read_there: layout.flag(rank, place(rank, me)),
            from: layout.cells(rank, place(rank, me)),
            read_here: layout.flag(me, place(me, rank)),
        };
        let others = (0..ranks.count).map(Rank).filter(|rank| *rank != me);
        Self { ring: layout.ring(), others: others.map(other).collect() }
    }

    /// Gives a piece to each of the others: what `block` says.
    #[inline]
    pub(super) fn give<L: Lines>(
        &self,
        lines: &mut L,
        piece: Piece,
        block: impl Fn(Rank) -> Span,
    ) -> Result<(), Gone> {
        for other in &self.others {
            if let Some(due) = self.ring.due(piece.s) {
                lines.wait(other.read_there, Compare::AtLeast, due)?;
            }
            lines.copy(block(other.rank), piece.inside(other.to));
            other.to.raise(lines, piece);
        }
        Ok(())
    }

    /// Waits for a piece of another rank, has it looked at, and says that it was read.
    #[inline]
    pub(super) fn take<L: Lines>(
        &self,
        lines: &mut L,
        piece: Piece,
        other: &Other,
        look: impl FnOnce(&mut L, Span),
    ) -> Result<(), Gone> {
        other.from.wait_piece(lines, piece)?;
        look(lines, piece.inside(other.from));
        if self.ring.acknowledged(piece.s) {
            lines.write(other.read_here, piece.s);
        }
        Ok(())
    }
}
