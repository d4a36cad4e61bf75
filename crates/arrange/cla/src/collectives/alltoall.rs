//! All to all: each rank gives a block to each other one, by a way of its own.

use super::layout::{Layout, Needs};
use super::pairs::Pairs;
use super::ring::Call;
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Gone, Lines, Rank};

#[derive(Clone, Debug)]
pub(super) struct Alltoall {
    me: Rank,
    pairs: Pairs,
}

impl Way for Alltoall {
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
            let block = |buffer, rank: Rank| piece.within(buffer, u32::from(rank.0) * call.bytes);
            self.pairs.give(lines, piece, |rank| block(Buffer::Send, rank))?;
            lines.copy(block(Buffer::Send, self.me), block(Buffer::Receive, self.me));
            for other in &self.pairs.others {
                let place = block(Buffer::Receive, other.rank);
                self.pairs.take(lines, piece, other, |lines, came| lines.copy(came, place))?;
            }
        }
        Ok(())
    }
}
