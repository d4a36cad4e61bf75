//! The state of a unit, and what tasks moved.

use crate::coherence::message::{Class, Direction, Traffic};
use crate::coherence::nodes::NodeSet;

/// No node, no unit.
pub(super) const NO_NODE: u8 = u8::MAX;
pub(super) const NO_UNIT: u32 = u32::MAX;

/// What the bits in memory say about other modules, as in the protocol's home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exported {
    #[default]
    No,
    Shared,
    Any,
}

/// Lines that share one state. The names are those of the protocol's home, switch and caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Caches that have it.
    pub(super) holders: NodeSet,
    /// Sockets of the home's module that the bits in memory list.
    pub(super) near: NodeSet,
    /// Modules that the switch lists.
    pub(super) modules: u64,
    /// How many lines.
    pub(super) lines: u32,
    /// The next unit of the same chunk.
    pub(super) next: u32,
    /// Its entry in the switch's directory, to tell it from older ones.
    pub(super) entry: u32,
    /// Where its memory is; [`NO_NODE`] before the first touch.
    pub(super) home: u8,
    /// The cache that is alone with it.
    pub(super) owner: u8,
    /// The cache that forwards.
    pub(super) forward: u8,
    /// The owner's copy is newer than memory.
    pub(super) dirty: bool,
    pub(super) near_alone: bool,
    /// One module is alone, says the switch.
    pub(super) alone: bool,
    pub(super) exported: Exported,
}

impl Unit {
    pub(super) const fn new(lines: u32, home: u8) -> Self {
        Self {
            holders: NodeSet::EMPTY,
            near: NodeSet::EMPTY,
            modules: 0,
            lines,
            next: NO_UNIT,
            entry: 0,
            home,
            owner: NO_NODE,
            forward: NO_NODE,
            dirty: false,
            near_alone: false,
            alone: false,
            exported: Exported::No,
        }
    }
}

/// What one task moved, in lines and messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Messages at each module's switch.
    pub traffic: Vec<Traffic>,
    /// Messages from module to module: without a line, with one. Row by row.
    pub links: Vec<[u64; 2]>,
    /// Lines read from each node's memory.
    pub memory_reads: Vec<u64>,
    /// Lines written to each node's memory.
    pub memory_writes: Vec<u64>,
    /// Lines from node to node within a module, row by row.
    pub near: Vec<u64>,
    /// Lines that the task waited for, by the node they came from.
    pub waited: Vec<u64>,
    /// Lines that came from another cache and not from memory.
    pub from_caches: u64,
    /// Lines of memory touched for the first time.
    pub first_touched: u64,
    /// Units touched.
    pub touches: u64,
}

impl Tally {
    pub(super) fn new(modules: usize, nodes: usize) -> Self {
        Self {
            traffic: vec![Traffic::default(); modules],
            links: vec![[0; 2]; modules * modules],
            memory_reads: vec![0; nodes],
            memory_writes: vec![0; nodes],
            near: vec![0; nodes * nodes],
            waited: vec![0; nodes],
            from_caches: 0,
            first_touched: 0,
            touches: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.traffic.fill(Traffic::default());
        self.links.fill([0; 2]);
        self.memory_reads.fill(0);
        self.memory_writes.fill(0);
        self.near.fill(0);
        self.waited.fill(0);
        (self.from_caches, self.first_touched, self.touches) = (0, 0, 0);
    }

    /// Messages from one module's sockets to another's.
    #[inline]
    pub(super) fn cross(&mut self, class: Class, from: u8, to: u8, lines: u64) {
        let (from, to) = (usize::from(from), usize::from(to));
        self.traffic[from][(class, Direction::In)] += lines;
        self.traffic[to][(class, Direction::Out)] += lines;
        self.links[from * self.traffic.len() + to][usize::from(class.is_data())] += lines;
    }

    /// Messages that the switch of a module takes from its sockets and passes to another switch only.
    #[inline]
    pub(super) fn enter(&mut self, class: Class, at: u8, to: u8, lines: u64) {
        self.traffic[usize::from(at)][(class, Direction::In)] += lines;
        self.link(class, at, to, lines);
    }

    /// Messages that the switch of `from` sends to the sockets of another module.
    #[inline]
    pub(super) fn leave(&mut self, class: Class, from: u8, at: u8, lines: u64) {
        self.traffic[usize::from(at)][(class, Direction::Out)] += lines;
        self.link(class, from, at, lines);
    }

    /// Messages between a switch and its own sockets.
    #[inline]
    pub(super) fn local(&mut self, class: Class, at: u8, way: Direction, lines: u64) {
        self.traffic[usize::from(at)][(class, way)] += lines;
    }

    #[inline]
    fn link(&mut self, class: Class, from: u8, to: u8, lines: u64) {
        let (from, to) = (usize::from(from), usize::from(to));
        if from != to {
            self.links[from * self.traffic.len() + to][usize::from(class.is_data())] += lines;
        }
    }
}

/// Sums over all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// As in [`Tally`].
    pub traffic: Vec<Traffic>,
    /// As in [`Tally`].
    pub memory_reads: Vec<u64>,
    /// As in [`Tally`].
    pub memory_writes: Vec<u64>,
    /// Lines that passed between sockets of a module, by the node they came from.
    pub near: Vec<u64>,
    /// As in [`Tally`].
    pub from_caches: u64,
    /// As in [`Tally`].
    pub first_touched: u64,
    /// As in [`Tally`].
    pub touches: u64,
}

impl Totals {
    pub(super) fn new(modules: usize, nodes: usize) -> Self {
        Self {
            traffic: vec![Traffic::default(); modules],
            memory_reads: vec![0; nodes],
            memory_writes: vec![0; nodes],
            near: vec![0; nodes],
            from_caches: 0,
            first_touched: 0,
            touches: 0,
        }
    }

    /// What was moved since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let minus = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        Self {
            traffic: self
                .traffic
                .iter()
                .zip(&earlier.traffic)
                .map(|(now, then)| now.since(then))
                .collect(),
            memory_reads: minus(&self.memory_reads, &earlier.memory_reads),
            memory_writes: minus(&self.memory_writes, &earlier.memory_writes),
            near: minus(&self.near, &earlier.near),
            from_caches: self.from_caches - earlier.from_caches,
            first_touched: self.first_touched - earlier.first_touched,
            touches: self.touches - earlier.touches,
        }
    }

    pub(super) fn add(&mut self, tally: &Tally) {
        for (mine, theirs) in self.traffic.iter_mut().zip(&tally.traffic) {
            *mine += theirs;
        }
        let nodes = self.near.len();
        for (node, mine) in self.near.iter_mut().enumerate() {
            *mine += tally.near[node * nodes..(node + 1) * nodes].iter().sum::<u64>();
        }
        let columns = [
            (&mut self.memory_reads, &tally.memory_reads),
            (&mut self.memory_writes, &tally.memory_writes),
        ];
        for (mine, theirs) in columns {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.from_caches += tally.from_caches;
        self.first_touched += tally.first_touched;
        self.touches += tally.touches;
    }
}
