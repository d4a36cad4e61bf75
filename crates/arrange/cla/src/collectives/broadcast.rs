//! Broadcast: one line, many lines, or a stream of chunks, down a tree.
//!
//! ```text
//! parent:  [room in the ring?]  copy payload -> cell   write cell.word = s
//! child:   wait cell.word >= s  copy cell -> payload   (hand on)   [acknowledge s]
//! ```
//! Flag and payload share the cell's first line, so a child's first read brings both. What stands in
//! brackets happens once in half a ring.

use super::layout::{Layout, Needs};
use super::options::{Acks, Options};
use super::ring::{Call, Cells, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Compare, Gone, Line, Lines, Rank};

#[derive(Clone, Debug)]
pub(super) struct Broadcast {
    ring: Ring,
    in_call: bool,
    parent: Option<Parent>,
    groups: Vec<Group>,
}

/// Where chunks come from.
#[derive(Clone, Debug)]
struct Parent {
    cells: Cells,
    done: Done,
}

/// How a child says that it is done.
#[derive(Clone, Debug)]
enum Done {
    Mine(Line),
    Counters(Vec<Line>),
}

/// Children that share a line.
#[derive(Clone, Debug)]
struct Group {
    cells: Cells,
    copied: Copied,
}

/// Where a parent sees that children are done.
#[derive(Clone, Debug)]
enum Copied {
    Each(Vec<Line>),
    Counters { lines: Vec<Line>, children: u64 },
}

/// The ring by which children acknowledge.
const fn acknowledged(options: &Options) -> Ring {
    let ring = Ring::new(options.ring);
    if options.acks_in_call { ring.each() } else { ring }
}

impl Way for Broadcast {
    const SHAPES: Shapes = Shapes::Trees;

    fn needs(ranks: &Ranks<'_>, me: Rank) -> Needs {
        let tree = ranks.tree();
        let groups = ranks.children(tree, me).len();
        let flags = match ranks.options.acks {
            Acks::PerChild => usize::from(tree.parent(me).is_some()),
            Acks::Counter => groups * acknowledged(ranks.options).counters() as usize,
        };
        Needs { rings: groups, flags, ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        let (options, tree) = (ranks.options, ranks.tree());
        let ring = acknowledged(options);
        let counters = |parent: Rank, group: usize| {
            let each = ring.counters() as usize;
            (group * each..(group + 1) * each).map(|n| layout.flag(parent, n)).collect::<Vec<_>>()
        };
        let parent = tree.parent(me).map(|parent| {
            let group = ranks.group_of(tree, parent, me);
            let done = match options.acks {
                Acks::PerChild => Done::Mine(layout.flag(me, 0)),
                Acks::Counter => Done::Counters(counters(parent, group)),
            };
            Parent { cells: layout.cells(parent, group), done }
        });
        let group = |(n, members): (usize, Vec<Rank>)| Group {
            cells: layout.cells(me, n),
            copied: match options.acks {
                Acks::PerChild => {
                    Copied::Each(members.iter().map(|&child| layout.flag(child, 0)).collect())
                }
                Acks::Counter => {
                    Copied::Counters { lines: counters(me, n), children: members.len() as u64 }
                }
            },
        };
        Self {
            ring,
            in_call: options.acks_in_call,
            parent,
            groups: ranks.children(tree, me).into_iter().enumerate().map(group).collect(),
        }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        let buffer = if self.parent.is_some() { Buffer::Receive } else { Buffer::Send };
        for piece in call.pieces() {
            let mine = piece.within(buffer, 0);
            if let Some(parent) = &self.parent {
                parent.cells.wait_piece(lines, piece)?;
                lines.copy(piece.inside(parent.cells), mine);
            }
            for group in &self.groups {
                if let Some(due) = self.ring.due(piece.s) {
                    group.copied.wait(lines, self.ring, due)?;
                }
                lines.copy(mine, piece.inside(group.cells));
                group.cells.raise(lines, piece);
            }
            if self.in_call && piece.s == call.last() {
                for group in &self.groups {
                    group.copied.wait(lines, self.ring, piece.s)?;
                }
            }
            if let Some(parent) = &self.parent
                && self.ring.acknowledged(piece.s)
            {
                match &parent.done {
                    Done::Mine(line) => lines.write(*line, piece.s),
                    Done::Counters(counters) => {
                        lines.add(counters[self.ring.counter(piece.s).0 as usize], 1);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Copied {
    /// Waits until all children are done with chunk `s`.
    fn wait<L: Lines>(&self, lines: &mut L, ring: Ring, s: u64) -> Result<(), Gone> {
        match self {
            Self::Each(children) => {
                children.iter().try_for_each(|&line| lines.wait(line, Compare::AtLeast, s))
            }
            Self::Counters { lines: counters, children } => {
                let (counter, times) = ring.counter(s);
                lines.wait(counters[counter as usize], Compare::AtLeast, children * times)
            }
        }
    }
}
