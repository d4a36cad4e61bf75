//! A* with a hash table for both sets and a bucket queue for the open one.
//!
//! Everything about a board is in its node's line: the board, its costs, its parent, its link in
//! the hash chain and its links in the open list. Of equally promising nodes the last one put
//! in is taken first.

use super::course::Course;
use super::puzzle::{Move, Puzzle};
use super::{Ended, Found, Step, Table, Tally};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{index, mixed};

/// Buckets of the open list: no 15-puzzle needs more than 80 moves (Brüngger et al., 1999), and
/// A* takes nothing from beyond the solution's bucket.
const BUCKETS: usize = 256;

/// The shape of [`HashedNode`].
#[derive(Clone, Copy, Debug)]
pub struct HashedShape;

/// One board.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct HashedNode<P> {
    board: u64,
    parent: Option<P>,
    /// Next in the hash chain.
    chain: Option<P>,
    /// Next and previous in the bucket of the open list.
    after: Option<P>,
    before: Option<P>,
    /// Moves from the start.
    cost: u16,
    /// Moves to the goal at least.
    distance: u16,
    blank: u8,
    open: bool,
}

impl Shape for HashedShape {
    type Node<P: Copy + Eq> = HashedNode<P>;
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Hashed<P> {
    heads: Vec<Option<P>>,
    buckets: Vec<Option<P>>,
    lowest: usize,
    course: Course<P>,
}

/// A board that a move leads to.
struct Successor<P> {
    board: Puzzle,
    blank: u8,
    cost: u16,
    distance: u16,
    parent: P,
}

impl<P: Copy + Eq> Hashed<P> {
    /// A search from `start` that holds at most `most` nodes; `None` when the allocator refuses
    /// the first one.
    pub fn start<N: Nodes<HashedShape, Ptr = P>>(
        nodes: &mut N,
        start: Puzzle,
        most: usize,
    ) -> Option<Self> {
        const { assert!(is_one_line::<HashedNode<P>>()) };
        let mut search = Self {
            heads: vec![None; most.next_power_of_two()],
            buckets: vec![None; BUCKETS],
            lowest: BUCKETS,
            course: Course::new(most),
        };
        let node = HashedNode {
            board: start.packed(),
            parent: None,
            chain: None,
            after: None,
            before: None,
            cost: 0,
            distance: start.manhattan(),
            blank: start.blank(),
            open: false,
        };
        let at = nodes.new(node)?;
        let head = search.head(start);
        search.heads[head] = Some(at);
        search.put_open(nodes, &mut (), at, usize::from(node.distance));
        Some(search)
    }

    /// Expands nodes until the board is solved, the budget is reached or `expansions` are done.
    pub fn run<N: Nodes<HashedShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        expansions: u64,
    ) -> Ended {
        for _ in 0..expansions {
            if let Some(ended) = self.course.ended() {
                return ended;
            }
            let Some(at) = self.take_open(nodes, tally) else { return Ended::Impossible };
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
    pub fn solution<N: Nodes<HashedShape, Ptr = P>>(&self, nodes: &N) -> Vec<Puzzle> {
        self.course.solution(|ptr| nodes.read(ptr, |node| (node.board, node.parent)))
    }

    /// Gives all nodes back.
    pub fn clear<N: Nodes<HashedShape, Ptr = P>>(&mut self, nodes: &mut N) {
        for head in &mut self.heads {
            let mut at = head.take();
            while let Some(ptr) = at {
                at = nodes.read(ptr, |node| node.chain);
                nodes.free(ptr);
            }
        }
        self.buckets.fill(None);
        self.lowest = BUCKETS;
        self.course.clear();
    }

    fn head(&self, board: Puzzle) -> usize {
        index(mixed(board.packed())) & (self.heads.len() - 1)
    }

    fn expand<N: Nodes<HashedShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        at: P,
    ) -> Option<()> {
        tally.step(Step::Expand);
        let node = nodes.read(at, |node| *node);
        if self.course.expands(at, node.board, node.cost, node.distance == 0) {
            return Some(());
        }
        let board = Puzzle::from_packed(node.board);
        for way in Move::ALL {
            let Some(to) = way.from_cell(node.blank) else { continue };
            let (next, distance) = board.slid(node.blank, to, node.distance);
            tally.step(Step::Generate);
            self.course.generates();
            let cost = node.cost + 1;
            let successor = Successor { board: next, blank: to, cost, distance, parent: at };
            self.reach(nodes, tally, &successor)?;
        }
        Some(())
    }

    /// Puts a successor into the open set, or a known board nearer to the start.
    fn reach<N: Nodes<HashedShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        to: &Successor<P>,
    ) -> Option<()> {
        let head = self.head(to.board);
        tally.table(Table::Heads, head);
        let mut at = self.heads[head];
        while let Some(ptr) = at {
            tally.step(Step::Compare);
            let (board, chain, cost, open) =
                nodes.read(ptr, |node| (node.board, node.chain, node.cost, node.open));
            if board == to.board.packed() {
                // Distances are consistent: a closed board was reached on a shortest way.
                if open && to.cost < cost {
                    self.drop_open(nodes, tally, ptr, usize::from(cost + to.distance));
                    nodes.write(ptr, |node| {
                        (node.cost, node.parent) = (to.cost, Some(to.parent));
                    });
                    self.put_open(nodes, tally, ptr, usize::from(to.cost + to.distance));
                }
                return Some(());
            }
            at = chain;
        }
        let new = nodes.new(HashedNode {
            board: to.board.packed(),
            parent: Some(to.parent),
            chain: self.heads[head],
            after: None,
            before: None,
            cost: to.cost,
            distance: to.distance,
            blank: to.blank,
            open: false,
        })?;
        self.heads[head] = Some(new);
        self.course.holds();
        self.put_open(nodes, tally, new, usize::from(to.cost + to.distance));
        Some(())
    }

    fn put_open<N: Nodes<HashedShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        at: P,
        bucket: usize,
    ) {
        tally.step(Step::Link);
        let bucket = bucket.min(BUCKETS - 1);
        tally.table(Table::Buckets, bucket);
        let first = self.buckets[bucket].replace(at);
        nodes.write(at, |node| (node.open, node.before, node.after) = (true, None, first));
        if let Some(first) = first {
            nodes.write(first, |node| node.before = Some(at));
        }
        self.lowest = self.lowest.min(bucket);
    }

    fn drop_open<N: Nodes<HashedShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
        at: P,
        bucket: usize,
    ) {
        tally.step(Step::Link);
        let (before, after) = nodes.write(at, |node| {
            node.open = false;
            (node.before, node.after)
        });
        match before {
            Some(before) => nodes.write(before, |node| node.after = after),
            None => {
                let bucket = bucket.min(BUCKETS - 1);
                tally.table(Table::Buckets, bucket);
                self.buckets[bucket] = after;
            }
        }
        if let Some(after) = after {
            nodes.write(after, |node| node.before = before);
        }
    }

    fn take_open<N: Nodes<HashedShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        tally: &mut impl Tally,
    ) -> Option<P> {
        loop {
            let first = self.buckets.get(self.lowest)?;
            tally.table(Table::Buckets, self.lowest);
            if let Some(at) = *first {
                self.drop_open(nodes, tally, at, self.lowest);
                return Some(at);
            }
            self.lowest += 1;
        }
    }
}
