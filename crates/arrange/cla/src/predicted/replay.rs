//! The order of a program without times: every rank goes on until it waits for a word that is not there.
//!
//! A program's waits see values that only its own operations make, so one run tells which operations a
//! wait needs, or that it waits for ever.

use std::collections::VecDeque;

use super::node::Node;
use crate::program::Operation;

/// What each rank has done of a program's nodes, and what the words are then.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    /// The next node of each rank.
    next: Vec<usize>,
    words: Vec<u64>,
}

impl Replay {
    /// Nobody has done anything; `first` has the first node of each rank.
    pub(super) fn new(first: &[usize], lines: usize) -> Self {
        Self { next: first.to_vec(), words: vec![0; lines] }
    }

    /// Lets every rank go on until it waits in vain or is at its `limit`, the node that it must not do.
    /// `visit` is told of each node as it ends, and of the words then.
    pub(super) fn run(
        &mut self,
        nodes: &[Node],
        limit: &[usize],
        mut visit: impl FnMut(usize, &[u64]),
    ) {
        let mut ready: VecDeque<usize> = (0..self.next.len()).collect();
        let mut parked: Vec<Vec<usize>> = vec![Vec::new(); self.words.len()];
        while let Some(rank) = ready.pop_front() {
            while self.next[rank] < limit[rank] {
                let node = self.next[rank];
                match nodes[node].operation {
                    Operation::Wait { line, compare, value } => {
                        let line = line.0 as usize;
                        if !compare.holds(self.words[line], value) {
                            parked[line].push(rank);
                            break;
                        }
                    }
                    Operation::Write { line, value } => {
                        self.words[line.0 as usize] = value;
                        ready.extend(parked[line.0 as usize].drain(..));
                    }
                    Operation::Add { line, value } => {
                        let word = &mut self.words[line.0 as usize];
                        *word = word.wrapping_add(value);
                        ready.extend(parked[line.0 as usize].drain(..));
                    }
                    Operation::Copy { .. } | Operation::Reduce { .. } | Operation::Claim { .. } => {
                    }
                }
                self.next[rank] += 1;
                visit(node, &self.words);
            }
        }
    }

    /// The next node of a rank.
    pub(super) fn next(&self, rank: usize) -> usize {
        self.next[rank]
    }

    /// The word of a line now.
    pub(super) fn word(&self, line: usize) -> u64 {
        self.words[line]
    }
}
