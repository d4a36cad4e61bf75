//! Pages of which nothing is in use go back to the system, and are learnt anew when they come again.
//!
//! Not at once: a program that frees much often takes as much again. So it is done when more than placing may waste,
//! and some MiB on top, have been idle for a while, until half of these are left, some pages together, in the slices of
//! threads that allocate. Nothing is done in `free`: whoever watches memory (libraries of network cards do) may be what
//! frees.

use super::{Hold, Work};
use crate::instance::Instance;
use core::sync::atomic::Ordering;
use isochrone_os::clock;
use isochrone_os::pages::pages_in_kernel_page;
use isochrone_units::PageAddr;

/// Idle bytes that are kept beside what placing may waste.
const KEPT_BYTES: u64 = 8 << 20;
/// How long more has to be idle before it goes.
const IDLE_NS: u64 = 100_000_000;
/// Time from when all pages were looked at to the next time.
const REST_NS: u64 = 500_000_000;
/// Pages that go together at most, but for whole huge pages: nobody takes a slot of them meanwhile.
const TOGETHER: u64 = 32;
/// Pages of a huge page, of which a pool's memory is.
const HUGE_PAGES: u64 = 512;
/// Pages between two looks at the clock.
const PAGES_A_LOOK: u64 = 16;

/// Pages that are about to leave together.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    first: u64,
    pages: u64,
}

impl Instance<'_> {
    /// Whether pages are to go back now.
    pub(super) fn is_return_due(&self, now: u64) -> bool {
        let idle = &self.growth.idle;
        if now < idle.rest_until_ns.load(Ordering::Relaxed) {
            return false;
        }
        if idle.returning.load(Ordering::Relaxed) {
            return true;
        }
        if !self.has_idle(KEPT_BYTES) || self.is_over() || self.growth.is_inherited() {
            idle.since_ns.store(0, Ordering::Relaxed);
            return false;
        }
        match idle.since_ns.load(Ordering::Relaxed) {
            0 => idle.since_ns.store(now, Ordering::Relaxed),
            since if now.saturating_sub(since) >= IDLE_NS => {
                idle.returning.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
        idle.returning.load(Ordering::Relaxed)
    }

    /// Whether more than placing may waste is idle, and so many bytes on top.
    fn has_idle(&self, bytes: u64) -> bool {
        let kept = self.growth.idle.kept_bytes.load(Ordering::Relaxed);
        let kept = kept.max(self.heap().preference_limit_bytes());
        self.heap().stats().assigned_bytes > kept.saturating_add(bytes)
    }

    /// Pages that go and come together.
    fn unit_pages(&self, work: &Work) -> u64 {
        let block = work.classifier.block_pages().max(pages_in_kernel_page()) as u64;
        if self.is_process() { block } else { HUGE_PAGES }
    }

    /// Sends pages away, of which nothing is in use, for some time.
    pub(super) fn return_pages(&self, hold: &mut Hold<'_>, until: u64) {
        let unit = self.unit_pages(hold.work);
        // Also those that joined before there was time to learn them.
        let end = self.arena.pages() as u64;
        let mut next = hold.work.back.next.max(hold.work.first).next_multiple_of(unit);
        let mut run = Run::default();
        let mut left = PAGES_A_LOOK;
        while next + unit <= end && self.has_idle(KEPT_BYTES / 2) {
            if self.begin_leave(next, unit) {
                run = Run {
                    first: if run.pages == 0 { next } else { run.first },
                    pages: run.pages + unit,
                };
            }
            next += unit;
            if run.pages > 0 && (run.first + run.pages < next || run.pages >= TOGETHER) {
                if !self.send_away(hold.work, run) {
                    // Memory that is locked stays for good.
                    return self.growth.idle.rest_until(u64::MAX);
                }
                run = Run::default();
            }
            left = left.saturating_sub(unit);
            if left == 0 {
                left = PAGES_A_LOOK;
                if clock::monotonic_ns() >= until {
                    break;
                }
            }
        }
        if run.pages > 0 {
            self.send_away(hold.work, run);
        }
        hold.work.back.next = next;
        if next + unit > end || !self.has_idle(KEPT_BYTES / 2) {
            hold.work.back.next = if next + unit > end { 0 } else { next };
            self.growth.idle.rest_until(clock::monotonic_ns() + REST_NS);
        }
    }

    /// Whether all pages of a unit are about to leave; where one is not, none is.
    fn begin_leave(&self, first: u64, pages: u64) -> bool {
        let heap = self.heap();
        let number = |page: u64| u32::try_from(page).unwrap_or(u32::MAX);
        let begun = (first..first + pages).take_while(|page| heap.begin_leave(number(*page)));
        let begun = begun.count() as u64;
        if begun < pages {
            (first..first + begun).for_each(|page| heap.end_leave(number(page), false));
        }
        begun == pages
    }

    /// Gives back the memory of pages that are about to leave. False where that is refused; then they stay.
    fn send_away(&self, work: &mut Work, run: Run) -> bool {
        let pages = usize::try_from(run.pages).unwrap_or(0);
        // SAFETY: nothing of these pages is in use, and nobody is given a slot of them before `end_leave`. They are
        // loaded from by who learns, who holds the lock, and looks at nothing that it finds there.
        let gone = unsafe { self.arena.memory().give_back_pages(PageAddr(run.first), pages) };
        for page in run.first..run.first + run.pages {
            self.heap().end_leave(u32::try_from(page).unwrap_or(u32::MAX), gone.is_ok());
            if gone.is_ok() {
                work.classifier.send_away(PageAddr(page - work.first));
            }
        }
        gone.is_ok()
    }

    /// Has pages learnt anew that have come again. True if there was no time for all.
    pub(super) fn take_pages_back(&self, hold: &mut Hold<'_>, until: u64) -> bool {
        if self.have_come() {
            self.growth.idle.come.store(self.heap().pages_come_again(), Ordering::Relaxed);
            // From the first on once more, also where it was about that.
            hold.work.back.look = Some(0);
        }
        let unit = self.unit_pages(hold.work);
        while let Some(at) = hold.work.back.look {
            let first = (hold.work.first + at) / unit * unit;
            let next = first + unit - hold.work.first;
            self.take_unit_back(hold.work, first, unit);
            hold.work.back.look = Some(next).filter(|next| *next < hold.work.noted);
            if (first / unit).is_multiple_of(PAGES_A_LOOK) && clock::monotonic_ns() >= until {
                break;
            }
        }
        hold.work.back.look.is_some()
    }

    /// The same of the pages of a unit, if one of them has come.
    fn take_unit_back(&self, work: &mut Work, first: u64, pages: u64) {
        let number = |page: u64| u32::try_from(page).unwrap_or(u32::MAX);
        let learnt = |page: u64| page.checked_sub(work.first).map(PageAddr);
        let was_sent = |page: u64| learnt(page).is_some_and(|page| work.classifier.is_away(page));
        let has_come = |page: u64| was_sent(page) && !self.heap().is_away(number(page));
        if !(first..first + pages).any(has_come) {
            return;
        }
        let count = usize::try_from(pages).unwrap_or(0);
        // Without memory behind them, lines would be those of the page of zeros that all share.
        if self.arena.memory().populate_pages(PageAddr(first), count).is_err() {
            return;
        }
        for page in first..first + pages {
            self.heap().take_back(number(page));
            if let Some(page) = page.checked_sub(work.first).map(PageAddr)
                && work.classifier.is_away(page)
            {
                work.classifier.take_back(page);
            }
        }
    }
}
