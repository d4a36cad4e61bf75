//! What is known of each page of the window: whether the program has it, what it may do there, and what it is not to
//! be done to. Bytes that are zero until they are written, so that what is not used takes no memory.

use core::sync::atomic::{AtomicU32, Ordering};
use std::ops::Range;

use isochrone_os::OsError;
use isochrone_os::area::Words;

/// What is known of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u32);

impl Marks {
    /// The bits of `mprotect(2)`.
    const ACCESS: u32 = 7;
    /// The program has it.
    pub(super) const USED: Self = Self(1 << 3);
    /// The program mapped something else there: the kernel's alone.
    pub(super) const FOREIGN: Self = Self(1 << 4);
    /// It stays in memory since it may not be written any more, and was when that was said; or since it is a thread's.
    pub(super) const HELD: Self = Self(1 << 5);
    /// It stays in memory since the program locked it.
    pub(super) const LOCKED: Self = Self(1 << 6);
    /// The kernel was told something of it that stays when it is given back: nobody else can have it.
    pub(super) const ODD: Self = Self(1 << 7);

    /// What it holds is worth nothing to the program, and is about to be freed.
    pub(super) const EMPTIED: Self = Self(1 << 8);

    pub(super) const fn of_access(access: u32) -> Self {
        Self(access & Self::ACCESS)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn access(self) -> u32 {
        self.0 & Self::ACCESS
    }

    /// It may be read and written, and not executed: then the kernel moves it.
    pub(super) const fn is_plain(self) -> bool {
        self.access() == 3
    }

    /// It may be read, and not written.
    pub(super) const fn is_read_only(self) -> bool {
        self.access() & 3 == 1
    }

    pub(super) const fn is_ours(self) -> bool {
        self.has(Self::USED) && !self.has(Self::FOREIGN)
    }
}

/// The marks of all pages, and how many pages an object of `malloc` has that begins there.
#[derive(Debug)]
pub(super) struct Book {
    marks: Words,
    objects: Words,
    pages: usize,
}

impl Book {
    pub(super) fn new(pages: usize) -> Result<Self, OsError> {
        Ok(Self { marks: Words::untouched(pages)?, objects: Words::untouched(pages)?, pages })
    }

    fn mark(&self, page: usize) -> &AtomicU32 {
        &self.marks.as_slice()[page]
    }

    /// What is known of a page; nothing of one outside.
    pub(super) fn of(&self, page: usize) -> Marks {
        if page < self.pages {
            Marks(self.mark(page).load(Ordering::Acquire))
        } else {
            Marks::default()
        }
    }

    pub(super) fn set(&self, pages: Range<usize>, marks: Marks) {
        pages.for_each(|page| self.mark(page).store(marks.0, Ordering::Release));
    }

    /// Changes each page's.
    pub(super) fn change(&self, pages: Range<usize>, change: impl Fn(Marks) -> Marks) {
        for page in pages {
            let marks = change(self.of(page));
            self.mark(page).store(marks.0, Ordering::Release);
        }
    }

    /// Pages from the first on, at most `most`, of which the same is known.
    pub(super) fn alike(&self, first: usize, most: usize, what: impl Fn(Marks) -> Marks) -> usize {
        let marks = what(self.of(first));
        let end = first.saturating_add(most).min(self.pages);
        (first..end).take_while(|page| what(self.of(*page)) == marks).count()
    }

    /// Pages of the object of `malloc` that begins at a page, 0 where none does.
    pub(super) fn object(&self, page: usize) -> usize {
        let pages = self.objects.as_slice().get(page);
        pages.map_or(0, |pages| pages.load(Ordering::Acquire) as usize)
    }

    pub(super) fn set_object(&self, page: usize, pages: usize) {
        self.objects.as_slice()[page]
            .store(u32::try_from(pages).unwrap_or(u32::MAX), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_apart_by_what_is_known_of_them() {
        let book = Book::new(16).unwrap();
        let both = Marks::USED.and(Marks::of_access(3));
        book.set(2..9, both);
        book.change(5..7, |marks| marks.and(Marks::LOCKED));
        assert_eq!(book.alike(2, 100, |marks| marks), 3);
        assert_eq!(book.alike(2, 100, |marks| marks.without(Marks::LOCKED)), 7);
        assert_eq!(book.alike(9, 100, |marks| marks), 7);
        assert!(book.of(3).is_plain() && book.of(3).is_ours() && !book.of(10).is_ours());
        assert_eq!(book.of(99), Marks::default());
        book.set_object(2, 7);
        assert_eq!([book.object(2), book.object(3), book.object(99)], [7, 0, 0]);
    }
}
