//! A node of a program's graph: one operation, with its place.

use crate::program::{Operation, Rank};

/// One operation of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Who does it.
    pub rank: Rank,
    /// Its place in what the rank does, after the operations of earlier calls that this one feels.
    pub at: usize,
    /// What is done.
    pub operation: Operation,
    /// Whether it belongs to an earlier call, of which only the state that it leaves behind counts.
    pub earlier: bool,
    /// Its call: earlier ones from 0, this one last. A call begins when all before it have ended everywhere.
    pub call: usize,
}
