//! Prices as the paper prints them: rules 1 to 5 of section 3, equation (1), E3 by reordering.
//!
//! T_min is the cost of the longest path; before a wait it visits every write that the wait needs, in the
//! order with the fewest transfers between sockets. T_max adds one transfer to a node for every
//! unordered use of its line by another rank, where somebody polls the line.

use super::prices::Prices;
use super::timing::Timing;
use super::uses::{Touch, Use};

/// Which end of the band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Least,
    Most,
}

/// Prices the graph by the printed rules.
pub(super) fn printed(prices: &Prices<'_>, end: End) -> Timing {
    let graph = prices.graph;
    let mut timing = Timing::new(graph);
    for node in graph.topological() {
        let begin = timing.ready(graph, node);
        let cost = node_ns(prices, node) + stolen_ns(prices, end, node);
        let own = graph.previous(node).into_iter().collect::<Vec<_>>();
        let sources = graph.sources(node);
        let (at, before) = if sources.len() > 1 {
            all_of(prices, end, &timing, node, sources)
        } else {
            let source = sources.first().filter(|&&s| !graph.nodes()[s].earlier);
            source.map_or((0.0, Vec::new()), |&s| (timing.end_ns[s], vec![s]))
        };
        let (from, before) = if at > begin || own.is_empty() { (at, before) } else { (begin, own) };
        timing.set(node, begin, from + cost, before);
    }
    timing.finish(0.0)
}

/// E3: the path comes from the write that can begin last and visits all the others.
fn all_of(
    prices: &Prices<'_>,
    end: End,
    timing: &Timing,
    wait: usize,
    writes: &[usize],
) -> (f64, Vec<usize>) {
    let begin = |&w: &usize| timing.begin_ns[w];
    let last = writes.iter().copied().max_by(|a, b| begin(a).total_cmp(&begin(b)));
    let Some(last) = last else { return (0.0, Vec::new()) };
    let first = node_ns(prices, last);
    let stolen: f64 = writes.iter().map(|&w| stolen_ns(prices, end, w)).sum();
    let total = begin(&last) + first + round(prices, wait, writes) + stolen;
    let others = writes.iter().copied().filter(|&w| w != last);
    (total, std::iter::once(last).chain(others).collect())
}

/// The transfers from write to write. Where near classes are nested in far ones, the way with the fewest
/// far transfers that ends at the polling rank is as long as a shortest spanning tree; its last hop is
/// the wait's own cost.
fn round(prices: &Prices<'_>, wait: usize, writes: &[usize]) -> f64 {
    let at = |n: usize| writes.get(n).copied().unwrap_or(wait);
    let all = spanning(writes.len(), writes.len(), |a, b| prices.transfer(at(a), at(b)));
    let hops = writes.iter().map(|&w| prices.transfer(w, wait));
    all - hops.fold(f64::INFINITY, f64::min)
}

/// The length of the shortest tree that joins `root` with items `0..others` (Prim).
pub(super) fn spanning(others: usize, root: usize, ns: impl Fn(usize, usize) -> f64) -> f64 {
    let mut reach: Vec<(usize, f64)> = (0..others).map(|n| (n, ns(root, n))).collect();
    let mut sum = 0.0;
    while let Some(next) = (0..reach.len()).min_by(|&a, &b| reach[a].1.total_cmp(&reach[b].1)) {
        let (node, way) = reach.swap_remove(next);
        sum += way;
        for (other, shortest) in &mut reach {
            *shortest = shortest.min(ns(node, *other));
        }
    }
    sum
}

/// What a node costs by rules 1 to 4.
fn node_ns(prices: &Prices<'_>, node: usize) -> f64 {
    let mut sum = super::private::cheapest_ns(prices, node);
    let mut moved: Vec<(f64, Option<usize>)> = Vec::new();
    for (line, at, _) in prices.awaited(node) {
        if prices.consecutive(line, at) && !needs_foreign(prices, line, at) {
            continue; // Rule 3.
        }
        match moving(prices, line, at) {
            Some(moving) => moved.push(moving),
            None => sum += prices.costs.local_ns,
        }
    }
    sum + match moved[..] {
        [] => 0.0,
        [(ns, _)] => ns,
        _ => {
            let class = |supplier: &Option<usize>| prices.pair(supplier.unwrap_or(node), node);
            let one = |(_, s): &(f64, Option<usize>)| {
                class(s).start_ns + class(s).line_ns * count(moved.len())
            };
            moved.iter().map(one).fold(0.0, f64::max)
        }
    }
}

