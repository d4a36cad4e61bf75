//! The process's words, which everybody reads: what it was told, whether it places, and what it has counted.
//!
//! ```text
//!  EARLY --no configuration--> TRANSPARENT
//!    \---configuration---> COUNTING --enough bytes--> LEARNING --a gain is promised--> PLACING
//!                              \--no atlas, no memory,
//!                                 too little in use--> DELEGATING <--no base, no gain--/
//!                                                       PLACING --filter, no clock--> CLOSED
//! ```
//!
//! A program that allocates little never gets beyond counting, so it pays for reading a record and no more. One that
//! gains nothing never gets beyond learning, unless it is forced to place: all that it allocates is the next
//! allocator's, and a bounded time is spent on its memory. Who goes from one phase to the next stands above (`life`,
//! `without_block`, `close`, `growth::vain`, `instance::process`); here nobody knows what an instance or a thread is.
//! Every word is atomic and zero-valid, so that calls which come before any constructor find a state that delegates.

use crate::config::Config;
use crate::counters::Counters;
use crate::footprint::Footprint;
use crate::range::Range;
use crate::report::{Reason, Word};
use crate::room::{Inside, Room};
use crate::told::Told;
use crate::{front, loading, memory};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use isochrone_os::clock;

/// Phases of a process.
pub(crate) mod phase {
    pub(crate) const EARLY: u8 = 0;
    pub(crate) const TRANSPARENT: u8 = 1;
    pub(crate) const COUNTING: u8 = 2;
    /// Pages are learnt, and nothing is placed.
    pub(crate) const LEARNING: u8 = 3;
    pub(crate) const PLACING: u8 = 4;
    pub(crate) const DELEGATING: u8 = 5;
    /// Who has a block hands out again what is placed; all others leave everything to glibc.
    pub(crate) const CLOSED: u8 = 6;

    /// Whether threads without a block only count.
    #[inline(always)]
    pub(crate) const fn only_counts(phase: u8) -> bool {
        phase == COUNTING || phase == LEARNING
    }
}

/// The process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) phase: AtomicU8,
    /// Why the process delegates, where it does: an index of `Reason::ALL`.
    reason: AtomicU8,
    told: AtomicPtr<Told>,
    counters: AtomicPtr<Counters>,
    /// Placeable bytes that were counted and not placed.
    pub(crate) counted_bytes: AtomicU64,
    /// Where some of these objects lie.
    pub(crate) footprint: Footprint,
    /// Where the system is asked for what glibc's allocator does not ask.
    pub(crate) room: Room,
}

/// The one process.
pub(crate) static PROCESS: Process = Process {
    phase: AtomicU8::new(phase::EARLY),
    reason: AtomicU8::new(0),
    told: AtomicPtr::new(ptr::null_mut()),
    counters: AtomicPtr::new(ptr::null_mut()),
    counted_bytes: AtomicU64::new(0),
    footprint: Footprint::new(),
    room: Room::new(),
};

/// The process's arena, which every free looks at first.
pub(crate) static ARENA: Range = Range::new();

/// Counters of a process that has no report.
pub(crate) static LOCAL: Counters = Counters::new();

impl Process {
    /// Where the process counts.
    #[inline]
    pub(crate) fn counters(&self) -> &'static Counters {
        let counters = self.counters.load(Ordering::Acquire);
        // SAFETY: null, or a report that is mapped until the process ends.
        unsafe { counters.as_ref() }.unwrap_or(&LOCAL)
    }

    pub(crate) fn count_in(&self, counters: &'static Counters) {
        self.counters.store(ptr::from_ref(counters).cast_mut(), Ordering::Release);
    }

    /// The process was told this.
    pub(crate) fn heed(&self, told: &'static Told) {
        self.told.store(ptr::from_ref(told).cast_mut(), Ordering::Release);
    }

    /// What the process was told.
    pub(crate) fn told(&self) -> Option<&'static Told> {
        // SAFETY: null, or written before it was stored and never changed or unmapped.
        unsafe { self.told.load(Ordering::Acquire).as_ref() }
    }

    /// The record of it.
    pub(crate) fn config(&self) -> Option<&'static Config> {
        self.told().map(|told| &told.config)
    }

    /// Leaves everything to the next allocator from now on, and counts nothing any more; the caller's own state is
    /// its own to change.
    pub(crate) fn delegate(&self, reason: Reason) {
        self.set_aside(reason, phase::DELEGATING);
        front::lead_on();
        front::lead_past(!self.has_placed());
    }

    /// Counts again, in a child of `fork` that has one thread and in which nothing was placed.
    pub(crate) fn count_again(&self) {
        front::lead_to_counting_again();
        self.phase.store(phase::COUNTING, Ordering::Release);
    }

    /// Nothing new is placed from now on, for this reason.
    pub(crate) fn set_aside(&self, reason: Reason, phase: u8) {
        self.reason.store(reason as u8, Ordering::Relaxed);
        self.counters().set(Word::Aside, reason as u64 + 1);
        self.phase.store(phase, Ordering::Release);
        if !self.has_placed() {
            front::lead_back_on();
            // A child may still place where the parent has too little.
            if reason != Reason::StaysSmall {
                loading::nothing_is_placed();
            }
        }
    }

    /// Whether any line may have been handed out.
    pub(crate) fn has_placed(&self) -> bool {
        ARENA.is_published()
    }

    /// Whether pages are learnt, and nothing is placed.
    pub(crate) fn is_learning(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == phase::LEARNING
    }

    /// An object that could be placed is the next allocator's: hands it on, and looks where it lies while that counts.
    #[inline]
    pub(crate) fn saw(&self, object: *mut c_void) -> *mut c_void {
        if phase::only_counts(self.phase.load(Ordering::Relaxed)) && !object.is_null() {
            self.footprint.note(object.cast());
        }
        object
    }

    /// Placeable bytes that were counted and not placed: as much as the program can have in use of such objects while
    /// nothing is placed.
    pub(crate) fn counted_bytes(&self) -> u64 {
        self.counted_bytes.load(Ordering::Relaxed)
    }

    /// Whether everything is left to glibc for good.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == phase::DELEGATING
    }

    /// Why nothing is placed, where it came to that.
    pub(crate) fn reason(&self) -> Reason {
        let index = usize::from(self.reason.load(Ordering::Relaxed));
        Reason::ALL.get(index).copied().unwrap_or(Reason::NoAtlas)
    }
}

/// A child of `fork` gets a report when it has something to say: most only call `exec`.
#[inline(never)]
pub(crate) fn report_late(inside: &mut Inside<'_>) {
    let Some(config) = PROCESS.config().filter(|_| lacks_report()) else { return };
    inside.run(|| {
        let process = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
        let time = clock::monotonic_ns();
        if let Some(report) = memory::map_report(&config.reports, process, time) {
            report.begin(process, config.policy.mode, LOCAL.get(Word::ClockHz));
            report.absorb(&LOCAL);
            PROCESS.count_in(report);
        }
    });
}

/// Whether it is to have a report and has none yet.
pub(crate) fn lacks_report() -> bool {
    let reports = PROCESS.config().is_some_and(|config| !config.reports.is_empty());
    reports && ptr::eq(PROCESS.counters(), &LOCAL)
}
