//! What pages there are and what was found of them: from the arena and the atlas on one side, to
//! whoever hands memory out on the other.
//!
//! It only keeps book: nothing is timed here, and nothing is decided but whether a page has news.

use super::answers::Event;
use super::classifier::Classifier;
use super::notes::side;
use super::number::{index, page};
use super::stream::Decoded;
use super::timing::Timing;
use isochrone_atlas::Code;
use isochrone_units::{Level, PageAddr};

impl Classifier<'_> {
    /// Takes note of all pages of the arena below `end`. Those whose frames the atlas knows have
    /// their codes from it.
    pub fn add(&mut self, timing: &impl Timing, end: usize) {
        const TOGETHER: usize = 64;
        let first = self.notes.pages();
        self.notes.extend(end);
        for begin in (first..self.notes.pages()).step_by(TOGETHER) {
            let count = TOGETHER.min(self.notes.pages() - begin);
            let mut frames = [None; TOGETHER];
            timing.frames(PageAddr(begin as u64), &mut frames[..count]);
            for (of, frame) in (page(begin)..).zip(&frames[..count]) {
                self.notes.set_frame(of, *frame);
                self.ask_atlas(of, *frame);
            }
        }
        if self.sides.iter().all(Option::is_none) {
            (first..self.notes.pages()).for_each(|of| self.yield_page(page(of)));
        }
    }

    /// Takes a page's codes from the atlas, if that has its frame at every level that counts.
    pub(super) fn ask_atlas(&mut self, of: u32, frame: Option<u64>) {
        let Some(frame) = frame else { return };
        let mut found = [None; 2];
        for (place, own) in self.sides.iter().enumerate() {
            let Some(own) = own else { continue };
            if own.model.block_pages() > 1 {
                return;
            }
            let code = self.atlas.code(PageAddr(frame), own.model.level);
            let Some(code) = code.filter(|code| *code != Code::UNKNOWN) else { return };
            found[place] = Some(code);
        }
        for (own, code) in self.sides.iter_mut().zip(found) {
            if let (Some(own), Some(code)) = (own, code) {
                self.notes.set_code(own.model.level, of, code, own.model.period);
                own.fresh.push(of);
            }
        }
        self.stats.from_atlas += 1;
    }

    /// Whether there is an event to be taken.
    #[must_use]
    pub const fn has_events(&self) -> bool {
        self.events.len() > 0
    }

    /// The next page that is ready, or was given another frame.
    pub fn next_event(&mut self) -> Option<Event> {
        const REPLACED: u32 = 1;
        let entry = self.events.pop()?;
        let (of, kind) = (entry / 2, entry % 2);
        let address = PageAddr(u64::from(of));
        Some(match kind {
            REPLACED => Event::Replaced(address),
            _ => {
                self.notes.set_told(of, true);
                Event::Ready(address, self.notes.confirmed(of))
            }
        })
    }

    /// Notes the code of a block. A page that was ready and has another code now was given another
    /// frame.
    pub(super) fn take_decoded(&mut self, level: Level, decoded: Decoded) {
        let Some(own) = &mut self.sides[side(level)] else { return };
        let (block, period) = (own.model.block_pages(), own.model.period);
        let first = decoded.first;
        let doubted = self.notes.is_doubted(level, first);
        let before = self.notes.code(level, first);
        if doubted && decoded.code == Code::UNKNOWN {
            // It could not be told: what is known stays.
            return self.notes.set_doubted(level, first, false);
        }
        self.notes.set_code(level, first, decoded.code, period);
        let changed = doubted && self.notes.code(level, first) != before;
        for of in (first..).take(block) {
            self.notes.set_doubted(level, of, false);
            if changed {
                self.replaced(of);
            }
        }
        let Some(own) = &mut self.sides[side(level)] else { return };
        if !doubted || changed {
            (first..).take(block).for_each(|of| {
                own.fresh.push(of);
            });
        }
    }

    /// Tells that a page was given another frame.
    pub(super) fn replaced(&mut self, of: u32) {
        if self.notes.is_yielded(of) {
            self.notes.set_yielded(of, false);
            // What is told of it from here on comes after this.
            self.notes.set_told(of, true);
            self.events.push(of * 2 + 1);
            self.stats.replaced += 1;
        }
    }

    /// Tells what is known of a page, unless somebody is about to hear it anyway.
    pub(super) fn yield_page(&mut self, of: u32) {
        self.stats.ready += u64::from(!self.notes.is_yielded(of));
        self.notes.set_yielded(of, true);
        if self.notes.is_told(of) {
            self.notes.set_told(of, false);
            self.events.push(of * 2);
        }
    }

    /// Pages that may be asked for.
    pub(super) fn holds(&self, of: u32) -> bool {
        index(of) < self.notes.pages()
    }
}
