//! What a node is called in pictures, in the paper's pseudo-code.

use super::node::Node;
use crate::program::{Buffer, Compare, Operation, Place, Span};

/// The operation of a node in a few words.
#[must_use]
pub fn words(node: &Node) -> String {
    match node.operation {
        Operation::Copy { src, dst } => format!("copy {} to {}", span(src), span(dst)),
        Operation::Wait { line, compare, value } => {
            let sign = match compare {
                Compare::Equal => "=",
                Compare::AtLeast => "\u{2265}",
            };
            format!("wait L{} {sign} {value}", line.0)
        }
        Operation::Write { line, value } => format!("write L{} := {value}", line.0),
        Operation::Add { line, value } => format!("add L{} += {value}", line.0),
        Operation::Claim { line, lines: 1 } => format!("claim L{}", line.0),
        Operation::Claim { line, lines } => {
            format!("claim L{}-{}", line.0, line.0 + lines.max(1) - 1)
        }
        Operation::Reduce { src, dst, .. } => format!("reduce {} into {}", span(src), span(dst)),
    }
}

fn span(span: Span) -> String {
    let (first, lines) = span.touched();
    match span.place {
        Place::Private(Buffer::Send) => "send".to_owned(),
        Place::Private(Buffer::Receive) => "receive".to_owned(),
        Place::Shared(line) if lines > 1 => {
            format!("L{}-{}", line.0 + first, line.0 + first + lines - 1)
        }
        Place::Shared(line) => format!("L{}", line.0 + first),
    }
}
