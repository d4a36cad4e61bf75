//! Reduce and scatter: each rank gives a block to each other one, and combines what came for itself, in the order of
//! ranks.

use super::layout::{Layout, Needs};
use super::pairs::Pairs;
use super::ring::{Call, Piece};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Gone, Lines, Rank, Span};

#[derive(Clone, Debug)]
pub(super) struct ReduceScatter {
    me: Rank,
    pairs: Pairs,
}

impl Way for ReduceScatter {
    const SHAPES: Shapes = Shapes::Any;
    const IN_PLACE: bool = false;

    fn needs(ranks: &Ranks<'_>, _me: Rank) -> Needs {
        Pairs::needs(ranks)
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        Self { me, pairs: Pairs::new(ranks, layout, me) }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        for piece in call.pieces() {
            let block = |rank: Rank| piece.within(Buffer::Send, u32::from(rank.0) * call.bytes);
            self.pairs.give(lines, piece, block)?;
            self.combine(lines, call, piece, block(self.me))?;
        }
        Ok(())
    }
}

impl ReduceScatter {
    /// Combines a piece of all ranks' blocks for this one, of which its own is `own`.
    #[inline]
    fn combine<L: Lines>(
        &self,
        lines: &mut L,
        call: Call,
        piece: Piece,
        own: Span,
    ) -> Result<(), Gone> {
        let result = piece.within(Buffer::Receive, 0);
        let (before, after) = self.pairs.others.split_at(usize::from(self.me.0));
        let mut is_first = true;
        let mut combined = |lines: &mut L, part| {
            if is_first {
                lines.copy(part, result);
            } else {
                lines.reduce(call.combine, part, result);
            }
            is_first = false;
        };
        for other in before {
            self.pairs.take(lines, piece, other, &mut combined)?;
        }
        combined(lines, own);
        for other in after {
            self.pairs.take(lines, piece, other, &mut combined)?;
        }
        Ok(())
    }
}
