//! The process's part: what it was told, whether it places, and what it has counted.
//!
//! ```text
//!  EARLY --no configuration--> TRANSPARENT
//!    \---configuration---> COUNTING --enough bytes--> LEARNING --a gain is promised--> PLACING
//!                              \--no atlas, no memory--> DELEGATING <--no base, no gain--/
//!                                                       PLACING --filter, no clock--> CLOSED
//! ```
//!
//! A program that allocates little never gets beyond counting, so it pays for reading a record and no more. One that
//! gains nothing never gets beyond learning, unless it is forced to place: all that it allocates is the next
//! allocator's, and a bounded time is spent on its memory. Nothing here is on the path of a thread that has a block.
//! Every word is atomic and zero-valid, so that calls which come before any constructor find a state that delegates.

use crate::config::{Config, Pin};
use crate::counters::Counters;
use crate::entry::{Back, Front};
use crate::instance::{Instance, Need};
use crate::range::{Range, Wrong};
use crate::report::{Reason, Tally, Word};
use crate::room::{Inside, Room};
use crate::slab::Slab;
use crate::thread::{self, ThreadSlot, state};
use crate::told::Told;
use crate::{filters, fork, front, loading, memory, next, pin};
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use isochrone_alloc::{Misuse, SizeClass, Slot};
use isochrone_os::clock;

/// Phases of a process.
mod phase {
    pub(super) const EARLY: u8 = 0;
    pub(super) const TRANSPARENT: u8 = 1;
    pub(super) const COUNTING: u8 = 2;
    /// Pages are learnt, and nothing is placed.
    pub(super) const LEARNING: u8 = 3;
    pub(super) const PLACING: u8 = 4;
    pub(super) const DELEGATING: u8 = 5;
    /// Who has a block hands out again what is placed; all others leave everything to glibc.
    pub(super) const CLOSED: u8 = 6;

    /// Whether threads without a block only count.
    #[inline(always)]
    pub(super) const fn only_counts(phase: u8) -> bool {
        phase == COUNTING || phase == LEARNING
    }
}

/// Calls that a thread makes without a block before it gets one: many threads do no more, and a
/// block costs as much as starting one.
const YOUNG_CALLS: u64 = 16;
/// Stands for no key.
const NO_KEY: u32 = u32::MAX;

/// The process.
#[derive(Debug)]
pub(crate) struct Process {
    phase: AtomicU8,
    /// Why the process delegates, where it does: an index of `Reason::ALL`.
    reason: AtomicU8,
    told: AtomicPtr<Told>,
    counters: AtomicPtr<Counters>,
    instance: AtomicPtr<Instance<'static>>,
    /// Placeable bytes that were counted and not placed.
    counted_bytes: AtomicU64,
    /// The key whose destructor ends a thread's block.
    key: AtomicU32,
    /// Somebody has told it what to do.
    begun: AtomicBool,
    /// Where the system is asked for what glibc's allocator does not ask.
    pub(crate) room: Room,
    /// Blocks of threads.
    pub(crate) slab: Slab,
}

/// The one process.
pub(crate) static PROCESS: Process = Process {
    phase: AtomicU8::new(phase::EARLY),
    reason: AtomicU8::new(0),
    told: AtomicPtr::new(ptr::null_mut()),
    counters: AtomicPtr::new(ptr::null_mut()),
    instance: AtomicPtr::new(ptr::null_mut()),
    counted_bytes: AtomicU64::new(0),
    key: AtomicU32::new(NO_KEY),
    begun: AtomicBool::new(false),
    room: Room::new(),
    slab: Slab::new(),
};

/// The process's arena, which every free looks at first.
pub(crate) static ARENA: Range = Range::new();

