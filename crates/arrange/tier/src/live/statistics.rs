//! What became of the pages of an area so far, for the program that has it: how often it waited, for what and for
//! how long, and one line of advice where fast memory does not go far.

use isochrone_units::PAGE_BYTES;

use super::common::{Counters, Timed};
use crate::pages::Event;

/// Faults, moves and waits of an area since its team began.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Of each worker: its own faults and those of threads that are no workers but share its tables.
    pub workers: Vec<Counters>,
    /// Of all movers together.
    pub movers: Counters,
    /// Bytes of a group: what comes and goes together.
    pub group_bytes: usize,
    /// Groups that fit fast memory.
    pub frames: u32,
    /// Nanoseconds of a cycle of the counter that [`Counters::cycles`] counts.
    pub ns_per_cycle: f64,
    /// Whether a system call may be given pages that are absent; else it fails with `EFAULT`.
    pub serves_system_calls: bool,
}

/// Fetches, in turns of fast memory, before anything is advised.
const TURNS: u64 = 4;

impl Statistics {
    /// Of all workers together.
    #[must_use]
    pub fn of_workers(&self) -> Counters {
        self.workers.iter().fold(Counters::none(), Counters::and)
    }

    /// How long all workers, or one, did something.
    #[must_use]
    pub fn ns(&self, counters: &Counters, what: Timed) -> u64 {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time, of which 53 bits are enough"
        )]
        let ns = (counters.cycles(what) as f64 * self.ns_per_cycle) as u64;
        ns
    }

    /// The worker that waited longest for others, with its number; none where nobody did.
    #[must_use]
    pub fn waited_longest(&self) -> Option<(usize, u64)> {
        let waits = self.workers.iter().map(|worker| self.ns(worker, Timed::Wait)).enumerate();
        waits.max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0)
    }

    /// What may help, where most groups that came had left just before: fewer than fast memory holds ago.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let all = self.of_workers();
        let [fetched, back, in_order] =
            [Event::Missing, Event::Refetched, Event::Followed].map(|event| all.events(event));
        // Of what comes beside a group that was needed nobody knows whether it was away for long.
        let all = fetched + all.events(Event::Prefetched);
        if all < TURNS * u64::from(self.frames) || 2 * back < fetched {
            return None;
        }
        let percent = 100 * back / fetched;
        let pages = self.group_bytes / PAGE_BYTES;
        // One after the other: all pages of a group are used, and smaller ones would only come one by one.
        if pages > 1 && 2 * in_order < fetched {
            return Some(format!(
                "{percent} % of what was fetched had just left: groups of {pages} pages fill fast memory with pages \
                 that may not be used, so try group_pages = 1"
            ));
        }
        Some(format!(
            "{percent} % of what was fetched had just left: fast memory holds less than what is in use, so give it \
             more, or go through the area in alternating directions"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(pages: usize, counts: [(Event, u64); 3]) -> Statistics {
        let worker = Counters::with(&counts);
        Statistics {
            workers: vec![worker],
            movers: Counters::none(),
            group_bytes: pages * PAGE_BYTES,
            frames: 10,
            ns_per_cycle: 0.5,
            serves_system_calls: false,
        }
    }

    #[test]
    fn advice_is_given_where_groups_come_back_at_once() {
        let counts = |missing, back, in_order| {
            [(Event::Missing, missing), (Event::Refetched, back), (Event::Followed, in_order)]
        };
        let advice = |pages, counts| statistics(pages, counts).advice().unwrap_or_default();
        assert_eq!(advice(4, counts(39, 39, 0)), "", "too few");
        assert_eq!(advice(4, counts(100, 49, 0)), "", "most were away for long");
        assert!(advice(4, counts(100, 50, 0)).contains("groups of 4 pages"));
        assert!(advice(4, counts(100, 99, 90)).contains("alternating directions"), "in order");
        assert!(advice(1, counts(100, 99, 0)).contains("give it more"));
    }
}
