//! The engine: pages stream through a window. In every round each undecided page has some of its lines
//! timed, so that lines timed together come from different pages; a page leaves as soon as its decision is
//! safe, and another takes its place. Rounds go to the decoding cores in turn. Known pages run along in every
//! round: they carry the offset, and they notice a virtual CPU that moved.
//!
//! Between two calls everything is in the engine and its tables, so it can be put aside after any step.

mod draw;
mod prepare;
mod state;
mod weigh;

use crate::batch::Progress;
use crate::loads::Loads;
use crate::offset::{Offset, PASSES};
use crate::pages::Pages;
use crate::tables::{Room, Tables};
use state::{BELIEVED, Phase};

pub use state::{Engine, Step};

/// References of a decoding core at least before its offset is believed, however small the noise.
const LEAST_BELIEVED: f64 = 64.0;
/// Fewer than [`BELIEVED`] will do where the noise is small beside what lines differ by: when the offset is known to
/// this part of that.
const BELIEVED_PARTS: f64 = 15.0;
/// Age at which an offset is measured anew.
const OFFSET_NS: u64 = 1_000_000_000;
/// Times in a row that an offset may become that old before it was believed.
const AGED_MOST: u32 = 8;

impl<R: Room> Engine<R> {
    /// Does one step of the work.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn advance<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &mut L,
        pages: &mut P,
        until_ns: u64,
    ) -> Result<Step, L::Error> {
        let step = match self.phase {
            Phase::Drawing => self.begin_round(loads, pages),
            Phase::Preparing { slot, stage } => self.prepare(pages, slot, stage),
            Phase::Timing => return self.time(loads, pages, until_ns),
            Phase::Taking { pass } => {
                self.take(loads, pages, pass);
                Step::Went
            }
            Phase::Closing { at } => self.close(loads, pages, at),
        };
        let paused = step == Step::Went && loads.now_ns() >= until_ns;
        Ok(if paused { Step::Paused } else { step })
    }

    /// Makes what the next round needs, or draws it.
    fn begin_round<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &mut L,
        pages: &mut P,
    ) -> Step {
        if pages.lines().len() < PASSES || pages.decoding_cores() == 0 {
            return Step::Cannot;
        }
        self.turn %= pages.decoding_cores();
        for nth in 0..pages.decoding_cores().min(self.layout.slots) {
            if self.slot_of(pages.decoding_core(nth)).is_none() {
                return if self.begin_preparing(pages, nth) { Step::Went } else { Step::Cannot };
            }
        }
        if !self.refill(pages) {
            return Step::Went;
        }
        if self.open == 0 {
            return Step::Idle;
        }
        let Some(slot) = self.slot_of(pages.decoding_core(self.turn)) else { return Step::Cannot };
        self.wanted = self.wanted_by(pages);
        if !self.keep_fresh(slot, loads.now_ns()) {
            return Step::Cannot;
        }
        self.round = slot;
        let answers = self.tables.slots.get(slot).map_or(0, |slot| slot.head.with(&[]).answers());
        self.alike = weigh::rounds_alike(answers) * PASSES;
        self.draw(pages);
        loads.abandon();
        self.phase = Phase::Timing;
        Step::Went
    }

    /// Measures an old offset anew; false when that was done too often in a row.
    fn keep_fresh(&mut self, slot: usize, now_ns: u64) -> bool {
        let wanted = self.wanted;
        let Some(of) = self.tables.slots.get_mut(slot) else { return false };
        if of.at_ns > 0 && now_ns.saturating_sub(of.at_ns) > OFFSET_NS {
            of.aged = if of.offset.is_believed(wanted) { 0 } else { of.aged + 1 };
            of.offset = Offset::NEW;
            self.aligns_of(slot).fill(0.0);
            // Better pages that are left over than none: their codes are a fair sample too, if
            // not quite.
            self.whole = true;
        }
        self.tables.slots.get(slot).is_some_and(|of| of.aged < AGED_MOST)
    }

    /// Loads of known pages, and of unknown ones, that an offset must rest on: of all decoding cores the most.
    fn wanted_by<P: Pages + ?Sized>(&self, pages: &P) -> (f64, f64) {
        let slot =
            |nth| Some(self.tables.slots.get(self.slot_of(pages.decoding_core(nth))?)?.spread);
        let spread = (0..pages.decoding_cores()).filter_map(slot).fold(f64::MAX, f64::min);
        let (spread, noise) = (spread.max(f64::MIN_POSITIVE), pages.noise_cycles());
        let known = (BELIEVED_PARTS * noise) * (BELIEVED_PARTS * noise) / spread;
        // The codes of unknown pages scatter as lines do.
        let unknown = BELIEVED_PARTS * BELIEVED_PARTS * (noise * noise + spread) / spread;
        (known.clamp(LEAST_BELIEVED, BELIEVED), unknown.clamp(LEAST_BELIEVED, BELIEVED))
    }

    /// Goes on with timing the round.
    fn time<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &mut L,
        pages: &mut P,
        until_ns: u64,
    ) -> Result<Step, L::Error> {
        let of = self.tables.slots.get(self.round).and_then(|slot| slot.of);
        // A batch belongs to one core and base: another core draws anew.
        if of != Some(pages.decoding_core(self.turn.min(pages.decoding_cores().saturating_sub(1))))
        {
            loads.abandon();
            self.phase = Phase::Drawing;
            return Ok(Step::Went);
        }
        let Tables { lines, raw, .. } = &mut self.tables;
        match self.batch.run(loads, lines, raw, until_ns)? {
            Progress::Done => {
                if let Some(slot) = self.tables.slots.get_mut(self.round) {
                    slot.at_ns = loads.now_ns().max(1);
                }
                self.phase = Phase::Taking { pass: 0 };
                Ok(Step::Went)
            }
            Progress::Paused => Ok(Step::Paused),
            Progress::Elsewhere => {
                loads.abandon();
                self.phase = Phase::Drawing;
                Ok(Step::Elsewhere(self.batch.len()))
            }
            Progress::Stale => {
                loads.abandon();
                self.phase = Phase::Drawing;
                Ok(Step::Cannot)
            }
        }
    }
}
