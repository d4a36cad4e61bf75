//! How an allocator gets pages and learns them, a little at a time.
//!
//! Whoever finds that pages are wanted may do a slice of the work, if nobody else is at it: so
//! little and so seldom that all threads together spend no more than a fixed share of one thread's
//! time on this. There is no thread of the library's own: programs count theirs. An allocation
//! never waits for pages to be decoded: where none is ready, some join of which nothing is known.
//! They are decoded all the same, and what is free of them then finds its place.

mod anew;
mod back;
mod idle;
mod pages;
mod trial;
mod vain;

use crate::instance::Instance;
use crate::lock::{Held, Lock};
use crate::process::PROCESS;
use crate::report::{Reason, Word};
use crate::room::Inside;
use crate::settings::{InstanceError, Settings};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use idle::{Back, Idle};
use isochrone_alloc::live::{Arena, Classifier, Event, Machine, Plan, Slice};
use isochrone_alloc::{Mode, Policy, SizeClass, UnitLines};
use isochrone_atlas::Atlas;
use isochrone_os::OsError;
use isochrone_os::clock;
use isochrone_os::reserve::{Stride, Tail};
use isochrone_os::table::Table;
use isochrone_units::{CoreId, PageAddr};
use trial::{Pace, SLICE_NS, Trial};

/// What a slice is given where memory is to come after it.
const SHORT_SLICE_NS: u64 = 20_000;
/// A slice that took longer is counted: the host had taken the core away, or a step is too long.
const LONG_SLICE_NS: u64 = 100_000;
/// An allocating thread spends one part in so many of its time on slices: 3 %.
const INLINE_PARTS: u64 = 33;
/// What a slice is charged at most: whatever it took longer, somebody else had the core or the kernel was finding
/// memory.
const CHARGED_NS: u64 = 2 * LONG_SLICE_NS;
/// Time between two looks at the base of a core that is in use.
const EPOCH_NS: u64 = 100_000_000;
/// Time after which a machine whose bases fitted none of the atlas is asked again: the first time,
/// and twice as long each time after it, up to so often.
const RETRY_NS: u64 = 100_000_000;
const RETRIES_LONGER: u32 = 6;
/// Events handed on between two looks at the clock.
const EVENTS_TOGETHER: u32 = 8;
/// Free units that are put where they belong after a slice, by class.
const REBINNED_UNITS: usize = 64;

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

impl Need {
    /// What of an allocation a slice may take.
    const fn slice_ns(self) -> u64 {
        match self {
            Self::Now => SHORT_SLICE_NS,
            Self::Soon => SLICE_NS,
        }
    }
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

// SAFETY: `work` is reached through `Growth::hold` only, which holds the lock.
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
    pub(crate) fn grow(&self, inside: &mut Inside<'_>, need: Need) {
        let now = clock::monotonic_ns();
        let core = self.current_core();
        self.forgive(now);
        let visits = self.is_epoch_due(core, now);
        let (learns, returns) = (visits || self.wants_work(), self.is_return_due(now));
        let is_due =
            (learns || returns) && now >= self.growth.rest_until_ns.load(Ordering::Relaxed);
        let hold = if is_due { self.growth.try_hold() } else { None };
        let Some(mut hold) = hold else { return };
        inside.run(|| {
            if returns {
                self.return_pages(&mut hold, now.saturating_add(need.slice_ns()));
            }
            if !learns {
                self.end_slice(now);
                return;
            }
            if visits {
                self.ask_visit(&mut hold, core, now);
            }
            let Work { machine, pace, .. } = &mut *hold.work;
            machine.bound(pace.loads_in(need.slice_ns()), need.slice_ns());
            self.slice(&mut hold, need.slice_ns(), Stride::Part);
            // A pool that waits for pages, or has them learnt beforehand, is bound by time alone.
            hold.work.machine.bound(u64::MAX, 0);
            let took = self.end_slice(now);
            self.weigh(&mut hold, took);
        });
    }

    /// A rest after a slice inside of an allocation. What the slice is charged, nanoseconds.
    fn end_slice(&self, begin: u64) -> u64 {
        let end = self.count_slice(begin);
        let took = end.saturating_sub(begin).min(CHARGED_NS);
        self.growth.rest_until_ns.store(end + took * (INLINE_PARTS - 1), Ordering::Relaxed);
        took
    }

    /// Counts what was done from `begin` to now, by the clock of the wall: that of the thread would ask the system.
    /// Gives the time now.
    fn count_slice(&self, begin: u64) -> u64 {
        let end = clock::monotonic_ns();
        let took = end.saturating_sub(begin);
        if let Some(counters) = self.counters() {
            counters.add(Word::Slices, 1);
            counters.add(Word::LongSlices, u64::from(took > LONG_SLICE_NS));
            counters.raise(Word::SliceNsMax, took);
        }
        end
    }

