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
    /// A line costs the least that is assumed for it.
    NearLines,
    /// A lock is handed on after half of the transfers (Boyd-Wickizer et al., OLS 2012).
    HalfHandOff,
    /// Each spins on a line of its own (Mellor-Crummey and Scott, ACM TOCS 1991).
    QueueLock,
    /// Threads of a core share issue slots and nothing else.
    ThreadsByIssue,
    /// One engine, and locks that are handed on for nothing: the model of before.
    Before,
}

impl Change {
    /// Those that are run beside the figures.
    pub const BESIDE: [Self; 7] = [
        Self::OneEngine,
        Self::FreeHandOff,
        Self::NearLines,
        Self::HalfHandOff,
        Self::QueueLock,
        Self::ThreadsByIssue,
        Self::Before,
    ];

    /// Whether it changes one thing, and so can be what a miss comes from.
    #[must_use]
    pub const fn is_single(self) -> bool {
        !matches!(self, Self::None | Self::Before)
    }

    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OneEngine => "one-engine",
            Self::FreeHandOff => "free-hand-off",
            Self::NearLines => "near-lines",
            Self::HalfHandOff => "half-hand-off",
            Self::QueueLock => "queue-lock",
            Self::ThreadsByIssue => "threads-by-issue",
            Self::Before => "before",
        }
    }
}
