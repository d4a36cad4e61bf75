//! Using a round: what its loads have in common, what they say of each page, which pages are done, and
//! what the others have read next.

use core::ops::Range;

use super::state::{Engine, FAIR, Phase, REFERENCE, Step, group_of};
use crate::choose::{Choice, Chooser};
use crate::loads::Loads;
use crate::number::{index, narrow, real};
use crate::offset::{Histogram, PASSES, Trust, Window};
use crate::pages::{Decided, Pages};
use crate::rows::{Rows, ScoresMut, ShortlistMut, Verdict};
use crate::tables::{Room, Tables};

/// Bits of a code that one round of lines of all pages alike is read for: 32 codes.
const CODES_A_ROUND: usize = 32;
/// Timed loads of each probe line after which a page's best code is taken as it is.
const MAX_CYCLES: usize = 24;
/// Fewer open pages than that say too little of what all have in common.
const ENOUGH_PAGES: usize = 64;

/// The slot whose offset a sample waits for.
pub(super) fn slot_of(wait: [u32; 2]) -> usize {
    index(wait[1] >> 16)
}

/// A sample that waits: its reading; its line, pass and slot.
fn wait(raw: u32, line: u8, pass: usize, slot: usize) -> [u32; 2] {
    let pass = u32::from(pass.to_le_bytes()[0]);
    [raw, u32::from(line) | pass << 8 | crate::number::short(slot) << 16]
}

