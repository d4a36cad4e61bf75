//! Allreduce: up and down a tree, or by recursive doubling.
//!
//! Neither needs acknowledgements. Whoever gets a chunk's result knows that its own part was read, and
//! whoever sees somebody's part of a later chunk knows that this somebody has read the results before.

use super::layout::{Layout, Needs};
use super::ring::{Call, Cells, Piece, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Gone, Lines, Rank, Span};

/// Parts go up the tree, results come down. A rank sends up as many chunks ahead of the results as the
/// ring has slots, less one.
#[derive(Clone, Debug)]
pub(super) struct UpDown {
    ring: Ring,
    /// Own cells upward and the parent's downward; none at the root.
    parent: Option<(Cells, Cells)>,
    children: Vec<Cells>,
    /// Own cells downward, one for each group of children.
    down: Vec<Cells>,
}

impl Way for UpDown {
    const SHAPES: Shapes = Shapes::Trees;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        // Up, and down to each group of children.
        Needs { rings: 1 + ranks.children(ranks.tree(), me).len(), ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let tree = ranks.tree();
        let parent = tree.parent(me).map(|parent| {
            let group = ranks.group_of(tree, parent, me);
            (layout.cells(me, 0), layout.cells(parent, 1 + group))
        });
        Self {
            ring: layout.ring(),
            parent,
            children: tree.children(me).iter().map(|&child| layout.cells(child, 0)).collect(),
            down: (0..ranks.children(tree, me).len())
                .map(|group| layout.cells(me, 1 + group))
                .collect(),
        }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let Some((up, down)) = self.parent else {
            for piece in call.pieces() {
                self.combine(lines, call, piece, piece.within(Buffer::Receive, 0))?;
                self.hand_on(lines, piece);
            }
            return Ok(());
        };
        let lead = u64::from(self.ring.slots() - 1).min(call.chunks() - 1);
        for s in call.before + 1..=call.last() + lead {
            if s <= call.last() {
                let piece = call.piece(s);
                self.combine(lines, call, piece, piece.inside(up))?;
                up.raise(lines, piece);
            }
            if s > call.before + lead {
                let piece = call.piece(s - lead);
                down.wait_piece(lines, piece)?;
                lines.copy(piece.inside(down), piece.within(Buffer::Receive, 0));
                self.hand_on(lines, piece);
            }
        }
        Ok(())
    }
}

impl UpDown {
    /// Own part and the children's, into `result`.
    #[inline]
    fn combine<L: Lines>(
        &self,
        lines: &mut L,
        call: Call,
        piece: Piece,
        result: Span,
    ) -> Result<(), Gone> {
        lines.copy(piece.within(Buffer::Send, 0), result);
        for &child in &self.children {
            child.wait_piece(lines, piece)?;
            lines.reduce(call.combine, piece.inside(child), result);
        }
        Ok(())
    }

    #[inline]
    fn hand_on<L: Lines>(&self, lines: &mut L, piece: Piece) {
        for &cells in &self.down {
            lines.copy(piece.within(Buffer::Receive, 0), piece.inside(cells));
            cells.raise(lines, piece);
        }
    }
}

/// In round `k` ranks that differ in bit `k` exchange what they have and both combine it, the lower
/// rank's on the left, so all end with the same bits. Where ranks are no power of two, the odd ones of
/// the first few give their part to their neighbour before and get the result after.
#[derive(Clone, Debug)]
pub(super) struct Doubling {
    ring: Ring,
    part: Part,
}

