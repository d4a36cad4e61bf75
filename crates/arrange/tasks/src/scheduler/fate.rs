//! What became of a task's children, for who waits for them.

/// What became of a task's children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// None failed.
    Well,
    /// They were cancelled, and some that have not begun are still there: that is told when all are over.
    StillCancelled,
    /// They were cancelled.
    Cancelled,
    /// One failed: its kernel and what it said, unless another's words had to be kept at the time.
    Failed(Option<(&'static str, String)>),
}
