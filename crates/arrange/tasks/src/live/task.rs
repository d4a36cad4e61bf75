//! What can be waited for.

/// A registered task: what can be waited for. Plain, so that it can be an argument of other tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task(pub(super) u32, pub(super) u32);

impl Task {
    /// It as plain numbers, for programs in other languages.
    #[must_use]
    pub const fn numbers(self) -> [u32; 2] {
        [self.0, self.1]
    }

    /// The task with these numbers; of numbers that no task had, one that is over.
    #[must_use]
    pub const fn of_numbers([slot, age]: [u32; 2]) -> Self {
        Self(slot, age)
    }
}
