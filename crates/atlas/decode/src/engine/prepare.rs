//! Making a slot ready for a core in a base: the rows of its book, its offset, and what wrong codes cost. In
//! pieces, since a program that gives its time in slices waits meanwhile.

use super::state::{Engine, Phase, Stage, Step, suits};
use crate::choose::{add_losses, loudness};
use crate::offset::{Offset, fill_ruler};
use crate::pages::Pages;
use crate::patterns::{node_means, spread};
use crate::rows::RowHead;
use crate::tables::Room;

/// How much coarser readings are rounded each time until rows have room.
const COARSER: f32 = 1.25;

impl<R: Room> Engine<R> {
    /// Gives a slot to a decoding core. False where nothing can be decoded in its base.
    pub(super) fn begin_preparing<P: Pages + ?Sized>(&mut self, pages: &mut P, nth: usize) -> bool {
        if !suits(&self.layout, pages.base(nth)) {
            return false;
        }
        if !self.ruled {
            fill_ruler(&mut self.tables.ruler, pages.penalties());
            self.ruled = true;
        }
        let slot = self.free_slot(pages);
        self.drop_samples(slot);
        let (of, noise) = (pages.decoding_core(nth), pages.noise_cycles());
        let base = pages.base(nth);
        let (nodes, spread) = (node_means(base), spread(base));
        let step = pages.penalties().step_cycles;
        let Some(book) = pages.book(nth) else { return false };
        let Some(into) = self.tables.slots.get_mut(slot) else { return false };
        let mut step_cycles = step;
        while RowHead::bytes(book, step_cycles, self.layout.units) > self.layout.rows_bytes {
            step_cycles *= COARSER;
            // A layout without room for one bucket is for nothing.
            if !step_cycles.is_finite() {
                return false;
            }
        }
        into.head.set(book, step_cycles, self.layout.units, self.a_nat);
        self.a_nat = Some(into.head.a_nat());
        if into.head.groups() > self.layout.groups() {
            return false;
        }
        (into.of, into.ready, into.step_cycles) = (Some(of), false, step_cycles);
        (into.offset, into.nodes, into.spread) = (Offset::NEW, nodes, spread);
        (into.at_ns, into.aged) = (0, 0);
        // Better pages that are left over than none: their codes are a fair sample too, if not quite.
        self.whole = true;
        self.loud = self.loud.min(loudness(spread, noise));
        self.aligns_of(slot).fill(0.0);
        let each = self.layout.pair_lines() / self.layout.slots;
        let lines = self.tables.pair_lines.get_mut(slot * each..(slot + 1) * each);
        lines.unwrap_or(&mut []).fill([0; 8]);
        self.phase = Phase::Preparing { slot, stage: Stage::Rows { bucket: 0 } };
        true
    }

    /// A slot that none of the decoding cores has.
    fn free_slot<P: Pages + ?Sized>(&mut self, pages: &P) -> usize {
        let slots = &self.tables.slots;
        let count = self.layout.slots.min(slots.len()).max(1);
        let taken = |slot: usize| {
            let of = slots.get(slot).and_then(|slot| slot.of);
            of.is_some()
                && (0..pages.decoding_cores()).any(|nth| of == Some(pages.decoding_core(nth)))
        };
        let empty = (0..count).find(|slot| slots.get(*slot).is_some_and(|slot| slot.of.is_none()));
        let free = (self.next_slot..self.next_slot + count).map(|slot| slot % count);
        let slot = empty.or_else(|| free.into_iter().find(|slot| !taken(*slot))).unwrap_or(0);
        self.next_slot = (slot + 1) % count;
        slot
    }

    /// Drops samples that wait for the offset of a slot: another core gets it.
    fn drop_samples(&mut self, slot: usize) {
        let each = self.layout.waiting;
        for place in 0..self.open {
            let entry = self.entry_of(place);
            let Some(page) = self.tables.open.get_mut(entry) else { continue };
            let Some(waits) = self.tables.waits.get_mut(entry * each..(entry + 1) * each) else {
                continue;
            };
            let mut kept = 0;
            for at in 0..page.waiting.min(each) {
                let wait = waits[at];
                if super::weigh::slot_of(wait) != slot {
                    waits[kept] = wait;
                    kept += 1;
                }
            }
            page.waiting = kept;
        }
    }

    /// One piece of it.
    pub(super) fn prepare<P: Pages + ?Sized>(
        &mut self,
        pages: &mut P,
        slot: usize,
        stage: Stage,
    ) -> Step {
        let of = self.tables.slots.get(slot).and_then(|slot| slot.of);
        let nth = (0..pages.decoding_cores()).find(|nth| of == Some(pages.decoding_core(*nth)));
        let Some(nth) = nth else {
            // Its decoding core has gone.
            if let Some(slot) = self.tables.slots.get_mut(slot) {
                slot.of = None;
            }
            self.phase = Phase::Drawing;
            return Step::Went;
        };
        let next = match stage {
            Stage::Rows { bucket } => self.fill_rows(pages, nth, slot, bucket),
            Stage::Losses { base, pair } => Some(self.fill_losses(pages, nth, base, pair)),
        };
        match next {
            Some(Some(stage)) => self.phase = Phase::Preparing { slot, stage },
            Some(None) => {
                if let Some(slot) = self.tables.slots.get_mut(slot) {
                    slot.ready = true;
                }
                self.phase = Phase::Drawing;
            }
            None => {
                self.phase = Phase::Drawing;
                return Step::Cannot;
            }
        }
        Step::Went
    }

    /// Some rows; what is to be done next.
    fn fill_rows<P: Pages + ?Sized>(
        &mut self,
        pages: &mut P,
        nth: usize,
        slot: usize,
        bucket: usize,
    ) -> Option<Option<Stage>> {
        let each = self.layout.rows_bytes;
        let book = pages.book(nth)?;
        let of = self.tables.slots.get(slot)?;
        let cells = self.tables.cells.get_mut(slot * each..(slot + 1) * each)?;
        let some = (self.layout.pace.cells / (64 * of.head.groups())).max(1);
        let end = of.head.buckets().min(bucket.saturating_add(some));
        of.head.fill(book, of.step_cycles, bucket..end, cells);
        let done = end == of.head.buckets();
        Some(Some(if done {
            Stage::Losses { base: 0, pair: 0 }
        } else {
            Stage::Rows { bucket: end }
        }))
    }

    /// What wrong codes cost for some pairs of classes; what is to be done next.
    fn fill_losses<P: Pages + ?Sized>(
        &mut self,
        pages: &P,
        nth: usize,
        mut base: usize,
        mut pair: usize,
    ) -> Option<Stage> {
        let classes = self.layout.classes;
        let noise = pages.noise_cycles();
        let some = (self.layout.pace.cells / (8 * self.layout.period)).max(1);
        for _ in 0..some {
            if pair == classes * classes {
                (base, pair) = (base + 1, 0);
            }
            if base > pages.others() {
                return None;
            }
            let of = if base == 0 { pages.base(nth) } else { pages.other(base - 1) };
            if suits(&self.layout, of) {
                let (losses, scratch) = (&mut self.tables.losses, &mut self.tables.scratch);
                add_losses(of, pair / classes, pair % classes, noise, losses, scratch);
            }
            pair += 1;
        }
        Some(Stage::Losses { base, pair })
    }
}
