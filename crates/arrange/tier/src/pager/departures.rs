//! When each group left, counted in groups that left: so that one which comes back at once is told from one that was
//! away for long.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::names::{Group, Run};

/// A count of departures, and for each group what it was when that group left last; 0 for never.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departures<'a> {
    pub(super) count: &'a AtomicU32,
    pub(super) left: &'a [AtomicU32],
}

impl Departures<'_> {
    /// A run leaves.
    pub(super) fn note(&self, run: Run) {
        let before = self.count.fetch_add(run.groups, Relaxed);
        for (group, after) in run.iter().zip(1_u32..) {
            // Zero says never: one number of all is one off.
            self.left[group.index()].store(before.wrapping_add(after).max(1), Relaxed);
        }
    }

    /// Whether a group is among the last `lately` that left.
    pub(super) fn is_recent(&self, group: Group, lately: u32) -> bool {
        let left = self.left[group.index()].load(Relaxed);
        left != 0 && self.count.load(Relaxed).wrapping_sub(left) < lately
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_leave_are_told_from_the_others() {
        let words: Vec<AtomicU32> = (0..9).map(|_| AtomicU32::new(0)).collect();
        let departures = Departures { count: &words[0], left: &words[1..] };
        assert!(!departures.is_recent(Group(3), 100), "it never left");
        departures.note(Run { first: Group(2), groups: 3 });
        departures.note(Run { first: Group(7), groups: 1 });
        let recent = |lately| {
            let all = (0..8).filter(|group| departures.is_recent(Group(*group), lately));
            all.collect::<Vec<u32>>()
        };
        assert_eq!(recent(1), [7]);
        assert_eq!(recent(3), [3, 4, 7]);
        assert_eq!(recent(100), [2, 3, 4, 7]);
    }
}
