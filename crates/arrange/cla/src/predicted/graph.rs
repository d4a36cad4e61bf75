//! The CLa graph: nodes are operations, edges say what comes after what (HPDC 2015, section 3).

use super::node::Node;
use super::order::Order;
use super::replay::Replay;
use super::uses::{Touch, Use, Uses};
use crate::program::{Line, Operation, Rank, Recorded};

/// The four kinds of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// E1: one after the other within a rank.
    Sequence,
    /// E2: what one rank reads or waits for was written by another.
    Dependency,
    /// E3: writes that one wait needs all of, in any order.
    AnyOrder,
    /// E4: one may take the line away from the other, though neither needs the other.
    Stealing,
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Its kind.
    pub kind: EdgeKind,
    /// From this node; for the kinds without a direction the lower one.
    pub from: usize,
    /// To this node.
    pub to: usize,
    /// Over which line; none within a rank.
    pub line: Option<Line>,
}

/// Why a program has no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A wait that nothing ends.
    #[error(
        "{rank} waits in its operation {at} for line {line} to become {value}, which no rank makes it: \
         the program cannot end"
    )]
    Deadlock {
        /// Who waits.
        rank: Rank,
        /// The place of the wait in what the rank does.
        at: usize,
        /// The line.
        line: u32,
        /// The value.
        value: u64,
    },
    /// A program without ranks, or two with different numbers of them.
    #[error(
        "the program has {now} ranks and the one before it {before}: both need the same, at least one"
    )]
    Ranks {
        /// Ranks of the program.
        now: usize,
        /// Ranks of the program before it.
        before: usize,
    },
}

/// A program's graph.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    /// The first node of each rank, and one past the last of all.
    first: Vec<usize>,
    /// The first node of each rank that belongs to this call.
    begin: Vec<usize>,
    /// Nodes so that whatever a node needs comes before it.
    topological: Vec<usize>,
    /// For each node the nodes of other ranks that it waits for.
    sources: Vec<Vec<usize>>,
    /// For each node the writes of other ranks whose data it reads.
    data: Vec<Vec<(usize, usize)>>,
    order: Order,
    uses: Uses,
}

impl Graph {
    /// The graph of `program`, after `before` has been done by all ranks.
    ///
    /// # Errors
    /// [`GraphError`] when a wait can never end, or the numbers of ranks differ.
    pub fn of(program: &Recorded, before: Option<&Recorded>) -> Result<Self, GraphError> {
        Self::after(program, before.map_or(&[], std::slice::from_ref))
    }

    /// The graph of `program`, after each of `before` has been done by all ranks, one after the other.
    ///
    /// # Errors
    /// [`GraphError`] when a wait can never end, or the numbers of ranks differ.
    pub fn after(program: &Recorded, before: &[Recorded]) -> Result<Self, GraphError> {
        let ranks = program.ranks.len();
        let other = before.iter().map(|b| b.ranks.len()).find(|&earlier| earlier != ranks);
        if ranks == 0 || other.is_some() {
            return Err(GraphError::Ranks { now: ranks, before: other.unwrap_or(ranks) });
        }
        let (nodes, first, starts) = Self::nodes_of(program, before);
        let lines = before.iter().map(Recorded::lines).fold(program.lines(), u32::max) as usize;
        let uses = Uses::of(&nodes, lines);
        let ends = |starts: &Vec<usize>| starts.iter().zip(&first).map(|(s, f)| s + f).collect();
        let limits: Vec<Vec<usize>> = starts.iter().skip(1).map(ends).collect();
        let begin = limits.last().cloned().unwrap_or_else(|| first[..ranks].to_vec());
        let mut graph = Self {
            sources: vec![Vec::new(); nodes.len()],
            data: vec![Vec::new(); nodes.len()],
            topological: Vec::new(),
            order: Order::new(nodes.len(), &starts),
            nodes,
            first,
            begin,
            uses,
        };
        graph.match_waits(lines, &limits)?;
        graph.match_reads();
        Ok(graph)
    }

