//! Pages of which nothing is in use leave: their memory may go back to the system, and comes again when a slot of them
//! is next taken.
//!
//! A free slot is never touched and links lie beside the memory, so a page's units stay in their bins while it is away;
//! what was known of its lines is not. Only its memory must not go while somebody gets a slot of it. Who sends a page
//! away says so in its word, and then looks whether all its slots are free; who takes a unit marks its slots as taken,
//! and then looks at the word. Each puts a fence of all orders between the two, so one sees the other: who sends
//! away gives up, or who takes puts back and looks elsewhere.

use crate::class::{SizeClass, bits};
use crate::heap::{Heap, PAGE_LINES};
use crate::page::{PageCodes, PageWord};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::fence;
use crate::tables::FREE;
use isochrone_units::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;

impl Heap<'_> {
    /// Begins to send a page away: true where all its slots are free. Then nobody is given one of them before
    /// [`Self::end_leave`], which has to be called soon, since others look elsewhere meanwhile.
    pub fn begin_leave(&self, page: u32) -> bool {
        let Some(word) = self.tables.pages.get(page as usize) else { return false };
        let Some(class) = PageWord(word.load(Relaxed)).class() else { return false };
        // Before others are kept from it.
        if !self.is_all_free(page, class) {
            return false;
        }
        let there = |before: u64| PageWord(before).leaving();
        if word.fetch_update(AcqRel, Relaxed, there).is_err() {
            return false;
        }
        fence(SeqCst);
        if self.is_all_free(page, class) {
            return true;
        }
        word.fetch_and(!PageWord::LEAVING, Release);
        false
    }

    /// Whether no slot of a page is in use, at hand or in a depot.
    fn is_all_free(&self, page: u32, class: SizeClass) -> bool {
        bits(class.units()).all(|place| {
            let line = page * PAGE_LINES + u32::from(place);
            let mask = self.tables.masks.get(line as usize);
            let full = class.full_mask(place);
            // Acquire: what those did who freed its slots comes before its memory goes.
            mask.is_some_and(|mask| mask.load(Acquire) & FREE == full)
        })
    }

    /// Its memory is gone, and nothing of its lines is known any more; or it stays as it was.
    pub fn end_leave(&self, page: u32, is_gone: bool) {
        let Some(word) = self.tables.pages.get(page as usize) else { return };
        if !is_gone {
            word.fetch_and(!PageWord::LEAVING, Release);
            return;
        }
        let before = PageWord(word.load(Relaxed));
        let unknown = self.page_word(page, before.state(), PageCodes::UNKNOWN);
        self.count_units(page, before, u32::MAX);
        self.count_units(page, unknown, 1);
        let sums = self.sums();
        // Before anybody can take it back.
        sums.assigned_bytes.fetch_sub(PAGE, Relaxed);
        sums.away_pages.fetch_add(1, Relaxed);
        // Release: whoever takes a slot of it finds new memory.
        word.store(unknown.0 | PageWord::AWAY, Release);
    }

    /// Whether the memory of a page went back to the system and nobody has taken a slot of it since.
    #[must_use]
    pub fn is_away(&self, page: u32) -> bool {
        self.word(page).0 & PageWord::AWAY != 0
    }

    /// Pages that have come again so far: a slot of them was taken.
    #[must_use]
    pub fn pages_come_again(&self) -> u32 {
        self.sums().come_again.load(Relaxed)
    }

    /// A page that is away has memory again, before anybody takes a slot of it.
    pub fn take_back(&self, page: u32) {
        if self.is_away(page) {
            self.comes(page);
        }
    }

    /// For who marked slots of this page as taken, after a fence: whether they are the caller's. Where the page is
    /// about to leave they are not, and the caller puts them back.
    pub(crate) fn comes(&self, page: u32) -> bool {
        let Some(word) = self.tables.pages.get(page as usize) else { return false };
        // Acquire: its memory went before.
        let found = word.load(Acquire);
        if found & PageWord::LEAVING != 0 {
            return false;
        }
        // Many may take slots of it at once: one of them counts.
        if found & PageWord::AWAY != 0
            && word.fetch_and(!PageWord::AWAY, AcqRel) & PageWord::AWAY != 0
        {
            let sums = self.sums();
            sums.assigned_bytes.fetch_add(PAGE, Relaxed);
            sums.away_pages.fetch_sub(1, Relaxed);
            sums.come_again.fetch_add(1, Relaxed);
        }
        true
    }

    /// What was said of a page that a lost thread was about, or that is away, is no more: this is a child of `fork`.
    pub(crate) fn forget_leave(&self, page: u32) {
        if let Some(word) = self.tables.pages.get(page as usize)
            && word.load(Relaxed) & (PageWord::LEAVING | PageWord::AWAY) != 0
        {
            word.fetch_and(!(PageWord::LEAVING | PageWord::AWAY), AcqRel);
        }
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
