//! Drawing a round: which lines of which pages are timed, in which order, and known pages among them.

use super::state::{Engine, FAIR, REFERENCE, group_of};
use crate::number::{index, short};
use crate::offset::{Known, PASSES};
use crate::pages::{Pages, Reference};
use crate::patterns::Patterns;
use crate::tables::{Open, Room, references};
use isochrone_units::LineAddr;

impl<R: Room> Engine<R> {
    /// Opens some pages; true when the window is full, or there are no more.
    pub(super) fn refill<P: Pages + ?Sized>(&mut self, pages: &mut P) -> bool {
        self.whole = self.whole || self.open == 0;
        let next = group_of(pages.lines(), 0);
        for _ in 0..self.layout.pace.pages {
            if self.open == self.layout.window {
                return true;
            }
            let Some((tag, first)) = pages.next() else { return true };
            self.open += 1;
            *self.page_mut(self.open - 1) = Open {
                tag,
                first: first.0,
                next,
                count: PASSES.to_le_bytes()[0],
                ..Open::default()
            };
        }
        false
    }

    /// The next lines of each open page, a pass for each, and references among them. In a pass
    /// every page has one line, pages that stand side by side not the same of their group; lines of one
    /// page are never neighbours.
    pub(super) fn draw<P: Pages + ?Sized>(&mut self, pages: &mut P) {
        let (core, level) = (pages.decoding_core(self.turn).0, pages.level());
        self.batch.begin(core, level);
        let all = self.open + references(self.open);
        if self.ordered != all {
            for (place, slot) in self.tables.order.iter_mut().enumerate() {
                *slot = short(place);
            }
            self.ordered = all;
        }
        pages.shuffle(self.tables.order.get_mut(..all).unwrap_or(&mut []));
        let (mut most, mut known) = (0, 0);
        for pass in 0..PASSES {
            let begin = (self.batch.len(), known);
            let own = (0..self.open).filter(|place| self.takes_part(*place, pass)).count();
            let count = references(own).min(pages.references());
            most = most.max(count);
            // Pages first, references behind them; another place to begin at in each pass.
            let split = pass * all / PASSES;
            for at in (split..all).chain(0..split) {
                let place = index(self.tables.order[at]);
                if place < self.open {
                    self.draw_page(place, pass);
                } else if place - self.open < count {
                    let nth = (self.reference_next + place - self.open) % pages.references();
                    known += usize::from(self.draw_reference(pages, nth, pass, known));
                }
            }
            self.passes[pass] = begin.0..self.batch.len();
            self.known[pass] = begin.1..known;
        }
        self.reference_reads += PASSES;
        self.reference_next = (self.reference_next + most) % pages.references().max(1);
    }

    /// Whether a page has a line in this pass. While its samples wait and there is no room for more, it
    /// is only read where there is nothing else to know the offset by.
    fn takes_part(&self, place: usize, pass: usize) -> bool {
        let page = self.page(place);
        let full = page.waiting + usize::from(page.count) > self.layout.waiting;
        pass < usize::from(page.count) && (!full || !self.saw_known)
    }

    fn draw_page(&mut self, place: usize, pass: usize) {
        if !self.takes_part(place, pass) {
            return;
        }
        let page = self.page(place);
        let turned = (pass + index(page.tag)) % usize::from(page.count.max(1));
        let line = page.next[turned % PASSES];
        let first = page.first;
        let fair = index(page.reads) < self.alike;
        self.push(short(place), line, LineAddr(first + u64::from(line)), fair);
    }

    /// Draws a line of a known page; false where that place has none.
    fn draw_reference<P: Pages + ?Sized>(
        &mut self,
        pages: &mut P,
        nth: usize,
        pass: usize,
        known: usize,
    ) -> bool {
        let Some(Reference { first, class, key }) = pages.reference(nth) else { return false };
        let line = group_of(pages.lines(), self.reference_reads)[(pass + nth) % PASSES];
        let base = pages.base(self.turn);
        let class = usize::from(class);
        let expected = base.cycles(class, usize::from(key) ^ usize::from(line));
        let nodes = self.tables.slots.get(self.round).map(|slot| slot.nodes);
        let node = nodes.and_then(|nodes| nodes.get(class).copied()).unwrap_or(0.0);
        let Some(slot) = self.tables.known.get_mut(known) else { return false };
        *slot = Known { expected, node, seen: 0.0 };
        self.push(REFERENCE, line, LineAddr(first.0 + u64::from(line)), false);
        true
    }

    fn push(&mut self, of: u32, line: u8, address: LineAddr, fair: bool) {
        let at = self.batch.len();
        if self.batch.push(&mut self.tables.lines, address)
            && let Some(what) = self.tables.whats.get_mut(at)
        {
            *what = of << 8 | u32::from(line) | if fair { FAIR } else { 0 };
        }
    }
}
