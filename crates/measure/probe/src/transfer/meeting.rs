//! Where the threads of a scene wait for one another before every step: all report to the first,
//! which names a moment of the time-stamp counter a little ahead, and all start then.
//!
//! The flags lie apart from what is measured. Every wait has a deadline.

use isochrone_os::line_transfer::{Deadline, SharedLine, Stalled, time_stamp};

/// Head start of a step, in seconds: the news of it (one line to every core) has arrived by then.
const HEAD_START_S: f64 = 0.2e-6;

/// Where the parts of a scene wait for one another.
#[derive(Debug)]
pub(super) struct Meeting {
    /// Word 0: the step that may begin; word 1: when.
    release: SharedLine,
    /// By part, the step that it is ready for.
    ready: Vec<SharedLine>,
    head_start: u64,
}

impl Meeting {
    pub(super) fn new(parts: usize, hz: f64) -> Self {
        let mut ready = Vec::with_capacity(parts);
        ready.resize_with(parts, SharedLine::new);
        Self { release: SharedLine::new(), ready, head_start: cycles(HEAD_START_S, hz) }
    }

    /// Returns when every part is here, at the same moment for all.
    pub(super) fn meet(
        &self,
        place: usize,
        step: u64,
        deadline: Deadline<'_>,
    ) -> Result<(), Stalled> {
        if place == 0 {
            for other in &self.ready[1..] {
                other.wait_for(step, deadline)?;
            }
            self.release.store_word(1, time_stamp().wrapping_add(self.head_start));
            self.release.store(step);
        } else {
            self.ready[place].store(step);
            self.release.wait_for(step, deadline)?;
        }
        // The first part writes the next moment only after all have reported for the next step,
        // so this is still the moment of this one.
        let moment = self.release.load_word(1);
        while moment.wrapping_sub(time_stamp()).cast_signed() > 0 {
            // A counter far behind on another core would wait for long: the deadline ends it.
            deadline.check()?;
        }
        Ok(())
    }
}

/// Seconds in cycles, for bounds: a duration whose nanoseconds are the cycles does the rounding.
pub(super) fn cycles(seconds: f64, hz: f64) -> u64 {
    std::time::Duration::try_from_secs_f64(seconds * hz / 1e9)
        .map_or(u64::MAX, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn nobody_begins_a_step_before_all_have_ended_the_last() {
        let meeting = Meeting::new(3, 2e9);
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for place in 0..3 {
                let (meeting, done) = (&meeting, &done);
                scope.spawn(move || {
                    for step in 1..=50 {
                        meeting.meet(place, step, Deadline::after(20_000_000_000)).unwrap();
                        assert!(done.load(Ordering::SeqCst) >= (step - 1) * 3);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 150);
    }

    #[test]
    fn a_part_that_never_comes_is_noticed() {
        let meeting = Meeting::new(2, 2e9);
        assert!(meeting.meet(0, 1, Deadline::after(100_000)).is_err());
        assert!(meeting.meet(1, 1, Deadline::after(100_000)).is_err());
    }

    #[test]
    fn seconds_become_cycles() {
        assert_eq!((cycles(2.0, 2.5e9), cycles(0.2e-6, 2e9)), (5_000_000_000, 400));
        assert_eq!(cycles(1e300, 1e9), u64::MAX);
    }
}
