//! How an allocator gets pages and learns them, a little at a time.
//!
//! Whoever finds that pages are wanted may do a slice of the work, if nobody else is at it: an
//! allocating thread so little and so seldom that it spends no more than a fixed share of its time
//! on this, or the process's classifying thread (`helper`). An allocation never waits for pages to
//! be decoded: where none is ready, some join of which nothing is known. They are decoded all the
//! same, and what is free of them then finds its place.

use crate::instance::{Instance, InstanceError, Settings};
use crate::lock::{Held, Lock};
use crate::process;
use crate::report::{Reason, Word};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use isochrone_alloc::live::{Arena, Classifier, Event, Machine, Plan, Slice};
use isochrone_alloc::{Mode, PageCodes, SizeClass};
use isochrone_atlas::Atlas;
use isochrone_os::clock;
use isochrone_os::table::Table;
use isochrone_units::{CoreId, PAGE_BYTES};

/// Time that a slice inside of an allocation is given; its last step may add some microseconds.
const SLICE_NS: u64 = 80_000;
/// An allocating thread spends one part in so many of its time on slices.
const INLINE_PARTS: u64 = 8;
/// Time between two looks at the base of a core that is in use.
const EPOCH_NS: u64 = 100_000_000;
/// Time after which a machine whose bases fitted none of the atlas is asked again.
const RETRY_NS: u64 = 1_000_000_000;
/// Pages that join together without being known.
const JOINED_PAGES: u64 = 16;
/// Free units that are put where they belong after a slice, by class.
const REBINNED_UNITS: usize = 64;
/// Pages that the classifier is given together, and those under way below which it gets more.
const STEP_PAGES: u64 = 512;
const UNDER_WAY_PAGES: u64 = 64;

/// Slices of a pool that found nothing, and the time that each is given.
const POOL_SLICES: u32 = 64;
const POOL_SLICE_NS: u64 = 1_000_000;

/// How much pages are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// An allocation has found nothing.
    Now,
    /// There may be some to prepare.
    Soon,
}

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
    /// No base of this machine's is known, until the time that follows.
    is_unknown: AtomicBool,
    retry_at_ns: AtomicU64,
}

// SAFETY: `work` is reached through `Growth::hold` only, which holds the lock.
unsafe impl Sync for Growth {}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) machine: Machine<'static>,
    pub(crate) classifier: Classifier<'static>,
    /// Pages that it was given.
    pub(crate) noted: u64,
}

/// The work, while the lock is held.
pub(crate) struct Hold<'a> {
    pub(crate) work: &'a mut Work,
    _held: Held<'a>,
}

