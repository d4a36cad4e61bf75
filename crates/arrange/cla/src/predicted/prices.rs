//! What one use of one line may cost: the coherence rules that both ends of the band share.

use isochrone_machine::{ClassCost, LineCosts, PairClass};

use super::graph::Graph;
use super::uses::{Touch, Use};

/// A graph with the cores of its ranks and what lines cost between them.
#[derive(Debug)]
pub(super) struct Prices<'a> {
    pub(super) graph: &'a Graph,
    pub(super) costs: &'a LineCosts,
    cores: &'a [usize],
}

impl<'a> Prices<'a> {
    pub(super) const fn new(graph: &'a Graph, costs: &'a LineCosts, cores: &'a [usize]) -> Self {
        Self { graph, costs, cores }
    }

    pub(super) fn rank(&self, node: usize) -> usize {
        self.graph.nodes()[node].rank.index()
    }

    /// The costs between the ranks of two nodes.
    pub(super) fn pair(&self, a: usize, b: usize) -> &ClassCost {
        self.costs.pair(self.cores[self.rank(a)], self.cores[self.rank(b)])
    }

    pub(super) fn class(&self, a: usize, b: usize) -> PairClass {
        self.costs.class(self.cores[self.rank(a)], self.cores[self.rank(b)])
    }

    /// A line that the rank of `a` has, to the rank of `b`.
    pub(super) fn transfer(&self, a: usize, b: usize) -> f64 {
        self.pair(a, b).transfer_ns
    }

    /// A line that rank `a` has, to rank `b`.
    pub(super) fn between(&self, a: usize, b: usize) -> f64 {
        self.costs.pair(self.cores[a], self.cores[b]).transfer_ns
    }

    /// The first fetch of a line from memory (rule 1: memory of the fetching core's own region).
    pub(super) fn memory(&self, node: usize) -> f64 {
        let core = self.cores[self.rank(node)];
        self.costs.pair(core, core).memory_ns
    }

    /// The same rank's use of the line before this one, earlier calls included.
    pub(super) fn own_before(&self, line: usize, at: usize) -> Option<Touch> {
        let history = self.graph.history(line);
        let before = *history.get(at.checked_sub(1)?)?;
        (self.rank(before.node) == self.rank(history[at].node)).then_some(before)
    }

    /// Rule 3: the operation just before used the line as well.
    pub(super) fn consecutive(&self, line: usize, at: usize) -> bool {
        let node = self.graph.history(line)[at].node;
        let before = self.own_before(line, at);
        before.is_some_and(|b| self.graph.previous(node) == Some(b.node))
    }

    /// The uses of lines that a node waits for: a claim waits for none.
    pub(super) fn awaited(&self, node: usize) -> impl Iterator<Item = (usize, usize, Touch)> + '_ {
        let touches = self.graph.touches(node).iter();
        let all = touches.map(|&(line, at)| (line, at, self.graph.history(line)[at]));
        all.filter(|(_, _, touch)| touch.how != Use::Claim)
    }

    /// Uses of the line by other ranks than the one of its use number `at`.
    pub(super) fn others(
        &self,
        line: usize,
        at: usize,
    ) -> impl Iterator<Item = Touch> + Clone + '_ {
        let history = self.graph.history(line);
        let rank = self.rank(history[at].node);
        history.iter().copied().filter(move |t| self.rank(t.node) != rank)
    }

    /// The own write of the line last before its use number `at`.
    pub(super) fn own_write_before(&self, line: usize, at: usize) -> Option<Touch> {
        let history = self.graph.history(line);
        let rank = self.rank(history[at].node);
        let own = history[..at].iter().rev().take_while(|t| self.rank(t.node) == rank);
        own.copied().find(|t| t.writes())
    }

    /// What each sharer beyond the first adds to an RFO: the term of the cost table, or a whole transfer
    /// as in section 2.3 of the paper.
    pub(super) fn sharer(&self, transfer_ns: f64) -> f64 {
        self.costs.added.rfo_sharer_ns.unwrap_or(transfer_ns)
    }

    /// What owning a line costs a rank that has a copy, where the table tells it apart from a whole transfer.
    pub(super) fn left_shared(&self) -> Option<f64> {
        self.costs.added.left_shared_ns
    }

    /// What a transfer costs more because the other half of its 128-byte pair is in use by others.
    pub(super) fn neighbour(&self, line: usize, at: usize) -> f64 {
        let ns = self.costs.added.adjacent_line_ns;
        if ns == 0.0 {
            return 0.0;
        }
        let rank = self.rank(self.graph.history(line)[at].node);
        let pair = line ^ 1;
        let used = pair < self.graph.lines()
            && self.graph.history(pair).iter().any(|t| self.rank(t.node) != rank);
        if used { ns } else { 0.0 }
    }

    /// What a reader near the writer pays more because somebody farther away reads the line too.
    pub(super) fn remote_reader(&self, line: usize, at: usize) -> f64 {
        let ns = self.costs.added.first_remote_reader_ns;
        let history = self.graph.history(line);
        let reader = history[at];
        if ns == 0.0 || reader.writes() {
            return 0.0;
        }
        let Some(writer) = self.others(line, at).find(|t| t.how == Use::Write) else { return 0.0 };
        let near = self.class(writer.node, reader.node);
        let farther = |t: &Touch| {
            !t.writes()
                && self.rank(t.node) != self.rank(writer.node)
                && self.class(writer.node, t.node) > near
        };
        if history.iter().any(farther) { ns } else { 0.0 }
    }

    /// Several lines at once: equation 1, but never more than one by one.
    pub(super) fn several(class: &ClassCost, lines: f64, one_by_one_ns: f64) -> f64 {
        (class.start_ns + class.line_ns * lines).min(one_by_one_ns)
    }

    /// Whether the node begins in a poll right after another poll, so that both loads overlap.
    pub(super) fn overlaps(&self, node: usize) -> bool {
        let poll = |n: usize| {
            let touches = self.graph.touches(n);
            touches.first().filter(|&&(l, at)| self.graph.history(l)[at].how == Use::Poll).copied()
        };
        match (poll(node), self.graph.previous(node).and_then(poll)) {
            (Some((here, _)), Some((there, _))) => here != there,
            _ => false,
        }
    }
}
