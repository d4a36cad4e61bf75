//! The recorder: a program written down, rank by rank.

use super::lines::{Gone, Lines};
use super::operation::{Combine, Compare, Operation};
use super::place::{Buffer, Line, Place, Rank, Span};

/// What one rank does, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The operations.
    pub operations: Vec<Operation>,
}

impl Lines for Record {
    fn copy(&mut self, src: Span, dst: Span) {
        self.operations.push(Operation::Copy { src, dst });
    }

    fn wait(&mut self, line: Line, compare: Compare, value: u64) -> Result<(), Gone> {
        self.operations.push(Operation::Wait { line, compare, value });
        Ok(())
    }

    fn write(&mut self, line: Line, value: u64) {
        self.operations.push(Operation::Write { line, value });
    }

    fn add(&mut self, line: Line, value: u64) {
        self.operations.push(Operation::Add { line, value });
    }

    fn claim(&mut self, line: Line, lines: u32) {
        self.operations.push(Operation::Claim { line, lines });
    }

    fn reduce(&mut self, combine: Combine, src: Span, dst: Span) {
        self.operations.push(Operation::Reduce { combine, src, dst });
    }
}

/// A whole program written down: what each rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// One list a rank, rank 0 first.
    pub ranks: Vec<Record>,
}

impl Recorded {
    /// How many shared lines the program addresses: one more than the highest number.
    #[must_use]
    pub fn lines(&self) -> u32 {
        let operations = self.ranks.iter().flat_map(|rank| &rank.operations);
        operations.flat_map(|operation| operation.lines()).map(|line| line.0 + 1).max().unwrap_or(0)
    }
}

impl Recorded {
    /// Bytes of a private buffer that some rank uses.
    #[must_use]
    pub fn buffer_bytes(&self, buffer: Buffer) -> u32 {
        let operations = self.ranks.iter().flat_map(|rank| &rank.operations);
        let own = |span: &Span| span.place == Place::Private(buffer);
        let ends = operations.flat_map(Operation::spans).filter(own).map(|s| s.offset + s.bytes);
        ends.max().unwrap_or(0)
    }
}

impl Operation {
    /// What the operation moves: from where and to where.
    pub fn spans(&self) -> impl Iterator<Item = Span> + use<> {
        let both = match *self {
            Self::Copy { src, dst } | Self::Reduce { src, dst, .. } => Some([src, dst]),
            _ => None,
        };
        both.into_iter().flatten()
    }

    /// The shared lines that the operation touches.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        match *self {
            Self::Copy { src, dst } | Self::Reduce { src, dst, .. } => {
                src.shared_lines().chain(dst.shared_lines()).collect()
            }
            Self::Claim { line, lines } => (0..lines).map(|n| line.plus(n)).collect(),
            Self::Wait { line, .. } | Self::Write { line, .. } | Self::Add { line, .. } => {
                vec![line]
            }
        }
    }
}

/// Records `program` for each of `ranks` ranks.
///
/// # Panics
/// Never for a program that only passes errors on: a recorder's waits succeed.
pub fn record(
    ranks: u16,
    mut program: impl FnMut(&mut Record, Rank) -> Result<(), Gone>,
) -> Recorded {
    let mut operations = 0;
    let one = |rank| {
        // Most ranks do as much as the one before.
        let mut record = Record { operations: Vec::with_capacity(operations) };
        let ended = program(&mut record, Rank(rank));
        assert!(ended.is_ok(), "a program made up an error: {ended:?}");
        operations = record.operations.len();
        record
    };
    Recorded { ranks: (0..ranks).map(one).collect() }
}