/// Counters of a process that has no report.
static LOCAL: Counters = Counters::new();

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

    /// What the process was told.
    pub(crate) fn told(&self) -> Option<&'static Told> {
        // SAFETY: null, or written before it was stored and never changed or unmapped.
        unsafe { self.told.load(Ordering::Acquire).as_ref() }
    }

    /// The record of it.
    pub(crate) fn config(&self) -> Option<&'static Config> {
        self.told().map(|told| &told.config)
    }

    /// The instance that the process's memory is placed in, once it places.
    pub(crate) fn instance(&self) -> Option<&'static Instance<'static>> {
        // SAFETY: null, or an instance that was complete before it was stored and is never freed.
        unsafe { self.instance.load(Ordering::Acquire).as_ref() }
    }

    /// Leaves everything to the next allocator from now on, and counts nothing any more; the caller's own state is
    /// its own to change.
    pub(crate) fn delegate(&self, reason: Reason) {
        self.set_aside(reason, phase::DELEGATING);
        front::lead_on();
    }

    fn set_aside(&self, reason: Reason, phase: u8) {
        self.reason.store(reason as u8, Ordering::Relaxed);
        self.counters().set(Word::Aside, reason as u64 + 1);
        self.phase.store(phase, Ordering::Release);
        if !self.has_placed() {
            loading::nothing_is_placed();
        }
    }

    /// Places from now on what can be placed. Once, in the room.
    pub(crate) fn begin_placing(&self, instance: &'static Instance<'static>) {
        instance.publish();
        // Before anybody is given a line of it.
        front::lead_back();
        next::keep_memory();
        self.phase.store(phase::PLACING, Ordering::Release);
    }

    /// Whether any line may have been handed out.
    pub(crate) fn has_placed(&self) -> bool {
        ARENA.is_published()
    }

    /// Whether pages are learnt, and nothing is placed.
    pub(crate) fn is_learning(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == phase::LEARNING
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

    fn reason(&self) -> Reason {
        let index = usize::from(self.reason.load(Ordering::Relaxed));
        Reason::ALL.get(index).copied().unwrap_or(Reason::NoAtlas)
    }
}

/// Tells the process what to do, by the record at `path`. Once, before it has other threads.
/// `placing` are the functions to which calls lead while something is to be placed, and `back` those that take back
/// what may have been placed.
pub(crate) fn begin(path: Option<&CStr>, placing: &Front, back: &Back) {
    if PROCESS.begun.swap(true, Ordering::AcqRel) {
        return;
    }
    next::resolve();
    front::lead_back_on(back);
    filters::resolve();
    loading::resolve();
    let told = path.and_then(|path| Told::read(path, filters::allow));
    let Some(told) = told.filter(|_| !PROCESS.room.is_closed()) else {
        PROCESS.room.close();
        front::lead_on();
        PROCESS.phase.store(phase::TRANSPARENT, Ordering::Release);
        loading::nothing_is_placed();
        return;
    };
    let began = clock::monotonic_ns();
    let config = &told.config;
    let mode = config.policy.mode;
    let process = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    if !config.reports.is_empty()
        && let Some(report) = memory::map_report(&config.reports, process, began)
    {
        PROCESS.count_in(report);
    }
    PROCESS.counters().begin(process, mode, 0);
    pin::begin(config, process, false);
    PROCESS.told.store(ptr::from_ref(told).cast_mut(), Ordering::Release);
    if told.atlas.is_empty() {
        PROCESS.delegate(Reason::NoAtlas);
    } else if prepare_threads() && fork::prepare() {
        PROCESS.phase.store(phase::COUNTING, Ordering::Release);
        front::lead_to(placing);
    } else {
        PROCESS.delegate(Reason::NoMemory);
    }
    PROCESS.counters().set(Word::StartupNs, clock::monotonic_ns().saturating_sub(began));
}

/// The process ends by `exit`: what this thread has not added yet, it adds now.
pub fn end() {
    let slot = thread::slot();
    thread::with_block(slot, |thread| thread.count(PROCESS.counters()));
    if PROCESS.config().is_none() {
        return;
    }
    count_alone(slot);
    if let Some(mut inside) = PROCESS.room.wait() {
        report_late(&mut inside);
        pin::end();
        inside.run(note_live);
    }
    PROCESS.counters().set(Word::Ended, 1);
}

/// Says what is live at the end, if anybody will read it.
fn note_live() {
    let placing = PROCESS.phase.load(Ordering::Acquire) == phase::PLACING;
    if let Some(instance) = PROCESS.instance().filter(|_| placing)
        && !ptr::eq(PROCESS.counters(), &LOCAL)
    {
        instance.note_live(PROCESS.counters());
    }
}

