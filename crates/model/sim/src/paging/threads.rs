//! What hardware threads of one in-order core do together: the rule of Knights Corner, for every model of it.
//!
//! One thread issues at most every other cycle, so one alone leaves every other issue slot free, and more than two have
//! no more slots than two. How much of that is had where threads share caches is a machine's own.

use isochrone_machine::{Cost, Machine};

/// Hardware threads of a core that are told apart.
pub const THREADS_MOST: usize = 4;

/// A core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InOrderCore {
    /// What one thread, two, three or four do together, of what one does alone.
    together: [f64; THREADS_MOST],
}

/// Names that machine files give to what two, three and four threads do together.
const COSTS: [&str; THREADS_MOST - 1] =
    ["two threads of a core", "three threads of a core", "four threads of a core"];

impl InOrderCore {
    /// Cycles from one instruction of a thread to its next, at least.
    pub const ISSUE_CYCLES: u32 = 2;
    /// What threads do together where all that bounds them is who issues.
    pub const BY_ISSUE: Self = Self { together: [1.0, 2.0, 2.0, 2.0] };

    /// A core whose threads do so much together; `None` for more than the issue slots allow, and for less than one
    /// thread does.
    #[must_use]
    pub fn new(together: [f64; THREADS_MOST]) -> Option<Self> {
        let most = Self::BY_ISSUE.together;
        let fits = together.iter().zip(most).all(|(share, most)| (1.0..=most).contains(share));
        (fits && together[0] <= 1.0).then_some(Self { together })
    }

    /// The core of a machine file; `None` where it does not say, or says what cannot be.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<Self> {
        let share = |name| machine.cost(name).and_then(Cost::number);
        let [two, three, four] = COSTS.map(share);
        Self::new([1.0, two?, three?, four?])
    }

    /// Cycles in which one thread issues so many instructions.
    #[must_use]
    pub const fn issue_cycles(instructions: u32) -> u32 {
        instructions * Self::ISSUE_CYCLES
    }

    /// What so many busy threads do together, of what one does alone.
    #[must_use]
    pub fn together(&self, threads: usize) -> f64 {
        match threads {
            0 => 0.0,
            threads => self.together[threads.min(THREADS_MOST) - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_the_issue_slots_of_two() {
        for threads in 1_u32..=4 {
            let slots = f64::from(threads) / f64::from(InOrderCore::ISSUE_CYCLES);
            let bound = slots.min(1.0) * f64::from(InOrderCore::ISSUE_CYCLES);
            assert_eq!(InOrderCore::BY_ISSUE.together(threads as usize), bound, "{threads}");
        }
        assert_eq!(InOrderCore::issue_cycles(30), 60);
    }

    #[test]
    fn more_than_the_slots_and_less_than_one_thread_are_refused() {
        assert!(InOrderCore::new([1.0, 1.35, 1.25, 1.2]).is_some());
        assert_eq!(InOrderCore::new([1.0, 2.1, 2.0, 2.0]), None);
        assert_eq!(InOrderCore::new([1.0, 1.5, 0.9, 1.2]), None);
        assert_eq!(InOrderCore::new([0.9, 1.5, 1.2, 1.2]), None);
    }
}
