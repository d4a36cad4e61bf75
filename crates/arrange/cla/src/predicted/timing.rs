//! Times of all nodes, and the path that decides the last of them.

use super::graph::Graph;

/// When every node of a graph begins and ends under one pricing.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// When the last node has ended, ns; calls included.
    pub total_ns: f64,
    /// When each node begins, ns; 0 for nodes of earlier calls.
    pub begin_ns: Vec<f64>,
    /// When each node ends, ns; 0 for nodes of earlier calls.
    pub end_ns: Vec<f64>,
    /// For each node the nodes just before it on its longest path, oldest first.
    before: Vec<Vec<usize>>,
}

impl Timing {
    pub(super) fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes().len();
        Self {
            total_ns: 0.0,
            begin_ns: vec![0.0; nodes],
            end_ns: vec![0.0; nodes],
            before: vec![Vec::new(); nodes],
        }
    }

    /// When the rank of `node` comes to it.
    pub(super) fn ready(&self, graph: &Graph, node: usize) -> f64 {
        graph.previous(node).map_or(0.0, |before| self.end_ns[before])
    }

    /// Sets a node's times and what came before it.
    pub(super) fn set(&mut self, node: usize, begin_ns: f64, end_ns: f64, before: Vec<usize>) {
        self.begin_ns[node] = begin_ns;
        self.end_ns[node] = end_ns;
        self.before[node] = before;
    }

    /// The end of the last node, with what a call costs beside its operations.
    pub(super) fn finish(mut self, call_ns: f64) -> Self {
        self.total_ns = self.end_ns.iter().copied().fold(0.0, f64::max) + call_ns;
        self
    }

    /// When each rank has done its last operation, ns.
    #[must_use]
    pub fn rank_ends(&self, graph: &Graph) -> Vec<f64> {
        let mut ends = vec![0.0_f64; graph.ranks()];
        for node in graph.topological() {
            let end = &mut ends[graph.nodes()[node].rank.index()];
            *end = end.max(self.end_ns[node]);
        }
        ends
    }

    /// The critical path, first node first: what decides when the last node ends.
    #[must_use]
    pub fn path(&self, graph: &Graph) -> Vec<usize> {
        let last = graph.topological().max_by(|&a, &b| self.end_ns[a].total_cmp(&self.end_ns[b]));
        let mut path = Vec::new();
        let mut open = last;
        while let Some(node) = open {
            path.push(node);
            let before = &self.before[node];
            path.extend(before.iter().skip(1).rev());
            open = before.first().copied();
        }
        path.reverse();
        path
    }
}
