//! What simulated cores do: steps over lines, in order.

use super::message::Change;

/// How a wait compares the word with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// `word == value`.
    Equal(u64),
    /// `word >= value`.
    AtLeast(u64),
}

impl Until {
    pub(super) const fn holds(self, word: u64) -> bool {
        match self {
            Self::Equal(value) => word == value,
            Self::AtLeast(value) => word >= value,
        }
    }
}

/// One line that a step uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Touch {
    /// The line, from 0.
    pub line: u32,
    /// What becomes of its word; a read changes nothing.
    pub change: Option<Change>,
}

/// What a core does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Uses lines, and its own memory so many times.
    Touch {
        /// Each line once.
        lines: Vec<Touch>,
        /// Accesses to memory of its own that is in its cache.
        private: u32,
    },
    /// Asks for lines to write, and goes on at once.
    Claim {
        /// The first line.
        line: u32,
        /// How many.
        lines: u32,
    },
    /// Drops its copy of a line, which goes to memory if that is behind.
    Drop {
        /// The line.
        line: u32,
    },
    /// Polls the word of a line.
    Wait {
        /// The line.
        line: u32,
        /// Until this holds.
        until: Until,
    },
}

impl Step {
    /// Whether the step uses the line.
    #[must_use]
    pub fn uses(&self, line: u32) -> bool {
        match self {
            Self::Touch { lines, .. } => lines.iter().any(|touch| touch.line == line),
            Self::Wait { line: used, .. } | Self::Drop { line: used } => *used == line,
            Self::Claim { line: first, lines } => (*first..first + lines).contains(&line),
        }
    }

    /// The lines that the step reads or writes, and whether it writes them.
    pub fn lines(&self) -> impl Iterator<Item = (u32, bool)> + '_ {
        let (touches, polled) = match self {
            Self::Touch { lines, .. } => (&lines[..], None),
            Self::Wait { line, .. } => (&[][..], Some((*line, false))),
            Self::Drop { .. } | Self::Claim { .. } => (&[][..], None),
        };
        touches.iter().map(|touch| (touch.line, touch.change.is_some())).chain(polled)
    }
}

/// What every core does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The steps of each core.
    pub cores: Vec<Vec<Step>>,
}

impl Program {
    /// How many lines there are: one more than the highest number used.
    #[must_use]
    pub fn lines(&self) -> u32 {
        let last = |step: &Step| match step {
            Step::Drop { line } => Some(*line),
            Step::Claim { line, lines } => Some(line + lines.saturating_sub(1)),
            _ => step.lines().map(|(line, _)| line).max(),
        };
        let last = self.cores.iter().flatten().filter_map(last).max();
        last.map_or(0, |line| line + 1)
    }
}
