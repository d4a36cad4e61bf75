//! The graph as a picture: one column a rank, time downwards, the critical path thick.

use std::fmt::Write as _;

use super::graph::{Edge, EdgeKind};
use super::words::words;
use super::{Prediction, Timing};

/// Pixels of a column and of a row; a node is a little smaller.
const COLUMN: usize = 210;
const ROW: usize = 58;
const NODE_WIDTH: usize = 184;
const NODE_HEIGHT: usize = 38;
/// Room above the first row for title and ranks, and below the last for the legend.
const TOP: usize = 64;
const BOTTOM: usize = 40;

/// The graph with the critical path of `timing` thick. A node stands below everything that it needs;
/// its own times are written in it.
#[must_use]
pub fn svg(prediction: &Prediction, timing: &Timing, title: &str) -> String {
    let picture = Picture::of(prediction, timing);
    let width = COLUMN * prediction.graph.ranks().max(3) + 20;
    let height = TOP + ROW * picture.rows + BOTTOM;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
         <path d=\"M0 0 8 4 0 8z\" fill=\"#333\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let _ = writeln!(
        text,
        "<text x=\"10\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>",
        escaped(title)
    );
    for rank in 0..prediction.graph.ranks() {
        let x = 10 + COLUMN * rank + NODE_WIDTH / 2;
        let _ = writeln!(text, "<text x=\"{x}\" y=\"50\" text-anchor=\"middle\">t{rank}</text>");
    }
    let mut edges = prediction.graph.edges();
    edges.sort_by_key(|edge| (picture.thick(edge), edge.kind != EdgeKind::Stealing));
    for edge in &edges {
        picture.edge(edge, &mut text);
    }
    for node in prediction.graph.topological() {
        picture.node(node, &mut text);
    }
    let y = height - 14;
    let _ = writeln!(
        text,
        "<text x=\"10\" y=\"{y}\" fill=\"#555\">E1 dotted, E2 arrow, E3 plain, E4 dashed; critical path \
         thick; predicted, ns</text>\n</svg>"
    );
    text
}

struct Picture<'a> {
    prediction: &'a Prediction,
    timing: &'a Timing,
    path: Vec<usize>,
    row: Vec<usize>,
    rows: usize,
}

impl<'a> Picture<'a> {
    fn of(prediction: &'a Prediction, timing: &'a Timing) -> Self {
        let graph = &prediction.graph;
        let mut row = vec![0; graph.nodes().len()];
        let needs: Vec<Edge> = graph
            .edges()
            .into_iter()
            .filter(|e| matches!(e.kind, EdgeKind::Sequence | EdgeKind::Dependency))
            .collect();
        let mut into = vec![Vec::new(); graph.nodes().len()];
        for edge in needs {
            into[edge.to].push(edge.from);
        }
        for node in graph.topological() {
            row[node] = into[node].iter().map(|&from: &usize| row[from] + 1).max().unwrap_or(0);
        }
        let rows = graph.topological().map(|node| row[node] + 1).max().unwrap_or(1);
        Self { prediction, timing, path: timing.path(graph), row, rows }
    }

    fn at(&self, node: usize) -> (usize, usize) {
        let rank = self.prediction.graph.nodes()[node].rank.index();
        (10 + COLUMN * rank, TOP + ROW * self.row[node])
    }

    fn thick(&self, edge: &Edge) -> bool {
        self.path.windows(2).any(|pair| {
            pair == [edge.from, edge.to]
                || (edge.kind == EdgeKind::AnyOrder && pair == [edge.to, edge.from])
        })
    }

    fn edge(&self, edge: &Edge, text: &mut String) {
        let (from, to) = (self.at(edge.from), self.at(edge.to));
        let middle = NODE_WIDTH / 2;
        let (x1, y1, x2, y2) = if from.0 == to.0 {
            (from.0 + middle, from.1 + NODE_HEIGHT, to.0 + middle, to.1)
        } else if from.0 < to.0 {
            (from.0 + NODE_WIDTH, from.1 + NODE_HEIGHT / 2, to.0, to.1 + NODE_HEIGHT / 2)
        } else {
            (from.0, from.1 + NODE_HEIGHT / 2, to.0 + NODE_WIDTH, to.1 + NODE_HEIGHT / 2)
        };
        let style = match edge.kind {
            EdgeKind::Sequence => {
                "stroke=\"#333\" stroke-dasharray=\"2 3\" marker-end=\"url(#head)\""
            }
            EdgeKind::Dependency => "stroke=\"#333\" marker-end=\"url(#head)\"",
            EdgeKind::AnyOrder => "stroke=\"#333\"",
            EdgeKind::Stealing => "stroke=\"#bbb\" stroke-dasharray=\"6 4\"",
        };
        let width = if self.thick(edge) { 4 } else { 1 };
        let _ = writeln!(
            text,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke-width=\"{width}\" {style}/>"
        );
    }

    fn node(&self, node: usize, text: &mut String) {
        let (x, y) = self.at(node);
        let style = if self.path.contains(&node) {
            "stroke=\"#b00\" stroke-width=\"2.5\" stroke-dasharray=\"2 2\" fill=\"#fff4f0\""
        } else {
            "stroke=\"#666\" fill=\"#f7f7f7\""
        };
        let (begin, end) = (self.timing.begin_ns[node], self.timing.end_ns[node]);
        let what = escaped(&words(&self.prediction.graph.nodes()[node]));
        let middle = x + NODE_WIDTH / 2;
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"6\" {style}/>\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{what}</text>\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{begin:.1} to \
             {end:.1}</text>",
            y + 16,
            y + 31
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
