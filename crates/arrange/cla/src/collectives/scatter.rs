//! Scatter: the root writes each rank's block into that rank's cell; flags follow the tree.
//!
//! In a flat tree the root writes payload and flag of a line together. In a deeper one it writes all
//! payloads first; then each rank that sees its flag writes those of its children.

use super::layout::{Layout, Needs};
use super::ring::{Call, Cells, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Compare, Gone, Line, Lines, Rank};

#[derive(Clone, Debug)]
pub(super) struct Scatter {
    ring: Ring,
    me: Rank,
    /// The others with their cells and acknowledgements, in the order of service; at the root only.
    others: Vec<(Rank, Cells, Line)>,
    /// Own cells and acknowledgement; not at the root.
    mine: Option<(Cells, Line)>,
    /// The children's cells, whose flags this rank writes.
    children: Vec<Cells>,
    flat: bool,
}

impl Way for Scatter {
    const SHAPES: Shapes = Shapes::Trees;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        let other = usize::from(me != ranks.tree().root());
        Needs { rings: other, flags: other, ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let tree = ranks.tree();
        let cells = |rank: Rank| layout.cells(rank, 0);
        let root = me == tree.root();
        let others = tree.preorder().into_iter().skip(1);
        Self {
            ring: layout.ring(),
            me,
            others: if root {
                others.map(|rank| (rank, cells(rank), layout.flag(rank, 0))).collect()
            } else {
                Vec::new()
            },
            mine: (!root).then(|| (cells(me), layout.flag(me, 0))),
            children: tree.children(me).iter().map(|&child| cells(child)).collect(),
            flat: tree.is_flat(),
        }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        for piece in call.pieces() {
            let mine = piece.within(Buffer::Receive, 0);
            if let Some((cells, _)) = self.mine {
                cells.wait_piece(lines, piece)?;
            }
            for &(rank, cells, done) in &self.others {
                if let Some(due) = self.ring.due(piece.s) {
                    lines.wait(done, Compare::AtLeast, due)?;
                }
                let from = u32::from(rank.0) * call.bytes;
                lines.copy(piece.within(Buffer::Send, from), piece.inside(cells));
                if self.flat {
                    cells.raise(lines, piece);
                }
            }
            if !self.flat {
                for &child in &self.children {
                    child.raise(lines, piece);
                }
            }
            match self.mine {
                Some((cells, done)) => {
                    lines.copy(piece.inside(cells), mine);
                    if self.ring.acknowledged(piece.s) {
                        lines.write(done, piece.s);
                    }
                }
                None => {
                    let from = u32::from(self.me.0) * call.bytes;
                    lines.copy(piece.within(Buffer::Send, from), mine);
                }
            }
        }
        Ok(())
    }
}