impl<R: Room> Engine<R> {
    /// Uses one pass of a round.
    pub(super) fn take<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &L,
        pages: &mut P,
        pass: usize,
    ) {
        let overhead = loads.overhead_cycles();
        let mut known = self.known[pass].start;
        let mut own = 0;
        for at in self.passes[pass].clone() {
            let (what, raw) = (self.tables.whats[at], self.tables.raw[at].0);
            let (of, line) = ((what & !FAIR) >> 8, what.to_le_bytes()[0]);
            if of == REFERENCE {
                if let Some(slot) = self.tables.known.get_mut(known) {
                    slot.seen = f64::from(raw) - overhead;
                }
                known += 1;
                continue;
            }
            own += 1;
            let entry = self.entry_of(index(of));
            let (each, round) = (self.layout.waiting, self.round);
            let page = &mut self.tables.open[entry];
            page.reads += 1;
            page.read.insert(line);
            if page.waiting < each {
                self.tables.waits[entry * each + page.waiting] = wait(raw, line, pass, round);
                page.waiting += 1;
            }
        }
        self.loads[0] += own;
        self.loads[1] += self.passes[pass].len() as u64 - own;
        self.hear(pages, pass, overhead, loads.tick_cycles());
        if pass + 1 < PASSES {
            self.phase = Phase::Taking { pass: pass + 1 };
        } else {
            self.end_round(pages);
        }
    }

    /// What the loads of a pass have in common.
    fn hear<P: Pages + ?Sized>(&mut self, pages: &P, pass: usize, overhead: f64, tick: u32) {
        let (round, loads) = (self.round, self.known[pass].clone());
        let shared = if pages.passes_apart() { pass } else { 0 };
        let each = self.layout.aligns() / self.layout.slots / PASSES;
        let begin = (round * PASSES + shared) * each;
        let Tables { slots, known, room, aligns, ruler, raw, .. } = &mut self.tables;
        let (Some(slot), Some(known), Some(cells)) =
            (slots.get_mut(round), known.get(loads), aligns.get_mut(begin..begin + each))
        else {
            return;
        };
        let histogram = Histogram { cells, ruler };
        if pages.trust() == Trust::Certain {
            return slot.offset.add_certain(shared, known, histogram, room, tick);
        }
        if pass == 0 {
            // Some of the loads of the round, where there are more of them than room.
            let all = self.passes[PASSES - 1].end;
            let step = all.div_ceil(room.len().max(1)).max(1);
            let mut count = 0;
            for (slot, raw) in room.iter_mut().zip(raw[..all].iter().step_by(step)) {
                *slot = f64::from(raw.0) - overhead;
                count += 1;
            }
            slot.offset.hear_window(&mut room[..count], tick);
        }
        let window = slot.offset.window();
        let (trust, fade) = (pages.trust(), pass == 0 || shared > 0);
        slot.offset.add_decoded(shared, known, histogram, trust, self.wanted.0, fade);
        if let Some(window) = window {
            self.hear_unknown(pages, pass, shared, overhead, window);
        }
    }

    /// What loads of pages of unknown code have in common, whose codes occur with known shares: those of pages
    /// in their first rounds, and of all while there is nothing else to know the offset by. What pages that were
    /// decoded say follows the offset that they were decoded with; this does not.
    fn hear_unknown<P: Pages + ?Sized>(
        &mut self,
        pages: &P,
        pass: usize,
        shared: usize,
        overhead: f64,
        window: Window,
    ) {
        let round = self.tables.slots.get(self.round);
        let of = round.and_then(|slot| slot.of);
        let core = (0..pages.decoding_cores()).find(|nth| of == Some(pages.decoding_core(*nth)));
        let (Some(nth), Some(slot)) = (core, round) else { return };
        let enough = self.open >= ENOUGH_PAGES.min(self.layout.window);
        let none = self.known.iter().all(Range::is_empty);
        let all = !slot.offset.is_believed(self.wanted) && ((self.whole && enough) || none);
        let (mut fair, mut again) = ((0.0, 0_usize), (0.0, 0_usize));
        // All pages of a pass share a few lines, so what is expected is asked for once for each.
        let mut asked: [Option<(u8, f64)>; 2 * PASSES] = [None; 2 * PASSES];
        for at in self.passes[pass].clone() {
            let (what, raw) = (self.tables.whats[at], self.tables.raw[at].0);
            let value = f64::from(raw) - overhead;
            let is_fair = what & FAIR != 0;
            let counts = (is_fair || all) && (what & !FAIR) >> 8 != REFERENCE;
            if !counts || !window.holds(value) {
                continue;
            }
            let line = what.to_le_bytes()[0];
            let place = asked.iter().position(|of| of.is_none_or(|(other, _)| other == line));
            let expected = match place.and_then(|place| asked[place]) {
                Some((_, expected)) => Some(expected),
                None => pages.expected(nth, line, window),
            };
            let Some(expected) = expected else { continue };
            if let Some(place) = place {
                asked[place] = Some((line, expected));
            }
            let sum = if is_fair { &mut fair } else { &mut again };
            *sum = (sum.0 + value - expected, sum.1 + 1);
        }
        // More loads of the same pages leave as much as the codes of all scatter by.
        let noise = pages.noise_cycles();
        let most = real(self.open) * noise * noise / slot.spread.max(f64::MIN_POSITIVE);
        let Some(slot) = self.tables.slots.get_mut(self.round) else { return };
        slot.offset.add_mean(shared, fair.0 / real(fair.1), real(fair.1), f64::MAX);
        slot.offset.add_mean(shared, again.0 / real(again.1), real(again.1), most);
    }

    /// After the last pass: weighs, if what loads have in common is known well enough.
    fn end_round<P: Pages + ?Sized>(&mut self, pages: &mut P) {
        self.saw_known = self.known.iter().any(|known| !known.is_empty());
        let (noise, trust) = (pages.noise_cycles(), pages.trust());
        let slot = self.tables.slots.get_mut(self.round);
        let heard = slot.map(|slot| slot.offset.judge(noise, trust));
        self.heard = heard.flatten();
        let believed = (0..pages.decoding_cores()).all(|nth| {
            let slot = self.slot_of(pages.decoding_core(nth));
            slot.is_some_and(|slot| self.tables.slots[slot].is_believed(self.wanted))
        });
        if believed {
            self.phase = Phase::Closing { at: 0 };
            return;
        }
        for place in 0..self.open {
            let lines = group_of(pages.lines(), index(self.page(place).reads));
            let page = self.page_mut(place);
            (page.next, page.count) = (lines, PASSES.to_le_bytes()[0]);
        }
        self.phase = Phase::Closing { at: usize::MAX };
    }

    /// Weighs what waits, a piece of the window at a time. Pages whose decision is safe leave; the others
    /// are told what to read next.
    pub(super) fn close<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &L,
        pages: &mut P,
        mut at: usize,
    ) -> Step {
        let mut left = self.layout.pace.pages;
        while at < self.open && left > 0 {
            left -= 1;
            if !self.close_page(loads, pages, at) {
                at += 1;
            }
        }
        if at < self.open {
            self.phase = Phase::Closing { at };
            return Step::Went;
        }
        self.turn = (self.turn + 1) % pages.decoding_cores().max(1);
        self.phase = Phase::Drawing;
        match self.heard.take() {
            Some(true) => return Step::Lost,
            Some(false) => pages.verified(),
            None => {}
        }
        Step::Went
    }

    /// Weighs one page; true when it has left, and another is in its place.
    fn close_page<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &L,
        pages: &mut P,
        place: usize,
    ) -> bool {
        let reads = index(self.page(place).reads);
        if self.tables.slots.get(self.round).is_none_or(|slot| !slot.ready) {
            return false;
        }
        if reads < self.alike {
            let lines = group_of(pages.lines(), reads);
            let page = self.page_mut(place);
            (page.next, page.count) = (lines, PASSES.to_le_bytes()[0]);
            return false;
        }
        self.weigh(pages, loads.overhead_cycles(), place);
        let verdict = self.verdict(place);
        let chooser = Chooser {
            pairs: self.layout.pairs(),
            lines_most: self.layout.lines_most,
            loss_most: self.layout.loss_most,
            loud: self.loud,
            losses: &self.tables.losses,
        };
        let loss = chooser.loss(&verdict);
        let safe = loss < chooser.safe();
        if safe || reads >= MAX_CYCLES * pages.lines().len() {
            let page = self.page(place);
            let decided = Decided {
                tag: page.tag,
                code: verdict.code,
                loss,
                error: verdict.error,
                safe,
                lines: page.read.count(),
                reads: page.reads,
            };
            self.open -= 1;
            self.tables.standing.swap(place, self.open);
            self.whole = false;
            pages.decided(decided);
            return true;
        }
        self.choose(pages, place, &verdict);
        false
    }

    /// Which lines of a page are read next, by the decoding core whose turn comes.
    fn choose<P: Pages + ?Sized>(&mut self, pages: &P, place: usize, verdict: &Verdict) {
        let next = (self.turn + 1) % pages.decoding_cores().max(1);
        let entry = self.entry_of(place);
        let slot = self.slot_of(pages.decoding_core(next));
        let each = self.layout.pair_lines() / self.layout.slots;
        let Tables { losses, pair_lines, open, .. } = &mut self.tables;
        let page = &mut open[entry];
        let (Choice::Adaptive, Some(slot)) = (self.layout.choice, slot) else {
            page.next = group_of(pages.lines(), index(page.reads));
            page.count = PASSES.to_le_bytes()[0];
            return;
        };
        let chooser = Chooser {
            pairs: self.layout.pairs(),
            lines_most: self.layout.lines_most,
            loss_most: self.layout.loss_most,
            loud: self.loud,
            losses,
        };
        let lines = pair_lines.get_mut(slot * each..(slot + 1) * each).unwrap_or(&mut []);
        let base = pages.base(next);
        page.next = chooser.next(base, lines, verdict, page.read, pages.lines());
        page.count = chooser.reads().to_le_bytes()[0];
    }

    /// Adds what waits to the codes of a page that are left.
    fn weigh<P: Pages + ?Sized>(&mut self, pages: &P, overhead: f64, place: usize) {
        let (trust, apart) = (pages.trust(), pages.passes_apart());
        let entry = self.entry_of(place);
        let (each, groups) = (self.layout.waiting, self.layout.groups());
        let wanted = self.wanted;
        let rows_bytes = self.layout.rows_bytes;
        let Tables { slots, cells, open, waits, scores, list_codes, list_behind, .. } =
            &mut self.tables;
        let page = &mut open[entry];
        let rows = |slot: usize| -> Option<Rows<'_>> {
            let cells = cells.get(slot * rows_bytes..(slot + 1) * rows_bytes)?;
            Some(slots.get(slot).filter(|slot| slot.ready)?.head.with(cells))
        };
        let waits = &mut waits[entry * each..entry * each + page.waiting.min(each)];
        let mut kept = 0;
        let mut few =
            ShortlistMut::over(&mut list_codes[entry], &mut list_behind[entry], &mut page.listed);
        let of_page = &mut scores[entry * groups..(entry + 1) * groups];
        let listed = !few.is_empty();
        let mut added = 0;
        for at in 0..waits.len() {
            let sample = waits[at];
            let slot = slot_of(sample);
            let (line, pass) =
                (sample[1].to_le_bytes()[0], usize::from(sample[1].to_le_bytes()[1]));
            let Some(rows) = rows(slot) else { continue };
            let Some(of) = slots.get(slot) else { continue };
            if !of.is_believed(wanted) {
                waits[kept] = sample;
                kept += 1;
                continue;
            }
            let pass = if apart { pass } else { 0 };
            let offset = of.offset.cycles(pass, wanted.0, trust);
            let mut cycles = narrow(f64::from(sample[0]) - overhead - offset);
            if self.layout.dither {
                cycles += dither(&mut self.dice) * of.step_cycles;
            }
            if listed {
                few.add(&rows, line, cycles);
                continue;
            }
            let mut all = ScoresMut::over(of_page, &mut page.state);
            if !page.begun {
                all.begin(&rows);
                page.begun = true;
            }
            all.add(&rows, line, cycles);
            if added % PASSES == PASSES - 1 {
                all.prune();
            }
            added += 1;
        }
        page.waiting = kept;
        if !listed && page.begun {
            let mut all = ScoresMut::over(of_page, &mut page.state);
            all.prune();
            all.shorten(&mut few);
        }
    }

    /// What the samples of a page say so far.
    fn verdict(&mut self, place: usize) -> Verdict {
        let entry = self.entry_of(place);
        let (round, groups, rows) = (self.round, self.layout.groups(), self.layout.rows_bytes);
        let Tables { slots, cells, open, scores, list_codes, list_behind, .. } = &mut self.tables;
        let page = &mut open[entry];
        let cells = cells.get(round * rows..(round + 1) * rows).unwrap_or(&[]);
        let rows = slots[round].head.with(cells);
        let mut few =
            ShortlistMut::over(&mut list_codes[entry], &mut list_behind[entry], &mut page.listed);
        if !few.is_empty() {
            return few.verdict(&rows);
        }
        let mut all =
            ScoresMut::over(&mut scores[entry * groups..(entry + 1) * groups], &mut page.state);
        if !page.begun {
            all.begin(&rows);
            page.begun = true;
        }
        all.verdict(&rows)
    }
}

/// The next of a row of numbers that are even in -0.5..0.5 (a congruential generator; Knuth, The Art of Computer
/// Programming 2, 3.3.4, table 1, line 16).
fn dither(dice: &mut u32) -> f32 {
    *dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let [_, _, low, high] = dice.to_le_bytes();
    f32::from(u16::from_le_bytes([low, high])) / 65536.0 - 0.5
}

/// Rounds of lines that are the same for all pages.
pub(super) fn rounds_alike(answers: usize) -> usize {
    if answers <= CODES_A_ROUND {
        1
    } else if answers <= CODES_A_ROUND * CODES_A_ROUND {
        2
    } else {
        3
    }
}
