//! Where the pages of a window are, of whose mappings the program may do away with some while it is paged, or with what
//! they hold: the kernel tells of it (`UFFD_EVENT_UNMAP`, `UFFD_EVENT_REMAP`, `UFFD_EVENT_REMOVE`), and who unmaps,
//! moves or empties goes on when that has been heard.
//!
//! Until then all that moves or fills pages is refused (`EAGAIN`). So what was heard is noted before anybody can move
//! or fill again: both go by one lock. Then nothing is ever taken from a mapping that came later, and nothing that was
//! given up is brought back.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use isochrone_os::userfault::{Features, Notice, Userfault};
use isochrone_units::PAGE_BYTES;

use super::book::{Book, Marks};
use crate::names::{Group, Run};

/// Ranges that are on their way to another place at once; further ones are not heard of before.
const MOVED_MOST: usize = 64;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where it always was.
    Here,
    /// At another address, for good.
    Moved(usize),
    /// Nowhere: what is at its address is not ours.
    Gone,
    /// Where it always was, but what it holds was given up: nothing comes there, and nothing leaves.
    Emptied,
}

/// A range that the program moved and that is not whole at its new place yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) pages: Range<usize>,
    pub(super) to: usize,
}

/// What was heard.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Whether there was anything, ever.
    any: bool,
    moved: Vec<Moved>,
    /// Around all pages that are to be emptied; these have a mark.
    emptied: Range<usize>,
}

/// Where pages are.
#[derive(Debug)]
pub(super) struct Places {
    /// Whether the kernel tells of it.
    told: bool,
    base: usize,
    pages: usize,
    heard: RwLock<Heard>,
    /// Pages are emptied by one handler at a time.
    emptying: Mutex<()>,
}

impl Places {
    /// Of so many pages from an address on.
    pub(super) fn new(table: &Userfault, base: usize, pages: usize) -> Self {
        let told = table.was_asked(Features::EVENT_UNMAP.and(Features::EVENT_REMAP));
        // Handlers allocate nothing.
        let moved = Vec::with_capacity(if told { MOVED_MOST } else { 0 });
        let heard = RwLock::new(Heard { moved, ..Heard::default() });
        Self { told, base, pages, heard, emptying: Mutex::default() }
    }

    /// Whether the kernel tells of what is unmapped, moved and emptied.
    pub(super) const fn are_told(&self) -> bool {
        self.told
    }

    /// Pages stay where they are as long as this lives.
    pub(super) fn fixed(&self) -> RwLockReadGuard<'_, Heard> {
        self.heard.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the kernel tells next, noted.
    pub(super) fn hear(&self, table: &Userfault, book: &Book) -> Option<Notice> {
        if !self.told {
            return table.heed().ok().flatten();
        }
        let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        if heard.moved.len() == MOVED_MOST {
            return None;
        }
        let notice = table.heed().ok().flatten()?;
        let (Notice::Unmapped(range) | Notice::Moved { range, .. } | Notice::Emptied(range)) =
            &notice
        else {
            return Some(notice);
        };
        let pages = self.pages_of(range);
        heard.any = true;
        if let Notice::Emptied(_) = notice {
            book.change(pages.clone(), |marks| marks.and(Marks::EMPTIED));
            heard.widen(pages);
            return Some(notice);
        }
        book.change(pages.clone(), |marks| marks.without(Marks::USED));
        if let Notice::Moved { range, to } = &notice
            && !pages.is_empty()
        {
            let first = self.base + pages.start * PAGE_BYTES;
            heard.moved.push(Moved { pages, to: to + (first - range.start) });
        }
        Some(notice)
    }

    /// Nobody else empties pages as long as this lives.
    pub(super) fn alone(&self) -> MutexGuard<'_, ()> {
        self.emptying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody is to empty pages.
    pub(super) fn are_to_empty(&self) -> bool {
        self.told && !self.fixed().emptied.is_empty()
    }

    /// The pages among which those are that have a mark: for who empties them now.
    pub(super) fn to_empty(&self) -> Range<usize> {
        let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut heard.emptied)
    }

    /// Nothing is left of what these pages held.
    pub(super) fn emptied(&self, book: &Book, pages: Range<usize>) {
        let _heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        book.change(pages, |marks| marks.without(Marks::EMPTIED));
    }

    /// The pages of a range of addresses.
    pub(super) fn pages_of(&self, range: &Range<usize>) -> Range<usize> {
        let page =
            |address: usize| (address.saturating_sub(self.base) / PAGE_BYTES).min(self.pages);
        page(range.start)..page(range.end)
    }

    /// What is on its way of these pages.
    pub(super) fn on_its_way(&self, pages: &Range<usize>) -> Option<Moved> {
        self.fixed().moved.iter().find(|moved| moved.pages == *pages).cloned()
    }

    /// Whether the first of these pages is on its way, and where those end that are alike. Who moves a range is also
    /// told to have unmapped it where it was.
    pub(super) fn alike(&self, pages: &Range<usize>) -> (bool, usize) {
        let moved = &self.fixed().moved;
        let around = moved.iter().find(|moved| moved.pages.contains(&pages.start));
        let next = moved.iter().map(|moved| moved.pages.start).filter(|start| *start > pages.start);
        let end = around.map_or_else(|| next.min(), |moved| Some(moved.pages.end));
        (around.is_some(), end.unwrap_or(pages.end).min(pages.end))
    }

    /// A range is whole at its new place, and the program's.
    pub(super) fn arrived(&self, pages: &Range<usize>) {
        let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        heard.moved.retain(|moved| moved.pages != *pages);
    }

    /// Whether something is on its way to an address.
    pub(super) fn is_awaited(&self, address: usize) -> bool {
        let is_there =
            |moved: &Moved| address.wrapping_sub(moved.to) < moved.pages.len() * PAGE_BYTES;
        self.told && self.fixed().moved.iter().any(is_there)
    }
}

