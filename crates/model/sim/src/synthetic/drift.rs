//! What changes while a machine is measured, and when.
//!
//! The schedule is part of the spec, so a test knows at which sample the ground moved. Events
//! change which physical core a logical core wears, which frame a page has, or where the
//! measuring thread runs; latencies themselves never change.

use isochrone_units::{CoreId, PageAddr};

use crate::random::{Random, Stream};

/// When an event happens: before the first load for which this holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// Seconds of virtual time have passed.
    Seconds(f64),
    /// So many loads have been timed, on all cores together.
    Samples(u64),
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The host moves a logical core to another physical one.
    CoreMoves {
        /// The logical core.
        core: CoreId,
        /// The physical core that it wears from then on.
        to: u16,
    },
    /// A page of the arena gets another frame.
    PageMigrates {
        /// The page.
        page: PageAddr,
    },
    /// The measuring thread is found on another core at the end of the batch under way.
    ThreadMoves {
        /// Where it is found.
        found: CoreId,
    },
}

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled {
    /// When it takes effect.
    pub when: When,
    /// What happens then.
    pub event: Event,
}

/// An event that has happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applied {
    /// Virtual seconds at which it took effect.
    pub at_s: f64,
    /// Loads timed before it.
    pub at_sample: u64,
    /// What has happened.
    pub event: Event,
}

impl Scheduled {
    /// A logical core moves to a physical one.
    #[must_use]
    pub fn core_moves(when: When, core: CoreId, to: u16) -> Self {
        Self { when, event: Event::CoreMoves { core, to } }
    }

    /// A page is migrated.
    #[must_use]
    pub fn page_migrates(when: When, page: PageAddr) -> Self {
        Self { when, event: Event::PageMigrates { page } }
    }

    /// The measuring thread is moved.
    #[must_use]
    pub fn thread_moves(when: When, found: CoreId) -> Self {
        Self { when, event: Event::ThreadMoves { found } }
    }

    /// Moves of one logical core among `physical` cores as a host makes them: at intervals drawn
    /// uniformly from `interval_s`, until `until_s`.
    #[must_use]
    pub fn random_moves(
        core: CoreId,
        physical: u16,
        interval_s: (f64, f64),
        until_s: f64,
        seed: u64,
    ) -> Vec<Self> {
        let mut random = Random::new(seed ^ u64::from(core.0), Stream::Moves);
        let mut moves = Vec::new();
        let mut at_s = 0.0;
        loop {
            at_s += interval_s.0 + (interval_s.1 - interval_s.0) * random.uniform();
            if at_s >= until_s || interval_s.1 <= 0.0 {
                return moves;
            }
            let to = crate::number::narrow(random.below(u64::from(physical)));
            moves.push(Self::core_moves(When::Seconds(at_s), core, to));
        }
    }
}

/// The events that have not happened yet, in the order of the spec.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pending: Vec<Scheduled>,
    // Earliest of the pending times, so that a load costs two comparisons and no search.
    next_s: f64,
    next_sample: u64,
}

impl Schedule {
    pub(crate) fn new(events: &[Scheduled]) -> Self {
        let mut schedule = Self { pending: events.to_vec(), next_s: 0.0, next_sample: 0 };
        schedule.find_next();
        schedule
    }

    fn find_next(&mut self) {
        (self.next_s, self.next_sample) = (f64::INFINITY, u64::MAX);
        for scheduled in &self.pending {
            match scheduled.when {
                When::Seconds(s) => self.next_s = self.next_s.min(s),
                When::Samples(n) => self.next_sample = self.next_sample.min(n),
            }
        }
    }

    /// Takes out the next event that is due: by time where several are, else in spec order.
    pub(crate) fn due(&mut self, seconds: f64, samples: u64) -> Option<Event> {
        if seconds < self.next_s && samples < self.next_sample {
            return None;
        }
        let is_next = |scheduled: &Scheduled| match scheduled.when {
            When::Samples(n) => n == self.next_sample && n <= samples,
            When::Seconds(s) => s <= seconds && s <= self.next_s,
        };
        let position = self.pending.iter().position(is_next)?;
        let event = self.pending.remove(position).event;
        self.find_next();
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_when_due_and_once() {
        let to = |when, to| Scheduled::core_moves(when, CoreId(0), to);
        let mut schedule = Schedule::new(&[
            to(When::Seconds(2.0), 2),
            to(When::Samples(10), 3),
            to(When::Seconds(1.0), 1),
        ]);
        let mut due = |s, n| match schedule.due(s, n) {
            Some(Event::CoreMoves { to, .. }) => Some(to),
            _ => None,
        };
        assert_eq!(due(0.9, 9), None);
        assert_eq!(due(0.9, 10), Some(3));
        assert_eq!(due(0.9, 10), None);
        assert_eq!([due(5.0, 11), due(5.0, 11), due(5.0, 11)], [Some(1), Some(2), None]);
    }

    #[test]
    fn random_moves_keep_their_intervals_and_their_end() {
        let moves = Scheduled::random_moves(CoreId(1), 8, (8.0, 25.0), 200.0, 4);
        let times: Vec<f64> = moves
            .iter()
            .map(|m| if let When::Seconds(s) = m.when { s } else { f64::NAN })
            .collect();
        assert!((8..=24).contains(&times.len()), "{times:?}");
        assert!(times.windows(2).all(|w| (8.0..25.0).contains(&(w[1] - w[0]))), "{times:?}");
        assert!(times.last().unwrap() < &200.0);
    }
}
