//! The caller's own buffers: always in the local cache (rule 2).

use super::node::Node;
use super::prices::Prices;
use crate::program::{Buffer, Operation, Place, Span};

/// The private spans of an operation, empty ones left out.
fn spans(node: &Node) -> impl Iterator<Item = (Buffer, Span)> {
    let spans = match node.operation {
        Operation::Copy { src, dst } | Operation::Reduce { src, dst, .. } => vec![src, dst],
        _ => Vec::new(),
    };
    spans.into_iter().filter(|s| s.bytes > 0).filter_map(|span| match span.place {
        Place::Private(buffer) => Some((buffer, span)),
        Place::Shared(_) => None,
    })
}

/// One access to the local cache, unless the operation just before used the buffer (rule 3).
pub(super) fn cheapest_ns(prices: &Prices<'_>, node: usize) -> f64 {
    let nodes = prices.graph.nodes();
    let before = prices.graph.previous(node).map(|p| &nodes[p]);
    let again = |buffer| before.is_some_and(|p| spans(p).any(|(other, _)| other == buffer));
    if spans(&nodes[node]).any(|(buffer, _)| !again(buffer)) { prices.costs.local_ns } else { 0.0 }
}

/// One access to the local cache for every line.
pub(super) fn dearest_ns(prices: &Prices<'_>, node: usize) -> f64 {
    let lines = |(_, span): (Buffer, Span)| f64::from(span.touched().1);
    spans(&prices.graph.nodes()[node]).map(lines).sum::<f64>() * prices.costs.local_ns
}
