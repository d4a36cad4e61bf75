//! What a program asks for about its memory: mapping, unmapping, growing, advice, protection, locks. Each changes the
//! book and the kernel's mapping under one lock, with signals held, and leaves pages to the handlers.

use core::sync::atomic::Ordering;
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use isochrone_os::area::{Access, Told};
use isochrone_os::signal::hold;
use isochrone_units::PAGE_BYTES;

use super::book::Marks;
use super::errno;
use super::orders::{Order, run_of};
use super::record::Word;
use super::tiered::Guest;
use crate::live::extents::Extents;
use crate::names::Run;

/// What is asked of pages that a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Access by the bits of `mprotect(2)`.
    Protect(u32),
    /// What they hold is worth nothing.
    Discard,
    /// They will be touched soon.
    Need,
    /// They will not be touched for long.
    Cold,
    /// They stay in memory.
    Lock,
    /// They need not stay any more.
    Unlock,
    /// They stay in memory until they are given back: the kernel writes there for a thread that ends, and waits for no
    /// page then.
    Keep,
    /// The kernel is told something of them that is not undone by giving them back.
    Odd,
    /// Both of what they hold and of what the kernel is told.
    Guard,
    /// Nothing that can be done for them.
    Nothing,
}

/// Whose pages of the window are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The program's, and paged.
    Ours,
    /// The kernel's: the program mapped something else there.
    Foreign,
    /// Nobody's: they can be had.
    Free,
}

impl Whose {
    const fn of(marks: Marks) -> Self {
        if marks.is_ours() {
            Self::Ours
        } else if marks.has(Marks::FOREIGN) {
            Self::Foreign
        } else {
            Self::Free
        }
    }
}

/// Bytes that are copied, and then given back, at once.
const COPY_BYTES: usize = 1 << 20;
/// Of fast memory a program may lock one in this many parts.
const LOCKED_PART: usize = 2;

/// Whole pages of so many bytes.
const fn pages_of(bytes: usize) -> usize {
    bytes.div_ceil(PAGE_BYTES)
}

impl Guest {
    pub(super) fn lock(&self) -> MutexGuard<'_, Extents> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a handler do it: for who has the lock, and holds signals.
    pub(super) fn order(&self, order: Order, run: Run) -> Result<(), i32> {
        if run.groups == 0 { Ok(()) } else { self.ground.mail.give(&self.ground.own, order, run) }
    }

    /// Maps so many bytes, at a multiple of `align`, which may be used as `access` says (the bits of `mprotect(2)`).
    /// Nothing where there is no room for it.
    #[must_use]
    pub fn map(&self, bytes: usize, align: usize, access: u32) -> Option<usize> {
        let _held = hold();
        let mut extents = self.lock();
        let pages = pages_of(bytes);
        let Some(first) = extents.take(pages, align.div_ceil(PAGE_BYTES).max(1)) else {
            self.ground.tally.add(Word::Left, 1);
            return None;
        };
        if self.open(first..first + pages, access).is_err() {
            extents.give(first..first + pages);
            return None;
        }
        Some(self.ground.base() + first * PAGE_BYTES)
    }

    /// Lets pages that were free be used: for who has the lock.
    fn open(&self, pages: Range<usize>, access: u32) -> Result<(), i32> {
        let marks = Marks::USED.and(Marks::of_access(access));
        self.ground.book.set(pages.clone(), marks);
        let allowed = self.allow(&pages, access);
        if allowed.is_err() {
            self.ground.book.set(pages, Marks::default());
            return allowed;
        }
        self.ground.top.fetch_max(pages.end, Ordering::AcqRel);
        if self.forking.load(Ordering::Acquire) {
            self.tell(&pages, Told::Fork);
        }
        let tally = self.ground.tally;
        tally.add(Word::Mapped, (pages.len() * PAGE_BYTES) as u64);
        tally.raise(Word::MappedPeak, tally.get(Word::Mapped));
        Ok(())
    }

    fn allow(&self, pages: &Range<usize>, access: u32) -> Result<(), i32> {
        let (at, bytes) = (pages.start * PAGE_BYTES, pages.len() * PAGE_BYTES);
        // SAFETY: the pages are the program's, which asked for it, or nobody's.
        unsafe { self.window().allow(at, bytes, Access(access)) }
    }

    /// The pages of a range of addresses in the window.
    fn pages_in(&self, range: &Range<usize>) -> Range<usize> {
        let base = self.ground.base();
        (range.start - base) / PAGE_BYTES..pages_of(range.end - base)
    }

