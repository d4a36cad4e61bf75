//! What is due, and whether it is worth it: asked by threads that allocate, before they take a lock. Nothing is learnt
//! and no page moves here.

use crate::instance::Instance;
use crate::process::PROCESS;
use crate::report::Reason;
use core::sync::atomic::Ordering;
use isochrone_units::CoreId;

impl Instance<'_> {
    /// Whether this is the process's, which has given up placing.
    pub(super) fn is_over(&self) -> bool {
        self.is_process() && PROCESS.is_over()
    }

    /// A base that fitted nothing may be another one by now.
    pub(super) fn forgive(&self, now: u64) {
        let growth = &self.growth;
        if growth.is_unknown.load(Ordering::Relaxed)
            && now >= growth.retry_at_ns.load(Ordering::Relaxed)
        {
            growth.is_unknown.store(false, Ordering::Relaxed);
            growth.has_backlog.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a slice would do something.
    pub(crate) fn wants_work(&self) -> bool {
        let growth = &self.growth;
        !growth.is_unknown.load(Ordering::Relaxed)
            && !self.is_over()
            && self.is_worth_it()
            && (growth.has_backlog.load(Ordering::Relaxed)
                || self.have_come()
                || (self.heap().wants_pages() > 0 && !growth.is_full.load(Ordering::Relaxed)))
    }

    /// Whether anything is to be learnt: of what a second-level cache holds no line is waited for,
    /// so a process that has less in use pays nothing; once so much was in use, for good. A pool was
    /// made to be placed.
    pub(crate) fn is_worth_it(&self) -> bool {
        let worth = &self.growth.is_worth_it;
        if !self.is_process() || worth.load(Ordering::Relaxed) {
            return true;
        }
        if self.growth.is_inherited() {
            return false;
        }
        let l2_bytes = self.heap().policy().l2_bytes;
        if PROCESS.is_learning() {
            // Nobody knows what of it was freed. Once there is something to gain, what is placed counts.
            return PROCESS.footprint.reaches(l2_bytes);
        }
        let enough = self.heap().live_bytes() >= l2_bytes;
        if enough {
            worth.store(true, Ordering::Relaxed);
        }
        enough
    }

    /// Whether it is to be looked whether this core still has its base.
    pub(super) fn is_epoch_due(&self, core: u16, now: u64) -> bool {
        let at = self.growth.epoch_at_ns.get(usize::from(core));
        at.is_some_and(|at| now >= at.load(Ordering::Relaxed))
            && !self.growth.is_unknown.load(Ordering::Relaxed)
            && !self.is_over()
            && self.is_worth_it()
    }

    /// Whether pages have come again since that was looked at last.
    pub(super) fn have_come(&self) -> bool {
        self.heap().pages_come_again() != self.growth.idle.come.load(Ordering::Relaxed)
    }

    /// Why an allocation that was to be placed found nothing.
    pub(crate) fn why_empty(&self) -> Reason {
        if PROCESS.room.is_closed() {
            Reason::Filtered
        } else if self.growth.is_unknown.load(Ordering::Relaxed) {
            Reason::UnknownBase
        } else {
            Reason::ArenaFull
        }
    }

    /// The cores of the atlas, in its order.
    pub(super) fn cores(&self) -> impl Iterator<Item = CoreId> + '_ {
        self.atlas().cores()
    }
}
