//! The one pair of eyes of a classifier: looks at pages from one core at a time, and what was seen.
//!
//! Whoever finds something out about a core (its current base, whether it still has it, whether pages
//! look as their codes say) does it through these, one after another. They change nothing that is known.

use super::batch::Progress;
use super::compare::{BLANK, COMPARED_SAMPLES, Weighing, some_of};
use super::dice::Dice;
use super::known::Known;
use super::look::{Among, Look};
use super::notes::side;
use super::timing::Timing;
use isochrone_atlas::BaseContest;
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level};

/// Bases that are compared beyond an inquiry: each costs some 30 microseconds. With more of them only
/// one that is unlike the current base is noticed.
const COMPARED: usize = 16;
/// Probability of error at which another base is believed to be the current one.
const OTHER_ERROR: f32 = 1e-3;

/// What came of a step of what is under way besides decoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Something was done, and there is more.
    Again,
    /// The time was up.
    Paused,
    /// It has ended.
    Ended,
    /// A base that was guessed fits; pages of which nothing is known are to say whether it still is the current one.
    Verify(u16),
    /// The thread is on another core: nothing of it can be used.
    Elsewhere,
    /// What is prepared goes stale before it is timed.
    Stale,
}

/// Looks, and chance for them.
#[derive(Debug)]
pub(super) struct Eyes {
    pub(super) look: Look,
    /// Pages under way under one base.
    pub(super) weighing: Option<Weighing>,
    pub(super) dice: Dice,
}

impl Eyes {
    pub(super) fn new(seed: u64) -> Result<Self, OsError> {
        Ok(Self { look: Look::new()?, weighing: None, dice: Dice::new(seed) })
    }

    /// Forgets what was seen; looks come from this core now.
    pub(super) fn turn_to(&mut self, core: CoreId) {
        self.look.clear();
        self.look.turn_to(core);
    }

    /// Chooses pages to look at. False where fewer than `least` will do.
    pub(super) fn begin(
        &mut self,
        known: &Known<'_>,
        core: CoreId,
        level: Level,
        among: Among,
        least: usize,
    ) -> bool {
        self.look.begin(core, level, among, least, &known.ledger.notes, &mut self.dice)
    }

    /// Goes on with a look.
    pub(super) fn look_on(
        &mut self,
        known: &Known<'_>,
        timing: &mut impl Timing,
        level: Level,
        until: u64,
    ) -> Result<Progress, OsError> {
        let Some(own) = &known.sides[side(level)] else { return Ok(Progress::Elsewhere) };
        self.look.run(timing, &known.ledger.notes, level, own.model.period, until)
    }

    /// Compares what was seen with one base more. False if there is none left, or if there are so
    /// many that none is compared.
    pub(super) fn contest_next(
        &self,
        known: &Known<'_>,
        level: Level,
        contest: &mut BaseContest,
    ) -> bool {
        let Some(own) = &known.sides[side(level)] else { return false };
        let bases = own.model.bases();
        let Some(next) = bases.get(contest.compared()).filter(|_| bases.len() <= COMPARED) else {
            return false;
        };
        let mut room = [BLANK; COMPARED_SAMPLES];
        contest.add(next, some_of(self.look.samples(), &mut room), own.model.noise());
        true
    }
}

/// Another base that the samples are of for certain, though they may be much like this one's.
pub(super) fn better_base(
    known: &Known<'_>,
    level: Level,
    base: u16,
    contest: &BaseContest,
) -> Option<u16> {
    let own = known.sides[side(level)].as_ref()?;
    let bases = own.model.bases();
    let found = contest.best()?;
    let sure = found.error < OTHER_ERROR && found.index != usize::from(base);
    // Bases that are one but for the noise of measuring them are not worth a change.
    let alike = own.model.are_alike(own.model.base(base), bases.get(found.index)?);
    (sure && !alike).then(|| u16::try_from(found.index).ok()).flatten()
}
