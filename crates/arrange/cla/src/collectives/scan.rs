//! Scan: each rank writes its part into its own cell; those above read it and combine, in the order of ranks.
//!
//! A rank waits for those below it and for nobody else. Before it comes round to a slot again it waits until all above
//! have said that they read it.

use super::layout::{Layout, Needs};
use super::ring::{Call, Cells, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Compare, Gone, Line, Lines, Rank};

/// What all ranks up to this one gave, combined.
pub(super) type Scan = Prefix<true>;
/// What all ranks below this one gave, combined.
pub(super) type Exscan = Prefix<false>;

/// Either of them: whether a rank's own part is in its result.
#[derive(Clone, Debug)]
pub(super) struct Prefix<const OWN: bool> {
    ring: Ring,
    /// Own cells, and where those above say how far they have read them; not at the last rank.
    mine: Option<(Cells, Vec<Line>)>,
    below: Vec<Cells>,
    /// Where this rank says how far it has read; not at the first.
    read: Option<Line>,
}

impl<const OWN: bool> Way for Prefix<OWN> {
    const SHAPES: Shapes = Shapes::Any;
    const IN_PLACE: bool = false;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        let (is_first, is_last) = (me.0 == 0, me.0 + 1 == ranks.count);
        Needs { rings: usize::from(!is_last), flags: usize::from(!is_first), ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let (is_first, is_last) = (me.0 == 0, me.0 + 1 == ranks.count);
        let above = || (me.0 + 1..ranks.count).map(|rank| layout.flag(Rank(rank), 0)).collect();
        Self {
            ring: layout.ring(),
            mine: (!is_last).then(|| (layout.cells(me, 0), above())),
            below: (0..me.0).map(|rank| layout.cells(Rank(rank), 0)).collect(),
            read: (!is_first).then(|| layout.flag(me, 0)),
        }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        for piece in call.pieces() {
            let (own, result) = (piece.within(Buffer::Send, 0), piece.within(Buffer::Receive, 0));
            if let Some((cells, above)) = &self.mine {
                if let Some(due) = self.ring.due(piece.s) {
                    above.iter().try_for_each(|&read| lines.wait(read, Compare::AtLeast, due))?;
                }
                lines.copy(own, piece.inside(*cells));
                cells.raise(lines, piece);
            }
            for (number, cells) in self.below.iter().enumerate() {
                cells.wait_piece(lines, piece)?;
                let part = piece.inside(*cells);
                if number == 0 {
                    lines.copy(part, result);
                } else {
                    lines.reduce(call.combine, part, result);
                }
            }
            if let Some(read) = self.read.filter(|_| self.ring.acknowledged(piece.s)) {
                lines.write(read, piece.s);
            }
            if OWN && self.below.is_empty() {
                lines.copy(own, result);
            } else if OWN {
                lines.reduce(call.combine, own, result);
            }
        }
        Ok(())
    }
}
