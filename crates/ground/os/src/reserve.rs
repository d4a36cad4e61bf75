//! An arena that grows in place: address space is taken in steps, and memory put behind it in smaller ones: 2 MiB at
//! a time, in huge pages where they are to be had, or 4 KiB at a time, for whoever has not the tenth of a millisecond
//! that a huge page takes (five, where a host has to find memory for it: 9.6 microseconds for each 4 KiB were
//! measured).
//!
//! Whether a pointer lies in it is one subtraction and one comparison. Whoever gives memory of it back has other frames
//! behind lines whose distances were known. Pages of the administrator's pool are not used: a child that writes to
//! one after `fork` is killed where the pool is empty.

use crate::error::OsError;
use crate::frames::page_of;
use crate::mapping::HUGE_PAGE_BYTES;
use crate::pages::kernel_page_bytes;
use crate::steps::{Growing, Plot};
use crate::syscall::syscall;
use crate::timed::{Memory, sealed};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use isochrone_units::{LINE_BYTES, PAGE_BYTES, PageAddr};
use rustix::io::Errno;
use rustix::mm::{Advice, ProtFlags};

/// Addresses of its own, the front of which is memory.
#[derive(Debug)]
pub struct Reservation {
    range: Growing,
    committed: AtomicUsize,
    /// Cleared at the first step for which there was no huge page: asking costs milliseconds then.
    huge: AtomicBool,
}

/// A reservation from one of its pages on, for whoever is not to look at those before it.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    whole: &'a Reservation,
    /// Bytes before it.
    before: usize,
}

/// How far an arena grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// To the next 2 MiB boundary, in a huge page where it begins at one.
    Whole,
    /// One small page of the kernel's, in two microseconds; ten where a host has to find memory for it.
    Part,
}

/// What one step of growth gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// First page, counted from the base.
    pub first: PageAddr,
    /// Pages of 4 KiB.
    pub pages: u64,
    /// Whether a huge page is behind all of it.
    pub huge: bool,
}

impl Reservation {
    /// Addresses for an arena of at most so many bytes, rounded up to whole pages, at a 2 MiB boundary. Few of them are
    /// taken, and no memory.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space, and for none at all.
    pub fn new(bytes: usize, huge: bool) -> Result<Self, OsError> {
        Self::within(&mut Plot::new(Plot::rounded(bytes)), bytes, huge)
    }

