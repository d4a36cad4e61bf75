//! The graph for Graphviz, drawn as the paper draws Figure 2.

use std::fmt::Write as _;

use super::graph::EdgeKind;
use super::words::words;
use super::{Prediction, Timing};

/// The graph with the critical path of `timing` thick, in the language of Graphviz. E1 is dotted, E2
/// solid, E3 solid without arrows, E4 dashed without arrows; nodes of the path have dotted borders.
#[must_use]
pub fn dot(prediction: &Prediction, timing: &Timing, title: &str) -> String {
    let graph = &prediction.graph;
    let path = timing.path(graph);
    let mut text =
        String::from("digraph cla {\n  rankdir=TB; node [shape=box, fontname=\"sans-serif\"];\n");
    let _ = writeln!(text, "  label=\"{}\"; labelloc=t;", title.replace('"', "'"));
    for rank in 0..graph.ranks() {
        let _ = writeln!(text, "  subgraph cluster_{rank} {{ label=\"t{rank}\"; color=gray;");
        for node in graph.topological().filter(|&n| graph.nodes()[n].rank.index() == rank) {
            let style = if path.contains(&node) { ", style=dotted, penwidth=3" } else { "" };
            let (begin, end) = (timing.begin_ns[node], timing.end_ns[node]);
            let what = words(&graph.nodes()[node]);
            let _ =
                writeln!(text, "    n{node} [label=\"{what}\\n{begin:.1} - {end:.1} ns\"{style}];");
        }
        text.push_str("  }\n");
    }
    for edge in graph.edges() {
        let thick = path.windows(2).any(|pair| {
            pair == [edge.from, edge.to]
                || (edge.kind == EdgeKind::AnyOrder && pair == [edge.to, edge.from])
        });
        let style = match edge.kind {
            EdgeKind::Sequence => "style=dotted",
            EdgeKind::Dependency => "style=solid",
            EdgeKind::AnyOrder => "style=solid, dir=none, constraint=false",
            EdgeKind::Stealing => "style=dashed, dir=none, constraint=false, color=gray",
        };
        let width = if thick { ", penwidth=3" } else { "" };
        let _ = writeln!(text, "  n{} -> n{} [{style}{width}];", edge.from, edge.to);
    }
    text.push_str("}\n");
    text
}
