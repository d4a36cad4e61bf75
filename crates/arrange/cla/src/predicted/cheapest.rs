//! T_min: every node at its cheapest.
//!
//! A bound from below on every way in which the ranks may interleave. A use of a line costs what it must
//! cost in all of them: nothing where the line may still be at hand, one transfer from the nearest rank
//! that may have it where somebody else has surely taken it away. What a wait reads has come from its
//! writer, at least by the shortest way.

use super::graph::Graph;
use super::prices::Prices;
use super::timing::Timing;
use super::uses::{Touch, Use};

/// Prices `graph` at its cheapest.
pub(super) fn cheapest(prices: &Prices<'_>) -> Timing {
    let graph = prices.graph;
    let nearest = Nearest::of(prices);
    let mut timing = Timing::new(graph);
    for node in graph.topological() {
        let begin = timing.ready(graph, node);
        let own = begin + node_ns(prices, node);
        // What an earlier call wrote may have come with that call.
        let sources = graph.sources(node).iter().copied();
        let sources: Vec<usize> = sources.filter(|&s| !graph.nodes()[s].earlier).collect();
        let (end, before) = match sources[..] {
            [] => (own, graph.previous(node).into_iter().collect()),
            _ => waited(prices, &nearest, &timing, node, own, &sources),
        };
        let (end, before) = arrived(prices, &nearest, &timing, node, (end, before));
        timing.set(node, begin, end, before);
    }
    timing.finish(prices.costs.added.call_ns)
}

/// When a wait ends: not before its rank comes to it, nor before the last source's line has come.
fn waited(
    prices: &Prices<'_>,
    nearest: &Nearest,
    timing: &Timing,
    node: usize,
    own: f64,
    sources: &[usize],
) -> (f64, Vec<usize>) {
    let graph = prices.graph;
    let way = |from: usize| nearest.way(prices.rank(from), prices.rank(node));
    let mut best = (own, graph.previous(node).into_iter().collect::<Vec<_>>());
    let mut last = f64::INFINITY;
    let extra = extra_ns(prices, node);
    for &source in sources {
        last = last.min(way(source));
        let end = timing.end_ns[source] + way(source) + extra;
        if end > best.0 {
            best = (end, vec![source]);
        }
    }
    if sources.len() > 1 {
        let adds = sources.iter().map(|&a| (a, (timing.begin_ns[a], node_ns(prices, a))));
        let (end, chain) = in_turn(adds);
        if end + last + extra > best.0 {
            best = (end + last + extra, chain);
        }
    }
    best
}

/// Data cannot be read before they have come from who wrote them.
fn arrived(
    prices: &Prices<'_>,
    nearest: &Nearest,
    timing: &Timing,
    node: usize,
    mut best: (f64, Vec<usize>),
) -> (f64, Vec<usize>) {
    for &(write, _) in prices.graph.data(node) {
        let way = nearest.way(prices.rank(write), prices.rank(node));
        if timing.end_ns[write] + way > best.0 {
            best = (timing.end_ns[write] + way, vec![write]);
        }
    }
    best
}

/// E3: a line is in one place at a time, so ranks that add to it follow one another. Whoever comes first
/// goes first, which no other order beats. `adds` has each add with when it can begin and what it costs.
/// The end of the last one, and the adds from the one that all later ones wait for.
pub(super) fn in_turn(adds: impl Iterator<Item = (usize, (f64, f64))>) -> (f64, Vec<usize>) {
    let mut order: Vec<_> = adds.collect();
    order.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let mut end = 0.0_f64;
    let mut chain = Vec::new();
    for (add, (begin, cost)) in order {
        if begin >= end {
            chain.clear();
        }
        end = end.max(begin) + cost;
        chain.push(add);
    }
    (end, chain)
}

/// What the node must cost its rank.
fn node_ns(prices: &Prices<'_>, node: usize) -> f64 {
    let graph = prices.graph;
    let mut sum = super::private::cheapest_ns(prices, node);
    let mut missing: Vec<(f64, usize)> = Vec::new();
    let mut local = 0.0_f64;
    let mut at_hand = false;
    for (line, at, touch) in prices.awaited(node) {
        let must = if touch.writes() { writes(prices, line, at) } else { reads(prices, line, at) };
        match must {
            Some((ns, supplier)) => missing.push((ns + prices.neighbour(line, at), supplier)),
            None if prices.consecutive(line, at) => at_hand |= !touch.writes(),
            None => local = prices.costs.local_ns,
        }
    }
    let one_by_one: f64 = missing.iter().map(|(ns, _)| ns).sum();
    sum += match missing[..] {
        [] => local,
        [(ns, _)] if prices.overlaps(node) => prices.costs.added.overlapped_ack_ns.unwrap_or(ns),
        // Its flag has just come in the line before it: the load of this one may have been on its way by then.
        [(ns, from)] if at_hand => ns.min(prices.pair(from, node).line_ns),
        [(ns, _)] => ns,
        [(_, first), ..] => {
            let class = missing.iter().map(|&(_, s)| prices.pair(s, node));
            let class = class.min_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
            let class = class.unwrap_or_else(|| prices.pair(first, node));
            Prices::several(class, count(missing.len()), one_by_one)
        }
    };
    sum + if graph.sources(node).is_empty() { extra_ns(prices, node) } else { 0.0 }
}

/// What a read costs more because of who else reads.
fn extra_ns(prices: &Prices<'_>, node: usize) -> f64 {
    let of = |&(line, at): &(usize, usize)| prices.remote_reader(line, at);
    prices.graph.touches(node).iter().map(of).fold(0.0, f64::max)
}

