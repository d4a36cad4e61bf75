//! Reduce: up a tree, chunk by chunk.
//!
//! A rank that is not the root combines in its own cell, where its parent reads the result; the root
//! combines in its `Receive` buffer. Own elements come first, then the children's in their order.

use super::layout::{Layout, Needs};
use super::ring::{Call, Cells, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Compare, Gone, Line, Lines, Rank};

#[derive(Clone, Debug)]
pub(super) struct Reduce {
    ring: Ring,
    /// Where this rank's result goes, and where its parent says how far it has read.
    up: Option<(Cells, Line)>,
    children: Vec<Cells>,
    /// Where this rank says how far it has read.
    read: Option<Line>,
}

impl Way for Reduce {
    const SHAPES: Shapes = Shapes::Trees;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        let tree = ranks.tree();
        // Up, and how far a parent has read.
        Needs {
            rings: usize::from(tree.parent(me).is_some()),
            flags: usize::from(!tree.children(me).is_empty()),
            ..Needs::default()
        }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let tree = ranks.tree();
        let children = tree.children(me);
        Self {
            ring: layout.ring(),
            up: tree.parent(me).map(|parent| (layout.cells(me, 0), layout.flag(parent, 0))),
            children: children.iter().map(|&child| layout.cells(child, 0)).collect(),
            read: (!children.is_empty()).then(|| layout.flag(me, 0)),
        }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        for piece in call.pieces() {
            let result = match self.up {
                None => piece.within(Buffer::Receive, 0),
                Some((cells, parent_read)) => {
                    if let Some(due) = self.ring.due(piece.s) {
                        lines.wait(parent_read, Compare::AtLeast, due)?;
                    }
                    piece.inside(cells)
                }
            };
            lines.copy(piece.within(Buffer::Send, 0), result);
            for &child in &self.children {
                child.wait_piece(lines, piece)?;
                lines.reduce(call.combine, piece.inside(child), result);
            }
            if let Some((cells, _)) = self.up {
                cells.raise(lines, piece);
            }
            if let Some(read) = self.read
                && self.ring.acknowledged(piece.s)
            {
                lines.write(read, piece.s);
            }
        }
        Ok(())
    }
}