    /// The same as a part of a plot.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn within(plot: &mut Plot, bytes: usize, huge: bool) -> Result<Self, OsError> {
        let range = Growing::new(plot, bytes, HUGE_PAGE_BYTES, ProtFlags::empty())?;
        Ok(Self { range, committed: AtomicUsize::new(0), huge: AtomicBool::new(huge) })
    }

    /// Takes addresses for so many bytes, at most as many as it was made for; whole huge pages. One thread at a time.
    ///
    /// # Errors
    /// [`OsError`] where there are none; then nothing has changed.
    pub fn widen(&self, bytes: usize) -> Result<(), OsError> {
        self.range.widen(Plot::rounded(bytes))
    }

    /// Gives back the addresses behind the huge page in which its memory ends. One thread at a time, and none that
    /// widens it or lets it grow meanwhile.
    pub fn narrow(&self) {
        // SAFETY: what is no memory is used by nobody: whoever wants it lets the arena grow first.
        unsafe { self.range.narrow(Plot::rounded(self.committed())) };
    }

    /// The first byte; at a 2 MiB boundary. Using the memory is the caller's to justify: it is
    /// there up to [`Self::committed`].
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.range.base.as_ptr()
    }

    /// Bytes that it can grow to.
    #[inline]
    #[must_use]
    pub const fn reach(&self) -> usize {
        self.range.reach()
    }

    /// Bytes of address space that it has taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.range.taken()
    }

    /// Bytes from the first on that are memory.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.committed.load(Ordering::Acquire)
    }

    /// How far an address is behind the first byte; `None` outside of what is memory.
    #[inline]
    #[must_use]
    pub fn offset_of(&self, address: *const u8) -> Option<usize> {
        let offset = address.addr().wrapping_sub(self.as_ptr().addr());
        (offset < self.committed()).then_some(offset)
    }

    /// The virtual page behind page `index`, as [`crate::frames::Pagemap`] wants it.
    #[must_use]
    pub fn virtual_page(&self, index: PageAddr) -> PageAddr {
        PageAddr(page_of(self.as_ptr().addr()).0 + index.0)
    }

    /// What lies from page `first` on, whose pages and lines are counted from there; nothing where
    /// the reservation ends before it.
    #[must_use]
    pub fn tail(&self, first: PageAddr) -> Tail<'_> {
        let first = usize::try_from(first.0).unwrap_or(usize::MAX);
        Tail { whole: self, before: first.saturating_mul(PAGE_BYTES).min(self.reach()) }
    }

    /// Puts memory behind the next stride (less at the end), present and zeroed. `None` when all
    /// is memory already. One thread at a time: two that grow at once would map the same step, and
    /// the second gives `EAGAIN` instead.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory; then nothing has changed, and it may be tried again.
    pub fn grow(&self, stride: Stride) -> Result<Option<Step>, OsError> {
        const ADVICE: &str = "raise the memory limit, or leave the arena as large as it is";
        let from = self.committed();
        let bytes = match stride {
            Stride::Whole => HUGE_PAGE_BYTES - from % HUGE_PAGE_BYTES,
            Stride::Part => kernel_page_bytes(),
        };
        let bytes = bytes.min(self.reach() - from);
        if bytes == 0 {
            return Ok(None);
        }
        // Whoever has taken them already finds them there.
        self.widen(from + bytes)?;
        let place = self.as_ptr().wrapping_add(from);
        let fail = |errno| OsError::of("cannot grow the arena", errno, ADVICE);
        let wanted = bytes == HUGE_PAGE_BYTES && self.huge.load(Ordering::Relaxed);
        if from.is_multiple_of(HUGE_PAGE_BYTES) {
            // What comes page by page is asked for once.
            let ahead = HUGE_PAGE_BYTES.min(self.reach() - from);
            // SAFETY: the range is this value's and not handed out: it lies behind `committed`.
            // Making it accessible keeps what is there, which is nothing.
            unsafe {
                let access = rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE;
                rustix::mm::mprotect(place.cast(), ahead, access)
            }
            .map_err(fail)?;
            let advice = if wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
            // Refused where transparent huge pages are not built in; then 4 KiB pages come.
            let _ = advise(place, ahead, advice);
        }
        populate(place, bytes).map_err(fail)?;
        let huge = wanted && collapse(place, bytes).is_ok();
        if wanted && !huge {
            self.huge.store(false, Ordering::Relaxed);
        }
        let grown = self.committed.compare_exchange(
            from,
            from + bytes,
            Ordering::Release,
            Ordering::Relaxed,
        );
        grown.map_err(|_| fail(Errno::AGAIN))?;
        let first = PageAddr((from / PAGE_BYTES) as u64);
        Ok(Some(Step { first, pages: (bytes / PAGE_BYTES) as u64, huge }))
    }

    /// Gives all of its memory back to the system: it reads as zeros, and takes memory again where it is written.
    /// Nothing happens where that is refused.
    ///
    /// # Safety
    /// Nobody expects to find anything that lies there, and no reference to it lives.
    pub unsafe fn give_back(&self) {
        // SAFETY: the range is this value's, private and anonymous; the caller vouches that its content is of no use.
        let _ = unsafe {
            rustix::mm::madvise(self.as_ptr().cast(), self.committed(), Advice::LinuxDontNeed)
        };
    }

    /// Gives the memory of some pages back to the system, as [`Self::give_back`] does that of all. By the C library's
    /// function, so that whoever watches what becomes of memory sees it (memory that a network card reads).
    ///
    /// # Errors
    /// [`OsError`] where it is refused, as for memory that is locked, or for pages that are no memory yet.
    ///
    /// # Safety
    /// Nobody expects to find anything that lies there, and no reference to it lives.
    pub unsafe fn give_back_pages(&self, first: PageAddr, pages: usize) -> Result<(), OsError> {
        const WHAT: &str = "cannot give memory of the arena back";
        let (place, bytes) = self.pages(first, pages, WHAT)?;
        // SAFETY: the range is this value's, private and anonymous; the caller vouches that its content is of no use.
        let result = unsafe { libc::madvise(place.cast(), bytes, libc::MADV_DONTNEED) };
        match result {
            0 => Ok(()),
            _ => Err(OsError::new(WHAT, libc::EINVAL, "unlock it, or leave it as it is")),
        }
    }

    /// Makes some pages of its memory present, whatever lies there.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory, for pages that are no memory yet, and before Linux 5.14.
    pub fn populate_pages(&self, first: PageAddr, pages: usize) -> Result<(), OsError> {
        const WHAT: &str = "cannot make memory of the arena present";
        let (place, bytes) = self.pages(first, pages, WHAT)?;
        advise(place, bytes, Advice::LinuxPopulateWrite)
            .map_err(|errno| OsError::of(WHAT, errno, "raise the memory limit"))
    }

    /// Where these pages lie, and how long they are, if all are memory.
    fn pages(
        &self,
        first: PageAddr,
        pages: usize,
        what: &'static str,
    ) -> Result<(*mut u8, usize), OsError> {
        let from = usize::try_from(first.0).ok().and_then(|first| first.checked_mul(PAGE_BYTES));
        let bytes = pages.checked_mul(PAGE_BYTES);
        match (from, bytes) {
            (Some(from), Some(bytes))
                if from.checked_add(bytes).is_some_and(|end| end <= self.committed()) =>
            {
                Ok((self.as_ptr().wrapping_add(from), bytes))
            }
            _ => Err(OsError::invalid(what, "grow first")),
        }
    }

    /// Keeps a step from being swapped out. It can still be migrated.
    ///
    /// # Errors
    /// [`OsError`] where the limit on locked memory is lower.
    pub fn lock(&self, step: Step) -> Result<(), OsError> {
        const ADVICE: &str = "raise ulimit -l; memory that is not locked is placed too";
        let page = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (from, bytes) = (page(step.first.0), page(step.pages));
        let (from, bytes) = (from.saturating_mul(PAGE_BYTES), bytes.saturating_mul(PAGE_BYTES));
        if from.checked_add(bytes).is_none_or(|end| end > self.committed()) {
            return Err(OsError::invalid("cannot lock what is not memory yet", "grow first"));
        }
        let place = self.as_ptr().wrapping_add(from);
        // SAFETY: the range is this value's and memory; locking changes no content.
        unsafe { rustix::mm::mlock(place.cast(), bytes) }
            .map_err(|errno| OsError::of("cannot lock the arena", errno, ADVICE))
    }
}

