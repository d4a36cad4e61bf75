//! When placing begins, and when it is in vain: no base of the atlas is recognised in what the cores see, too few pages
//! can be decoded, or what is handed out is not so near that anything is gained by it.
//!
//! Lines would then be handed out at the cost of placing for nothing. So nothing is placed before a base is recognised
//! of which the model promises a gain. A process has a bounded time, and a bounded number of timed loads, to show that,
//! and leaves everything to the next allocator for good where it does not. What it has placed stays where it is until
//! it is freed.

use super::trial::{NEW_SHARE, SLICE_NS, Trial, VAIN_SHARE, is_in_vain, is_recognised};
use super::{Hold, Work};
use crate::instance::Instance;
use crate::instance::process::instance;
use crate::process::PROCESS;
use crate::report::{Reason, Word};
use core::sync::atomic::Ordering;
use isochrone_alloc::live::{Classifier, Plan, Stats};
use isochrone_alloc::{CurrentBases, Promise};
use isochrone_units::{CoreId, Level};

/// Time in slices within which placing must show that it gains, and between two looks whether it still does. As many
/// loads may be timed as in whole slices of it.
const TRIAL_NS: u64 = 50_000_000;
/// Times that the machine is asked in vain at most: so short that it is over within a second.
const RETRIES_IN_VAIN: u32 = 3;
/// Slots drawn from bins before their near share is believed: a few hundred refills.
const DRAWN_SLOTS: u64 = 8192;

impl Instance<'_> {
    /// After a slice that took so long: ends placing where it gains nothing, unless it is to go on whatever is found.
    pub(super) fn weigh(&self, hold: &mut Hold<'_>, took_ns: u64) {
        let forced = PROCESS.config().is_some_and(|config| config.force);
        // A handler may have forked in the middle of a slice: what it was about is the parent's.
        let is_anothers = self.is_over() || self.growth.is_inherited();
        if forced || !self.is_process() || is_anothers {
            return;
        }
        hold.work.trial.ns += took_ns;
        match self.verdict(hold.work) {
            Verdict::Begin => {
                hold.work.trial.ns = 0;
                // The process's instance is this one.
                instance().inspect(|instance| instance.begin_placing());
            }
            Verdict::End(reason) => self.end_placing(hold, reason),
            Verdict::Wait => {}
        }
    }

    /// What the process is to do, as soon as that is known.
    fn verdict(&self, work: &mut Work) -> Verdict {
        let learnt = work.classifier.stats();
        let learning = PROCESS.is_learning();
        if !is_recognised(&learnt, if learning { NEW_SHARE } else { VAIN_SHARE }) {
            return self.unrecognised(work, &learnt).map_or(Verdict::Wait, Verdict::End);
        }
        let is_asked = self.ask_model(work);
        if !is_asked {
            // There is something to do at the next tick, whatever is left to learn.
            self.growth.has_backlog.store(true, Ordering::Relaxed);
        }
        let Trial { promise, best, .. } = work.trial;
        if learning && best.unwrap_or(promise).gains() {
            return Verdict::Begin;
        }
        // There are many cores, and each was asked of in a millisecond.
        let is_enough = is_asked || learning && best.is_some() && is_spent(work);
        if !is_enough {
            return Verdict::Wait;
        }
        match best.filter(Promise::gains) {
            None => Verdict::End(Reason::NoGain),
            Some(promise) => match self.observed(&mut work.trial, &promise) {
                Some(reason) => Verdict::End(reason),
                None => Verdict::Wait,
            },
        }
    }

    /// Why it is in vain where pages do not look as a base says.
    fn unrecognised(&self, work: &Work, learnt: &Stats) -> Option<Reason> {
        let retries = self.growth.retries.load(Ordering::Relaxed);
        if is_in_vain(learnt) || retries >= RETRIES_IN_VAIN {
            return Some(Reason::UnknownBase);
        }
        // One of few bases fits some pages by chance: then most have no code.
        let is_likely = || {
            learnt.undecodable <= learnt.confirmed
                && self.atlas().cores().any(|core| work.classifier.has_base(core))
        };
        is_spent(work).then(|| if is_likely() { Reason::TooSparse } else { Reason::UnknownBase })
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
    fn observed(&self, trial: &mut Trial, promise: &Promise) -> Option<Reason> {
        let counters = PROCESS.counters();
        let (drawn, near) = (counters.get(Word::Drawn), counters.get(Word::Near));
        if trial.drawn == 0 {
            // What was drawn before any page was known says nothing.
            (trial.drawn, trial.near) = (drawn, near);
        }
        let since = drawn.saturating_sub(trial.drawn);
        // Where nothing is left to learn it will not become better.
        let is_due = trial.ns >= TRIAL_NS || !self.wants_work();
        if !is_due || since < DRAWN_SLOTS {
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
        if !PROCESS.has_placed() {
            // SAFETY: nobody was ever given a line of it, and nobody will be. It is loaded from by who learns, who
            // holds the lock, and looks at nothing that it finds there.
            unsafe { self.arena.memory().give_back() };
            PROCESS.counters().set(Word::ArenaBytes, 0);
        }
        PROCESS.told().inspect(|told| told.forget_atlas());
    }

    /// Whether a base was recognised, for an allocator that is not the process's. Where none will be, `over` is called
    /// before what only placing needs is given back. Not known where somebody else learns: then it is asked again.
    pub(crate) fn judge(&self, over: impl FnOnce()) -> bool {
        let Some(mut hold) = self.growth.try_hold() else { return false };
        let learnt = hold.work.classifier.stats();
        if is_recognised(&learnt, NEW_SHARE) {
            return true;
        }
        hold.work.trial.ns = learnt.busy_ns;
        if self.unrecognised(hold.work, &learnt).is_some() {
            over();
            self.give_all_back(&mut hold);
        }
        false
    }

    /// Gives back what only placing needs.
    fn give_all_back(&self, hold: &mut Hold<'_>) {
        hold.work.machine.release_sweep();
        // One without pages has no tables. Where there is no memory for it, there is not
        // much to be given back.
        let nothing = Classifier::new(hold.work.atlas, Plan { pages_max: 0, seed: 0 });
        if let Ok(nothing) = nothing {
            hold.work.classifier = nothing;
        }
        self.give_tables_back();
    }
}

/// What a process is to do.
enum Verdict {
    /// To go on as it is.
    Wait,
    /// To place: a base is recognised, and there is something to be gained.
    Begin,
    /// To leave everything to the next allocator.
    End(Reason),
}

/// Whether a process has spent what it has for learning.
fn is_spent(work: &Work) -> bool {
    let loads = TRIAL_NS / SLICE_NS * work.pace.loads_in(SLICE_NS);
    work.trial.ns >= TRIAL_NS || work.machine.loads() >= loads
}

/// A part of a whole.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> f32 {
    part as f32 / whole as f32
}

#[cfg(test)]
mod tests;
