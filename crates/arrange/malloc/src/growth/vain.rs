//! When placing is in vain: no base of the atlas is recognised in what the cores see.
//!
//! Lines are then handed out by no distance at all, which costs what placing costs and gains
//! nothing. So a process tries for a bounded time only, and then leaves everything to glibc for good. What it
//! has placed stays where it is until it is freed.

use super::Hold;
use crate::instance::Instance;
use crate::process::PROCESS;
use crate::report::Reason;
use core::sync::atomic::Ordering;
use isochrone_alloc::live::{Classifier, Plan, Slice, Stats};
use isochrone_os::{OsError, clock};

/// Processor time that is spent in slices at most before any base was recognised: as much as
/// `isochrone run --fresh` gives a core (`oracle.rs`).
const VAIN_NS: u64 = 100_000_000;
/// Slices at most: some do little, since what was begun on one core waits for it. Several times as
/// many as that time makes.
const VAIN_SLICES: u32 = 8192;
/// Pages that end without a code before that counts: on a quiet machine nearly all do under a base
/// that no core has.
const VAIN_PAGES: u64 = 256;
/// Pages without a code for each that has one, at most, where a core has a base of it. A few have one by chance.
const VAIN_SHARE: u64 = 8;
/// Pages that have a code before a base counts as recognised: as many as one is identified from.
const LEARNT_PAGES: u64 = 32;
/// Times that the machine is asked in vain at most: so short that it is over within a second.
const RETRIES_IN_VAIN: u32 = 3;

/// A slice before any base was recognised: this thread's processor time when it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial(u64);

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

    /// `None` where it is not to be found out: pages were decoded and looked as a base says, or
    /// placing goes on whatever is found.
    pub(super) fn begin_trial(&self, hold: &Hold<'_>) -> Option<Trial> {
        let forced = PROCESS.config().is_some_and(|config| config.force);
        let tries = self.is_process() && !forced && !self.is_over();
        (tries && !is_recognised(&hold.work.classifier.stats()))
            .then(|| Trial(clock::thread_cpu_ns()))
    }

    /// Ends placing where enough was tried.
    pub(super) fn end_trial(
        &self,
        hold: &mut Hold<'_>,
        trial: Option<Trial>,
        found: Result<Slice, OsError>,
    ) {
        let Some(Trial(began)) = trial else { return };
        let learnt = hold.work.classifier.stats();
        if is_recognised(&learnt) {
            return;
        }
        if is_in_vain(&learnt) {
            return self.end_placing(hold);
        }
        // Where all lines are alike there is nothing to recognise.
        if found == Ok(Slice::Idle) {
            return;
        }
        hold.work.vain_ns += clock::thread_cpu_ns().saturating_sub(began);
        hold.work.vain_slices += 1;
        let retries = self.growth.retries.load(Ordering::Relaxed);
        let enough = hold.work.vain_ns >= VAIN_NS || hold.work.vain_slices >= VAIN_SLICES;
        if enough || retries >= RETRIES_IN_VAIN {
            self.end_placing(hold);
        }
    }

    /// Leaves everything to glibc.
    fn end_placing(&self, hold: &mut Hold<'_>) {
        self.note_work(hold);
        PROCESS.delegate(Reason::UnknownBase);
        self.give_all_back(hold);
    }

    /// Whether a base was recognised, for an allocator that is not the process's. Where none will be, `over` is called
    /// before what only placing needs is given back. Not known where somebody else learns: then it is asked again.
    pub(crate) fn judge(&self, over: impl FnOnce()) -> bool {
        let Some(mut hold) = self.growth.try_hold() else { return false };
        let learnt = hold.work.classifier.stats();
        if is_recognised(&learnt) {
            return true;
        }
        let retries = self.growth.retries.load(Ordering::Relaxed);
        if is_in_vain(&learnt) || learnt.busy_ns >= VAIN_NS || retries >= RETRIES_IN_VAIN {
            over();
            self.give_all_back(&mut hold);
        }
        false
    }

    /// Gives back what only placing needs.
    fn give_all_back(&self, hold: &mut Hold<'_>) {
        hold.work.machine.release_sweep();
        // One without pages has no tables to speak of. Where there is no memory for it, there is not
        // much to be given back.
        let nothing = Classifier::new(hold.work.atlas, Plan { pages_max: 0, seed: 0 });
        if let Ok(nothing) = nothing {
            hold.work.classifier = nothing;
        }
        self.give_tables_back();
    }
}

/// Whether pages look as a base of the atlas says.
fn is_recognised(learnt: &Stats) -> bool {
    learnt.confirmed >= LEARNT_PAGES && learnt.undecodable < VAIN_SHARE * learnt.confirmed
}

/// Whether most pages end without a code.
fn is_in_vain(learnt: &Stats) -> bool {
    learnt.undecodable >= VAIN_PAGES.max(VAIN_SHARE * learnt.confirmed)
}
