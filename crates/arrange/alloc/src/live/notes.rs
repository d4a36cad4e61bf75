//! What is known of each page of the arena, and the queues that pages wait in.
//!
//! It only keeps book. Tables become longer as pages come, in steps.

use super::number::{index, page};
use crate::PageCodes;
use isochrone_atlas::{Code, Period};
use isochrone_os::OsError;
use isochrone_os::table::Table;
use isochrone_units::Level;

/// The page was handed to the heap.
const YIELDED: u8 = 1;
/// The page's code at a level was confirmed; a bit for each.
const CONFIRMED: [u8; 2] = [2, 4];
/// The page waits to be decoded once more, though it has a code; a bit for each level.
const DOUBTED: [u8; 2] = [8, 16];
/// What is known of the page has still to be heard: it waits among the events.
const UNTOLD: u8 = 32;
/// The page's memory went back to the system: it has no lines.
const AWAY: u8 = 64;

/// The place of a level in arrays of two.
pub(super) const fn side(level: Level) -> usize {
    match level {
        Level::Llc => 0,
        Level::Dram => 1,
    }
}

/// Entries of a new table: a page of the kernel's, or less.
const FIRST: usize = 1024;

/// How long a table that is too short becomes, so that it holds `least` entries: a quarter longer at least, and at most
/// `most`.
fn longer(length: usize, least: usize, most: usize) -> usize {
    least.max(length + length / 4).max(FIRST).min(most)
}

/// Notes on pages.
#[derive(Debug)]
pub(super) struct Notes {
    /// Codes, inverted, so that a new table says "not known".
    codes: [Table<u16>; 2],
    flags: Table<u8>,
    /// The low half of each frame's number; 0 where it is not known.
    frames: Table<u32>,
    pages: usize,
    pages_max: usize,
}

impl Notes {
    pub(super) fn new(pages_max: usize) -> Result<Self, OsError> {
        let first = pages_max.min(FIRST);
        Ok(Self {
            codes: [Table::zeroed(first)?, Table::zeroed(first)?],
            flags: Table::zeroed(first)?,
            frames: Table::zeroed(first)?,
            pages: 0,
            pages_max,
        })
    }

    /// Pages that were taken note of.
    pub(super) const fn pages(&self) -> usize {
        self.pages
    }

    /// Takes note of all pages below `end`, as far as there is room.
    pub(super) fn extend(&mut self, end: usize) {
        let end = end.min(self.pages_max);
        if end > self.flags.len() {
            let length = longer(self.flags.len(), end, self.pages_max);
            // Where that is refused, pages beyond are not learnt.
            let _ = self.lengthen(length);
        }
        self.pages = self.pages.max(end.min(self.flags.len()));
    }

    /// The flags last, by whose number pages are taken note of.
    fn lengthen(&mut self, length: usize) -> Result<(), OsError> {
        for codes in &mut self.codes {
            codes.lengthen(length)?;
        }
        self.frames.lengthen(length)?;
        self.flags.lengthen(length)
    }

    /// The code of a page, such that `code ^ line in page` finds its latency.
    pub(super) fn code(&self, level: Level, page: u32) -> Code {
        Code(!self.codes[side(level)][index(page)])
    }

    pub(super) fn is_known(&self, level: Level, page: u32) -> bool {
        self.code(level, page) != Code::UNKNOWN
    }

    /// Notes the code of the block that begins at `first`.
    pub(super) fn set_code(&mut self, level: Level, first: u32, code: Code, period: Period) {
        let codes = &mut self.codes[side(level)];
        match period {
            Period::Lines64 => codes[index(first)] = !code.0,
            Period::Lines256 => {
                for place in 0..4 {
                    let slot = codes.get_mut(index(first) + place);
                    slot.into_iter().for_each(|slot| {
                        *slot = !(code.0 ^ (u16::try_from(64 * place).unwrap_or(0)))
                    });
                }
            }
        }
    }

    /// Forgets a page's code at a level.
    pub(super) fn forget(&mut self, level: Level, page: u32) {
        self.codes[side(level)][index(page)] = !Code::UNKNOWN.0;
        self.flags[index(page)] &= !CONFIRMED[side(level)];
    }

