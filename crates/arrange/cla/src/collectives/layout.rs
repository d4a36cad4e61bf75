//! Which line is whose: the numbers of a plan's lines.
//!
//! Every flag has one writer and lies on a line of its own. Lines are numbered rank by rank, so that
//! what one rank writes lies together.

use super::options::{Acks, Options, Shape};
use super::plan::{Collective, Plan};
use super::ring::{Cells, Ring};
use super::tree::Tree;
use crate::program::{Line, Rank};

/// What one rank has lines for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Rings: for broadcasting one for each group of children, for exchanging one for each round.
    rings: Vec<Line>,
    /// Single lines: flags and acknowledgements.
    flags: Vec<Line>,
}

/// The numbers of a plan's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    own: Vec<Own>,
    chunk_lines: u32,
    ring: Ring,
    claims: bool,
    lines: u32,
}

impl Layout {
    /// The layout of a plan: every rank's numbers follow from the plan alone.
    pub(super) fn new(plan: &Plan) -> Self {
        let options = plan.options();
        let mut layout = Self {
            own: Vec::new(),
            chunk_lines: options.chunk_lines,
            ring: Ring::new(options.ring),
            claims: options.claims,
            lines: 0,
        };
        for rank in (0..plan.ranks()).map(Rank) {
            let (rings, flags) = needs(plan, rank);
            let mut own = Own::default();
            for _ in 0..rings {
                own.rings.push(layout.take(options.ring * options.chunk_lines));
            }
            for _ in 0..flags {
                own.flags.push(layout.take(1));
            }
            layout.own.push(own);
        }
        layout
    }

    fn take(&mut self, lines: u32) -> Line {
        let first = Line(self.lines);
        self.lines += lines;
        first
    }

    /// How many lines in all.
    pub(super) const fn lines(&self) -> u32 {
        self.lines
    }

    /// The ring that all ways of the plan share.
    pub(super) const fn ring(&self) -> Ring {
        self.ring
    }

    /// First line and number of the lines of each chunk that has several.
    pub(super) fn runs(&self) -> Vec<(u32, u32)> {
        if self.chunk_lines < 2 {
            return Vec::new();
        }
        let firsts = self.own.iter().flat_map(|own| &own.rings);
        let slots = |first: &Line| {
            let first = *first;
            (0..self.ring.slots())
                .map(move |slot| (first.0 + slot * self.chunk_lines, self.chunk_lines))
        };
        firsts.flat_map(slots).collect()
    }

    /// Ring `n` of a rank.
    pub(super) fn cells(&self, rank: Rank, n: usize) -> Cells {
        Cells::new(self.own[rank.index()].rings[n], self.chunk_lines, self.ring, self.claims)
    }

    /// Flag `n` of a rank, which takes turns between as many lines as the ring has slots, at most two:
    /// while readers look at one, the writer has claimed the other.
    pub(super) fn turns(&self, rank: Rank, n: usize) -> Cells {
        let turns = Ring::new(turn_lines(self.ring.slots()));
        let first = self.own[rank.index()].flags[n * turns.slots() as usize];
        Cells::new(first, 1, turns, self.claims)
    }

    /// Single line `n` of a rank.
    pub(super) fn flag(&self, rank: Rank, n: usize) -> Line {
        self.own[rank.index()].flags[n]
    }
}

/// Lines of a flag that takes turns, in plans whose rings have `slots` slots.
const fn turn_lines(slots: u32) -> u32 {
    if slots < 2 { 1 } else { 2 }
}

/// How many rings and single lines a rank needs.
fn needs(plan: &Plan, rank: Rank) -> (usize, usize) {
    let options = plan.options();
    let turns = turn_lines(options.ring) as usize;
    match (plan.collective(), &options.shape) {
        (Collective::Broadcast, Shape::Tree(tree)) => {
            let groups = groups(options, tree, rank).len();
            let child = usize::from(tree.parent(rank).is_some());
            let ring = Ring::new(options.ring);
            let ring = if options.acks_in_call { ring.each() } else { ring };
            match options.acks {
                Acks::PerChild => (groups, child),
                Acks::Counter => (groups, groups * ring.counters() as usize),
            }
        }
        // Arrived, and one release for each group of children.
        (Collective::Barrier, Shape::Tree(tree)) => {
            (0, turns * (1 + groups(options, tree, rank).len()))
        }
        (Collective::Barrier, Shape::Exchange) => (0, turns * rounds(plan.ranks())),
        // Up, and how far a parent is.
        (Collective::Reduce(_), Shape::Tree(tree)) => {
            (usize::from(tree.parent(rank).is_some()), usize::from(!tree.children(rank).is_empty()))
        }
        // Up, and down to each group of children.
        (Collective::Allreduce(_), Shape::Tree(tree)) => (1 + groups(options, tree, rank).len(), 0),
        (Collective::Allreduce(_), Shape::Exchange) => (doubling_rings(plan.ranks(), rank), 0),
        (Collective::Scatter, _) => {
            let other = usize::from(rank != plan.root());
            (other, other)
        }
        (Collective::Gather, _) => {
            let other = usize::from(rank != plan.root());
            (other, 1 - other)
        }
        (Collective::Allgather, Shape::Tree(tree)) => {
            (1, turns * groups(options, tree, rank).len())
        }
        (Collective::Allgather, Shape::Exchange) => (1, 0),
        // Refused by `Plan::new`.
        (Collective::Broadcast | Collective::Reduce(_), Shape::Exchange) => (0, 0),
    }
}

/// The children of `rank`, group by group, in the order in which groups first come.
pub(super) fn groups(options: &Options, tree: &Tree, rank: Rank) -> Vec<Vec<Rank>> {
    let mut found: Vec<(u16, Vec<Rank>)> = Vec::new();
    for &child in tree.children(rank) {
        let group = options.group(child.index());
        match found.iter_mut().find(|(known, _)| *known == group) {
            Some((_, members)) => members.push(child),
            None => found.push((group, vec![child])),
        }
    }
    found.into_iter().map(|(_, members)| members).collect()
}

/// Which of its parent's groups `rank` is in, and its place there.
pub(super) fn group_of(options: &Options, tree: &Tree, parent: Rank, rank: Rank) -> usize {
    let groups = groups(options, tree, parent);
    groups.iter().position(|members| members.contains(&rank)).unwrap_or(0)
}

/// Rounds of a dissemination among `ranks` ranks: the least `k` with `2^k >= ranks`.
pub(super) const fn rounds(ranks: u16) -> usize {
    (u16::BITS - (ranks - 1).leading_zeros()) as usize
}

/// Ranks that double: the largest power of two. The rest fold in before and get the result after.
pub(super) const fn doubling(ranks: u16) -> u16 {
    1 << (u16::BITS - 1 - ranks.leading_zeros())
}

/// Rings of a rank in recursive doubling: one for each round, and one more for those that fold in and
/// for those that they fold into.
fn doubling_rings(ranks: u16, rank: Rank) -> usize {
    let power = doubling(ranks);
    let folded = ranks - power;
    let doubles = power.trailing_zeros() as usize;
    if rank.0 >= 2 * folded {
        doubles
    } else if rank.0 % 2 == 1 {
        1
    } else {
        doubles + 1
    }
}