impl Heard {
    /// Where a page is, and how many pages from there on of a run are alike.
    pub(super) fn of(&self, book: &Book, run: Run) -> (Place, u32) {
        if !self.any {
            return (Place::Here, run.groups);
        }
        let place = self.place(book, run.first);
        let rest = run
            .iter()
            .skip(1)
            .take_while(|group| place == Place::Here && self.place(book, *group) == place);
        (place, 1 + u32::try_from(rest.count()).unwrap_or(0))
    }

    fn place(&self, book: &Book, group: Group) -> Place {
        let (page, marks) = (group.index(), book.of(group.index()));
        match self.moved.iter().find(|moved| moved.pages.contains(&page)) {
            Some(moved) => Place::Moved(moved.to + (page - moved.pages.start) * PAGE_BYTES),
            None if !marks.is_ours() => Place::Gone,
            None if marks.has(Marks::EMPTIED) => Place::Emptied,
            None => Place::Here,
        }
    }

    /// Such pages are to be emptied, too.
    fn widen(&mut self, pages: Range<usize>) {
        let all = self.emptied.clone();
        if all.is_empty() {
            self.emptied = pages;
        } else if !pages.is_empty() {
            self.emptied = all.start.min(pages.start)..all.end.max(pages.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(moved: &[Moved]) -> Heard {
        Heard { any: true, moved: moved.to_vec(), ..Heard::default() }
    }

    #[test]
    fn a_run_is_told_apart_by_where_its_pages_are() {
        let book = Book::new(8).unwrap();
        book.set(0..8, Marks::USED);
        book.set(3..7, Marks::default());
        let to = 0x7000_0000;
        let heard = heard(&[Moved { pages: 5..7, to }]);
        let of = |first: u32| heard.of(&book, Run { first: Group(first), groups: 8 - first });
        assert_eq!(of(0), (Place::Here, 3));
        assert_eq!(of(3), (Place::Gone, 1));
        assert_eq!(of(6), (Place::Moved(to + PAGE_BYTES), 1));
        assert_eq!(of(7), (Place::Here, 1));
        assert_eq!(Heard::default().of(&book, Run { first: Group(0), groups: 8 }).1, 8);
        book.change(0..1, |marks| marks.and(Marks::EMPTIED));
        assert_eq!((of(0), of(1)), ((Place::Emptied, 1), (Place::Here, 2)));
    }

    #[test]
    fn what_is_to_be_emptied_is_one_range_around_all_of_it() {
        let mut heard = heard(&[]);
        for (pages, all) in [(5..5, 5..5), (4..6, 4..6), (9..9, 4..6), (1..2, 1..6), (3..8, 1..8)] {
            heard.widen(pages.clone());
            assert_eq!(heard.emptied, all, "{pages:?}");
        }
    }

    #[test]
    fn ranges_are_cut_to_the_window() {
        let heard = RwLock::default();
        let emptying = Mutex::default();
        let places = Places { told: true, base: 0x10000, pages: 4, heard, emptying };
        assert_eq!(places.pages_of(&(0x11000..0x13000)), 1..3);
        assert_eq!(places.pages_of(&(0x0..0x11000)), 0..1);
        assert_eq!(places.pages_of(&(0x13000..0x90000)), 3..4);
        assert!(places.pages_of(&(0x20000..0x90000)).is_empty());
        places.heard.write().unwrap().moved.push(Moved { pages: 1..3, to: 0x50000 });
        assert!(places.is_awaited(0x51fff) && !places.is_awaited(0x52000));
        assert!(!places.is_awaited(0x4ffff));
        assert!(places.on_its_way(&(1..3)).is_some());
        let alike: Vec<_> =
            [0..4, 1..4, 2..3, 3..4].iter().map(|pages| places.alike(pages)).collect();
        assert_eq!(alike, [(false, 1), (true, 3), (true, 3), (false, 4)]);
        places.arrived(&(1..3));
        assert!(!places.is_awaited(0x50000));
    }
}