/// Asks the system for nothing any more that glibc's allocator does not ask for, from when this
/// returns: what is placed stays, and is handed out again; nothing is learnt, bound or reported.
pub(crate) fn close() {
    if PROCESS.room.is_closed() {
        return;
    }
    PROCESS.room.close();
    if let Some(instance) = PROCESS.instance() {
        instance.wait_for_memory();
    }
    match PROCESS.phase.load(Ordering::Acquire) {
        phase::COUNTING | phase::LEARNING => PROCESS.delegate(Reason::Filtered),
        // What threads have at hand is all that they get where glibc can have no memory.
        phase::PLACING => PROCESS.set_aside(Reason::Filtered, phase::CLOSED),
        _ => {}
    }
}

/// Makes the key whose destructor sees a thread end.
fn prepare_threads() -> bool {
    let mut key = 0;
    // SAFETY: writes one key to a local; the destructor is a function that is never unloaded.
    let result = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
    if result == 0 {
        PROCESS.key.store(key, Ordering::Release);
    }
    result == 0
}

/// Has this thread's end noticed, or noticed once more.
fn notice_end(block: *mut thread::Thread) -> bool {
    let key = PROCESS.key.load(Ordering::Acquire);
    // SAFETY: the key was made in `prepare_threads` and is never deleted; the value is not read.
    key != NO_KEY && unsafe { libc::pthread_setspecific(key, block.cast()) } == 0
}

/// Ends a thread's block, in the last round of key destructors: destructors of other keys may
/// allocate and free in all rounds before (POSIX, pthread_key_create).
extern "C" fn thread_ends(block: *mut c_void) {
    const ROUNDS: u32 = 4; // PTHREAD_DESTRUCTOR_ITERATIONS of glibc
    let slot = thread::slot();
    let block = block.cast::<thread::Thread>();
    let ended = thread::with_block(slot, |thread| {
        thread.own.rounds += 1;
        if thread.own.rounds < ROUNDS && notice_end(block) {
            return false;
        }
        thread.retire();
        true
    });
    if ended == Some(true) {
        slot.state.store(state::DEAD, Ordering::Relaxed);
        if let Some(block) = ptr::NonNull::new(block) {
            PROCESS.slab.put(block);
        }
    }
}

/// This process has a child of `fork` now.
pub(crate) fn has_child() {
    if let Some(instance) = PROCESS.instance().filter(|_| !PROCESS.is_over()) {
        instance.growth.has_child();
    }
}