    /// Both codes, as far as they were confirmed.
    pub(super) fn confirmed(&self, page: u32) -> PageCodes {
        let code = |level| match self.is_confirmed(level, page) {
            true => self.code(level, page),
            false => Code::UNKNOWN,
        };
        PageCodes { llc: code(Level::Llc), dram: code(Level::Dram) }
    }

    pub(super) fn confirm(&mut self, level: Level, page: u32) {
        self.flags[index(page)] |= CONFIRMED[side(level)];
    }

    pub(super) fn is_confirmed(&self, level: Level, page: u32) -> bool {
        self.flags[index(page)] & CONFIRMED[side(level)] != 0
    }

    pub(super) fn set_doubted(&mut self, level: Level, page: u32, doubted: bool) {
        let flags = &mut self.flags[index(page)];
        *flags = *flags & !DOUBTED[side(level)] | if doubted { DOUBTED[side(level)] } else { 0 };
    }

    pub(super) fn is_doubted(&self, level: Level, page: u32) -> bool {
        self.flags[index(page)] & DOUBTED[side(level)] != 0
    }

    pub(super) fn set_yielded(&mut self, page: u32, yielded: bool) {
        let flags = &mut self.flags[index(page)];
        *flags = *flags & !YIELDED | u8::from(yielded);
    }

    pub(super) fn set_told(&mut self, page: u32, told: bool) {
        let flags = &mut self.flags[index(page)];
        *flags = *flags & !UNTOLD | if told { 0 } else { UNTOLD };
    }

    pub(super) fn is_told(&self, page: u32) -> bool {
        self.flags[index(page)] & UNTOLD == 0
    }

    pub(super) fn set_away(&mut self, page: u32, away: bool) {
        let flags = &mut self.flags[index(page)];
        *flags = *flags & !AWAY | if away { AWAY } else { 0 };
    }

    pub(super) fn is_away(&self, page: u32) -> bool {
        self.flags.get(index(page)).is_some_and(|flags| flags & AWAY != 0)
    }

    pub(super) fn is_yielded(&self, page: u32) -> bool {
        self.flags[index(page)] & YIELDED != 0
    }

    /// Notes a frame; true if another one was noted before.
    pub(super) fn set_frame(&mut self, page: u32, frame: Option<u64>) -> bool {
        let Some(frame) = frame else { return false };
        let [a, b, c, d, ..] = frame.to_le_bytes();
        // 0 stands for "not known"; of 2^32 frames one is taken for it.
        let low = u32::from_le_bytes([a, b, c, d]).max(1);
        let before = core::mem::replace(&mut self.frames[index(page)], low);
        before != 0 && before != low
    }
}

