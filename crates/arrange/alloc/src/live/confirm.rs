//! Nothing is believed for good before a look at known pages has confirmed the base in which it
//! was decoded. What was decoded across a move is decoded again.

use super::batch::Progress;
use super::compare::{CURRENT_SLOPE, LEAST_KNOWN, slope};
use super::eyes::{Eyes, Outcome, better_base};
use super::known::Known;
use super::look::Among;
use super::notes::side;
use super::number::page;
use super::timing::Timing;
use isochrone_atlas::BaseContest;
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level};

/// Times in a row that pages are decoded in vain before a level is left alone.
const FAILURES: u32 = 2;

/// A look that confirms what was decoded at a level.
#[derive(Debug)]
pub(super) struct Confirmation {
    core: CoreId,
    level: Level,
    stage: Stage,
}

/// How far it came.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Pages are to be chosen.
    Choosing,
    /// They are looked at.
    Looking,
    /// What was seen is compared with one base after another, since the one that it confirms was a
    /// guess.
    Contesting(BaseContest),
}

impl Confirmation {
    pub(super) const fn new(core: CoreId, level: Level) -> Self {
        Self { core, level, stage: Stage::Choosing }
    }

    /// One step of it.
    pub(super) fn step(
        &mut self,
        known: &mut Known<'_>,
        eyes: &mut Eyes,
        timing: &mut impl Timing,
        until: u64,
    ) -> Result<Outcome, OsError> {
        let Self { core, level, stage } = *self;
        match stage {
            Stage::Choosing => {
                timing.abandon();
                if !eyes.begin(known, core, level, Among::Known, 1) {
                    // Nothing at all could be decoded: there is nothing to confirm.
                    known.settle(level, true);
                    return Ok(Outcome::Ended);
                }
                self.stage = Stage::Looking;
            }
            Stage::Looking => {
                let Some(base) = known.base_of(core, level) else { return Ok(Outcome::Ended) };
                match eyes.look_on(known, timing, level, until)? {
                    Progress::Done => return Ok(self.judge(known, eyes, timing, base)),
                    Progress::Paused => return Ok(Outcome::Paused),
                    Progress::Elsewhere => return Ok(Outcome::Elsewhere),
                    Progress::Stale => return Ok(Outcome::Stale),
                }
            }
            Stage::Contesting(contest) => return Ok(self.contest(known, eyes, contest)),
        }
        Ok(Outcome::Again)
    }

    /// The look is done: whether the base fits what was seen.
    fn judge(
        &mut self,
        known: &mut Known<'_>,
        eyes: &mut Eyes,
        timing: &impl Timing,
        base: u16,
    ) -> Outcome {
        let (core, level) = (self.core, self.level);
        let window = eyes.look.window(timing.tick_cycles());
        let Some(own) = &known.sides[side(level)] else { return Outcome::Ended };
        let fit = slope(own.model.base(base), eyes.look.samples(), window);
        if fit.is_none_or(|fit| fit.slope >= CURRENT_SLOPE) {
            return self.accept(known);
        }
        if eyes.look.has_room() {
            // A single look scatters; what several say together counts.
            self.stage = Stage::Choosing;
            return Outcome::Again;
        }
        refute(known, core, level, timing.now_ns());
        Outcome::Ended
    }

    /// Known pages look as the base says. If that was found while none was known, it may still be
    /// one much like it (then the pages decoded so far are decoded again in the right one), or one
    /// that the core has left meanwhile (then pages of which nothing is known are asked again).
    fn accept(&mut self, known: &mut Known<'_>) -> Outcome {
        let place = side(self.level);
        let Some(seat) = known.seat(self.core) else { return Outcome::Ended };
        if let Some(own) = &mut known.sides[place] {
            own.failures = 0;
        }
        if known.seats[seat].proven[place] {
            known.settle(self.level, true);
            return Outcome::Ended;
        }
        self.stage = Stage::Contesting(BaseContest::new());
        Outcome::Again
    }

    /// Compares what was seen with one base more; after the last, the base that was guessed is
    /// replaced, or verified.
    fn contest(&mut self, known: &mut Known<'_>, eyes: &Eyes, mut contest: BaseContest) -> Outcome {
        let (core, level) = (self.core, self.level);
        let Some(base) = known.base_of(core, level) else { return Outcome::Ended };
        if eyes.contest_next(known, level, &mut contest) {
            self.stage = Stage::Contesting(contest);
            return Outcome::Again;
        }
        let Some(better) = better_base(known, level, base, &contest) else {
            return Outcome::Verify(base);
        };
        known.replace_guess(core, level, better);
        Outcome::Ended
    }
}

/// Pages do not look as the base says. If there are confirmed ones, the core has moved, and
/// they will show to which base. If not, the base was a wrong guess: it is guessed once more,
/// and after that the level is left alone for some time.
fn refute(known: &mut Known<'_>, core: CoreId, level: Level, now: u64) {
    let notes = &known.ledger.notes;
    let confirmed = (0..page(notes.pages())).filter(|of| notes.is_confirmed(level, *of));
    let proven = confirmed.take(LEAST_KNOWN).count() == LEAST_KNOWN;
    let Some(own) = &mut known.sides[side(level)] else { return };
    own.failures += 1;
    if proven {
        known.note_move(core);
    } else if own.failures < FAILURES {
        known.lose_level(core, level);
    } else {
        known.give_up(level, now);
    }
}
