//! A* whose open and closed sets are lists of pointers, searched from end to end.
//!
//! The shape of `justinhj/astar-algorithm-cpp` as it was in 2013: the open set a binary heap of
//! pointers ordered through the nodes, a successor allocated before it is known to be new and
//! freed when it is not, every lookup a walk over all nodes held. Quadratic, and what
//! it does all day is to follow pointers to boards and compare them.

use super::course::Course;
use super::puzzle::{Move, Puzzle};
use super::{Ended, Found, Step, Table, Tally};
use crate::nodes::{Nodes, Shape, is_one_line};

/// The shape of [`LinearNode`].
#[derive(Clone, Copy, Debug)]
pub struct LinearShape;

/// One board.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct LinearNode<P> {
    board: u64,
    parent: Option<P>,
    /// Moves from the start.
    cost: u16,
    /// Moves to the goal at least.
    distance: u16,
    blank: u8,
}

impl Shape for LinearShape {
    type Node<P: Copy + Eq> = LinearNode<P>;
}

impl<P> LinearNode<P> {
    fn total(&self) -> u16 {
        self.cost + self.distance
    }
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Linear<P> {
    open: Vec<P>,
    closed: Vec<P>,
    course: Course<P>,
}

impl<P: Copy + Eq> Linear<P> {
    /// A search from `start` that holds at most `most` nodes; `None` when the allocator refuses
    /// the first one.
    pub fn start<N: Nodes<LinearShape, Ptr = P>>(
        nodes: &mut N,
        start: Puzzle,
        most: usize,
    ) -> Option<Self> {
        const { assert!(is_one_line::<LinearNode<P>>()) };
        let at = nodes.new(LinearNode {
            board: start.packed(),
            parent: None,
            cost: 0,
            distance: start.manhattan(),
            blank: start.blank(),
        })?;
        Some(Self { open: vec![at], closed: Vec::new(), course: Course::new(most) })
    }

    /// Expands nodes until the board is solved, the budget is reached or `expansions` are done.
    pub fn run<N: Nodes<LinearShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        expansions: u64,
    ) -> Ended {
        for _ in 0..expansions {
            if let Some(ended) = self.course.ended() {
                return ended;
            }
            let Some(at) = self.pop(nodes, tally) else { return Ended::Impossible };
            if self.expand(nodes, tally, at).is_none() {
                return Ended::NoMemory;
            }
        }
        self.course.paused()
    }

    /// What was found so far.
    #[must_use]
    pub fn found(&self) -> Found {
        self.course.found()
    }

    /// The boards from the start to the goal; empty while there is no solution.
    pub fn solution<N: Nodes<LinearShape, Ptr = P>>(&self, nodes: &N) -> Vec<Puzzle> {
        self.course.solution(|ptr| nodes.read(ptr, |node| (node.board, node.parent)))
    }

    /// Gives all nodes back.
    pub fn clear<N: Nodes<LinearShape, Ptr = P>>(&mut self, nodes: &mut N) {
        self.course.clear();
        let (open, closed) = (self.open.drain(..), self.closed.drain(..));
        open.chain(closed).for_each(|at| nodes.free(at));
    }

    fn expand<N: Nodes<LinearShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        at: P,
    ) -> Option<()> {
        tally.step(Step::Expand);
        let node = nodes.read(at, |node| *node);
        tally.table(Table::Closed, self.closed.len());
        self.closed.push(at);
        if self.course.expands(at, node.board, node.cost, node.distance == 0) {
            return Some(());
        }
        // The way back is never generated, as in the candidate code's puzzle.
        let back = node.parent.map(|parent| nodes.read(parent, |parent| parent.blank));
        let board = Puzzle::from_packed(node.board);
        for way in Move::ALL {
            let Some(to) = way.from_cell(node.blank) else { continue };
            if back == Some(to) {
                continue;
            }
            let (next, distance) = board.slid(node.blank, to, node.distance);
            tally.step(Step::Generate);
            self.course.generates();
            let successor = nodes.new(LinearNode {
                board: next.packed(),
                parent: Some(at),
                cost: node.cost + 1,
                distance,
                blank: to,
            })?;
            self.reach(nodes, tally, successor);
        }
        Some(())
    }

    /// Puts a successor into the open list unless its board is known as near.
    fn reach<N: Nodes<LinearShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        successor: P,
    ) {
        let (board, cost) = nodes.read(successor, |node| (node.board, node.cost));
        let in_open = Self::search(nodes, tally, &self.open, Table::Open, board);
        let in_closed = match in_open {
            Some(_) => None,
            None => Self::search(nodes, tally, &self.closed, Table::Closed, board),
        };
        if let Some(at) = in_open {
            let (known, parent) = (self.open[at], nodes.read(successor, |node| node.parent));
            nodes.free(successor);
            if cost < nodes.read(known, |node| node.cost) {
                nodes.write(known, |node| (node.cost, node.parent) = (cost, parent));
                self.rise(nodes, tally, at);
            }
            return;
        }
        // Distances are consistent: a closed board is never reached by a shorter way.
        if in_closed.is_some() {
            nodes.free(successor);
            return;
        }
        tally.step(Step::Link);
        tally.table(Table::Open, self.open.len());
        self.open.push(successor);
        self.course.holds();
        self.rise(nodes, tally, self.open.len() - 1);
    }

    /// The place of a board in a list, by looking at each of its nodes.
    fn search<N: Nodes<LinearShape, Ptr = P>>(
        nodes: &N,
        tally: &mut impl Tally,
        list: &[P],
        table: Table,
        board: u64,
    ) -> Option<usize> {
        list.iter().enumerate().position(|(place, at)| {
            tally.table(table, place);
            tally.step(Step::Compare);
            nodes.read(*at, |node| node.board) == board
        })
    }

    /// Whether `a` is taken before `b`: the smaller total, of equal ones the nearer to the goal.
    fn precedes<N: Nodes<LinearShape, Ptr = P>>(
        nodes: &N,
        tally: &mut impl Tally,
        a: P,
        b: P,
    ) -> bool {
        tally.step(Step::Compare);
        let key = |at| nodes.read(at, |node: &LinearNode<P>| (node.total(), node.distance));
        key(a) < key(b)
    }

    fn rise<N: Nodes<LinearShape, Ptr = P>>(
        &mut self,
        nodes: &N,
        tally: &mut impl Tally,
        mut at: usize,
    ) {
        while at > 0 {
            let above = (at - 1) / 2;
            tally.table(Table::Open, above);
            if !Self::precedes(nodes, tally, self.open[at], self.open[above]) {
                return;
            }
            self.open.swap(at, above);
            at = above;
        }
    }

    fn pop<N: Nodes<LinearShape, Ptr = P>>(
        &mut self,
        nodes: &N,
        tally: &mut impl Tally,
    ) -> Option<P> {
        if self.open.is_empty() {
            return None;
        }
        let best = self.open.swap_remove(0);
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.open.len() {
                return Some(best);
            }
            tally.table(Table::Open, left);
            let smaller = match self.open.get(right) {
                Some(other) if Self::precedes(nodes, tally, *other, self.open[left]) => right,
                _ => left,
            };
            if !Self::precedes(nodes, tally, self.open[smaller], self.open[at]) {
                return Some(best);
            }
            self.open.swap(at, smaller);
            at = smaller;
        }
    }
}
