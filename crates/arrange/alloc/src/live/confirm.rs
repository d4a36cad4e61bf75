//! Nothing is believed for good before a look at known pages has confirmed the base in which it
//! was decoded. What was decoded across a move is decoded again.

use super::batch::Progress;
use super::classifier::{Classifier, Doing};
use super::compare::slope;
use super::identify::{LEAST_KNOWN, WORN_SLOPE};
use super::look::Among;
use super::notes::{block_of, side};
use super::number::page;
use super::timing::Timing;
use isochrone_atlas::BaseContest;
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level};

/// Times in a row that pages are decoded in vain before a level is left alone.
const FAILURES: u32 = 2;

impl Classifier<'_> {
    pub(super) fn begin_confirming(
        &mut self,
        core: CoreId,
        level: Level,
        timing: &mut impl Timing,
    ) {
        timing.abandon();
        let picks = (&self.notes, &mut self.dice);
        if self.look.begin((core, level), (Among::Known, 1), picks) {
            self.doing = Doing::Confirming(level);
        } else {
            // Nothing at all could be decoded: there is nothing to confirm.
            self.settle(level, true);
        }
    }

    /// Goes on with a confirming look, and judges it when it is done.
    pub(super) fn confirm(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        level: Level,
        until: u64,
    ) -> Result<Progress, OsError> {
        let Some(base) = self.base_of(core, level) else { return Ok(Progress::Done) };
        match self.look_on(timing, level, until)? {
            Progress::Done => {}
            Progress::Paused => {
                self.doing = Doing::Confirming(level);
                return Ok(Progress::Paused);
            }
            other => return Ok(other),
        }
        let window = self.look.window(timing.tick_cycles());
        let Some(own) = &self.sides[side(level)] else { return Ok(Progress::Done) };
        let fit = slope(own.model.base(base), self.look.samples(), window);
        if fit.is_none_or(|fit| fit.slope >= WORN_SLOPE) {
            self.accept(core, level);
        } else if self.look.has_room() {
            // A single look scatters; what several say together counts.
            self.begin_confirming(core, level, timing);
        } else {
            self.refute(core, level, timing.now_ns());
        }
        Ok(Progress::Done)
    }

    /// Pages do not look as the base says. If there are confirmed ones, the core has moved, and
    /// they will show to which base. If not, the base was a wrong guess: it is guessed once more,
    /// and after that the level is left alone for some time.
    fn refute(&mut self, core: CoreId, level: Level, now: u64) {
        let pages = 0..page(self.notes.pages());
        let confirmed = pages.filter(|of| self.notes.is_confirmed(level, *of)).take(LEAST_KNOWN);
        let proven = confirmed.count() == LEAST_KNOWN;
        let Some(own) = &mut self.sides[side(level)] else { return };
        own.failures += 1;
        if proven {
            return self.note_move(core);
        }
        if own.failures < FAILURES {
            return self.lose_level(core, level);
        }
        self.settle(level, false);
        self.give_up(level, now);
    }

    /// Known pages look as the base says. If that was found while none was known, it may still be
    /// one much like it (then the pages decoded so far are decoded again in the right one), or one
    /// that the core has left meanwhile (then pages of which nothing is known are asked again).
    fn accept(&mut self, core: CoreId, level: Level) {
        let Some(seat) = self.seat(core) else { return };
        if let Some(own) = &mut self.sides[side(level)] {
            own.failures = 0;
        }
        if self.seats[seat].proven[side(level)] {
            return self.settle(level, true);
        }
        self.doing = Doing::Contesting(level, BaseContest::new());
    }

    /// Compares what was seen with one base more; after the last, the base that was guessed is
    /// replaced, or verified.
    pub(super) fn contest(&mut self, core: CoreId, level: Level, mut contest: BaseContest) {
        let Some(base) = self.base_of(core, level) else { return };
        if self.contest_next(level, &mut contest) {
            self.doing = Doing::Contesting(level, contest);
            return;
        }
        let Some(seat) = self.seat(core) else { return };
        let Some(better) = self.better_base(level, base, &contest) else {
            return self.begin_verifying(core, level, base);
        };
        self.seats[seat].proven[side(level)] = true;
        self.seats[seat].worn[side(level)] = Some(better);
        self.changes = self.changes.wrapping_add(1);
        self.settle(level, false);
        if let Some(own) = &mut self.sides[side(level)] {
            own.stream.start_over();
        }
        self.judge();
    }

    /// The base in which pages were decoded is the one worn.
    pub(super) fn prove(&mut self, core: CoreId, level: Level) {
        if let Some(seat) = self.seat(core) {
            self.seats[seat].proven[side(level)] = true;
        }
        self.settle(level, true);
    }

    /// Confirmed pages say that the core wears another base: that also says why pages decoded in a guess did
    /// not look as it says, so no guess has failed.
    pub(super) fn note_move(&mut self, core: CoreId) {
        self.sides.iter_mut().flatten().for_each(|own| own.failures = 0);
        self.lose_base(core);
    }

    /// The core wears another base, and with it at each level.
    pub(super) fn lose_base(&mut self, core: CoreId) {
        Level::ALL.into_iter().for_each(|level| self.lose_level(core, level));
        self.stats.moves += 1;
    }

    /// What was decoded at a level since the last good look is worth nothing.
    pub(super) fn lose_level(&mut self, core: CoreId, level: Level) {
        if let Some(seat) = self.seat(core) {
            let seat = &mut self.seats[seat];
            (seat.worn[side(level)], seat.ask_at_ns[side(level)]) = (None, 0);
        }
        self.settle(level, false);
        if let Some(own) = &mut self.sides[side(level)] {
            own.stream.start_over();
        }
        self.changes = self.changes.wrapping_add(1);
    }

    /// Pages decoded since the last good look are confirmed, or decoded again.
    pub(super) fn settle(&mut self, level: Level, good: bool) {
        let Some(own) = &mut self.sides[side(level)] else { return };
        let block = own.model.block_pages();
        let mut waits = own.fresh.len();
        while let Some(of) = (waits > 0).then(|| self.fresh_page(level)).flatten() {
            waits -= 1;
            if good {
                let decoded = self.notes.is_known(level, of);
                self.notes.confirm(level, of);
                self.stats.confirmed += u64::from(decoded);
                self.stats.undecodable += u64::from(!decoded);
                self.yield_page(of);
            } else {
                self.notes.forget(level, of);
                let first = block_of(of, block);
                let Some(own) = &mut self.sides[side(level)] else { return };
                if of == first {
                    own.stream.decode_again(first);
                }
            }
        }
    }

    fn fresh_page(&mut self, level: Level) -> Option<u32> {
        self.sides[side(level)].as_mut()?.fresh.pop()
    }
}
