//! What becomes of a heap in a child of `fork`.
//!
//! The child has a copy of the tables as they were between two instructions of each thread of the
//! parent, and of these threads one goes on. Stacks and depots wait for nobody, so they are whole;
//! what a lost thread had in hand is lost. Pages are shared until one of the two writes, and then
//! one of them has another frame: nothing is known of them any more.

use crate::class::{SizeClass, UnitLines};
use crate::heap::Heap;
use crate::page::PageWord;
use crate::stack::Stack;
use crate::sync::Ordering::{AcqRel, Relaxed};

impl Heap<'_> {
    /// Makes the heap that of a child of `fork`, before the child has another thread. Slots in use
    /// stay what they are. What is free in bins, and pages that wait, stay as they are for good: to
    /// write to them costs a copy, and new pages cost no more. What this thread has at hand, what
    /// the depots hold and what is freed from now on is handed out as lines of which nothing is
    /// known. `pages` is how many the arena has.
    pub fn inherit(&self, pages: usize) {
        let shared = self.tables.shared;
        for class in SizeClass::ALL {
            (0..=u8::MAX).for_each(|bin| self.stack(class, bin).abandon());
        }
        shared.ready.iter().for_each(|head| Stack::new(head, self.tables.next).abandon());
        for word in self.tables.pages.iter().take(pages) {
            let before = word.load(Relaxed) & !PageWord::WAY;
            if before != 0 && PageWord(before).without_codes().0 != before {
                // A signal handler may have the page cut meanwhile.
                word.fetch_or(PageWord::NO_CODES, AcqRel);
            }
        }
        (0..u32::try_from(pages).unwrap_or(u32::MAX)).for_each(|page| self.forget_leave(page));
        for unit in UnitLines::ALL {
            self.move_all(unit);
        }
        let sums = self.sums();
        sums.ready_pages.store(0, Relaxed);
        sums.demoted_pages.store(0, Relaxed);
        sums.away_pages.store(0, Relaxed);
        // Whatever of it is free is nothing that the child wastes.
        sums.assigned_bytes.store(self.live_bytes(), Relaxed);
    }

    /// Tells all units of one size to the bin of which nothing is known.
    fn move_all(&self, unit: UnitLines) {
        let (population, used) = (
            &self.tables.shared.population[unit as usize],
            &self.tables.shared.used[unit as usize],
        );
        let last = self.bins.count(unit) - 1;
        let units = population.iter().map(|count| count.swap(0, Relaxed)).sum();
        population[last].store(units, Relaxed);
        let units = used.iter().map(|count| count.swap(0, Relaxed)).sum();
        used[last].store(units, Relaxed);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
