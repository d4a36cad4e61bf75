//! What growth tells the process's report: how long its slices took, and what was learnt.

use super::Hold;
use crate::instance::Instance;
use crate::report::Word;
use isochrone_os::clock;

/// A slice that took longer is counted: the host had taken the core away, or a step is too long.
pub(super) const LONG_SLICE_NS: u64 = 100_000;

impl Instance<'_> {
    /// Counts what was done from `begin` to now, by the clock of the wall: that of the thread would ask the system.
    /// Gives the time now.
    pub(super) fn count_slice(&self, begin: u64) -> u64 {
        let end = clock::monotonic_ns();
        let took = end.saturating_sub(begin);
        if let Some(counters) = self.counters() {
            counters.add(Word::Slices, 1);
            counters.add(Word::LongSlices, u64::from(took > LONG_SLICE_NS));
            counters.raise(Word::SliceNsMax, took);
        }
        end
    }

    /// Tells the report what was learnt so far.
    pub(super) fn note_work(&self, hold: &Hold<'_>) {
        let Some(counters) = self.counters().filter(|_| !self.is_over()) else { return };
        let (learnt, heap) = (hold.work.classifier.stats(), self.heap().stats());
        counters.set(Word::Classified, learnt.ready);
        counters.set(Word::Drift, learnt.moves);
        counters.set(Word::ClassificationNs, learnt.busy_ns);
        counters.set(Word::Demoted, heap.demoted_pages);
        counters.set(Word::AssignedBytes, heap.assigned_bytes);
    }
}
