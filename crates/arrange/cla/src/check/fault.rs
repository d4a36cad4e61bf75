//! What can go wrong, and the order in which it does.

use std::fmt;

use crate::program::{Compare, Operation, Place, Rank, Span};

/// One operation of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Who does it.
    pub rank: Rank,
    /// In which call, from 0.
    pub call: usize,
    /// Its place within the call, from 0.
    pub at: usize,
    /// What it does.
    pub operation: Operation,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Nobody can go on.
    Deadlock {
        /// The waits that never end, with the words that they see.
        waiting: Vec<(Step, u64)>,
    },
    /// Nobody can go on, and a word had been what a rank waited for, while it waited.
    LostWakeUp {
        /// The wait.
        waiting: Step,
        /// The word that it sees.
        word: u64,
        /// The operation that took the value away before the wait saw it.
        gone: Step,
    },
    /// Two operations use the same bytes of a line at the same time, and one of them writes.
    Together {
        /// One of the two.
        one: Step,
        /// The other.
        other: Step,
        /// The line.
        line: u32,
    },
    /// A rank reads bytes that nobody has written.
    Unwritten {
        /// The reading operation.
        step: Step,
        /// The line.
        line: u32,
    },
    /// An operation reads one thing in one order of events and another in another.
    Depends {
        /// The reading operation.
        step: Step,
        /// What it reads in the order shown.
        here: String,
        /// What it read in an order that was looked at before.
        elsewhere: String,
    },
    /// Payload lies on the word of a line that is a flag or a counter as well.
    Word {
        /// An operation that copies there.
        step: Step,
        /// The line.
        line: u32,
    },
    /// More states than were allowed.
    TooMany {
        /// How many were.
        states: usize,
    },
}

/// What went wrong, after which operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// A shortest order of operations that leads there.
    pub after: Vec<Step>,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if self.after.is_empty() {
            return Ok(());
        }
        write!(f, "\nafter:")?;
        for step in &self.after {
            write!(f, "\n  {step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock { waiting } => {
                write!(f, "deadlock: nobody can go on")?;
                for (step, word) in waiting {
                    write!(f, "\n  {step}, and the word is {word}")?;
                }
                Ok(())
            }
            Self::LostWakeUp { waiting, word, gone } => write!(
                f,
                "lost wake-up: {waiting}; the word was that until `{gone}`, now it is {word}"
            ),
            Self::Together { one, other, line } => write!(
                f,
                "reuse: `{one}` and `{other}` use line {line} at the same time; let one wait for the other"
            ),
            Self::Unwritten { step, line } => {
                write!(f, "reuse: `{step}` reads line {line}, where nobody has written")
            }
            Self::Depends { step, here, elsewhere } => write!(
                f,
                "reuse: `{step}` reads {here} in this order and {elsewhere} in another; what it waited for \
                 does not tell them apart"
            ),
            Self::Word { step, line } => write!(
                f,
                "`{step}` writes over the word of line {line}, which is a flag or a counter; copy to its \
                 payload, or to a line of its own"
            ),
            Self::TooMany { states } => write!(
                f,
                "more than {states} states: take fewer ranks or calls, or allow more; nothing was proved"
            ),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, call {}: {}", self.rank, self.call + 1, words(&self.operation))
    }
}

/// An operation as a line of a program.
fn words(operation: &Operation) -> String {
    match *operation {
        Operation::Copy { src, dst } => {
            format!("copy {} bytes from {} to {}", src.bytes, place(src), place(dst))
        }
        Operation::Reduce { combine, src, dst } => {
            format!(
                "reduce {} bytes by {combine:?} from {} into {}",
                src.bytes,
                place(src),
                place(dst)
            )
        }
        Operation::Wait { line, compare: Compare::Equal, value } => {
            format!("wait until line {} is {value}", line.0)
        }
        Operation::Wait { line, compare: Compare::AtLeast, value } => {
            format!("wait until line {} is at least {value}", line.0)
        }
        Operation::Write { line, value } => format!("write {value} to line {}", line.0),
        Operation::Add { line, value } => format!("add {value} to line {}", line.0),
        Operation::Claim { line, lines } => format!("claim {lines} lines from line {}", line.0),
    }
}

fn place(span: Span) -> String {
    match span.place {
        Place::Shared(line) if span.offset == 0 => format!("line {}", line.0),
        Place::Shared(line) => format!("line {}, byte {}", line.0, span.offset),
        Place::Private(buffer) if span.offset == 0 => format!("{buffer:?}"),
        Place::Private(buffer) => format!("{buffer:?}, byte {}", span.offset),
    }
}