#[derive(Clone, Debug)]
enum Part {
    /// Gives its part away and gets the result: own cells, the neighbour's.
    Folded(Cells, Cells),
    Doubles {
        /// The neighbour that folds in, and the cells in which it gets the result.
        folds: Option<(Cells, Cells)>,
        rounds: Vec<Round>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Round {
    mine: Cells,
    other: Cells,
    /// Whether this rank's part is the left operand.
    left: bool,
}

/// Ranks that double: the largest power of two. The rest fold in before and get the result after.
const fn doubling(ranks: u16) -> u16 {
    1 << (u16::BITS - 1 - ranks.leading_zeros())
}

impl Way for Doubling {
    const SHAPES: Shapes = Shapes::Exchange;
    const RING_LEAST: u32 = 2;
    const IN_PLACE: bool = false;

    /// A ring for each round, and one more for those that fold in and for those that they fold into.
    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        let power = doubling(ranks.count);
        let folded = ranks.count - power;
        let doubles = power.trailing_zeros() as usize;
        let rings = if me.0 >= 2 * folded {
            doubles
        } else if me.0 % 2 == 1 {
            1
        } else {
            doubles + 1
        };
        Needs { rings, ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let power = doubling(ranks.count);
        let folded = ranks.count - power;
        let rounds = power.trailing_zeros() as usize;
        let rank_of = |place: u16| Rank(if place < folded { 2 * place } else { place + folded });
        let place = if me.0 < 2 * folded { me.0 / 2 } else { me.0 - folded };
        let part = if me.0 < 2 * folded && me.0 % 2 == 1 {
            Part::Folded(layout.cells(me, 0), layout.cells(Rank(me.0 - 1), rounds))
        } else {
            let folds = (me.0 < 2 * folded)
                .then(|| (layout.cells(Rank(me.0 + 1), 0), layout.cells(me, rounds)));
            let round = |k: usize| {
                let mine = layout.cells(me, k);
                let other = layout.cells(rank_of(place ^ (1 << k)), k);
                Round { mine, other, left: place & (1 << k) == 0 }
            };
            Part::Doubles { folds, rounds: (0..rounds).map(round).collect() }
        };
        Self { ring: layout.ring(), part }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        // Ahead of the results goes what needs nothing from others: the first message of each chunk.
        let lead = self.ring.lead().min(call.chunks() - 1);
        for s in call.before + 1..=call.last() + lead {
            if s <= call.last() {
                self.give(lines, call, call.piece(s))?;
            }
            if s > call.before + lead {
                self.finish(lines, call, call.piece(s - lead))?;
            }
        }
        Ok(())
    }
}

impl Doubling {
    /// Publishes this rank's part, with the neighbour's if one folds in.
    #[inline]
    fn give<L: Lines>(&self, lines: &mut L, call: Call, piece: Piece) -> Result<(), Gone> {
        let part = piece.within(Buffer::Send, 0);
        match &self.part {
            Part::Folded(mine, _) => {
                lines.copy(part, piece.inside(*mine));
                mine.raise(lines, piece);
            }
            Part::Doubles { folds, rounds } => {
                let Some(first) = rounds.first() else {
                    lines.copy(part, piece.within(Buffer::Receive, 0));
                    return Ok(());
                };
                let mine = piece.inside(first.mine);
                lines.copy(part, mine);
                if let Some((neighbour, _)) = folds {
                    neighbour.wait_piece(lines, piece)?;
                    lines.reduce(call.combine, piece.inside(*neighbour), mine);
                }
                first.mine.raise(lines, piece);
            }
        }
        Ok(())
    }

    #[inline]
    fn finish<L: Lines>(&self, lines: &mut L, call: Call, piece: Piece) -> Result<(), Gone> {
        let result = piece.within(Buffer::Receive, 0);
        match &self.part {
            Part::Folded(_, neighbour) => {
                neighbour.wait_piece(lines, piece)?;
                lines.copy(piece.inside(*neighbour), result);
            }
            Part::Doubles { folds, rounds } => {
                // A published part is not read again where it also lies elsewhere: the partner's read
                // may have taken the line away (measured: 80 ns to get it back).
                let mut own = match (folds, rounds.first()) {
                    (Some(_), Some(first)) => piece.inside(first.mine),
                    _ => piece.within(Buffer::Send, 0),
                };
                for (k, round) in rounds.iter().enumerate() {
                    if k > 0 {
                        lines.copy(result, piece.inside(round.mine));
                        round.mine.raise(lines, piece);
                        own = if round.left { result } else { piece.inside(round.mine) };
                    }
                    round.other.wait_piece(lines, piece)?;
                    let other = piece.inside(round.other);
                    let (left, right) = if round.left { (own, other) } else { (other, own) };
                    if left != result {
                        lines.copy(left, result);
                    }
                    lines.reduce(call.combine, right, result);
                }
                if let Some((_, cells)) = folds {
                    lines.copy(result, piece.inside(*cells));
                    cells.raise(lines, piece);
                }
            }
        }
        Ok(())
    }
}
