//! Allgather: each rank writes its block into its own cell, everybody reads everybody's.
//!
//! In an exchange a rank waits for each cell's own flag. In a tree flags go up, the release comes down,
//! and then all cells are read without looking at their flags. Nothing is acknowledged: whoever has
//! seen all blocks of a chunk knows that all have read those of the chunk before the last.

use super::layout::{Layout, Needs};
use super::options::Shape;
use super::ring::{Call, Cells, Piece, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Gone, Lines, Rank};

#[derive(Clone, Debug)]
pub(super) struct Allgather {
    ring: Ring,
    me: Rank,
    mine: Cells,
    /// The others, beginning with the next one, so that not all read one cell at once.
    others: Vec<(Rank, Cells)>,
    tree: Option<Flags>,
}

/// The flags of a tree.
#[derive(Clone, Debug)]
struct Flags {
    children: Vec<Cells>,
    released: Option<Cells>,
    releases: Vec<Cells>,
}

impl Way for Allgather {
    const SHAPES: Shapes = Shapes::Any;
    const RING_LEAST: u32 = 2;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        let turns = match &ranks.options.shape {
            Shape::Exchange => 0,
            // One release for each group of children.
            Shape::Tree(tree) => ranks.children(tree, me).len(),
        };
        Needs { rings: 1, turns, ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let cells = |rank: Rank| layout.cells(rank, 0);
        let tree = match &ranks.options.shape {
            Shape::Exchange => None,
            Shape::Tree(tree) => Some(Flags {
                children: tree.children(me).iter().map(|&child| cells(child)).collect(),
                released: tree
                    .parent(me)
                    .map(|parent| layout.turns(parent, ranks.group_of(tree, parent, me))),
                releases: (0..ranks.children(tree, me).len())
                    .map(|group| layout.turns(me, group))
                    .collect(),
            }),
        };
        let others =
            (me.0 + 1..ranks.count).chain(0..me.0).map(|rank| (Rank(rank), cells(Rank(rank))));
        Self { ring: layout.ring(), me, mine: cells(me), others: others.collect(), tree }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let lead = if self.tree.is_some() { 0 } else { self.ring.lead() };
        let lead = lead.min(call.chunks() - 1);
        for s in call.before + 1..=call.last() + lead {
            if s <= call.last() {
                self.give(lines, call.piece(s), call.bytes)?;
            }
            if s > call.before + lead {
                self.take(lines, call.piece(s - lead), call.bytes)?;
            }
        }
        Ok(())
    }
}

impl Allgather {
    #[inline]
    fn give<L: Lines>(&self, lines: &mut L, piece: Piece, bytes: u32) -> Result<(), Gone> {
        let block = piece.within(Buffer::Send, 0);
        lines.copy(block, piece.inside(self.mine));
        if let Some(tree) = &self.tree {
            for child in &tree.children {
                child.wait(lines, piece.s)?;
            }
        }
        self.mine.raise(lines, piece);
        lines.copy(block, piece.within(Buffer::Receive, u32::from(self.me.0) * bytes));
        Ok(())
    }

    #[inline]
    fn take<L: Lines>(&self, lines: &mut L, piece: Piece, bytes: u32) -> Result<(), Gone> {
        if let Some(tree) = &self.tree {
            if let Some(released) = tree.released {
                released.wait(lines, piece.s)?;
            }
            for &release in &tree.releases {
                release.raise(lines, Piece::empty(piece.s));
            }
        }
        for &(rank, cells) in &self.others {
            if self.tree.is_none() {
                cells.wait_piece(lines, piece)?;
            } else {
                lines.came(cells.at(piece.s))?;
            }
            let from = u32::from(rank.0) * bytes;
            lines.copy(piece.inside(cells), piece.within(Buffer::Receive, from));
        }
        Ok(())
    }
}
