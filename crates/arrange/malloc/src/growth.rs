//! How an allocator gets pages and learns them, a little at a time.
//!
//! Whoever finds that pages are wanted may do a slice of the work, if nobody else is at it: so
//! little and so seldom that all threads together spend no more than a fixed share of one thread's
//! time on this. There is no thread of the library's own: programs count theirs. An allocation
//! never waits for pages to be decoded: where none is ready, some join of which nothing is known.
//! They are decoded all the same, and what is free of them then finds its place.
//!
//! Here is what growth keeps, under its locks, and nothing of the allocator that grows: that has it as a part. What is
//! done with both is in the files below: what is due, pages that come and go, whether it pays, and slices over all.

mod anew;
mod back;
mod counts;
mod due;
mod idle;
mod pages;
pub(crate) mod slices;
mod trial;
mod vain;

use crate::lock::{Held, Lock};
use crate::settings::{InstanceError, Settings};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use idle::{Back, Idle};
use isochrone_alloc::live::{Arena, Classifier, Machine, Plan};
use isochrone_alloc::{Policy, SizeClass};
use isochrone_atlas::Atlas;
use isochrone_os::OsError;
use isochrone_os::clock;
use isochrone_os::reserve::Tail;
use isochrone_os::table::Table;
use isochrone_units::PageAddr;
use trial::{Pace, Trial};

/// The growth of one allocator.
#[derive(Debug)]
pub(crate) struct Growth {
    learning: Lock,
    work: UnsafeCell<Work>,
    /// Guards the arena's end, and what follows.
    adding: Lock,
    /// Pages of the last step that have not been asked to join unknown: first, and behind the last.
    unknown: [AtomicU64; 2],
    /// No slice of an allocating thread before this time.
    rest_until_ns: AtomicU64,
    /// No epoch of a core before this time.
    epoch_at_ns: Table<AtomicU64>,
    /// There is more to decode.
    has_backlog: AtomicBool,
    /// The arena has no more memory.
    is_full: AtomicBool,
    /// The process has had so much in use that lines matter.
    is_worth_it: AtomicBool,
    /// No base of this machine's is known, until the time that follows.
    is_unknown: AtomicBool,
    retry_at_ns: AtomicU64,
    /// Times that it was asked in vain since a base was last known.
    retries: AtomicU32,
    /// Frames of this process's pages may be others, since it has a child that shared them.
    was_shared: AtomicBool,
    /// What is idle, and whether it goes back.
    idle: Idle,
    /// In a child of `fork` that has not begun anew: what it places by then, bytes. Else 0.
    anew_at_bytes: AtomicU64,
}

// SAFETY: `work` is reached through `hold`, `try_hold` and `set_work` only, each under the lock.
unsafe impl Sync for Growth {}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct Work {
    atlas: Atlas<'static>,
    pub(crate) machine: Machine<Tail<'static>>,
    pub(crate) classifier: Classifier<'static>,
    /// Pages of the arena before those that are learnt, which are counted from there.
    first: u64,
    /// Pages that it was given, and those that it is to be given before it goes on.
    pub(crate) noted: u64,
    wanted: u64,
    /// Bytes that are expected to be live.
    expected_bytes: u64,
    /// Orders that are to be made.
    orders: Orders,
    /// Size classes whose free units are to be put where they belong, as pages were coded anew.
    rebinned: usize,
    /// How many loads a slice may time.
    pace: Pace,
    /// What placing has to show before it goes on.
    trial: Trial,
    /// Pages that go back to the system, and come again.
    back: Back,
}

/// Orders on their way: one unit size of one core at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    /// The current bases when they were begun, as the classifier counts changes.
    changes: u32,
    /// Live bytes that they are for.
    for_bytes: u64,
    /// Cores and unit sizes that are done; `None` where nothing is on its way.
    done: Option<usize>,
}

/// The work, while the lock is held.
pub(crate) struct Hold<'a> {
    pub(crate) work: &'a mut Work,
    _held: Held<'a>,
}

impl Work {
    /// Nothing is learnt yet; of the arena, pages from `first` on are to be.
    fn new(
        atlas: Atlas<'static>,
        arena: &'static Arena,
        first: u64,
        policy: &Policy,
    ) -> Result<Self, OsError> {
        let overhead = overhead_cycles();
        let before = usize::try_from(first).unwrap_or(usize::MAX);
        let pages_max = arena.pages_max().saturating_sub(before);
        let plan = Plan { pages_max, seed: policy.seed };
        let l2_bytes = usize::try_from(policy.l2_bytes).unwrap_or(1 << 20);
        let tick = atlas.clock_tick_cycles();
        Ok(Self {
            atlas,
            machine: Machine::new(arena, PageAddr(first), l2_bytes, overhead, tick),
            classifier: Classifier::new(atlas, plan)?,
            first,
            noted: 0,
            wanted: 0,
            expected_bytes: 0,
            orders: Orders::default(),
            rebinned: SizeClass::ALL.len(),
            pace: Pace::of(&atlas),
            trial: Trial::default(),
            back: Back::default(),
        })
    }

