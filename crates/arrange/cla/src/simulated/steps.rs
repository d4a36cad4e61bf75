//! Operations as accesses to lines.

use isochrone_sim::lines::{Change, Program, Step, Touch, Touches, Until};

use crate::program::{Buffer, Compare, Line, Operation, Place, Recorded, Span};

/// What the cores do that stand for the ranks of a program. Operation `n` of a rank is step `n`.
pub(super) fn of(program: &Recorded) -> Program {
    let steps = |operations: &[Operation]| -> Vec<Step> {
        let mut before = None;
        let one = |operation: &Operation| {
            let step = step(operation, before);
            before = Some(*operation);
            step
        };
        operations.iter().map(one).collect()
    };
    Program { cores: program.ranks.iter().map(|rank| steps(&rank.operations)).collect() }
}

fn step(operation: &Operation, before: Option<Operation>) -> Step {
    match *operation {
        Operation::Copy { src, dst } | Operation::Reduce { src, dst, .. } => {
            Step::Touch { lines: touches(src, dst), private: private(operation, before.as_ref()) }
        }
        Operation::Wait { line, compare, value } => Step::Wait {
            line: line.0,
            until: match compare {
                Compare::Equal => Until::Equal(value),
                Compare::AtLeast => Until::AtLeast(value),
            },
        },
        Operation::Write { line, value } => change(line.0, Change::Set(value)),
        Operation::Add { line, value } => change(line.0, Change::Add(value)),
        Operation::Claim { line, lines } => Step::Claim { line: line.0, lines },
    }
}

fn change(line: u32, change: Change) -> Step {
    let touch = Touch { line, change: Some(change) };
    Step::Touch { lines: std::iter::once(touch).collect(), private: 0 }
}

/// The shared lines of a copy or a reduction, each once: first those that are only read. Words are not
/// what is copied, so they stay.
fn touches(src: Span, dst: Span) -> Touches {
    let written = |line: u32| dst.shared_lines().any(|other| other.0 == line);
    let read = src.shared_lines().map(|line| line.0).filter(|&line| !written(line));
    let read = read.map(|line| Touch { line, change: None });
    let write = |line: Line| Touch { line: line.0, change: Some(Change::Keep) };
    read.chain(dst.shared_lines().map(write)).collect()
}

/// Buffers of the caller are in the rank's own cache: one access, unless the operation before used the
/// same buffer (rule 3 of the paper).
fn private(operation: &Operation, before: Option<&Operation>) -> u32 {
    let again = |buffer| before.is_some_and(|before| buffers(before).any(|used| used == buffer));
    u32::from(buffers(operation).any(|buffer| !again(buffer)))
}

fn buffers(operation: &Operation) -> impl Iterator<Item = Buffer> {
    let spans = match *operation {
        Operation::Copy { src, dst } | Operation::Reduce { src, dst, .. } => [Some(src), Some(dst)],
        _ => [None, None],
    };
    spans.into_iter().flatten().filter(|span| span.bytes > 0).filter_map(|span| match span.place {
        Place::Private(buffer) => Some(buffer),
        Place::Shared(_) => None,
    })
}