impl Growth {
    /// # Errors
    /// [`InstanceError`] where there is no address space, or the atlas cannot be decoded with.
    pub(crate) fn new(
        atlas: Atlas<'static>,
        arena: &'static Arena,
        settings: &Settings<'_>,
    ) -> Result<Self, InstanceError> {
        let plan = Plan { pages_max: arena.pages_max(), seed: settings.policy.seed };
        let l2_bytes = usize::try_from(settings.policy.l2_bytes).unwrap_or(1 << 20);
        let tick = atlas.clock_tick_cycles();
        let machine = Machine::new(arena, l2_bytes, overhead_cycles(), tick);
        let mut classifier = Classifier::new(atlas, plan)?;
        if !settings.cores.is_empty() {
            classifier.set_judges(settings.cores);
        }
        Ok(Self {
            learning: Lock::new(),
            work: UnsafeCell::new(Work { machine, classifier, noted: 0 }),
            adding: Lock::new(),
            unknown: [const { AtomicU64::new(0) }; 2],
            rest_until_ns: AtomicU64::new(0),
            epoch_at_ns: Table::zeroed(atlas.cores().len())?,
            has_backlog: AtomicBool::new(true),
            is_full: AtomicBool::new(false),
            is_unknown: AtomicBool::new(false),
            retry_at_ns: AtomicU64::new(0),
        })
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

impl Instance<'_> {
    /// Does a piece of what is due, in a thread that is allocating.
    pub(crate) fn grow(&self, need: Need) {
        let now = clock::monotonic_ns();
        let core = self.current_core();
        self.forgive(now);
        if self.is_epoch_due(core, now)
            && let Some(mut hold) = self.growth.try_hold()
        {
            self.look_at_base(&mut hold, core, now);
        }
        let wanted = self.wants_work();
        if wanted && self.is_process() && process::has_helper(self) {
            process::call_helper();
        } else if wanted
            && now >= self.growth.rest_until_ns.load(Ordering::Relaxed)
            && let Some(mut hold) = self.growth.try_hold()
        {
            self.slice(&mut hold, SLICE_NS);
            let end = clock::monotonic_ns();
            let rest = end.saturating_sub(now) * (INLINE_PARTS - 1);
            self.growth.rest_until_ns.store(end + rest, Ordering::Relaxed);
            if let Some(counters) = self.counters() {
                counters.add(Word::Slices, 1);
                counters.raise(Word::SliceNsMax, end.saturating_sub(now));
            }
        }
        if need == Need::Now {
            self.join_unknown();
        }
    }

    /// Learns until a page has joined, for a pool that found nothing. False if it is full.
    pub(crate) fn grow_now(&self) -> bool {
        if self.heap().policy().mode == Mode::Oracle {
            // It has what was measured beforehand.
            return false;
        }
        for _ in 0..POOL_SLICES {
            if self.heap().stats().ready_pages > 0 || !self.wants_work() {
                break;
            }
            self.slice(&mut self.growth.hold(), POOL_SLICE_NS);
        }
        self.join_unknown()
    }

    /// A base that fitted nothing may be another one by now.
    fn forgive(&self, now: u64) {
        let growth = &self.growth;
        if growth.is_unknown.load(Ordering::Relaxed)
            && now >= growth.retry_at_ns.load(Ordering::Relaxed)
        {
            growth.is_unknown.store(false, Ordering::Relaxed);
            growth.has_backlog.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a slice would do something.
    pub(crate) fn wants_work(&self) -> bool {
        let growth = &self.growth;
        !growth.is_unknown.load(Ordering::Relaxed)
            && (growth.has_backlog.load(Ordering::Relaxed)
                || (self.heap().wants_pages() > 0 && !growth.is_full.load(Ordering::Relaxed)))
    }

    fn is_epoch_due(&self, core: u16, now: u64) -> bool {
        let at = self.growth.epoch_at_ns.get(usize::from(core));
        at.is_some_and(|at| now >= at.load(Ordering::Relaxed))
            && !self.growth.is_unknown.load(Ordering::Relaxed)
    }

    /// Looks whether this core still wears its base, and whether orders are out of date.
    fn look_at_base(&self, hold: &mut Hold<'_>, core: u16, now: u64) {
        let Work { machine, classifier, .. } = &mut *hold.work;
        let epoch = classifier.check(machine);
        let lost = epoch.is_ok_and(|epoch| epoch.lost);
        if lost && self.arena.pages() > 0 {
            // Loads that cannot be timed now may be timed at the next epoch.
            let _ = classifier.identify(machine);
        }
        self.wear(hold);
        self.take_events(hold);
        if let Some(at) = self.growth.epoch_at_ns.get(usize::from(core)) {
            at.store(now + EPOCH_NS, Ordering::Relaxed);
        }
        self.growth.has_backlog.store(true, Ordering::Relaxed);
        self.note_work(hold);
    }

    /// A slice of decoding. False if there is nothing left to do for now.
    pub(crate) fn slice(&self, hold: &mut Hold<'_>, budget_ns: u64) -> bool {
        self.add_memory(hold);
        let Work { machine, classifier, .. } = &mut *hold.work;
        let more = match classifier.slice(machine, budget_ns) {
            Ok(Slice::Paused) => true,
            Ok(Slice::Idle) => false,
            Ok(Slice::Stranger(_)) => {
                let found = classifier.identify(machine);
                self.wear(hold);
                found.is_ok()
            }
            // No base fits, or loads cannot be timed: nothing is to be learnt here.
            Ok(Slice::Unknown) | Err(_) => {
                let again = clock::monotonic_ns() + RETRY_NS;
                self.growth.retry_at_ns.store(again, Ordering::Relaxed);
                self.growth.is_unknown.store(true, Ordering::Relaxed);
                false
            }
        };
        let all_given = hold.work.noted >= self.arena.pages() as u64;
        self.growth.has_backlog.store(more || !all_given, Ordering::Relaxed);
        self.take_events(hold);
        if self.heap().order_due() {
            self.wear(hold);
        }
        self.note_work(hold);
        more
    }

    /// Gives the classifier its next pages, and takes more memory where all of it is decoded. It
    /// is given few pages at a time, so that these become known before the next are begun.
    fn add_memory(&self, hold: &mut Hold<'_>) {
        let Work { machine, classifier, noted } = &mut *hold.work;
        let under_way = noted.saturating_sub(classifier.stats().ready);
        if under_way >= UNDER_WAY_PAGES {
            return;
        }
        if *noted >= self.arena.pages() as u64 && self.heap().wants_pages() > 0 {
            let _held = self.growth.adding.hold();
            self.extend();
        }
        let end = (self.arena.pages() as u64).min(*noted + STEP_PAGES);
        if let Ok(pages) = usize::try_from(end)
            && end > *noted
        {
            classifier.add(machine, pages);
            *noted = end;
        }
    }

    /// One step of the arena; the lock is held. False if there is none.
    fn extend(&self) -> bool {
        let found = match self.arena.grow() {
            Ok(Some(_)) => true,
            Ok(None) | Err(_) => false,
        };
        self.growth.is_full.store(!found, Ordering::Relaxed);
        if let Some(counters) = self.counters() {
            counters.set(Word::ArenaBytes, (self.arena.pages() * PAGE_BYTES) as u64);
        }
        found
    }

    /// Lets pages join of which nothing is known. False if there are none left.
    pub(crate) fn join_unknown(&self) -> bool {
        let _held = self.growth.adding.hold();
        if self.heap().stats().ready_pages > 0 {
            return true;
        }
        // A process is better served by glibc then. A pool has nothing else.
        if self.is_process() && self.growth.is_unknown.load(Ordering::Relaxed) {
            return false;
        }
        let [first, end] = self.growth.unknown.each_ref().map(|at| at.load(Ordering::Relaxed));
        let (mut at, mut end, mut joined) = (first, end, 0);
        while joined < JOINED_PAGES {
            if at == end {
                let before = self.arena.pages() as u64;
                if !self.extend() {
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

    /// Hands decoded pages to the heap.
    pub(crate) fn take_events(&self, hold: &mut Hold<'_>) {
        let mut recoded = false;
        while let Some(event) = hold.work.classifier.next_event() {
            match event {
                Event::Ready(page, codes) => {
                    let Ok(page) = u32::try_from(page.0) else { continue };
                    if !self.heap().page_ready(page, codes) {
                        recoded = self.heap().recode(page, codes) || recoded;
                    }
                }
                Event::Replaced(page) => {
                    let Ok(page) = u32::try_from(page.0) else { continue };
                    self.heap().demote(page);
                }
            }
        }
        if recoded {
            for class in SizeClass::ALL {
                self.heap().rebin_unknown(class, REBINNED_UNITS);
            }
        }
    }

    /// Gives every core whose base is known its orders.
    pub(crate) fn wear(&self, hold: &Hold<'_>) {
        for (place, core) in (0_u16..).zip(self.cores()) {
            let worn = hold.work.classifier.worn(core);
            if !worn.is_unknown() {
                self.heap().wear(place, &worn);
            }
        }
    }

    /// Tells the report what was learnt so far.
    fn note_work(&self, hold: &Hold<'_>) {
        let Some(counters) = self.counters() else { return };
        let (learnt, heap) = (hold.work.classifier.stats(), self.heap().stats());
        counters.set(Word::Classified, learnt.ready);
        counters.set(Word::Drift, learnt.moves);
        counters.set(Word::ClassificationNs, learnt.busy_ns);
        counters.set(Word::Demoted, heap.demoted_pages);
        counters.set(Word::AssignedBytes, heap.assigned_bytes);
    }

    /// Why an allocation that was to be placed found nothing.
    pub(crate) fn why_empty(&self) -> Reason {
        if self.growth.is_unknown.load(Ordering::Relaxed) {
            Reason::UnknownBase
        } else {
            Reason::ArenaFull
        }
    }

    /// The cores of the atlas, in its order.
    fn cores(&self) -> impl Iterator<Item = CoreId> + '_ {
        self.atlas().cores()
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