    /// The page of the arena that is this one of those learnt.
    fn in_arena(&self, page: PageAddr) -> Option<u32> {
        u32::try_from(self.first + page.0).ok()
    }

    /// So many bytes will be live.
    pub(crate) fn expects(&mut self, bytes: u64) {
        self.expected_bytes = bytes;
    }
}

impl Growth {
    /// # Errors
    /// [`InstanceError`] where there is no address space, or the atlas cannot be decoded with.
    pub(crate) fn new(
        atlas: Atlas<'static>,
        arena: &'static Arena,
        settings: &Settings<'_>,
        is_process: bool,
    ) -> Result<Self, InstanceError> {
        let mut work = Work::new(atlas, arena, 0, &settings.policy)?;
        if !is_process {
            // A process opens no file after it began: it is a guest there.
            work.machine = work.machine.with_frames();
        }
        if !settings.cores.is_empty() {
            work.classifier.set_decoding_cores(settings.cores);
        }
        Ok(Self {
            learning: Lock::new(),
            work: UnsafeCell::new(work),
            adding: Lock::new(),
            unknown: [const { AtomicU64::new(0) }; 2],
            rest_until_ns: AtomicU64::new(0),
            epoch_at_ns: Table::zeroed(atlas.cores().len())?,
            has_backlog: AtomicBool::new(true),
            is_full: AtomicBool::new(false),
            is_worth_it: AtomicBool::new(false),
            is_unknown: AtomicBool::new(false),
            retry_at_ns: AtomicU64::new(0),
            retries: AtomicU32::new(0),
            was_shared: AtomicBool::new(false),
            idle: Idle::new(),
            anew_at_bytes: AtomicU64::new(0),
        })
    }

    /// So many bytes were learnt beforehand: they stay, used or not.
    pub(crate) fn keep(&self, bytes: u64) {
        self.idle.keep(bytes);
    }

    /// Runs `work` while nobody else takes memory or address space.
    pub(crate) fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.adding.hold();
        work()
    }

    /// This is a child of `fork`, which is to begin anew when it has placed so much.
    pub(crate) fn forked(&self, start_bytes: u64) {
        self.learning.free_of_lost();
        // Half of a step is taken once more, which changes nothing.
        self.adding.free_of_lost();
        self.is_worth_it.store(false, Ordering::Relaxed);
        self.is_unknown.store(false, Ordering::Relaxed);
        self.was_shared.store(false, Ordering::Relaxed);
        self.retries.store(0, Ordering::Relaxed);
        self.idle.forget();
        self.anew_at_bytes.store(start_bytes.max(1), Ordering::Relaxed);
    }

    /// This process has a child of `fork` now.
    pub(crate) fn has_child(&self) {
        self.was_shared.store(true, Ordering::Relaxed);
        self.has_backlog.store(true, Ordering::Relaxed);
    }

    /// Whether what is known is the parent's.
    fn is_inherited(&self) -> bool {
        self.anew_at_bytes.load(Ordering::Relaxed) > 0
    }

    /// Learns from here on what this says. The lock is held.
    fn set_work(&self, work: Work) {
        // SAFETY: the lock is held, so nobody has a reference. What lay there may be half changed:
        // it is neither read nor dropped.
        unsafe { self.work.get().write(work) };
    }

    /// The work, if nobody else is at it.
    fn try_hold(&self) -> Option<Hold<'_>> {
        let held = self.learning.try_hold()?;
        // SAFETY: the lock is held for as long as the reference lives.
        let work = unsafe { &mut *self.work.get() };
        Some(Hold { work, _held: held })
    }

    /// The work, when nobody else is at it.
    pub(crate) fn hold(&self) -> Hold<'_> {
        let held = self.learning.hold();
        // SAFETY: the lock is held for as long as the reference lives.
        let work = unsafe { &mut *self.work.get() };
        Hold { work, _held: held }
    }
}

/// Cycles that timing nothing takes, as a mean over reads that begin anywhere within a step of the
/// counter. A few microseconds: a common error of all samples does no harm.
fn overhead_cycles() -> f32 {
    const READS: u16 = 256;
    let mut sum = 0_u64;
    for _ in 0..READS {
        let before = clock::start();
        sum += clock::stop().saturating_sub(before).min(1000);
    }
    let mean = u16::try_from(sum / u64::from(READS)).unwrap_or(0);
    f32::from(mean)
}
