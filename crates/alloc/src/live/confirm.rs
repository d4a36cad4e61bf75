//! Nothing is believed for good before a look at known pages has confirmed the base in which it
//! was decoded. What was decoded across a move is decoded again.

use super::batch::Progress;
use super::classifier::{Classifier, Slice};
use super::compare::slope;
use super::identify::{LEAST_KNOWN, WORN_SLOPE};
use super::look::Among;
use super::notes::{block_of, side};
use super::number::page;
use super::timing::Timing;
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
            self.confirming = Some(level);
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
    ) -> Result<Option<Slice>, OsError> {
        let Some(base) = self.base_of(core, level) else { return Ok(Some(Slice::Stranger(core))) };
        let Some(own) = &self.sides[side(level)] else { return Ok(None) };
        let known = (&self.notes, level, own.model.period);
        match self.look.run(timing, known, until)? {
            Progress::Paused => return Ok(Some(Slice::Paused)),
            Progress::Elsewhere => {
                self.confirming = None;
                return Ok(Some(Slice::Paused));
            }
            Progress::Done => self.confirming = None,
        }
        let window = self.look.window(timing.tick_cycles());
        let fit = slope(own.model.base(base), self.look.samples(), window);
        if fit.is_none_or(|fit| fit.slope >= WORN_SLOPE) {
            self.accept(core, level, base);
            return Ok(None);
        }
        // A single look scatters; what several say together counts.
        if self.look.has_room() {
            self.begin_confirming(core, level, timing);
            return Ok(None);
        }
        Ok(self.refute(core, level))
    }

    /// Pages do not look as the base says. If there are confirmed ones, the core has moved, and
    /// they will show to which base. If not, the base was a wrong guess: it is guessed once more,
    /// and after that the level is left alone.
    fn refute(&mut self, core: CoreId, level: Level) -> Option<Slice> {
        let pages = 0..page(self.notes.pages());
        let confirmed = pages.filter(|of| self.notes.is_confirmed(level, *of)).take(LEAST_KNOWN);
        let proven = confirmed.count() == LEAST_KNOWN;
        let own = self.sides[side(level)].as_mut()?;
        own.failures += 1;
        if proven || own.failures < FAILURES {
            self.lose_base(core);
            return Some(Slice::Stranger(core));
        }
        own.given_up = true;
        own.stream.start_over();
        self.settle(level, false);
        for seat in &mut *self.seats {
            seat.worn[side(level)] = None;
        }
        self.judge();
        self.release(level);
        None
    }

    /// A level is left alone: pages that wait for it only are ready.
    fn release(&mut self, level: Level) {
        for of in 0..page(self.notes.pages()) {
            self.notes.confirm(level, of);
            self.yield_if_ready(of);
        }
    }

    /// Known pages look as the base says. If that was found while none was known, it may still be
    /// one much like it: then the pages decoded so far are decoded again in the right one.
    fn accept(&mut self, core: CoreId, level: Level, base: u16) {
        let Some(seat) = self.seat(core) else { return };
        let proven = self.seats[seat].proven[side(level)];
        let better = if proven { None } else { self.better_base(level, base) };
        self.seats[seat].proven[side(level)] = true;
        if let Some(own) = &mut self.sides[side(level)] {
            own.failures = 0;
        }
        let Some(better) = better else { return self.settle(level, true) };
        self.seats[seat].worn[side(level)] = Some(better);
        self.settle(level, false);
        if let Some(own) = &mut self.sides[side(level)] {
            own.stream.start_over();
        }
        self.judge();
    }

    /// The core wears another base: what was decoded since the last good look is worth nothing.
    pub(super) fn lose_base(&mut self, core: CoreId) {
        if let Some(seat) = self.seat(core) {
            self.seats[seat].worn = [None; 2];
        }
        for level in Level::ALL {
            self.settle(level, false);
            if let Some(own) = &mut self.sides[side(level)] {
                own.stream.start_over();
            }
        }
        self.stats.moves += 1;
    }

    /// Pages decoded since the last good look are confirmed, or decoded again.
    fn settle(&mut self, level: Level, good: bool) {
        let Some(own) = &mut self.sides[side(level)] else { return };
        let block = own.model.block_pages();
        let mut waits = own.fresh.len();
        while let Some(of) = (waits > 0).then(|| self.fresh_page(level)).flatten() {
            waits -= 1;
            if good {
                self.notes.confirm(level, of);
                self.yield_if_ready(of);
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

    fn yield_if_ready(&mut self, of: u32) {
        let levels = self.sides.iter().flatten().map(|own| own.model.level);
        let all = levels.into_iter().all(|level| self.notes.is_confirmed(level, of));
        if all && !self.notes.is_yielded(of) {
            self.yield_page(of);
        }
    }

    pub(super) fn yield_page(&mut self, of: u32) {
        self.notes.set_yielded(of, true);
        self.events.push(of * 2);
        self.stats.ready += 1;
    }
}
