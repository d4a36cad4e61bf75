//! Whether a rank that waits for long gives its core away and stays runnable, or sleeps.
//!
//! Giving way is the cheaper of the two while only the team's ranks want the core. Where others work on it, the kernel
//! lets each of them have its slice first, a millisecond or so, and a rank that gives way many times comes after all of
//! them each time (seen on Linux 6.18: 0.7 ms a turn beside sixteen others). Who sleeps comes soon after it is woken.

use std::cell::Cell;
use std::time::Duration;

/// A core that is given away comes back later than this only if somebody worked on it who is not about to wait
/// himself: ranks of a team copy a chunk, a microsecond, and give it away again.
const LATE: Duration = Duration::from_micros(200);
/// Long waits of a rank that sleep at once after a core came back late: so many that what one more late return takes
/// is little beside them.
const SLEEPING: u32 = 256;

/// What one rank has seen of its core.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Long waits that are still to sleep at once.
    sleeping: Cell<u32>,
}

impl Turns {
    /// A long wait begins.
    pub(super) fn begins(&self) {
        self.sleeping.set(self.sleeping.get().saturating_sub(1));
    }

    /// Whether a rank that would give its core away sleeps instead.
    pub(super) const fn sleeps(&self) -> bool {
        self.sleeping.get() > 0
    }

    /// The core that was given away came back after so long.
    pub(super) fn came_back(&self, after: Duration) {
        if after >= LATE {
            self.sleeping.set(SLEEPING);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_whose_core_comes_back_late_sleeps_for_some_waits_and_tries_again() {
        let turns = Turns::default();
        turns.begins();
        turns.came_back(LATE / 2);
        assert!(!turns.sleeps(), "nobody else was there");
        turns.came_back(LATE);
        // What is left of the wait that found it, and those after it.
        for _ in 0..SLEEPING {
            assert!(turns.sleeps());
            turns.begins();
        }
        assert!(!turns.sleeps(), "whoever was there may be gone");
    }
}
