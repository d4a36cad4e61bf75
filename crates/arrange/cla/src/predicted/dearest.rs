//! T_max: every unordered use of a line by another rank comes in between.
//!
//! A bound from above. Wherever the line may be gone, it is; it comes from the farthest rank that may have
//! it; and each rank that may be using it meanwhile takes one transfer first (line stealing: n readers, n
//! writers). Writes of one rank to one line, right after one another, stay together (rule 3): their
//! stores leave the store buffer together. Transfers of other ranks over the same kind of link add their congestion.

use super::prices::Prices;
use super::timing::Timing;
use super::uses::{Touch, Use};
use crate::program::Operation;

/// Prices the graph at its dearest.
pub(super) fn dearest(prices: &Prices<'_>) -> Timing {
    let graph = prices.graph;
    let mut timing = Timing::new(graph);
    let polled: Vec<bool> = (0..graph.lines())
        .map(|line| graph.history(line).iter().any(|t| t.how == Use::Poll))
        .collect();
    for node in graph.topological() {
        let begin = timing.ready(graph, node);
        let mut best = (begin, graph.previous(node).into_iter().collect::<Vec<_>>());
        for &source in graph.sources(node) {
            if timing.end_ns[source] > best.0 {
                best = (timing.end_ns[source], vec![source]);
            }
        }
        let end = best.0 + node_ns(prices, &polled, node);
        timing.set(node, begin, end, best.1);
    }
    timing.finish(prices.costs.added.call_ns)
}

/// The most that the node may cost its rank after all that it waits for.
fn node_ns(prices: &Prices<'_>, polled: &[bool], node: usize) -> f64 {
    let mut sum = super::private::dearest_ns(prices, node);
    let mut missing: Vec<Fetch> = Vec::new();
    for (line, at, touch) in prices.awaited(node) {
        if together(prices, line, at) || at_hand(prices, line, at) {
            sum += prices.costs.local_ns;
            continue;
        }
        let extra = prices.neighbour(line, at) + prices.remote_reader(line, at);
        let rivals = polled[line] || contested(prices, line, at);
        missing.push(Fetch { rivals, ..fetch(prices, line, at) });
        sum += extra + held_ns(prices, line, touch);
        let stolen = if rivals { stolen_ns(prices, line, at) } else { 0.0 };
        sum += if stolen > 0.0 { stolen } else { filled_ns(prices, line, at) };
    }
    sum + fetched_ns(prices, node, &missing) + paused_ns(prices, node)
}

/// How much later a wait may notice that its line is gone: it has just begun to pause. Only who has a copy pauses,
/// and it loses the copy when the writer's request has come; from then on the answer runs beside the pause.
fn paused_ns(prices: &Prices<'_>, node: usize) -> f64 {
    let added = &prices.costs.added;
    let waits = prices.awaited(node).any(|(_, _, touch)| touch.how == Use::Poll);
    if waits { (added.poll_ns - added.request_ns).max(0.0) } else { 0.0 }
}

/// Where a line that the rank lacks may come from, and what it takes from there; one of both is known.
struct Fetch {
    memory_ns: Option<f64>,
    /// From the farthest rank that may have the line: the time, and a node of that rank.
    rank: Option<(f64, usize)>,
    /// Whether others may want the line meanwhile.
    rivals: bool,
}

impl Fetch {
    /// From wherever it takes longer.
    fn ns(&self) -> f64 {
        self.congested_ns(0.0)
    }

    /// From wherever it takes longer, if links between ranks are used by others as well.
    fn congested_ns(&self, congestion_ns: f64) -> f64 {
        let rank = self.rank.map_or(0.0, |(ns, _)| ns + congestion_ns);
        self.memory_ns.unwrap_or(0.0).max(rank)
    }
}

