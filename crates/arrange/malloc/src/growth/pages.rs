//! How memory comes: part by part for the classifier, and, where nothing is known in time, as pages
//! that join the heap unknown.
//!
//! It never decodes and never waits.

use super::trial::{NEW_SHARE, SLICE_NS, is_recognised, seeks_base};
use super::{Hold, Work};
use crate::instance::Instance;
use crate::process::PROCESS;
use crate::report::Word;
use core::sync::atomic::Ordering;
use isochrone_alloc::PageCodes;
use isochrone_os::reserve::Stride;
use isochrone_os::{OsError, clock};
use isochrone_units::{PAGE_BYTES, PageAddr};

/// Pages that join together without being known, while there is time: an allocation waits for one.
const JOINED_PAGES: u64 = 8;
/// Pages that the classifier is given together once a base is recognised.
const STEP_PAGES: u64 = 512;
/// The same before: all memory that was taken is resident in a program which may never place anything.
const FIRST_PAGES: u64 = 64;
/// It gets more once all but one part in so many of a step is decided.
const UNDER_WAY_PARTS: u64 = 8;
/// Of these, pages that are noted between two looks at the clock: whole blocks of pages that share one
/// code where patterns are that long.
pub(super) const PART_PAGES: u64 = 8;

impl Instance<'_> {
    /// Gives the classifier its next pages, and takes more memory where all of it is decoded, part
    /// by part. It is given all of a step before it goes on, and the next ones when these are
    /// known. True if there was no time for all.
    pub(super) fn add_memory(&self, hold: &mut Hold<'_>, until: u64, stride: Stride) -> bool {
        let Work { machine, classifier, first, noted, wanted, .. } = &mut *hold.work;
        let first = *first;
        let learnt = classifier.stats();
        let step = if is_recognised(&learnt, NEW_SHARE) { STEP_PAGES } else { FIRST_PAGES };
        let under_way = noted.saturating_sub(learnt.ready);
        let idle = *noted >= *wanted && under_way < step / UNDER_WAY_PARTS;
        let there = self.pages_learnt(first);
        if idle && (there > *noted || seeks_base(&learnt) || self.heap().wants_pages() > 0) {
            *wanted = *noted + step;
        }
        while *noted < *wanted {
            let end = *noted + PART_PAGES;
            let is_there = self.pages_learnt(first) >= end || {
                let _held = self.growth.adding.hold();
                let found = self.extend(stride);
                // The last pages of a full arena need be no whole block.
                *wanted = if found { *wanted } else { *noted };
                !found || self.pages_learnt(first) >= end
            };
            let end = end.min(self.pages_learnt(first));
            if let Ok(pages) = usize::try_from(end)
                && is_there
                && end > *noted
            {
                classifier.add(machine, pages);
                // Who joined before it was noted may be away by now.
                for page in *noted..end {
                    if self.heap().is_away(u32::try_from(first + page).unwrap_or(u32::MAX)) {
                        classifier.send_away(PageAddr(page));
                    }
                }
                *noted = end;
            }
            if clock::monotonic_ns() >= until {
                return *noted < *wanted;
            }
        }
        false
    }

    /// Takes memory until the arena has so many pages, or has no more, while other threads may take some too.
    pub(crate) fn take_pages(&self, pages: usize) -> Result<(), OsError> {
        while self.arena.pages() < pages {
            let _held = self.growth.adding.hold();
            if self.grow_arena(Stride::Whole)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Pages of the arena from `first` on.
    pub(super) fn pages_learnt(&self, first: u64) -> u64 {
        (self.arena.pages() as u64).saturating_sub(first)
    }

    /// One step of the arena; the lock is held. False if there is none.
    fn extend(&self, stride: Stride) -> bool {
        let begin = clock::monotonic_ns();
        let found = match self.grow_arena(stride) {
            Ok(Some(_)) => true,
            Ok(None) | Err(_) => false,
        };
        self.growth.is_full.store(!found, Ordering::Relaxed);
        if let Some(counters) = self.counters() {
            counters.raise(Word::MemoryNsMax, clock::monotonic_ns().saturating_sub(begin));
            counters.set(Word::ArenaBytes, (self.arena.pages() * PAGE_BYTES) as u64);
        }
        found
    }

    /// Lets pages join of which nothing is known, in an allocation of the process's that found
    /// nothing. It stays on the caller's stack: it needs little of it.
    pub(crate) fn join_in_time(&self) {
        let _held = self.growth.adding.hold();
        // Whoever closes the room waits for this lock afterwards.
        if PROCESS.room.is_closed() {
            return;
        }
        let begin = clock::monotonic_ns();
        self.join(begin + SLICE_NS);
        self.count_slice(begin);
    }

    /// Waits until no other thread takes memory.
    pub(crate) fn wait_for_memory(&self) {
        drop(self.growth.adding.hold_in_time());
    }

    /// Lets pages join of which nothing is known: one, and more while there is time. False if there
    /// are none left.
    pub(crate) fn join_unknown(&self, until: u64) -> bool {
        let _held = self.growth.adding.hold();
        self.join(until)
    }

    /// The same; the lock is held.
    fn join(&self, until: u64) -> bool {
        if self.heap().stats().ready_pages > 0 {
            return true;
        }
        // A process is better served by glibc then. A pool has nothing else.
        if self.is_process() && self.growth.is_unknown.load(Ordering::Relaxed) {
            return false;
        }
        let [first, end] = self.growth.unknown.each_ref().map(|at| at.load(Ordering::Relaxed));
        let (mut at, mut end, mut joined) = (first, end, 0);
        while joined == 0 || joined < JOINED_PAGES && clock::monotonic_ns() < until {
            if at == end {
                let before = self.arena.pages() as u64;
                // Only a pool has time for a huge page.
                let stride = if self.is_process() { Stride::Part } else { Stride::Whole };
                if !self.extend(stride) {
                    break;
                }
                (at, end) = (before, self.arena.pages() as u64);
            }
            let page = u32::try_from(at).unwrap_or(u32::MAX);
            joined += u64::from(self.heap().page_ready(page, PageCodes::UNKNOWN));
            at += 1;
        }
        self.growth.unknown[0].store(at, Ordering::Relaxed);
        self.growth.unknown[1].store(end, Ordering::Relaxed);
        joined > 0
    }
}