/// Whether the node waits for, or reads, what another rank has written to the line in this call.
fn needs_foreign(prices: &Prices<'_>, line: usize, at: usize) -> bool {
    let graph = prices.graph;
    let touch = graph.history(line)[at];
    let now = |s: &usize| prices.rank(*s) != prices.rank(touch.node) && !graph.nodes()[*s].earlier;
    touch.how == Use::Poll && graph.sources(touch.node).iter().any(now)
}

/// What a line costs that has to move, and from whom (memory: nobody); `None` if it is at hand.
fn moving(prices: &Prices<'_>, line: usize, at: usize) -> Option<(f64, Option<usize>)> {
    let graph = prices.graph;
    let touch = graph.history(line)[at];
    let node = touch.node;
    let sources = if touch.how == Use::Poll { graph.sources(node) } else { &[] };
    let foreign = sources.iter().copied().filter(|&s| prices.rank(s) != prices.rank(node));
    let by_way = |s: usize| (prices.transfer(s, node), Some(s));
    let cheapest = |a: &(f64, Option<usize>), b: &(f64, Option<usize>)| a.0.total_cmp(&b.0);
    if let Some(way) = foreign.map(by_way).min_by(cheapest) {
        return Some(way); // Rule 4, a wait.
    }
    let data = graph.data(node).iter().filter(|(_, l)| *l == line).map(|&(w, _)| by_way(w));
    if let Some(way) = data.min_by(cheapest) {
        return Some(way); // Rule 4, data.
    }
    let own = prices.own_before(line, at);
    let since = |t: &Touch| {
        graph.ended_before(t.node, node)
            && (t.writes() || touch.writes())
            && own.is_none_or(|own| graph.ended_before(own.node, t.node))
    };
    let used: Vec<Touch> = prices.others(line, at).filter(since).collect();
    if !used.is_empty() {
        let first = used.iter().map(|t| by_way(t.node)).min_by(cheapest);
        if !touch.writes() {
            return first;
        }
        let mut copies: Vec<usize> = used.iter().map(|t| t.node).collect();
        copies.dedup_by_key(|n| prices.rank(*n));
        let all = copies.iter().map(|&copy| prices.transfer(copy, node)).sum();
        return first.map(|(_, from)| (all, from)); // Section 2.3: an RFO costs n R_R.
    }
    if own.is_some() {
        return None; // Rule 2.
    }
    let earlier = prices.others(line, at).filter(|t| graph.ended_before(t.node, node));
    let earlier = earlier.map(|t| by_way(t.node)).min_by(cheapest);
    Some(earlier.unwrap_or((prices.memory(node), None))) // Rule 1.
}

/// T_max: one transfer for every unordered use of the line by another rank.
fn stolen_ns(prices: &Prices<'_>, end: End, node: usize) -> f64 {
    let graph = prices.graph;
    if end == End::Least {
        return 0.0;
    }
    let mut sum = 0.0;
    for (line, at, touch) in prices.awaited(node) {
        if !graph.history(line).iter().any(|t| t.how == Use::Poll) {
            continue;
        }
        let steals = |t: &Touch| {
            (t.writes() || touch.writes())
                && graph.unordered(t.node, node)
                && !graph.needed_by(t.node, node)
                && !graph.together(t.node, node)
        };
        sum += prices
            .others(line, at)
            .filter(steals)
            .map(|t| prices.transfer(t.node, node))
            .sum::<f64>();
    }
    sum
}

#[allow(clippy::cast_precision_loss, reason = "counts of lines and ranks are far below 2^52")]
const fn count(n: usize) -> f64 {
    n as f64
}