    /// Unmaps what of a range of addresses in the window is the program's own.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn unmap(&self, range: &Range<usize>) -> Result<(), i32> {
        let _held = hold();
        let mut extents = self.lock();
        self.each(self.pages_in(range), |pages, marks| {
            if marks.is_ours() { self.close(pages, marks, &mut extents) } else { Ok(()) }
        })
    }

    fn close(&self, pages: Range<usize>, marks: Marks, extents: &mut Extents) -> Result<(), i32> {
        self.ground.book.set(pages.clone(), Marks::default());
        let run = run_of(&pages);
        self.order(Order::Discard, run)?;
        self.allow(&pages, Access::NONE.0)?;
        self.ground.tally.less(Word::Mapped, (pages.len() * PAGE_BYTES) as u64);
        // Nobody else gets pages of which the kernel was told something that stays.
        if !marks.has(Marks::ODD) && !marks.has(Marks::LOCKED) {
            extents.give(pages);
        }
        Ok(())
    }

    /// The program maps something else over a range of addresses in the window: from here on it is the kernel's.
    ///
    /// # Errors
    /// The error number of what could not be given up.
    pub fn give_over(&self, range: &Range<usize>) -> Result<(), i32> {
        let _held = hold();
        let mut extents = self.lock();
        self.each(self.pages_in(range), |pages, marks| {
            if marks.is_ours() {
                self.ground.book.set(pages.clone(), Marks::USED.and(Marks::FOREIGN));
                self.ground.tally.less(Word::Mapped, (pages.len() * PAGE_BYTES) as u64);
                return self.order(Order::Discard, run_of(&pages));
            }
            extents.take_at(pages.clone());
            self.ground.book.set(pages, Marks::USED.and(Marks::FOREIGN));
            Ok(())
        })
    }

    /// Calls for each piece of pages of which the same is known.
    fn each(
        &self,
        pages: Range<usize>,
        mut act: impl FnMut(Range<usize>, Marks) -> Result<(), i32>,
    ) -> Result<(), i32> {
        let mut at = pages.start;
        while at < pages.end {
            let marks = self.ground.book.of(at);
            let next = at + self.ground.book.alike(at, pages.end - at, |marks| marks).max(1);
            act(at..next, marks)?;
            at = next;
        }
        Ok(())
    }

    /// The first piece of a range of addresses in the window, which is not empty, and whose it is.
    #[must_use]
    pub fn piece(&self, range: &Range<usize>) -> (Range<usize>, Whose) {
        let pages = self.pages_in(range);
        let of = |page: usize| Whose::of(self.ground.book.of(page));
        let whose = of(pages.start);
        let end = pages.clone().find(|page| of(*page) != whose).unwrap_or(pages.end);
        (range.start..range.end.min(self.ground.base() + end * PAGE_BYTES), whose)
    }

    /// Does what is asked of a range of addresses in the window, all of which is the program's own ([`Self::piece`]).
    ///
    /// # Errors
    /// The error number that the call of the kernel would give.
    pub fn ask(&self, range: &Range<usize>, ask: Ask) -> Result<(), i32> {
        let _held = hold();
        let _calls = self.lock();
        let pages = self.pages_in(range);
        match ask {
            Ask::Protect(access) => {
                self.each(pages, |pages, marks| self.protect(&pages, marks, access))
            }
            Ask::Discard => self.discard(pages),
            Ask::Guard => {
                self.ground.book.change(pages.clone(), |marks| marks.and(Marks::ODD));
                self.discard(pages)
            }
            Ask::Need => {
                let most = self.ground.shape.frames as usize / LOCKED_PART;
                self.order(Order::Fetch, run_of(&(pages.start..pages.end.min(pages.start + most))))
            }
            Ask::Cold => self.cool(&pages),
            Ask::Lock => self.fix(&pages),
            Ask::Unlock => self.each(pages, |pages, marks| {
                if !marks.has(Marks::LOCKED) {
                    return Ok(());
                }
                let odd = |marks: Marks| marks.without(Marks::LOCKED).and(Marks::ODD);
                self.ground.book.change(pages.clone(), odd);
                self.order(Order::Release, run_of(&pages))
            }),
            Ask::Keep => self.each(pages, |pages, marks| {
                if marks.has(Marks::HELD) {
                    return Ok(());
                }
                self.ground.book.change(pages.clone(), |marks| marks.and(Marks::HELD));
                self.order(Order::Hold, run_of(&pages))
            }),
            Ask::Odd => {
                self.ground.book.change(pages, |marks| marks.and(Marks::ODD));
                Ok(())
            }
            Ask::Nothing => Ok(()),
        }
    }

    fn discard(&self, pages: Range<usize>) -> Result<(), i32> {
        self.each(pages, |pages, marks| {
            if marks.has(Marks::LOCKED) {
                return Err(errno::EINVAL);
            }
            self.ground.book.change(pages.clone(), |marks| marks.without(Marks::HELD));
            self.order(Order::Discard, run_of(&pages))
        })
    }

    /// Keeps pages in memory, if they are few enough.
    fn fix(&self, pages: &Range<usize>) -> Result<(), i32> {
        let most = self.ground.shape.frames as usize / LOCKED_PART;
        let is_locked = |page: usize| self.ground.book.of(page).has(Marks::LOCKED);
        let locked = (0..self.ground.top.load(Ordering::Acquire)).filter(|page| is_locked(*page));
        if locked.count() + pages.len() > most {
            return Err(errno::ENOMEM);
        }
        self.each(pages.clone(), |pages, marks| {
            if marks.has(Marks::LOCKED) {
                return Ok(());
            }
            self.ground.book.change(pages.clone(), |marks| marks.and(Marks::LOCKED));
            self.order(Order::Hold, run_of(&pages))
        })
    }

    /// Pages that may be written and read are moved when they leave; others are copied, which a device may not write to
    /// meanwhile. So before pages lose that permission they leave, and what cannot, since a device has it, stays.
    fn protect(&self, pages: &Range<usize>, marks: Marks, access: u32) -> Result<(), i32> {
        let after = marks.without(Marks::of_access(7)).and(Marks::of_access(access));
        if marks.is_plain() && !after.is_plain() {
            self.cool(pages)?;
        }
        {
            let _changing = self.ground.changing();
            self.allow(pages, access)?;
            self.ground.book.change(pages.clone(), |_| after);
        }
        if marks.is_plain() && !after.is_plain() {
            self.hold_rest(pages)
        } else if after.is_plain() && marks.has(Marks::HELD) {
            self.ground.book.change(pages.clone(), |marks| marks.without(Marks::HELD));
            self.order(Order::Release, run_of(pages))
        } else {
            Ok(())
        }
    }

    /// Sends pages away; not while somebody forks, since a child would not have them.
    fn cool(&self, pages: &Range<usize>) -> Result<(), i32> {
        if self.forking.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.order(Order::Cool, run_of(pages))
    }

    /// What is still in memory may be under a device.
    fn hold_rest(&self, pages: &Range<usize>) -> Result<(), i32> {
        use crate::directory::State;
        let directory = self.ground.pager(1).directory();
        for page in pages.clone() {
            let run = run_of(&(page..page + 1));
            let is_held = self.ground.book.of(page).has(Marks::HELD);
            if !is_held && directory.look(run.first).state() != State::Absent {
                self.ground.book.change(page..page + 1, |marks| marks.and(Marks::HELD));
                self.order(Order::Keep, run)?;
            }
        }
        Ok(())
    }

    /// Makes a mapping that the program has longer where it is; false where something lies behind it.
    #[must_use]
    pub fn grow(&self, range: &Range<usize>, bytes: usize) -> bool {
        let _held = hold();
        let pages = self.pages_in(range);
        let more = pages.end..pages.start + pages_of(bytes);
        let access = self.ground.book.of(pages.start).access();
        if more.is_empty() {
            return true;
        }
        let mut extents = self.lock();
        if !extents.take_at(more.clone()) {
            return false;
        }
        let opened = self.open(more.clone(), access).is_ok();
        if !opened {
            extents.give(more);
        }
        opened
    }

    /// Maps so many bytes elsewhere, with what a mapping of the program's holds, which is unmapped; nothing where there
    /// is no room for it.
    ///
    /// # Safety
    /// Nobody else may use the old mapping meanwhile, and it must be readable and writable.
    #[must_use]
    pub unsafe fn relocate(&self, range: &Range<usize>, bytes: usize) -> Option<usize> {
        let new = self.map(bytes, PAGE_BYTES, Access::BOTH.0)?;
        let copied = range.len().min(bytes);
        for at in (0..copied).step_by(COPY_BYTES) {
            let part = COPY_BYTES.min(copied - at);
            let from: *const u8 = std::ptr::with_exposed_provenance(range.start + at);
            let to: *mut u8 = std::ptr::with_exposed_provenance_mut(new + at);
            // SAFETY: both are mapped for the program, which the caller vouches for, and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(from, to, part) };
            let old = range.start + at..range.start + at + part;
            self.unmap(&old).ok()?;
        }
        if range.len() > copied {
            self.unmap(&(range.start + copied..range.end)).ok()?;
        }
        Some(new)
    }

    /// Whether pages of a range may be read and written alone.
    #[must_use]
    pub fn is_plain(&self, range: &Range<usize>) -> bool {
        let pages = self.pages_in(range);
        pages.clone().all(|page| self.ground.book.of(page).is_plain())
    }

    /// Bytes of the object of `malloc` at an address in the window; 0 where there is none.
    #[must_use]
    pub fn object(&self, address: usize) -> usize {
        self.ground.book.object((address - self.ground.base()) / PAGE_BYTES) * PAGE_BYTES
    }

    /// Notes an object of `malloc`, or that there is none any more (0).
    pub fn set_object(&self, address: usize, bytes: usize) {
        let page = (address - self.ground.base()) / PAGE_BYTES;
        self.ground.book.set_object(page, pages_of(bytes));
    }
}
