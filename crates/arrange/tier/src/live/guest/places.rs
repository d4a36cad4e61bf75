//! Where the pages of a window are, of whose mappings the program may do away with some while it is paged, or with what
//! they hold: the kernel tells of it (`UFFD_EVENT_UNMAP`, `UFFD_EVENT_REMAP`, `UFFD_EVENT_REMOVE`), and who unmaps,
//! moves or empties goes on when that has been heard.
//!
//! Until then all that moves or fills pages is refused (`EAGAIN`). So what was heard is noted before anybody can move
//! or fill again: both go by one lock. Then nothing is ever taken from a mapping that came later, and nothing that was
//! given up is brought back.

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use isochrone_os::OsError;
use isochrone_os::userfault::{Features, Notice, Userfault};
use isochrone_units::PAGE_BYTES;

use super::book::{Book, Marks};
use super::pagemap::{AT_ONCE, Pagemap};
use super::put_off::PutOff;
use crate::names::{Group, Run};

/// Ranges that are on their way to another place at once; further ones are not heard of before.
const MOVED_MOST: usize = 64;
/// Handlers of a ground at most.
const HANDLERS_MOST: usize = 16;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where it always was.
    Here,
    /// At another address, for good.
    Moved(usize),
    /// Nowhere: what is at its address is not ours, or it was moved and what the pager had of it given up before.
    Gone,
    /// Where it always was, but what it holds was given up: nothing comes there, and nothing leaves
    /// ([`super::put_off`]).
    Emptied,
}

/// A range that the program moved and that is not whole at its new place yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Moved {
    pub(super) pages: Range<usize>,
    pub(super) to: usize,
}

/// What was heard.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
pub(super) struct Heard {
    /// Whether there was anything, ever.
    any: bool,
    moved: Vec<Moved>,
    /// What was given up and has a mark.
    put_off: PutOff,
}

/// Where pages are.
#[derive(Debug)]
pub(super) struct Places {
    /// Whether the kernel tells of it.
    told: bool,
    base: usize,
    pages: usize,
    heard: RwLock<Heard>,
    /// What has a mark is looked at by one handler at a time.
    looking: Mutex<()>,
    /// The kernel's map, where it tells.
    map: Option<Pagemap>,
    /// Somebody wants a page to leave that has a mark.
    is_wanted: AtomicU32,
    /// Looks until all threads may be asked for again.
    pause: AtomicU32,
    /// Threads of the handlers, which give nothing up.
    handlers: [AtomicI32; HANDLERS_MOST],
}

impl Places {
    /// Of so many pages from an address on.
    ///
    /// # Errors
    /// [`OsError`] where the kernel's map of pages cannot be opened.
    pub(super) fn new(table: &Userfault, base: usize, pages: usize) -> Result<Self, OsError> {
        let told = table.was_asked(Features::EVENT_UNMAP.and(Features::EVENT_REMAP));
        let map = told.then(Pagemap::new).transpose()?;
        Ok(Self::over(base, pages, map))
    }

    fn over(base: usize, pages: usize, map: Option<Pagemap>) -> Self {
        let told = map.is_some();
        // Handlers allocate nothing.
        let heard = if told { Heard::with_room() } else { Heard::default() };
        Self {
            told,
            base,
            pages,
            heard: RwLock::new(heard),
            looking: Mutex::default(),
            map,
            is_wanted: AtomicU32::new(0),
            pause: AtomicU32::new(0),
            handlers: Default::default(),
        }
    }

    /// Whether the kernel tells of what is unmapped, moved and emptied.
    pub(super) const fn are_told(&self) -> bool {
        self.told
    }

    /// Pages stay where they are as long as this lives.
    pub(super) fn fixed(&self) -> RwLockReadGuard<'_, Heard> {
        self.heard.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn changing(&self) -> std::sync::RwLockWriteGuard<'_, Heard> {
        self.heard.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the kernel tells next, noted.
    pub(super) fn hear(&self, table: &Userfault, book: &Book) -> Option<Notice> {
        if !self.told {
            return table.heed().ok().flatten();
        }
        let mut heard = self.changing();
        if heard.moved.len() == MOVED_MOST {
            return None;
        }
        let notice = table.heed().ok().flatten()?;
        match &notice {
            Notice::Fault(fault) => heard.put_off.is_outside(fault.thread),
            Notice::Emptied(range) => {
                let pages = self.pages_of(range);
                book.change(pages.clone(), |marks| marks.and(Marks::EMPTIED));
                heard.give_up(pages);
            }
            Notice::Unmapped(range) => {
                heard.any = true;
                book.change(self.pages_of(range), |marks| marks.without(Marks::USED));
            }
            Notice::Moved { range, to } => {
                let pages = self.pages_of(range);
                heard.any = true;
                book.change(pages.clone(), |marks| marks.without(Marks::USED));
                if !pages.is_empty() {
                    let first = self.base + pages.start * PAGE_BYTES;
                    heard.moved.push(Moved { pages, to: to + (first - range.start) });
                }
            }
        }
        Some(notice)
    }

    /// A handler begins, in the calling thread.
    pub(super) fn serve(&self, number: u16, thread: i32) {
        if let Some(word) = self.handlers.get(usize::from(number)) {
            word.store(thread, Ordering::Relaxed);
        }
    }

    /// Whether a thread is a handler.
    pub(super) fn is_handler(&self, thread: i32) -> bool {
        self.handlers.iter().any(|handler| handler.load(Ordering::Relaxed) == thread)
    }