    /// Learns until a page has joined, for a pool that found nothing. False if it is full.
    pub(crate) fn grow_now(&self) -> bool {
        if self.heap().policy().mode.is_oracle() {
            // It has what was measured beforehand.
            return false;
        }
        for _ in 0..POOL_SLICES {
            if self.heap().stats().ready_pages > 0 || !self.wants_work() {
                break;
            }
            self.slice(&mut self.growth.hold(), POOL_SLICE_NS, Stride::Whole);
        }
        self.join_unknown(u64::MAX)
    }

    /// Whether a slice would do something.
    pub(crate) fn wants_work(&self) -> bool {
        let growth = &self.growth;
        !growth.is_unknown.load(Ordering::Relaxed)
            && !self.is_over()
            && self.is_worth_it()
            && (growth.has_backlog.load(Ordering::Relaxed)
                || self.have_come()
                || (self.heap().wants_pages() > 0 && !growth.is_full.load(Ordering::Relaxed)))
    }

    /// Whether anything is to be learnt: of what a second-level cache holds no line is waited for,
    /// so a process that has less in use pays nothing; once so much was in use, for good. A pool was
    /// made to be placed.
    pub(crate) fn is_worth_it(&self) -> bool {
        let worth = &self.growth.is_worth_it;
        if !self.is_process() || worth.load(Ordering::Relaxed) {
            return true;
        }
        if self.growth.is_inherited() {
            return false;
        }
        let l2_bytes = self.heap().policy().l2_bytes;
        if PROCESS.is_learning() {
            // Nobody knows what of it was freed. Once there is something to gain, what is placed counts.
            return PROCESS.counted_bytes() >= l2_bytes;
        }
        let enough = self.heap().live_bytes() >= l2_bytes;
        if enough {
            worth.store(true, Ordering::Relaxed);
        }
        enough
    }

    fn is_epoch_due(&self, core: u16, now: u64) -> bool {
        let at = self.growth.epoch_at_ns.get(usize::from(core));
        at.is_some_and(|at| now >= at.load(Ordering::Relaxed))
            && !self.growth.is_unknown.load(Ordering::Relaxed)
            && !self.is_over()
            && self.is_worth_it()
    }

    /// Has it looked whether this core still has its base.
    fn ask_visit(&self, hold: &mut Hold<'_>, core: u16, now: u64) {
        if self.arena.pages() > 0
            && let Some(core) = self.cores().nth(usize::from(core))
        {
            hold.work.classifier.ask_check(core);
        }
        if let Some(at) = self.growth.epoch_at_ns.get(usize::from(core)) {
            at.store(now + EPOCH_NS, Ordering::Relaxed);
        }
        self.growth.has_backlog.store(true, Ordering::Relaxed);
    }

    /// A slice of learning. False if there is nothing left to do for now.
    pub(crate) fn slice(&self, hold: &mut Hold<'_>, budget_ns: u64, stride: Stride) -> bool {
        let until = clock::monotonic_ns().saturating_add(budget_ns);
        let busy = self.take_events(hold, until)
            || self.make_orders(hold, until)
            || self.take_pages_back(hold, until)
            || self.add_memory(hold, until, stride);
        let left = until.saturating_sub(clock::monotonic_ns());
        let mut more = if busy || left == 0 { true } else { self.learn(hold, left) };
        // New pages first, however often it forks.
        if !more && self.growth.was_shared.swap(false, Ordering::Relaxed) {
            hold.work.classifier.recheck();
            more = true;
        }
        let all_given = hold.work.noted >= self.pages_learnt(hold.work.first);
        let waits = hold.work.orders.done.is_some() || hold.work.classifier.has_events();
        let backlog = more || waits || !all_given;
        self.growth.has_backlog.store(backlog, Ordering::Relaxed);
        self.note_work(hold);
        backlog
    }

    /// Identifies, decodes and confirms. False if there is nothing left to do for now.
    fn learn(&self, hold: &mut Hold<'_>, budget_ns: u64) -> bool {
        self.look_ahead(hold);
        let Work { machine, classifier, .. } = &mut *hold.work;
        let found = classifier.slice(machine, budget_ns);
        self.note_found(found)
    }

