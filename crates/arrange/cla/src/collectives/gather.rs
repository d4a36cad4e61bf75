//! Gather: each rank writes its block into its own cell, the root reads all of them; flags follow the
//! tree.
//!
//! A rank raises its flag after those of its children, so the root waits for its own children alone and
//! then knows that every block is there.

use super::layout::{Layout, Needs};
use super::ring::{Call, Cells, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Compare, Gone, Line, Lines, Rank};

#[derive(Clone, Debug)]
pub(super) struct Gather {
    ring: Ring,
    me: Rank,
    /// Own cells; not at the root.
    mine: Option<Cells>,
    /// Where the root says how far it has read.
    read: Line,
    children: Vec<Cells>,
    /// The others with their cells, in the order of service; at the root only.
    others: Vec<(Rank, Cells)>,
    flat: bool,
}

impl Way for Gather {
    const SHAPES: Shapes = Shapes::Trees;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        let root = usize::from(me == ranks.tree().root());
        Needs { rings: 1 - root, flags: root, ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let tree = ranks.tree();
        let cells = |rank: Rank| layout.cells(rank, 0);
        let root = me == tree.root();
        let others = tree.preorder().into_iter().skip(1);
        Self {
            ring: layout.ring(),
            me,
            mine: (!root).then(|| cells(me)),
            read: layout.flag(tree.root(), 0),
            children: tree.children(me).iter().map(|&child| cells(child)).collect(),
            others: if root {
                others.map(|rank| (rank, cells(rank))).collect()
            } else {
                Vec::new()
            },
            flat: tree.is_flat(),
        }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        for piece in call.pieces() {
            let block = piece.within(Buffer::Send, 0);
            match self.mine {
                Some(cells) => {
                    if let Some(due) = self.ring.due(piece.s) {
                        lines.wait(self.read, Compare::AtLeast, due)?;
                    }
                    lines.copy(block, piece.inside(cells));
                    self.children_came(lines, piece.s)?;
                    cells.raise(lines, piece);
                }
                None => {
                    let from = u32::from(self.me.0) * call.bytes;
                    lines.copy(block, piece.within(Buffer::Receive, from));
                    if !self.flat {
                        self.children_came(lines, piece.s)?;
                    }
                    for &(rank, cells) in &self.others {
                        if self.flat {
                            cells.wait_piece(lines, piece)?;
                        }
                        let from = u32::from(rank.0) * call.bytes;
                        lines.copy(piece.inside(cells), piece.within(Buffer::Receive, from));
                    }
                    if self.ring.acknowledged(piece.s) {
                        lines.write(self.read, piece.s);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Gather {
    #[inline]
    fn children_came<L: Lines>(&self, lines: &mut L, s: u64) -> Result<(), Gone> {
        self.children.iter().try_for_each(|child| child.wait(lines, s))
    }
}
