//! What can be chosen about a collective. All of it is data, so that predictor, simulator and live run
//! read the same program.

use super::tree::Tree;
use crate::program::Line;
use std::fmt;

/// How ranks find one another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Along a tree: up to its root, down from it, or both.
    Tree(Tree),
    /// Without a root, for barrier, allreduce and allgather: the barrier disseminates (Hensgen, Finkel
    /// and Manber 1988), allreduce doubles recursively, and in allgather everybody reads everybody.
    /// Two ranks then need one transfer each way, at the same time.
    Exchange,
}

/// How children tell their parent that they are done with a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acks {
    /// Each child writes a line of its own.
    PerChild,
    /// All children of a parent (and group) add to one line, as in the paper. A ring has two such lines
    /// that take turns, so that a child which is ahead does not count for one that is behind.
    Counter,
}

/// In words: a tree with each rank's children in brackets, or an exchange.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(tree) => write!(f, "{tree}"),
            Self::Exchange => f.write_str("exchange"),
        }
    }
}

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Tree or exchange.
    pub shape: Shape,
    /// Acknowledgements of broadcasts.
    pub acks: Acks,
    /// Whether a broadcasting parent waits within the call until its children have copied, as in the
    /// paper's Figure 1; otherwise before it comes round to the slot again.
    pub acks_in_call: bool,
    /// Whether a rank claims the slot of its next chunk when it has written one (see
    /// [`crate::program::Lines::claim`]): that was measured to take a third off an isolated broadcast.
    pub claims: bool,
    /// A group for each rank, such as its socket; empty: all are in one. A parent writes one line for
    /// each group of its children.
    pub groups: Vec<u16>,
    /// Lines of a chunk. One: every line carries its own flag. Many: the first line's flag stands for
    /// all of them.
    pub chunk_lines: u32,
    /// Slots of a ring, a power of two. One: every call waits for the one before it to be read.
    pub ring: u32,
}

/// In words, for people: the shape, the groups that have lines of their own, chunks and acknowledgements.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shape)?;
        if !self.groups.is_empty() {
            let groups: Vec<String> = self.groups.iter().map(u16::to_string).collect();
            write!(f, "; a line for each of the groups {}", groups.join(" "))?;
        }
        write!(f, "; chunks of {} lines", self.chunk_lines)?;
        match self.acks {
            Acks::PerChild => f.write_str("; acknowledged on a line each"),
            Acks::Counter => f.write_str("; acknowledged on one line"),
        }
    }
}

impl Options {
    /// Slots of a ring unless something else is asked for: the root may run that far ahead.
    pub const RING: u32 = 16;
    /// Lines of a chunk at most, unless something else is asked for: long messages flow in pieces, so
    /// that readers copy while the writer is still writing.
    pub const CHUNK_LINES: u32 = 8;

    /// Usual options over `tree` for messages of `bytes` bytes.
    #[must_use]
    pub fn tree(tree: Tree, bytes: u32) -> Self {
        Self::usual(Shape::Tree(tree), bytes)
    }

    /// Usual options without a tree for messages of `bytes` bytes.
    #[must_use]
    pub fn exchange(bytes: u32) -> Self {
        Self::usual(Shape::Exchange, bytes)
    }

    fn usual(shape: Shape, bytes: u32) -> Self {
        let chunk_lines = (bytes.saturating_add(Line::WORD_BYTES)).div_ceil(Line::BYTES);
        Self {
            shape,
            acks: Acks::PerChild,
            acks_in_call: false,
            claims: true,
            groups: Vec::new(),
            chunk_lines: chunk_lines.clamp(1, Self::CHUNK_LINES),
            ring: Self::RING,
        }
    }

    /// Bytes that one chunk carries beside its flag.
    #[must_use]
    pub const fn chunk_bytes(&self) -> u32 {
        self.chunk_lines * Line::BYTES - Line::WORD_BYTES
    }

    /// The group of a rank.
    pub(super) fn group(&self, rank: usize) -> u16 {
        self.groups.get(rank).copied().unwrap_or(0)
    }
}