    /// Nobody else looks at what has a mark as long as this lives.
    pub(super) fn alone(&self) -> MutexGuard<'_, ()> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, where nobody looks at it now.
    pub(super) fn alone_now(&self) -> Option<MutexGuard<'_, ()>> {
        self.looking.try_lock().ok()
    }

    /// Whether any page has a mark.
    pub(super) fn are_put_off(&self) -> bool {
        self.told && !self.fixed().put_off.is_empty()
    }

    /// The next pages to look at ([`PutOff::piece`]).
    pub(super) fn piece(&self) -> Option<Range<usize>> {
        self.changing().put_off.piece(AT_ONCE)
    }

    /// Calls with each page of a range and whether the kernel has it; with none where it does not say.
    pub(super) fn look(&self, pages: &Range<usize>, mut see: impl FnMut(usize, bool)) {
        let Some(map) = &self.map else { return };
        let first = self.base + pages.start * PAGE_BYTES;
        let _ = map.look(first, pages.len(), |page, is_there| see(pages.start + page, is_there));
    }

    /// Whether all calls by which a page was given up are over.
    pub(super) fn are_over(&self, page: usize) -> bool {
        self.fixed().put_off.are_over(page)
    }

    /// Nothing is left of what a page held: its mark is taken down.
    pub(super) fn emptied(&self, book: &Book, page: usize) {
        let _heard = self.changing();
        book.change(page..page + 1, |marks| marks.without(Marks::EMPTIED));
    }

    /// A page that is there stays, and its mark is taken down; unless it was given up again.
    pub(super) fn stays(&self, book: &Book, page: usize) {
        let heard = self.changing();
        if heard.put_off.are_over(page) {
            book.change(page..page + 1, |marks| marks.without(Marks::EMPTIED));
        }
    }

    /// Forgets calls of which no page has a mark any more.
    pub(super) fn trim(&self, book: &Book) {
        let has_mark = |page: usize| {
            let marks = book.of(page);
            marks.has(Marks::EMPTIED) && marks.is_ours()
        };
        self.changing().put_off.trim(has_mark);
    }

    /// A page that has a mark cannot leave before the calls are over that gave it up.
    pub(super) fn want(&self) {
        self.is_wanted.store(1, Ordering::Relaxed);
    }

    /// Whether to ask for all threads: somebody wants it, and it was not just done.
    pub(super) fn is_to_ask(&self) -> bool {
        let less = |pause: u32| pause.checked_sub(1);
        self.pause.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
            && self.is_wanted.swap(0, Ordering::Relaxed) != 0
    }

    /// So many threads were asked for: each costs about as much as a look, so looks take at most twice as long.
    pub(super) fn asked(&self, threads: u32) {
        self.pause.store(threads, Ordering::Relaxed);
    }

    /// How many calls by which pages were given up have been heard.
    pub(super) fn calls(&self) -> u64 {
        self.fixed().put_off.heard()
    }

    /// The last call that a thread is known not to be in ([`PutOff::outside_of`]).
    pub(super) fn outside_of(&self, thread: i32) -> u64 {
        self.fixed().put_off.outside_of(thread)
    }

    /// All calls up to a number are over.
    pub(super) fn end(&self, number: u64) {
        self.changing().put_off.end(number);
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
        let mut heard = self.changing();
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
    fn with_room() -> Self {
        let (moved, put_off) = (Vec::with_capacity(MOVED_MOST), PutOff::with_room());
        Self { moved, put_off, ..Self::default() }
    }

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
            Some(_) if marks.has(Marks::EMPTIED) => Place::Gone,
            Some(moved) => Place::Moved(moved.to + (page - moved.pages.start) * PAGE_BYTES),
            None if !marks.is_ours() => Place::Gone,
            None if marks.has(Marks::EMPTIED) => Place::Emptied,
            None => Place::Here,
        }
    }

    /// What these pages hold is given up.
    pub(super) fn give_up(&mut self, pages: Range<usize>) {
        self.any = true;
        self.put_off.hear(pages);
    }
}

/// For [`super::put_off`]'s model.
#[cfg(test)]
impl Heard {
    /// Of a ground that is told.
    pub(super) fn told() -> Self {
        Self { any: true, ..Self::default() }
    }

    pub(super) const fn put_off(&mut self) -> &mut PutOff {
        &mut self.put_off
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
        book.change(5..6, |marks| marks.and(Marks::EMPTIED));
        assert_eq!(of(5), (Place::Gone, 1), "it was given up before it was moved");
    }

    #[test]
    fn ranges_are_cut_to_the_window() {
        let places = Places::over(0x10000, 4, Some(Pagemap::new().unwrap()));
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

    #[test]
    fn threads_are_asked_for_when_a_page_is_wanted_and_not_at_every_look() {
        let places = Places::over(0x10000, 4, Some(Pagemap::new().unwrap()));
        assert!(!places.is_to_ask());
        places.want();
        assert!(places.is_to_ask() && !places.is_to_ask());
        places.asked(2);
        places.want();
        assert!(!places.is_to_ask() && !places.is_to_ask() && places.is_to_ask());
        places.serve(1, 77);
        assert!(places.is_handler(77) && !places.is_handler(78));
    }

    #[test]
    fn a_page_that_was_given_up_again_does_not_stay() {
        let (book, marks) = (Book::new(4).unwrap(), Marks::USED.and(Marks::EMPTIED));
        let places = Places::over(0x10000, 4, Some(Pagemap::new().unwrap()));
        book.set(0..4, marks);
        places.changing().give_up(0..2);
        places.end(1);
        places.changing().give_up(1..2);
        (0..2).for_each(|page| places.stays(&book, page));
        assert!(!book.of(0).has(Marks::EMPTIED) && book.of(1).has(Marks::EMPTIED));
        places.emptied(&book, 1);
        places.trim(&book);
        assert!(!places.are_put_off());
    }
}
