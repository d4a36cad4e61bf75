//! Which pages of a process were poisoned last, and since when: a few, without memory of its own to ask for.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use isochrone_os::clock;

/// Poisons at once. Where there are more the oldest goes: who touches that page has it tried again.
const MOST: usize = 64;
/// In the address of a page: the poison is there.
const THERE: usize = 1;

/// The poisons of one process.
#[derive(Debug)]
pub(super) struct Poisons {
    slots: [Slot; MOST],
    there: AtomicU32,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Slot {
    /// The page that was poisoned last, and [`THERE`].
    page: AtomicUsize,
    since: AtomicU64,
}

impl Default for Poisons {
    fn default() -> Self {
        let slot = || Slot { page: AtomicUsize::new(0), since: AtomicU64::new(0) };
        let slots = core::array::from_fn(|_| slot());
        Self { slots, there: AtomicU32::new(0), turn: AtomicUsize::new(0) }
    }
}

impl Poisons {
    /// Whether there is none.
    pub(super) fn are_none(&self) -> bool {
        self.there.load(Ordering::SeqCst) == 0
    }

    /// Whether a page was poisoned lately: then the program was told.
    pub(super) fn had(&self, page: usize) -> bool {
        self.slots.iter().any(|slot| slot.page.load(Ordering::Relaxed) & !THERE == page)
    }

    /// Whether a page is noted as poisoned now.
    pub(super) fn has(&self, page: usize) -> bool {
        self.slots.iter().any(|slot| slot.page.load(Ordering::SeqCst) == page | THERE)
    }

    /// A page that was noted is not poisoned, and was not either before, if `had` does not say so.
    pub(super) fn forget(&self, page: usize, had: bool) {
        let after = if had { page } else { 0 };
        let order = (Ordering::SeqCst, Ordering::Relaxed);
        let is_it = |slot: &&Slot| {
            slot.page.compare_exchange(page | THERE, after, order.0, order.1).is_ok()
        };
        if self.slots.iter().find(is_it).is_some() {
            self.forgotten(page);
        }
    }

    /// Notes a page that is about to be poisoned; the one that has to be taken out for it, if there is no room.
    #[must_use = "nobody else takes it out"]
    pub(super) fn note(&self, page: usize) -> Option<usize> {
        let is_it = |slot: &Slot| slot.page.load(Ordering::Relaxed) & !THERE == page;
        let at = self.slots.iter().position(is_it);
        let at = at.unwrap_or_else(|| self.turn.fetch_add(1, Ordering::Relaxed) % MOST);
        let slot = &self.slots[at];
        slot.since.store(clock::monotonic_ns(), Ordering::Relaxed);
        self.there.fetch_add(1, Ordering::SeqCst);
        let before = slot.page.swap(page | THERE, Ordering::SeqCst);
        let displaced = (before & THERE != 0).then(|| self.forgotten(before));
        displaced.filter(|displaced| *displaced != page)
    }

    /// Has those taken out that were put in until a time.
    pub(super) fn lift(&self, until: u64, take_out: impl Fn(usize)) {
        for slot in &self.slots {
            let page = slot.page.load(Ordering::SeqCst);
            if page & THERE == 0 || slot.since.load(Ordering::Relaxed) > until {
                continue;
            }
            let order = (Ordering::SeqCst, Ordering::Relaxed);
            if slot.page.compare_exchange(page, page & !THERE, order.0, order.1).is_ok() {
                take_out(self.forgotten(page));
            }
        }
    }

    fn forgotten(&self, page: usize) -> usize {
        self.there.fetch_sub(1, Ordering::SeqCst);
        page & !THERE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn each_is_taken_out_once_and_known_after() {
        let poisons = Poisons::default();
        let pages = |range: std::ops::Range<usize>| range.map(|page| page << 12);
        let displaced: Vec<usize> = pages(1..70).filter_map(|page| poisons.note(page)).collect();
        assert_eq!(displaced, pages(1..6).collect::<Vec<_>>());
        let taken = RefCell::new(Vec::new());
        poisons.lift(0, |page| taken.borrow_mut().push(page));
        assert!(taken.borrow().is_empty() && !poisons.are_none(), "none is so old");
        poisons.lift(u64::MAX, |page| taken.borrow_mut().push(page));
        poisons.lift(u64::MAX, |page| taken.borrow_mut().push(page));
        let mut taken = taken.into_inner();
        taken.sort_unstable();
        assert_eq!(taken, pages(6..70).collect::<Vec<_>>());
        assert!(poisons.are_none() && poisons.had(6 << 12) && !poisons.had(5 << 12));
        assert_eq!(poisons.note(6 << 12), None);
    }
    #[test]
    fn a_page_that_is_not_poisoned_after_all_is_as_it_was_before() {
        let (poisons, page) = (Poisons::default(), 7 << 12);
        assert_eq!(poisons.note(page), None);
        assert!(poisons.has(page) && !poisons.are_none());
        assert_eq!(poisons.note(page), None, "it is there already, and once");
        poisons.forget(page, false);
        assert!(poisons.are_none() && !poisons.had(page));
        assert_eq!(poisons.note(page), None);
        poisons.forget(page, true);
        assert!(poisons.are_none() && poisons.had(page) && !poisons.has(page));
    }
}