impl Memory for Reservation {}

impl sealed::Extent for Reservation {
    fn base(&self) -> *const u8 {
        self.as_ptr()
    }

    fn lines(&self) -> u64 {
        (self.committed() / LINE_BYTES) as u64
    }
}

impl Memory for Tail<'_> {}

impl sealed::Extent for Tail<'_> {
    fn base(&self) -> *const u8 {
        self.whole.as_ptr().wrapping_add(self.before)
    }

    fn lines(&self) -> u64 {
        (self.whole.committed().saturating_sub(self.before) / LINE_BYTES) as u64
    }
}

fn advise(place: *mut u8, bytes: usize, advice: Advice) -> Result<(), Errno> {
    // SAFETY: callers give a range of their own, and the advice given here changes no content.
    unsafe { rustix::mm::madvise(place.cast(), bytes, advice) }
}

/// Makes every page present and writable, with an error where memory is short.
fn populate(place: *mut u8, bytes: usize) -> Result<(), Errno> {
    match advise(place, bytes, Advice::LinuxPopulateWrite) {
        // Before Linux 5.14: touch each page.
        Err(Errno::INVAL) => {
            for offset in (0..bytes).step_by(PAGE_BYTES) {
                // SAFETY: inside of the range, which is readable and writable and nobody's yet.
                unsafe { place.wrapping_add(offset).write_volatile(0) };
            }
            Ok(())
        }
        other => other,
    }
}