/// This is a child of `fork` now, with one thread.
pub(crate) fn forked() {
    let slot = thread::slot();
    // What the parent's threads had counted is the parent's.
    LOCAL.clear();
    PROCESS.count_in(&LOCAL);
    slot.alone.clear();
    PROCESS.counted_bytes.store(0, Ordering::Relaxed);
    let Some(config) = PROCESS.config() else { return };
    // Who was about to start begins again: nobody had a line of it.
    PROCESS.room.forked();
    PROCESS.slab.forked();
    if !PROCESS.room.is_closed() {
        // Its number is asked for when it has a report.
        LOCAL.begin(0, config.policy.mode, 0);
        if config.pin != Pin::None {
            let process = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
            pin::begin(config, process, slot.is_bound.load(Ordering::Relaxed));
        }
    }
    if let Some(instance) = PROCESS.instance() {
        if PROCESS.is_over() {
            LOCAL.set(Word::Aside, PROCESS.reason() as u64 + 1);
        } else {
            instance.forked(&LOCAL, config.start_bytes);
        }
        // Not where a signal came in between: then what it counted last counts twice.
        if thread::with_block(slot, thread::Thread::forked).is_some() {
            LOCAL.add(Word::Threads, 1);
        }
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

fn lacks_report() -> bool {
    let reports = PROCESS.config().is_some_and(|config| !config.reports.is_empty());
    reports && ptr::eq(PROCESS.counters(), &LOCAL)
}

/// What a thread without a block does with an object that could be placed.
#[cold]
pub(crate) fn place_without_block(slot: &ThreadSlot, class: SizeClass, size: usize) -> *mut c_void {
    let one = Tally { objects: 1, bytes: size as u64 };
    match slot.state.load(Ordering::Relaxed) {
        state::BUSY => PROCESS.counters().delegated(Reason::Nested, one),
        state::DEAD => PROCESS.counters().delegated(Reason::DeadThread, one),
        state::DELEGATING => _ = count_one(slot, size),
        _ => return place_first(slot, class, size, one),
    }
    ptr::null_mut()
}

/// What a thread does that has no state yet.
fn place_first(slot: &ThreadSlot, class: SizeClass, size: usize, one: Tally) -> *mut c_void {
    match PROCESS.phase.load(Ordering::Acquire) {
        phase::COUNTING => {
            count_one(slot, size);
            if is_enough() {
                start(slot);
            }
        }
        phase::LEARNING if count_one(slot, size) => learn(slot),
        phase::PLACING => {
            if slot.alone.asks(YOUNG_CALLS) && make_block(slot) {
                return thread::with_block(slot, |thread| thread.take(class, size))
                    .unwrap_or(ptr::null_mut());
            }
            // For all at once: it may end before it has a block to count in.
            PROCESS.counters().delegated(Reason::BeforeStart, one);
        }
        phase::DELEGATING | phase::CLOSED => {
            slot.state.store(state::DELEGATING, Ordering::Relaxed);
            count_one(slot, size);
        }
        phase::TRANSPARENT => slot.state.store(state::DELEGATING, Ordering::Relaxed),
        _ => {}
    }
    ptr::null_mut()
}

/// Whether a thread without a block only counts, and everything goes to glibc.
#[inline(always)]
pub(crate) fn only_counts(slot: &ThreadSlot) -> bool {
    let state = slot.state.load(Ordering::Relaxed);
    state == state::DELEGATING
        || state == state::ABSENT && phase::only_counts(PROCESS.phase.load(Ordering::Relaxed))
}

/// Counts a placeable object that goes to glibc, for the thread and now and then for all. True if it was for all.
fn count_one(slot: &ThreadSlot, size: usize) -> bool {
    let is_full = !slot.alone.count(size);
    if is_full {
        count_alone(slot);
        slot.alone.count(size);
    }
    is_full
}

#[inline(never)]
fn count_alone(slot: &ThreadSlot) {
    let tally = slot.alone.take();
    PROCESS.counted_bytes.fetch_add(tally.bytes, Ordering::Relaxed);
    let reason = match PROCESS.phase.load(Ordering::Acquire) {
        phase::DELEGATING | phase::CLOSED => PROCESS.reason(),
        phase::COUNTING | phase::PLACING => Reason::BeforeStart,
        phase::LEARNING => Reason::Learning,
        _ => return,
    };
    PROCESS.counters().delegated(reason, tally);
    if is_enough()
        && lacks_report()
        && let Some(mut inside) = PROCESS.room.enter()
    {
        report_late(&mut inside);
    }
}

fn is_enough() -> bool {
    let needed = PROCESS.config().map_or(u64::MAX, |config| config.start_bytes);
    PROCESS.counted_bytes() >= needed
}

/// Learns for a slice, if it is time for one, while nothing is placed.
#[inline(never)]
fn learn(slot: &ThreadSlot) {
    let Some(instance) = PROCESS.instance() else { return };
    let Some(mut inside) = PROCESS.room.enter() else { return };
    slot.state.store(state::BUSY, Ordering::Relaxed);
    instance.begin_anew(&mut inside, PROCESS.counters());
    instance.grow(&mut inside, Need::Soon);
    slot.state.store(state::ABSENT, Ordering::Relaxed);
}

/// Opens the atlas and reserves memory, in the first thread that finds that it is time.
#[inline(never)]
fn start(slot: &ThreadSlot) {
    let Some(mut inside) = PROCESS.room.enter() else { return };
    if PROCESS.phase.load(Ordering::Acquire) != phase::COUNTING {
        return;
    }
    let Some(told) = PROCESS.told() else { return };
    slot.state.store(state::BUSY, Ordering::Relaxed);
    inside.run(|| {
        let began = clock::monotonic_ns();
        match begun(told) {
            Ok(instance) => {
                PROCESS.instance.store(ptr::from_ref(instance).cast_mut(), Ordering::Release);
                match told.config.force {
                    true => PROCESS.begin_placing(instance),
                    false => PROCESS.phase.store(phase::LEARNING, Ordering::Release),
                }
            }
            Err(reason) => {
                PROCESS.delegate(reason);
                told.forget_atlas();
            }
        }
        PROCESS.counters().set(Word::StartNs, clock::monotonic_ns().saturating_sub(began));
    });
    slot.state.store(state::ABSENT, Ordering::Relaxed);
}

/// The instance. Its tables are larger than what of them is used, so there is none where all of a mapping is present.
fn begun(told: &Told) -> Result<&'static Instance<'static>, Reason> {
    if memory::locks_new_mappings() { Err(Reason::NoMemory) } else { Instance::of_process(told) }
}

/// Gives this thread a block. What libc allocates meanwhile goes to glibc. Out of line, so that what the room needs is
/// not on the stack of what follows.
#[inline(never)]
fn make_block(slot: &ThreadSlot) -> bool {
    let Some(instance) = PROCESS.instance() else { return false };
    let errno = crate::errno::Kept::new();
    slot.state.store(state::BUSY, Ordering::Relaxed);
    let Some(mut inside) = PROCESS.room.wait() else {
        slot.state.store(state::ABSENT, Ordering::Relaxed);
        return false;
    };
    let block = inside.run(|| PROCESS.slab.take(instance));
    drop(inside);
    let noticed = block.is_some_and(|block| notice_end(block.as_ptr()));
    drop(errno);
    let Some(block) = block else {
        slot.state.store(state::DELEGATING, Ordering::Relaxed);
        return false;
    };
    if !noticed {
        PROCESS.slab.put(block);
        slot.state.store(state::DELEGATING, Ordering::Relaxed);
        return false;
    }
    count_alone(slot);
    PROCESS.counters().add(Word::Threads, 1);
    slot.state.store(block.as_ptr(), Ordering::Relaxed);
    true
}

/// Frees a slot without a block: straight to its bin, where any thread may put it.
#[cold]
pub(crate) fn release_without_block(slot: &ThreadSlot, freed: Slot) {
    let Some(instance) = PROCESS.instance() else { return };
    if slot.state.load(Ordering::Relaxed) == state::ABSENT
        && slot.alone.asks(YOUNG_CALLS)
        && make_block(slot)
        && thread::with_block(slot, |thread| thread.put(freed)).is_some()
    {
        return;
    }
    if let Err(misuse) = instance.heap().put_back(freed) {
        misused(misuse);
    }
}

/// Ends the process for a free of what the program does not have, as glibc does and in its words.
#[cold]
#[inline(never)]
pub(crate) fn freed_wrongly(wrong: Wrong) -> ! {
    die(match wrong {
        Wrong::Pointer => b"free(): invalid pointer\n",
        Wrong::Freed => b"free(): double free detected\n",
    })
}

/// The same for `realloc`.
#[cold]
#[inline(never)]
pub(crate) fn reallocated_wrongly() -> ! {
    die(b"realloc(): invalid pointer\n")
}

/// The heap refuses a slot that the program had: its tables were overwritten, or given back while
/// this thread was at it.
#[cold]
#[inline(never)]
pub(crate) fn misused(misuse: Misuse) {
    if PROCESS.is_over() {
        return;
    }
    freed_wrongly(match misuse {
        Misuse::Foreign | Misuse::Inside => Wrong::Pointer,
        Misuse::DoubleFree | Misuse::Overlap => Wrong::Freed,
    })
}

/// Says one fixed line and ends the process as `abort` does.
pub fn die(text: &'static [u8]) -> ! {
    // SAFETY: so many bytes can be read. Nobody can be told that it could not be said.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    // SAFETY: takes nothing and does not return.
    unsafe { libc::abort() }
}
