//! What has surely ended before what begins, whatever the times: vector clocks (Mattern 1989).

use super::node::Node;

/// For each node, how many operations of each rank have ended when it ends.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// For each call, operations of each rank that belong to calls before it; this call comes last.
    starts: Vec<Vec<u32>>,
    ended: Vec<u32>,
}

impl Order {
    /// Clocks of `nodes` nodes; `starts` has, for each call, the operations of each rank before it.
    pub(super) fn new(nodes: usize, starts: &[Vec<usize>]) -> Self {
        let ranks = starts.first().map_or(0, Vec::len);
        let starts = starts.iter().map(|call| call.iter().map(|&n| number(n)).collect()).collect();
        Self { ended: vec![0; nodes * ranks], starts }
    }

    fn ranks(&self) -> usize {
        self.starts.first().map_or(0, Vec::len)
    }

    /// Fills in the clock of `node`, after those of the node before it in its rank and of `sources`.
    pub(super) fn place(&mut self, nodes: &[Node], node: usize, sources: &[usize]) {
        let ranks = self.ranks();
        let own = nodes[node].rank.index();
        let mut clock: Vec<u32> = (0..ranks).map(|rank| self.begun(nodes, node, rank)).collect();
        for &source in sources {
            let of_source = &self.ended[source * ranks..(source + 1) * ranks];
            for (mine, theirs) in clock.iter_mut().zip(of_source) {
                *mine = (*mine).max(*theirs);
            }
        }
        clock[own] = number(nodes[node].at) + 1;
        self.ended[node * ranks..(node + 1) * ranks].copy_from_slice(&clock);
    }

    /// How many operations of `rank` have ended when `node` begins. A call begins when all earlier ones
    /// have ended everywhere.
    fn begun(&self, nodes: &[Node], node: usize, rank: usize) -> u32 {
        let Node { at, call, rank: own, .. } = nodes[node];
        if number(at) == self.starts[call][own.index()] {
            self.starts[call][rank]
        } else {
            self.ended[(node - 1) * self.ranks() + rank]
        }
    }

    /// Whether `a` has surely ended before `b` begins.
    pub(super) fn ended_before(&self, nodes: &[Node], a: usize, b: usize) -> bool {
        if nodes[a].rank == nodes[b].rank {
            return a < b;
        }
        self.begun(nodes, b, nodes[a].rank.index()) > number(nodes[a].at)
    }

    /// Whether `a` has surely ended before `b` ends.
    pub(super) fn needed_by(&self, nodes: &[Node], a: usize, b: usize) -> bool {
        if nodes[a].rank == nodes[b].rank {
            return a < b;
        }
        self.ended[b * self.ranks() + nodes[a].rank.index()] > number(nodes[a].at)
    }
}

/// A place in a rank's list; lists longer than `u32` counts are not recorded.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