    /// All nodes; the first of each rank, and one past the last; and for each call, how many operations of
    /// each rank come before it.
    fn nodes_of(
        program: &Recorded,
        before: &[Recorded],
    ) -> (Vec<Node>, Vec<usize>, Vec<Vec<usize>>) {
        let (mut nodes, mut first) = (Vec::new(), vec![0]);
        let mut starts = vec![Vec::new(); before.len() + 1];
        // Of earlier calls only what they did to lines that this one uses makes a difference.
        let mut used = vec![false; program.lines() as usize];
        let now = program.ranks.iter().flat_map(|r| &r.operations);
        now.flat_map(Operation::lines).for_each(|line| used[line.0 as usize] = true);
        let counts = |o: &&Operation| {
            o.lines().iter().any(|l| used.get(l.0 as usize).copied().unwrap_or(false))
        };
        for (rank, record) in (0..=u16::MAX).map(Rank).zip(&program.ranks) {
            let mut at = 0;
            let mut add = |&operation: &Operation, call: usize| {
                nodes.push(Node { rank, at, operation, earlier: call < before.len(), call });
                at += 1;
                at
            };
            let mut done = 0;
            for (call, earlier) in before.iter().enumerate() {
                starts[call].push(done);
                for operation in earlier.ranks[rank.index()].operations.iter().filter(counts) {
                    done = add(operation, call);
                }
            }
            starts[before.len()].push(done);
            record.operations.iter().for_each(|operation| _ = add(operation, before.len()));
            first.push(nodes.len());
        }
        (nodes, first, starts)
    }

    /// Finds what every wait waits for, and the order that follows.
    /// `limits` has the node at which each call but the first begins, by rank.
    fn match_waits(&mut self, lines: usize, limits: &[Vec<usize>]) -> Result<(), GraphError> {
        let ranks = self.begin.len();
        let mut logs: Vec<Vec<(usize, u64)>> = vec![Vec::new(); lines];
        let mut satisfied: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut topological = Vec::with_capacity(self.nodes.len());
        let nodes = &self.nodes;
        let mut visit = |node: usize, words: &[u64]| {
            topological.push(node);
            match nodes[node].operation {
                Operation::Write { line, .. } | Operation::Add { line, .. } => {
                    let line = line.0 as usize;
                    logs[line].push((node, words[line]));
                }
                Operation::Wait { line, compare, value } => {
                    let log = &logs[line.0 as usize];
                    let holds = |(_, word): &&(usize, u64)| compare.holds(*word, value);
                    let from_the_start = compare.holds(0, value) && log.iter().all(|w| holds(&w));
                    if !from_the_start {
                        let source = log.iter().rev().take_while(holds).last();
                        satisfied[node] = source.map(|(source, _)| *source);
                    }
                }
                _ => {}
            }
        };
        let mut replay = Replay::new(&self.first[..ranks], lines);
        let fresh = replay.clone();
        for limit in limits {
            replay.run(nodes, limit, &mut visit);
            all_at(nodes, &replay, limit)?;
        }
        let started = replay.clone();
        replay.run(nodes, &self.first[1..], &mut visit);
        all_at(nodes, &replay, &self.first[1..])?;
        self.topological = topological;
        for place in 0..self.topological.len() {
            let node = self.topological[place];
            let sources = match satisfied[node] {
                Some(source) if matches!(self.nodes[source].operation, Operation::Add { .. }) => {
                    let call = if self.nodes[node].earlier { &fresh } else { &started };
                    self.needed_adds(node, call)
                }
                Some(source) => vec![source],
                None => Vec::new(),
            };
            self.order.place(&self.nodes, node, &sources);
            self.sources[node] = sources;
        }
        Ok(())
    }

