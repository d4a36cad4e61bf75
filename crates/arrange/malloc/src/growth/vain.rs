//! When placing is in vain: no base of the atlas is recognised in what the cores see, too few pages can be decoded,
//! or what is handed out is not so near that anything is gained by it.
//!
//! Lines are then handed out at the cost of placing for nothing. So a process has a bounded time to show a gain, and
//! leaves everything to the next allocator for good where it does not. What it has placed stays where it is until it
//! is freed.

use super::trial::Trial;
use super::{Hold, Work};
use crate::instance::Instance;
use crate::process::PROCESS;
use crate::report::{Reason, Word};
use core::sync::atomic::Ordering;
use isochrone_alloc::live::{Classifier, Plan, Stats};
use isochrone_alloc::{CurrentBases, Promise};
use isochrone_units::{CoreId, Level};

/// Time in slices within which placing must show that it gains, and between two looks whether it still does.
const TRIAL_NS: u64 = 50_000_000;
/// Pages that end without a code before that counts: on a quiet machine nearly all do under a base
/// that no core has.
const VAIN_PAGES: u64 = 256;
/// Pages without a code for each that has one, at most, where a core has a base of it. A few have one by chance.
const VAIN_SHARE: u64 = 8;
/// Pages that have a code before a base counts as recognised: as many as one is identified from.
const LEARNT_PAGES: u64 = 32;
/// Times that the machine is asked in vain at most: so short that it is over within a second.
const RETRIES_IN_VAIN: u32 = 3;
/// Slots drawn from bins before their near share is believed: a few hundred refills.
const DRAWN_SLOTS: u64 = 8192;

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

    /// After a slice that took so long: ends placing where it gains nothing, unless it is to go on whatever is found.
    pub(super) fn weigh(&self, hold: &mut Hold<'_>, took_ns: u64) {
        let forced = PROCESS.config().is_some_and(|config| config.force);
        if forced || !self.is_process() || self.is_over() {
            return;
        }
        hold.work.trial.ns += took_ns;
        if let Some(reason) = self.verdict(hold.work) {
            self.end_placing(hold, reason);
        }
    }

    /// Why nothing is gained, as soon as that is known.
    fn verdict(&self, work: &mut Work) -> Option<Reason> {
        if !work.classifier.has_patterns() {
            return Some(Reason::NoGain);
        }
        let learnt = work.classifier.stats();
        if !is_recognised(&learnt) {
            return self.unrecognised(work, &learnt);
        }
        if !self.ask_model(work) {
            return None;
        }
        let promise = work.trial.best.filter(Promise::gains);
        match promise {
            None => Some(Reason::NoGain),
            Some(promise) => Self::observed(&mut work.trial, &promise),
        }
    }

    /// Why it is in vain where pages do not look as a base says.
    fn unrecognised(&self, work: &Work, learnt: &Stats) -> Option<Reason> {
        let retries = self.growth.retries.load(Ordering::Relaxed);
        if is_in_vain(learnt) || retries >= RETRIES_IN_VAIN {
            return Some(Reason::UnknownBase);
        }
        let has_base = || self.atlas().cores().any(|core| work.classifier.has_base(core));
        (work.trial.ns >= TRIAL_NS)
            .then(|| if has_base() { Reason::TooSparse } else { Reason::UnknownBase })
    }

    /// Asks the model once more, of one core after another whose base is known. True when there is nothing left to
    /// ask; bases that changed are asked of again.
    fn ask_model(&self, work: &mut Work) -> bool {
        let changes = work.classifier.changes();
        if work.trial.asked_at == Some(changes) {
            return true;
        }
        let has_base = |core: &CoreId| work.classifier.has_base(*core);
        let mut cores = self.atlas().cores().enumerate().skip(work.trial.place);
        let Some((place, core)) = cores.find(|(_, core)| has_base(core)) else {
            work.trial.place = 0;
            work.trial.asked_at = work.trial.best.map(|_| changes);
            return work.trial.asked_at.is_some();
        };
        if place != work.trial.place {
            (work.trial.place, work.trial.promise) = (place, Promise::default());
        }
        if work.trial.promise.ask(self.heap(), &self.bases_of(work, core)) {
            let Trial { promise, best, .. } = work.trial;
            work.trial.best = Some(best.map_or(promise, |best| best.or(promise)));
            (work.trial.place, work.trial.promise) = (place + 1, Promise::default());
        }
        false
    }

    /// The current bases of a core; of a level that is not decoded by now, what the atlas has seen last.
    fn bases_of(&self, work: &Work, core: CoreId) -> CurrentBases {
        let current = work.classifier.current_bases(core);
        let last = |level| {
            let table = work.atlas.base(level, work.atlas.core_base(core, level)?)?;
            Some(*table.values())
        };
        CurrentBases {
            llc: current.llc.or_else(|| last(Level::Llc)),
            dram: current.dram.or_else(|| last(Level::Dram)),
        }
    }

    /// Whether so much of what was handed out since the last look was near that something is gained.
    fn observed(trial: &mut Trial, promise: &Promise) -> Option<Reason> {
        let counters = PROCESS.counters();
        let (drawn, near) = (counters.get(Word::Drawn), counters.get(Word::Near));
        if trial.drawn == 0 {
            // What was drawn before any page was known says nothing.
            (trial.drawn, trial.near) = (drawn, near);
        }
        let since = drawn.saturating_sub(trial.drawn);
        if trial.ns < TRIAL_NS || since < DRAWN_SLOTS {
            return None;
        }
        let share = share(near.saturating_sub(trial.near), since);
        (trial.ns, trial.drawn, trial.near) = (0, drawn, near);
        (!promise.gains_with(share)).then_some(Reason::NoGain)
    }

    /// Leaves everything to the next allocator.
    fn end_placing(&self, hold: &mut Hold<'_>, reason: Reason) {
        self.note_work(hold);
        PROCESS.delegate(reason);
        self.give_all_back(hold);
        PROCESS.told().inspect(|told| told.forget_atlas());
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
        if is_in_vain(&learnt) || learnt.busy_ns >= TRIAL_NS || retries >= RETRIES_IN_VAIN {
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

/// A part of a whole.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> f32 {
    part as f32 / whole as f32
}
