//! A call of a part: which, where, and why it has no values.

/// A part, by its place among those registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartId(pub(super) usize);

/// Where a part is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the program runs.
    Host,
    /// On all others; on the host if there are none.
    Workers,
    /// On the host and on all others.
    All,
}

/// Why a call has no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// One said why.
    #[error("worker {worker}: {words}")]
    Failed {
        /// Which of the workers.
        worker: u16,
        /// What it said.
        words: String,
    },
    /// One ended.
    #[error("worker {0} ended: look at what it wrote to standard error")]
    Gone(u16),
}

impl From<CallError> for String {
    fn from(error: CallError) -> Self {
        error.to_string()
    }
}