/// All lines that a node lacks, one by one or at once, whichever takes longer. Each source is weighed with
/// its own congestion: a line that may come from memory may still come over a busy link.
fn fetched_ns(prices: &Prices<'_>, node: usize, missing: &[Fetch]) -> f64 {
    let congestion =
        |fetch: &Fetch| fetch.rank.map_or(0.0, |(_, s)| congestion_ns(prices, node, s));
    let one_by_one = missing.iter().map(|f| f.congested_ns(congestion(f))).sum::<f64>();
    if missing.len() < 2 {
        return one_by_one;
    }
    let lines = count(missing.len());
    let memory = missing.iter().filter(|f| f.memory_ns.is_some()).map(|_| node);
    let suppliers =
        missing.iter().filter_map(|f| f.rank.map(|(_, supplier)| supplier)).chain(memory);
    let classes = suppliers.map(|supplier| prices.pair(supplier, node));
    let at_once = classes.map(|c| c.start_ns + c.line_ns * lines).fold(0.0_f64, f64::max);
    let at_once = at_once + missing.iter().map(congestion).sum::<f64>();
    // Lines of one rank that nobody else wants come one right after another, as equation 1 was measured.
    let of = |fetch: &Fetch| fetch.rank.filter(|_| fetch.memory_ns.is_none() && !fetch.rivals);
    let from = |fetch: &Fetch| of(fetch).map(|(_, supplier)| prices.rank(supplier));
    let together =
        from(&missing[0]).is_some() && missing.iter().all(|f| from(f) == from(&missing[0]));
    if together { at_once.max(missing[0].ns()) } else { one_by_one.max(at_once) }
}

/// Whether the rank has just written the line in the operation before.
fn together(prices: &Prices<'_>, line: usize, at: usize) -> bool {
    let touch = prices.graph.history(line)[at];
    let again = prices.own_before(line, at).is_some_and(|own| own.how == Use::Write);
    touch.how == Use::Write && again && prices.consecutive(line, at)
}

/// How long others keep the line for writes that they do in their own cache; for those that stay together
/// they read the caller's buffer meanwhile.
fn held_ns(prices: &Prices<'_>, line: usize, touch: Touch) -> f64 {
    let history = prices.graph.history(line);
    let rank = prices.rank(touch.node);
    let writes = history.iter().enumerate().filter(|&(_, t)| {
        prices.rank(t.node) != rank && t.how == Use::Write && meanwhile(prices, touch, *t)
    });
    let held = writes.map(|(at, t)| {
        let read = together(prices, line, at).then(|| super::private::dearest_ns(prices, t.node));
        read.unwrap_or(0.0) + prices.costs.local_ns
    });
    held.sum()
}

/// Whether the line is in the rank's own cache, fit for this use, however ranks interleave.
fn at_hand(prices: &Prices<'_>, line: usize, at: usize) -> bool {
    in_cache(prices, line, at, prices.graph.history(line)[at].writes())
}

/// Whether the rank has the line in its own cache, to write or at least to read, however ranks interleave.
fn in_cache(prices: &Prices<'_>, line: usize, at: usize, to_write: bool) -> bool {
    let graph = prices.graph;
    let touch = graph.history(line)[at];
    let own =
        if to_write { prices.own_write_before(line, at) } else { prices.own_before(line, at) };
    let Some(own) = own.filter(|own| !graph.pending(*own)) else { return false };
    let harmless = |t: Touch| {
        (!to_write && !t.writes())
            || graph.ended_before(t.node, own.node)
            || graph.ended_before(touch.node, t.node)
            || (own.how == Use::Poll && graph.needed_by(t.node, own.node))
    };
    prices.others(line, at).all(harmless)
}

/// Whether some rank has surely fetched the line before, so that it does not come from memory.
fn surely_used(prices: &Prices<'_>, line: usize, at: usize) -> bool {
    let graph = prices.graph;
    let touch = graph.history(line)[at];
    let before = |t: Touch| {
        (touch.how == Use::Poll && graph.needed_by(t.node, touch.node))
            || graph.ended_before(t.node, touch.node)
    };
    prices.own_before(line, at).is_some() || prices.others(line, at).any(before)
}

