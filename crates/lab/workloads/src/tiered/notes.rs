//! What a worker saw, left in its notes: times in nanoseconds, and the counts of the sweeps alone, without making and
//! checking the data.

use isochrone_tier::live::{Counters, Report, Timed, Worker};
use isochrone_tier::pages::Event;

/// Places of notes: nanoseconds of all sweeps, then counts, then counts of movers.
const NANOSECONDS: usize = 0;
const EVENTS_FROM: usize = 1;
const TIMED_FROM: usize = EVENTS_FROM + Event::ALL.len();

/// What all workers together did in the sweeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The sum over workers: what any other bits of the result would change.
    pub digest: u64,
    /// From when the last worker was ready for the first sweep to when the last had ended the last one.
    pub nanoseconds: u64,
    /// For each worker.
    pub workers: Vec<Vec<u64>>,
}

impl Outcome {
    /// What a team's report says.
    ///
    /// # Errors
    /// The words of the first worker that failed.
    pub fn of(report: &Report) -> Result<Self, String> {
        let values = report.values()?;
        Ok(Self {
            digest: values.into_iter().fold(0, u64::wrapping_add),
            nanoseconds: report.notes.iter().map(|notes| notes[NANOSECONDS]).max().unwrap_or(0),
            workers: report.notes.clone(),
        })
    }

    /// How often something happened to all workers in the sweeps.
    #[must_use]
    pub fn events(&self, event: Event) -> u64 {
        self.workers.iter().map(|notes| notes[EVENTS_FROM + event.index()]).sum()
    }

    /// Cycles that something took all workers in the sweeps.
    #[must_use]
    pub fn cycles(&self, timed: Timed) -> u64 {
        self.workers.iter().map(|notes| notes[TIMED_FROM + timed as usize]).sum()
    }
}

/// Leaves a time and counts as notes.
pub(super) fn leave(worker: &Worker<'_>, nanoseconds: u128, counters: &Counters) {
    worker.note(NANOSECONDS, u64::try_from(nanoseconds).unwrap_or(u64::MAX));
    for event in Event::ALL {
        worker.note(EVENTS_FROM + event.index(), counters.events(event));
    }
    for timed in Timed::ALL {
        worker.note(TIMED_FROM + timed as usize, counters.cycles(timed));
    }
}
