//! Which nodes use which lines, and how.

use super::node::Node;
use crate::program::{Line, Operation};

/// How a node uses a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Poll,
    Write,
    /// Takes the line to write it later, and waits for nothing.
    Claim,
}

/// One use of one shared line by one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) node: usize,
    pub(super) line: usize,
    pub(super) how: Use,
}

impl Touch {
    /// Whether the line is gone from all other caches afterwards.
    pub(super) fn writes(self) -> bool {
        matches!(self.how, Use::Write | Use::Claim)
    }
}

/// Who uses each line, and where each node's uses stand there.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    /// For each line who uses it, rank by rank.
    pub(super) history: Vec<Vec<Touch>>,
    /// For each node the places of its touches in the history: line and index.
    pub(super) touches: Vec<Vec<(usize, usize)>>,
}

impl Uses {
    /// Those of `nodes`, rank by rank, among `lines` lines.
    pub(super) fn of(nodes: &[Node], lines: usize) -> Self {
        let mut history: Vec<Vec<Touch>> = vec![Vec::new(); lines];
        let mut touches = Vec::with_capacity(nodes.len());
        for (node, Node { operation, .. }) in nodes.iter().enumerate() {
            let mut of_node: Vec<(usize, usize)> = Vec::new();
            let mut add = |line: Line, how: Use| {
                let line = line.0 as usize;
                if let Some(&(_, at)) = of_node.iter().find(|(l, _)| *l == line) {
                    if how == Use::Write {
                        history[line][at].how = how;
                    }
                    return;
                }
                of_node.push((line, history[line].len()));
                history[line].push(Touch { node, line, how });
            };
            match *operation {
                Operation::Copy { src, dst } | Operation::Reduce { src, dst, .. } => {
                    src.shared_lines().for_each(|line| add(line, Use::Read));
                    dst.shared_lines().for_each(|line| add(line, Use::Write));
                }
                Operation::Wait { line, .. } => add(line, Use::Poll),
                Operation::Write { line, .. } | Operation::Add { line, .. } => {
                    add(line, Use::Write)
                }
                Operation::Claim { line, lines } => {
                    (0..lines).for_each(|n| add(line.plus(n), Use::Claim));
                }
            }
            touches.push(of_node);
        }
        Self { history, touches }
    }
}
