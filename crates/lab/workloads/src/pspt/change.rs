//! Single changes of the card, each run on the cells that are to be explained.

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: the figures.
    None,
    /// One engine for both directions.
    OneEngine,
    /// A lock is handed on for nothing, whoever spins.
    FreeHandOff,
    /// Threads of a core share issue slots and nothing else.
    ThreadsByIssue,
    /// One engine, and locks that are handed on for nothing: the model of before.
    Before,
}

impl Change {
    /// Those that are run beside the figures.
    pub const BESIDE: [Self; 3] = [Self::OneEngine, Self::FreeHandOff, Self::ThreadsByIssue];

    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OneEngine => "one-engine",
            Self::FreeHandOff => "free-hand-off",
            Self::ThreadsByIssue => "threads-by-issue",
            Self::Before => "before",
        }
    }

    pub(super) const fn shares_engines(self) -> bool {
        matches!(self, Self::OneEngine | Self::Before)
    }

    pub(super) const fn frees_hand_offs(self) -> bool {
        matches!(self, Self::FreeHandOff | Self::Before)
    }
}