    /// Whether there is more to do, by how a slice ended.
    fn note_found(&self, found: Result<Slice, OsError>) -> bool {
        match found {
            Ok(Slice::Paused) => true,
            Ok(Slice::Idle) => {
                self.growth.retries.store(0, Ordering::Relaxed);
                false
            }
            // No base fits, or loads cannot be timed: nothing is to be learnt here for now.
            Ok(Slice::Unknown) | Err(_) => {
                let retries = self.growth.retries.load(Ordering::Relaxed);
                self.growth.retries.store((retries + 1).min(RETRIES_LONGER), Ordering::Relaxed);
                let again = clock::monotonic_ns() + (RETRY_NS << retries);
                self.growth.retry_at_ns.store(again, Ordering::Relaxed);
                self.growth.is_unknown.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Whether distances in memory matter: only where what is live misses the last-level cache.
    pub(crate) fn look_ahead(&self, hold: &mut Hold<'_>) {
        let live = self.heap().live_bytes().max(hold.work.expected_bytes);
        hold.work.classifier.want_memory(live > self.heap().policy().llc_bytes);
    }

    /// Hands decoded pages to the heap. True if there was no time for all.
    pub(crate) fn take_events(&self, hold: &mut Hold<'_>, until: u64) -> bool {
        let mut count = 0;
        while let Some(event) = hold.work.classifier.next_event() {
            match event {
                Event::Ready(page, codes) => {
                    let Some(page) = hold.work.in_arena(page) else { continue };
                    if !self.heap().page_ready(page, codes) && self.heap().recode(page, codes) {
                        hold.work.rebinned = 0;
                    }
                }
                Event::Replaced(page) => {
                    let Some(page) = hold.work.in_arena(page) else { continue };
                    self.heap().demote(page);
                }
            }
            count += 1;
            if count % EVENTS_TOGETHER == 0 && clock::monotonic_ns() >= until {
                return true;
            }
        }
        while let Some(class) = SizeClass::ALL.get(hold.work.rebinned) {
            self.heap().rebin_unknown(*class, REBINNED_UNITS);
            hold.work.rebinned += 1;
            if clock::monotonic_ns() >= until {
                return true;
            }
        }
        false
    }

    /// Gives cores whose base is known their orders, where that has changed or what is
    /// live has grown. True if there was no time for all.
    fn make_orders(&self, hold: &mut Hold<'_>, until: u64) -> bool {
        let Work { classifier, orders, expected_bytes, .. } = &mut *hold.work;
        let changes = classifier.changes();
        if orders.changes != changes || orders.done.is_none() && self.heap().order_due() {
            // A pool that was told what it will hold is not filled by orders for less.
            let for_bytes = self.heap().order_bytes().max(*expected_bytes);
            *orders = Orders { changes, for_bytes, done: Some(0) };
            if self.heap().policy().mode == Mode::NearestParticipant {
                for (place, core) in (0..).zip(self.cores()) {
                    self.heap().take_part(place, &classifier.current_bases(core));
                }
            }
        }
        let units = UnitLines::ALL.len();
        while let Some(done) = orders.done {
            let Some(core) = self.cores().nth(done / units) else {
                self.heap().note_orders(orders.for_bytes);
                orders.done = None;
                break;
            };
            let current = classifier.current_bases(core);
            if !current.is_unknown()
                && let Ok(place) = u16::try_from(done / units)
            {
                let unit = UnitLines::ALL[done % units];
                self.heap().set_bases_for(place, unit, &current, orders.for_bytes);
            }
            orders.done = Some(done + 1);
            if clock::monotonic_ns() >= until {
                return true;
            }
        }
        false
    }

    /// Makes all orders at once.
    pub(crate) fn make_all_orders(&self, hold: &mut Hold<'_>) {
        hold.work.orders.changes = hold.work.classifier.changes().wrapping_sub(1);
        self.make_orders(hold, u64::MAX);
    }

    /// Tells the report what was learnt so far.
    fn note_work(&self, hold: &Hold<'_>) {
        let Some(counters) = self.counters().filter(|_| !self.is_over()) else { return };
        let (learnt, heap) = (hold.work.classifier.stats(), self.heap().stats());
        counters.set(Word::Classified, learnt.ready);
        counters.set(Word::Drift, learnt.moves);
        counters.set(Word::ClassificationNs, learnt.busy_ns);
        counters.set(Word::Demoted, heap.demoted_pages);
        counters.set(Word::AssignedBytes, heap.assigned_bytes);
    }

    /// Why an allocation that was to be placed found nothing.
    pub(crate) fn why_empty(&self) -> Reason {
        if PROCESS.room.is_closed() {
            Reason::Filtered
        } else if self.growth.is_unknown.load(Ordering::Relaxed) {
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