/// What it takes longer if another rank is just fetching the line from memory, and then hands it on.
fn filled_ns(prices: &Prices<'_>, line: usize, at: usize) -> f64 {
    let graph = prices.graph;
    let node = graph.history(line)[at].node;
    if surely_used(prices, line, at) {
        return 0.0;
    }
    let others = prices.others(line, at).filter(|t| !graph.ended_before(node, t.node));
    let handed = others.map(|t| prices.memory(t.node) + prices.transfer(t.node, node));
    (handed.fold(0.0, f64::max) - fetch(prices, line, at).ns()).max(0.0)
}

/// The line from whoever may have it, the farthest, or from memory; for a write with all that may share it.
fn fetch(prices: &Prices<'_>, line: usize, at: usize) -> Fetch {
    let graph = prices.graph;
    let touch = graph.history(line)[at];
    let node = touch.node;
    let may_have = prices.others(line, at).filter(|t| !graph.ended_before(node, t.node));
    let farthest = may_have
        .clone()
        .map(|t| (prices.transfer(t.node, node), t.node))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let used = farthest.is_some() && surely_used(prices, line, at);
    let left = left_ns(prices, line, at);
    let own_ns =
        |ns: f64| left.map_or(ns, |left| if left.surely { left.ns } else { left.ns.max(ns) });
    let shared =
        if touch.writes() { shared_ns(prices, node, may_have, left.is_some()) } else { 0.0 };
    Fetch {
        memory_ns: (!used).then(|| prices.memory(node) + shared),
        rank: farthest.map(|(ns, supplier)| (own_ns(ns) + shared, supplier)),
        rivals: false,
    }
}

/// What a write costs of a line that the rank may have a copy of, or surely has, where the table tells it.
fn left_ns(prices: &Prices<'_>, line: usize, at: usize) -> Option<Left> {
    let writes = prices.graph.history(line)[at].writes();
    let ns = prices.left_shared().filter(|_| writes && prices.own_before(line, at).is_some())?;
    Some(Left { ns, surely: in_cache(prices, line, at, false) })
}

/// The price of owning a line without a transfer.
#[derive(Clone, Copy)]
struct Left {
    ns: f64,
    surely: bool,
}

/// What ranks beyond the first that may share a line add to a write of it. The first is the farthest, whose
/// data are awaited; or any, where only answers are.
fn shared_ns(
    prices: &Prices<'_>,
    node: usize,
    may_have: impl Iterator<Item = Touch>,
    answers: bool,
) -> f64 {
    let mut copies: Vec<usize> = may_have.map(|t| t.node).collect();
    copies.dedup_by_key(|n| prices.rank(*n));
    let ways = copies.iter().map(|&copy| prices.sharer(prices.transfer(copy, node)));
    let all = ways.clone().sum::<f64>();
    let first = if answers { ways.reduce(f64::min) } else { ways.reduce(f64::max) };
    all - first.unwrap_or(0.0)
}

/// Whether some rank may write the line while this use of it lasts.
fn contested(prices: &Prices<'_>, line: usize, at: usize) -> bool {
    let touch = prices.graph.history(line)[at];
    prices.others(line, at).any(|t| (t.writes() || touch.writes()) && meanwhile(prices, touch, t))
}

/// Whether `other` may be going on while `touch` has the line, or waits for it.
fn meanwhile(prices: &Prices<'_>, touch: Touch, other: Touch) -> bool {
    let graph = prices.graph;
    let before = if touch.how == Use::Poll {
        graph.needed_by(other.node, touch.node)
    } else {
        graph.ended_before(other.node, touch.node)
    };
    (!before || graph.pending(other)) && !graph.ended_before(touch.node, other.node)
}