    /// The adds without which the wait `node` never ends, those left out that came before it anyhow.
    /// `call` is the state before its call.
    fn needed_adds(&self, node: usize, call: &Replay) -> Vec<usize> {
        let end = if self.nodes[node].earlier { &self.begin[..] } else { &self.first[1..] };
        let Operation::Wait { line, value, .. } = self.nodes[node].operation else {
            return Vec::new();
        };
        let line = line.0 as usize;
        let until = |rank: usize, stop: usize| {
            let mut limit = end.to_vec();
            limit[rank] = limit[rank].min(stop);
            let mut replay = call.clone();
            replay.run(&self.nodes, &limit, |_, _| {});
            replay
        };
        let without = until(self.nodes[node].rank.index(), node);
        let all = without.word(line) == value;
        let adds = self.uses.history[line].iter().filter(|t| t.how == Use::Write).map(|t| t.node);
        let open = adds.filter(|&add| {
            let add_rank = self.nodes[add].rank;
            add_rank != self.nodes[node].rank
                && add < without.next(add_rank.index())
                && !self.order.ended_before(&self.nodes, add, node)
        });
        let own = self.nodes[node].rank.index();
        open.filter(|&add| {
            all || {
                let rank = self.nodes[add].rank.index();
                until(rank, add).next(own) <= node
            }
        })
        .collect()
    }