/// Pages in the order in which they came.
#[derive(Debug)]
pub(super) struct Queue {
    ring: Table<u32>,
    first: usize,
    count: usize,
    capacity: usize,
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Result<Self, OsError> {
        let capacity = capacity.max(1);
        Ok(Self { ring: Table::zeroed(capacity.min(FIRST))?, first: 0, count: 0, capacity })
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Appends; false if it is full, which a queue as long as the arena never is for pages that
    /// wait in it once, or cannot become longer.
    pub(super) fn push(&mut self, value: u32) -> bool {
        if self.count == self.ring.len() && !self.lengthen() {
            return false;
        }
        let place = (self.first + self.count) % self.ring.len();
        self.ring[place] = value;
        self.count += 1;
        true
    }

    /// Room for more, where all of it is taken.
    fn lengthen(&mut self) -> bool {
        let before = self.ring.len();
        // Twice as long, so that what is before the first has room behind the others.
        let length = (2 * before).min(self.capacity);
        if length == before || self.ring.lengthen(length).is_err() {
            return false;
        }
        if length < before + self.first {
            // The last step is shorter: those from the first on go to the end.
            let end = length - (before - self.first);
            self.ring.copy_within(self.first..before, end);
            self.first = end;
        } else {
            self.ring.copy_within(..self.first, before);
        }
        true
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let value = self.ring[self.first];
        self.first = (self.first + 1) % self.ring.len();
        self.count -= 1;
        Some(value)
    }
}

/// The first page of the block that holds a page.
pub(super) fn block_of(of: u32, block_pages: usize) -> u32 {
    of - of % page(block_pages.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas::PatternTable;

    #[test]
    fn a_queue_becomes_longer_and_keeps_the_order() {
        for turned in [0, 1, 700, 1023] {
            let mut queue = Queue::new(2500).expect("a page");
            (0..turned).for_each(|value| assert!(queue.push(value)));
            (0..turned).for_each(|value| assert_eq!(queue.pop(), Some(value)));
            (0..2500).for_each(|value| assert!(queue.push(value), "{turned}: {value}"));
            assert!(!queue.push(2500) && queue.len() == 2500);
            (0..2500).for_each(|value| assert_eq!(queue.pop(), Some(value), "{turned}"));
            assert_eq!(queue.pop(), None);
        }
    }

    #[test]
    fn notes_go_as_far_as_the_arena_may() {
        let mut notes = Notes::new(5000).expect("pages");
        for end in [10, 1024, 1025, 4000, 5000, 6000] {
            notes.extend(end);
            assert_eq!(notes.pages(), end.min(5000));
            let last = page(notes.pages() - 1);
            assert!(!notes.is_known(Level::Dram, last) && !notes.is_yielded(last));
            notes.set_code(Level::Llc, last, Code(3), Period::Lines64);
        }
        for of in [9, 1023, 1024, 3999, 4999] {
            assert_eq!(notes.code(Level::Llc, of), Code(3));
        }
    }

    #[test]
    fn a_page_is_what_was_noted_of_it() {
        let mut notes = Notes::new(16).unwrap();
        notes.extend(99);
        assert_eq!(notes.pages(), 16);
        assert!(!notes.is_known(Level::Llc, 3));
        notes.set_code(Level::Llc, 3, Code(9), Period::Lines64);
        assert_eq!(notes.confirmed(3), PageCodes::UNKNOWN);
        notes.confirm(Level::Llc, 3);
        assert_eq!(notes.confirmed(3), PageCodes { llc: Code(9), dram: Code::UNKNOWN });
        notes.set_told(3, false);
        assert!(!notes.is_told(3) && notes.is_told(4));
        notes.set_doubted(Level::Llc, 3, true);
        notes.set_yielded(3, true);
        assert!(notes.is_confirmed(Level::Llc, 3) && !notes.is_confirmed(Level::Dram, 3));
        notes.forget(Level::Llc, 3);
        assert!(!notes.is_confirmed(Level::Llc, 3) && !notes.is_known(Level::Llc, 3));
        assert!(notes.is_doubted(Level::Llc, 3) && notes.is_yielded(3));
        assert!(!notes.set_frame(3, Some(7)) && !notes.set_frame(3, None));
        assert!(!notes.set_frame(3, Some(7)) && notes.set_frame(3, Some(8)));
    }

    #[test]
    fn the_four_pages_of_a_long_period_find_their_own_lines() {
        let pattern: std::vec::Vec<f32> = (0..=255_u8).map(f32::from).collect();
        let table = PatternTable::new(Period::Lines256, [pattern.as_slice()]).unwrap();
        let mut notes = Notes::new(8).unwrap();
        notes.set_code(Level::Dram, 4, Code(0b1010_0110), Period::Lines256);
        for page in 0..4_u8 {
            let code = notes.code(Level::Dram, 4 + u32::from(page));
            for line in 0..64 {
                let expected = f32::from((page * 64 + line) ^ 0b1010_0110);
                assert_eq!(table.latency_cycles(code, line), expected);
            }
        }
    }

    #[test]
    fn queues_go_round() {
        let mut queue = Queue::new(3).unwrap();
        assert!((1..=3).all(|value| queue.push(value)) && !queue.push(4));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), Some(2)));
        assert!(queue.push(4) && queue.push(5));
        assert_eq!(queue.len(), 3);
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop(), queue.pop()],
            [Some(3), Some(4), Some(5), None]
        );
    }
}