/// Succeeds if a huge page is behind the range afterwards (madvise(2), `MADV_COLLAPSE`, since
/// Linux 6.1).
fn collapse(place: *mut u8, bytes: usize) -> Result<(), i32> {
    /// include/uapi/asm-generic/mman-common.h; libc has it for glibc targets only.
    const MADV_COLLAPSE: usize = 25;
    let address = place.expose_provenance();
    // SAFETY: `grow` gives a range of its own; collapsing keeps its content.
    unsafe { syscall(libc::SYS_madvise, [address, bytes, MADV_COLLAPSE, 0, 0, 0]) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timed;
    use isochrone_units::{Cycles, LineAddr};
    use std::vec::Vec;

    #[test]
    fn it_grows_step_by_step_up_to_its_limit() {
        let arena = Reservation::new(5 << 20, true).expect("5 MiB of address space");
        assert_eq!((arena.committed(), arena.reach()), (0, 5 << 20));
        assert_eq!(arena.as_ptr().addr() % HUGE_PAGE_BYTES, 0);
        let mut steps = Vec::new();
        while let Some(step) = arena.grow(Stride::Whole).expect("5 MiB") {
            steps.push((step.first.0, step.pages));
        }
        assert_eq!(steps, [(0, 512), (512, 512), (1024, 256)]);
        assert_eq!(arena.committed(), 5 << 20);
        for offset in (0..5 << 20).step_by(PAGE_BYTES) {
            let byte = arena.as_ptr().wrapping_add(offset);
            // SAFETY: inside of what is committed, and this thread's alone.
            assert_eq!(unsafe { byte.read() }, 0);
            // SAFETY: as above.
            unsafe { byte.write(1) };
        }
    }

    #[test]
    fn it_grows_by_parts_and_the_rest_of_a_huge_page_at_once() {
        let arena = Reservation::new(4 << 20, true).expect("4 MiB of address space");
        let strides = [Stride::Part, Stride::Part, Stride::Whole, Stride::Part, Stride::Whole];
        let steps = strides.map(|stride| {
            let step = arena.grow(stride).expect("4 MiB").expect("a step");
            (step.first.0, step.pages, step.huge)
        });
        let expected =
            [(0, 1, false), (1, 1, false), (2, 510, false), (512, 1, false), (513, 511, false)];
        assert_eq!(steps, expected);
        assert_eq!(arena.grow(Stride::Part), Ok(None));
    }

    #[test]
    fn addresses_inside_are_told_from_all_others() {
        let arena = Reservation::new(1 << 30, false).expect("address space");
        let first = arena.as_ptr().cast_const();
        assert_eq!(arena.offset_of(first), None, "it is no memory yet");
        arena.grow(Stride::Whole).expect("2 MiB");
        assert_eq!(arena.offset_of(first), Some(0));
        assert_eq!(arena.offset_of(first.wrapping_add((2 << 20) - 1)), Some((2 << 20) - 1));
        assert_eq!(arena.offset_of(first.wrapping_add(2 << 20)), None);
        assert_eq!(arena.offset_of(first.wrapping_sub(1)), None);
        assert_eq!(arena.offset_of(core::ptr::null()), None);
        assert!(Reservation::new(0, true).is_err());
        assert!(Reservation::new(usize::MAX, true).is_err());
    }

    #[test]
    fn its_lines_are_timed_as_far_as_it_is_memory() {
        let arena = Reservation::new(4 << 20, false).expect("4 MiB of address space");
        let mut out = [Cycles(0); 1];
        assert!(timed::time_lines(&arena, &[LineAddr(0)], &mut out).is_err());
        assert_eq!(arena.grow(Stride::Whole).expect("2 MiB").map(|step| step.huge), Some(false));
        let last = LineAddr((2 << 20) / 64 - 1);
        assert!(timed::touch(&arena, &[last]).is_ok());
        assert!(timed::touch(&arena, &[LineAddr(last.0 + 1)]).is_err());
        match timed::sample_flushed(&arena, &[last], &mut out) {
            Ok(()) => assert!(out[0].0 > 0),
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
    }

    #[test]
    fn a_tail_has_what_is_memory_behind_its_first_page() {
        use crate::timed::sealed::Extent;
        let arena = Reservation::new(4 << 20, false).expect("4 MiB of address space");
        arena.grow(Stride::Whole).expect("2 MiB");
        let tail = arena.tail(PageAddr(8));
        assert_eq!(tail.base(), arena.as_ptr().wrapping_add(8 << 12).cast_const());
        assert_eq!(tail.lines(), (2 << 20) / 64 - 8 * 64);
        assert_eq!(tail.virtual_page(PageAddr(1)), arena.virtual_page(PageAddr(9)));
        assert!(timed::touch(&tail, &[LineAddr(tail.lines() - 1)]).is_ok());
        assert!(timed::touch(&tail, &[LineAddr(tail.lines())]).is_err());
        arena.grow(Stride::Part).expect("a page");
        assert_eq!(tail.lines(), (2 << 20) / 64 - 7 * 64);
        assert_eq!(arena.tail(PageAddr(513)).lines(), 0);
        assert_eq!(arena.tail(PageAddr(u64::MAX)).lines(), 0);
    }

    #[test]
    fn addresses_are_taken_as_it_grows_or_before_and_given_back() {
        let arena = Reservation::new(1 << 34, false).expect("address space");
        assert_eq!((arena.reach(), arena.taken()), (1 << 34, 2 << 20));
        arena.widen(9 << 20).expect("10 MiB of address space");
        assert_eq!((arena.taken(), arena.committed()), (10 << 20, 0));
        arena.grow(Stride::Part).expect("a page");
        arena.narrow();
        assert_eq!(arena.taken(), 2 << 20);
        arena.grow(Stride::Whole).expect("the rest of it");
        arena.grow(Stride::Part).expect("a page of the next");
        assert_eq!(arena.taken(), 4 << 20);
    }

    #[test]
    fn pages_that_were_given_back_are_zero_and_can_be_written_again() {
        let arena = Reservation::new(4 << 20, false).expect("address space");
        // SAFETY: nobody uses it.
        assert!(unsafe { arena.give_back_pages(PageAddr(0), 1) }.is_err(), "it is no memory yet");
        arena.grow(Stride::Whole).expect("2 MiB");
        let pages = kernel_page_bytes() / PAGE_BYTES;
        let [first, second] =
            [0, 1].map(|of| arena.as_ptr().wrapping_add(of * kernel_page_bytes()));
        for byte in [first, second] {
            // SAFETY: inside of what is memory, and this thread's alone.
            unsafe { byte.write(7) };
        }
        // SAFETY: nobody uses it.
        unsafe { arena.give_back_pages(PageAddr(pages as u64), pages) }.expect("it is memory");
        let populated = arena.populate_pages(PageAddr(0), 2 * pages);
        assert!(populated.is_ok() || populated.is_err_and(|error| error.errno == libc::EINVAL));
        // SAFETY: inside of what is memory, and this thread's alone.
        assert_eq!([first, second].map(|byte| unsafe { byte.read() }), [7, 0]);
        assert!(arena.populate_pages(PageAddr(511), 2).is_err());
        assert!(arena.populate_pages(PageAddr(u64::MAX), 1).is_err());
    }

    #[test]
    fn what_is_not_memory_is_not_locked() {
        let arena = Reservation::new(4 << 20, false).expect("4 MiB of address space");
        let step = Step { first: PageAddr(0), pages: 1, huge: false };
        assert!(arena.lock(step).is_err());
        let grown = arena.grow(Stride::Whole).expect("2 MiB").expect("a step");
        let all = Step { pages: grown.pages + 1, ..grown };
        assert!(arena.lock(all).is_err_and(|error| error.errno == libc::EINVAL));
    }
}