    /// Finds whose data every node reads.
    fn match_reads(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].earlier {
                continue;
            }
            let mut found = Vec::new();
            for &(line, at) in &self.uses.touches[node] {
                let how = self.uses.history[line][at].how;
                let reads = how == Use::Read || (how == Use::Write && self.reads_too(node, line));
                if !reads {
                    continue;
                }
                found.extend(self.last_writes(node, line).into_iter().map(|write| (write, line)));
            }
            self.data[node] = found;
        }
    }

    /// Whether a node that writes a line reads it as well.
    fn reads_too(&self, node: usize, line: usize) -> bool {
        match self.nodes[node].operation {
            Operation::Reduce { dst, .. } => dst.shared_lines().any(|l| l.0 as usize == line),
            _ => false,
        }
    }

    /// The last writes of other ranks that surely came before a node's use of a line, unless its own
    /// rank wrote the line after them. Writes of earlier calls belong to the state at the start.
    fn last_writes(&self, node: usize, line: usize) -> Vec<usize> {
        let writes = || {
            let all =
                self.uses.history[line].iter().filter(|t| t.how == Use::Write && t.node != node);
            all.map(|t| t.node).filter(|&w| self.ended_before(w, node))
        };
        let last = writes().filter(|&w| !writes().any(|v| v != w && self.ended_before(w, v)));
        let rank = self.nodes[node].rank;
        last.filter(|&w| self.nodes[w].rank != rank && !self.nodes[w].earlier).collect()
    }

    /// All nodes, rank by rank.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.begin.len()
    }

    /// The nodes of this call, what they need before them.
    pub fn topological(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.topological.iter().copied().filter(|&node| !self.nodes[node].earlier)
    }

    /// The nodes that a wait waits for: more than one where ranks add to a counter in any order.
    #[must_use]
    pub fn sources(&self, node: usize) -> &[usize] {
        &self.sources[node]
    }

    /// The writes of other ranks whose data a node reads, with the line.
    pub(super) fn data(&self, node: usize) -> &[(usize, usize)] {
        &self.data[node]
    }

    /// The node before in the same rank and call.
    #[must_use]
    pub fn previous(&self, node: usize) -> Option<usize> {
        (node > self.begin[self.nodes[node].rank.index()]).then(|| node - 1)
    }

    /// Whether a claim may still be under way after its node has ended: it is of this call.
    pub(super) fn pending(&self, touch: Touch) -> bool {
        touch.how == Use::Claim && !self.nodes[touch.node].earlier
    }

    /// How many lines.
    pub(super) fn lines(&self) -> usize {
        self.uses.history.len()
    }

    /// Who uses a line, rank by rank.
    pub(super) fn history(&self, line: usize) -> &[Touch] {
        &self.uses.history[line]
    }

    /// The touches of a node: line, and place in the line's history.
    pub(super) fn touches(&self, node: usize) -> &[(usize, usize)] {
        &self.uses.touches[node]
    }

    /// Whether `a` has surely ended before `b` begins.
    #[must_use]
    pub fn ended_before(&self, a: usize, b: usize) -> bool {
        self.order.ended_before(&self.nodes, a, b)
    }

    /// Whether `a` has surely ended before `b` can end: it came before, or `b` waits for it.
    #[must_use]
    pub fn needed_by(&self, a: usize, b: usize) -> bool {
        self.order.needed_by(&self.nodes, a, b)
    }

    /// All edges of this call.
    #[must_use]
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for node in 0..self.nodes.len() {
            if self.nodes[node].earlier {
                continue;
            }
            if let Some(from) = self.previous(node) {
                edges.push(Edge { kind: EdgeKind::Sequence, from, to: node, line: None });
            }
            self.dependencies(node, &mut edges);
        }
        self.stealing(&mut edges);
        edges
    }

    fn dependencies(&self, node: usize, edges: &mut Vec<Edge>) {
        let sources = &self.sources[node];
        let line = self.polled_line(node);
        let foreign = |n: &usize| self.nodes[*n].rank != self.nodes[node].rank;
        for &from in sources.iter().filter(|n| foreign(n) && !self.nodes[**n].earlier) {
            edges.push(Edge { kind: EdgeKind::Dependency, from, to: node, line });
        }
        for &(from, line) in &self.data[node] {
            let line = u32::try_from(line).ok().map(Line);
            edges.push(Edge { kind: EdgeKind::Dependency, from, to: node, line });
        }
        for (n, &from) in sources.iter().enumerate() {
            for &to in &sources[n + 1..] {
                edges.push(Edge { kind: EdgeKind::AnyOrder, from, to, line });
            }
        }
    }

    fn polled_line(&self, node: usize) -> Option<Line> {
        match self.nodes[node].operation {
            Operation::Wait { line, .. } => Some(line),
            _ => None,
        }
    }

    /// E4: uses of one line by two ranks without order, one of them a write, that are no E3.
    fn stealing(&self, edges: &mut Vec<Edge>) {
        for (line, history) in self.uses.history.iter().enumerate() {
            let now: Vec<Touch> =
                history.iter().copied().filter(|t| !self.nodes[t.node].earlier).collect();
            for (n, a) in now.iter().enumerate() {
                for b in &now[n + 1..] {
                    let ranks = self.nodes[a.node].rank != self.nodes[b.node].rank;
                    if ranks
                        && (a.writes() || b.writes())
                        && self.unordered(a.node, b.node)
                        && !self.needed_by(a.node, b.node)
                        && !self.needed_by(b.node, a.node)
                        && !self.together(a.node, b.node)
                    {
                        let line = u32::try_from(line).ok().map(Line);
                        let (from, to) = (a.node, b.node);
                        edges.push(Edge { kind: EdgeKind::Stealing, from, to, line });
                    }
                }
            }
        }
    }

    /// Whether one wait needs both nodes, in any order (E3).
    #[must_use]
    pub fn together(&self, a: usize, b: usize) -> bool {
        self.sources.iter().any(|s| s.contains(&a) && s.contains(&b))
    }

    /// Whether neither of two nodes has surely ended before the other begins.
    #[must_use]
    pub fn unordered(&self, a: usize, b: usize) -> bool {
        !self.ended_before(a, b) && !self.ended_before(b, a)
    }
}

/// Whether every rank came to its limit; if not, who waits for what.
fn all_at(nodes: &[Node], replay: &Replay, limit: &[usize]) -> Result<(), GraphError> {
    let stuck = (0..limit.len()).find(|&rank| replay.next(rank) < limit[rank]);
    stuck.map_or(Ok(()), |rank| Err(deadlock(&nodes[replay.next(rank)])))
}

fn deadlock(node: &Node) -> GraphError {
    match node.operation {
        Operation::Wait { line, value, .. } => {
            GraphError::Deadlock { rank: node.rank, at: node.at, line: line.0, value }
        }
        _ => unreachable!("only waits stop a rank"),
    }
}