/// One transfer for each rank that may use the line meanwhile. Reads do not hinder reads (rule 5).
fn stolen_ns(prices: &Prices<'_>, line: usize, at: usize) -> f64 {
    let touch = prices.graph.history(line)[at];
    let mut sum = 0.0;
    let mut last: Option<(usize, f64)> = None;
    let hindered = touch.writes()
        || prices.others(line, at).any(|t| t.writes() && meanwhile(prices, touch, t));
    if !hindered {
        return 0.0;
    }
    for other in prices.others(line, at).filter(|&t| meanwhile(prices, touch, t)) {
        if !under_way(prices, line, other, touch) {
            continue;
        }
        let rank = prices.rank(other.node);
        let ns = service_ns(prices, line, other);
        match last {
            Some((of, before)) if of == rank => {
                sum += (ns - before).max(0.0);
                last = Some((rank, ns.max(before)));
            }
            _ => {
                sum += ns;
                last = Some((rank, ns));
            }
        }
    }
    // An owner loses its line when a request has come, not when it was made; from then on its own request
    // is on the way beside the answer to that one.
    let owned = touch.writes() && prices.own_write_before(line, at).is_some();
    let ways = match (owned, has_waited(prices, touch.node)) {
        (false, _) => 0.0,
        // The poll may be at any stage by now.
        (true, true) => 1.0,
        // No request can have come sooner than its own way after the common beginning.
        (true, false) => 2.0,
    };
    (sum - ways * prices.costs.added.request_ns).max(0.0)
}

/// Whether the rank has waited in this call before it comes to `node`.
fn has_waited(prices: &Prices<'_>, node: usize) -> bool {
    let graph = prices.graph;
    let mut before = graph.previous(node);
    while let Some(earlier) = before {
        if matches!(graph.nodes()[earlier].operation, Operation::Wait { .. }) {
            return true;
        }
        before = graph.previous(earlier);
    }
    false
}

/// Whether `other` may have to fetch the line while `touch` needs it: it does not have it when it
/// begins, or a third use may take it away.
fn under_way(prices: &Prices<'_>, line: usize, other: Touch, touch: Touch) -> bool {
    let graph = prices.graph;
    let history = graph.history(line);
    let Some(at) = history.iter().position(|t| t.node == other.node) else { return true };
    let Some(own) = prices.own_before(line, at) else { return true };
    let takes = |t: Touch| {
        t.node != touch.node
            && (t.writes() || other.writes())
            && !graph.ended_before(t.node, own.node)
            && !(own.how == Use::Poll && graph.needed_by(t.node, own.node))
            && !graph.ended_before(touch.node, t.node)
    };
    other.writes() && !own.writes() || prices.others(line, at).any(takes)
}

/// What one transfer to `other` takes at most. Memory gives the line to one of them only, and that is
/// counted for the node itself.
fn service_ns(prices: &Prices<'_>, line: usize, other: Touch) -> f64 {
    let history = prices.graph.history(line);
    history.iter().position(|t| t.node == other.node).map_or(0.0, |at| fetch(prices, line, at).ns())
}

/// Congestion: each other rank that may be moving other lines over links of the same class (equation 1,
/// the term with n).
fn congestion_ns(prices: &Prices<'_>, node: usize, supplier: usize) -> f64 {
    let graph = prices.graph;
    let ns = prices.pair(supplier, node).congestion_ns;
    if ns == 0.0 {
        return 0.0;
    }
    let link = prices.class(supplier, node);
    let over_it = |other: usize, line: usize, at: usize| {
        prices.others(line, at).any(|t| prices.class(t.node, other) == link)
    };
    let crosses = |other: usize| {
        graph.unordered(other, node)
            && graph.touches(other).iter().any(|&(line, at)| over_it(other, line, at))
    };
    let mut ranks: Vec<usize> =
        graph.topological().filter(|&o| crosses(o)).map(|o| prices.rank(o)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ns * count(ranks.len())
}

#[allow(clippy::cast_precision_loss, reason = "counts of lines and ranks are far below 2^52")]
const fn count(n: usize) -> f64 {
    n as f64
}