/// What a read must cost if the line is surely not at hand, and who may supply it.
fn reads(prices: &Prices<'_>, line: usize, at: usize) -> Option<(f64, usize)> {
    let graph = prices.graph;
    let touch = graph.history(line)[at];
    match prices.own_before(line, at) {
        // A poll that has to wait may find it gone in the meantime; that is the way from its source.
        Some(own) => {
            let taken = |t: &Touch| {
                t.writes()
                    && !graph.pending(*t)
                    && graph.ended_before(own.node, t.node)
                    && surely(graph, touch, t.node)
            };
            prices.others(line, at).any(|t| taken(&t)).then(|| supply(prices, line, at))
        }
        None => Some(supply(prices, line, at)),
    }
}

/// What a write must cost if the rank surely does not own the line, and who may supply it.
fn writes(prices: &Prices<'_>, line: usize, at: usize) -> Option<(f64, usize)> {
    let graph = prices.graph;
    let touch = graph.history(line)[at];
    let own = prices.own_write_before(line, at);
    let shared = |t: &Touch| {
        graph.ended_before(t.node, touch.node)
            && !graph.pending(*t)
            && own.is_none_or(|own| !graph.pending(own) && surely(graph, *t, own.node))
    };
    let foreign = prices.others(line, at).any(|t| shared(&t));
    if prices.own_before(line, at).is_some() && !foreign {
        return None;
    }
    // Whoever has used the line may still have a copy, and then only has to own it.
    let may_have = prices.own_before(line, at).and_then(|_| prices.left_shared());
    let own_ns = |transfer_ns: f64| may_have.map_or(transfer_ns, |left| left.min(transfer_ns));
    let (nearest, supplier) = supply(prices, line, at);
    let copies = sharers(prices, line, at);
    let ways = copies.iter().map(|&user| prices.transfer(user, touch.node));
    let first = ways.clone().fold(f64::INFINITY, f64::min);
    if first.is_infinite() {
        return Some((own_ns(nearest), supplier));
    }
    // All are asked at once; the first answer comes at the earliest from the nearest of them. Where only answers
    // without data are awaited, any may be the first.
    let sharers = ways.map(|ns| prices.sharer(ns));
    let (sum, dearest) = (sharers.clone().sum::<f64>(), sharers.fold(0.0, f64::max));
    let fetched = sum - prices.sharer(first) + first;
    let owned = may_have.map_or(f64::INFINITY, |left| sum - dearest + left);
    Some((fetched.min(owned), supplier))
}

/// Ranks that surely share the line when it is written, by a node of each: they used it before, and
/// nobody wrote it since.
fn sharers(prices: &Prices<'_>, line: usize, at: usize) -> Vec<usize> {
    let graph = prices.graph;
    let history = graph.history(line);
    let node = history[at].node;
    let kept = |user: &Touch| {
        let gone = |w: &Touch| {
            w.writes()
                && w.node != node
                && w.node != user.node
                && !surely(graph, *user, w.node)
                && !graph.ended_before(node, w.node)
        };
        graph.ended_before(user.node, node) && !graph.pending(*user) && !history.iter().any(gone)
    };
    let mut nodes: Vec<usize> = prices.others(line, at).filter(kept).map(|t| t.node).collect();
    nodes.dedup_by_key(|n| prices.rank(*n));
    nodes
}

/// The cheapest way to get the line: from any rank that may have it, or from memory if nobody has
/// surely used it.
fn supply(prices: &Prices<'_>, line: usize, at: usize) -> (f64, usize) {
    let graph = prices.graph;
    let node = graph.history(line)[at].node;
    let may_have = prices.others(line, at).filter(|t| !graph.ended_before(node, t.node));
    let from = may_have.map(|t| (prices.transfer(t.node, node), t.node));
    let cached = from.min_by(|a, b| a.0.total_cmp(&b.0));
    let used = prices.others(line, at).any(|t| surely(graph, graph.history(line)[at], t.node))
        || prices.own_before(line, at).is_some();
    let memory = (prices.memory(node), node);
    match cached {
        Some(cached) if used || cached.0 < memory.0 => cached,
        _ => memory,
    }
}

/// Whether `other` has surely ended before `touch` gets the line: for a wait, before it ends.
fn surely(graph: &Graph, touch: Touch, other: usize) -> bool {
    if touch.how == Use::Poll {
        graph.needed_by(other, touch.node)
    } else {
        graph.ended_before(other, touch.node)
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of lines and ranks are far below 2^52")]
const fn count(n: usize) -> f64 {
    n as f64
}

/// The shortest ways between ranks, over other ranks where that is shorter.
#[derive(Debug)]
struct Nearest {
    ranks: usize,
    ns: Vec<f64>,
}

impl Nearest {
    /// All pairs, by Floyd and Warshall.
    fn of(prices: &Prices<'_>) -> Self {
        let ranks = prices.graph.ranks();
        let mut ns: Vec<f64> = Vec::with_capacity(ranks * ranks);
        for a in 0..ranks {
            ns.extend((0..ranks).map(|b| if a == b { 0.0 } else { prices.between(a, b) }));
        }
        for over in 0..ranks {
            for a in 0..ranks {
                let first = ns[a * ranks + over];
                for b in 0..ranks {
                    let way = first + ns[over * ranks + b];
                    if way < ns[a * ranks + b] {
                        ns[a * ranks + b] = way;
                    }
                }
            }
        }
        Self { ranks, ns }
    }

    fn way(&self, from: usize, to: usize) -> f64 {
        self.ns[from * self.ranks + to]
    }
}
