//! The life of a process and of its threads: what begins, what ends, what forks.

use crate::config::Pin;
use crate::entry::{Back, Front};
use crate::instance::process::{instance, of_process};
use crate::instance::{Instance, Need};
use crate::misuse::misused;
use crate::process::{LOCAL, PROCESS, lacks_report, phase, report_late};
use crate::report::{Reason, Tally, Word};
use crate::slab::Slab;
use crate::thread::{self, ThreadSlot, state};
use crate::told::Told;
use crate::{filters, fork, front, loading, memory, next, pin};
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use isochrone_alloc::{SizeClass, Slot};
use isochrone_os::clock;

/// Calls that a thread makes without a block before it gets one: many threads do no more, and a
/// block costs as much as starting one.
const YOUNG_CALLS: u64 = 16;
/// Stands for no key.
const NO_KEY: u32 = u32::MAX;

/// The key whose destructor ends a thread's block.
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);
/// Somebody has told the process what to do.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Blocks of threads.
static SLAB: Slab = Slab::new();

/// Tells the process what to do, by the record at `path`. Once, before it has other threads.
/// `placing` are the functions to which calls lead while something is to be placed, and `back` those that take back
/// what may have been placed.
pub(crate) fn begin(path: Option<&CStr>, placing: &Front, back: &Back) {
    if BEGUN.swap(true, Ordering::AcqRel) {
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
    PROCESS.heed(told);
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
    if let Some(instance) = instance().filter(|_| placing)
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
    if let Some(instance) = instance() {
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
        KEY.store(key, Ordering::Release);
    }
    result == 0
}

/// Has this thread's end noticed, or noticed once more.
fn notice_end(block: *mut thread::Thread) -> bool {
    let key = KEY.load(Ordering::Acquire);
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
            SLAB.put(block);
        }
    }
}

/// This process has a child of `fork` now.
pub(crate) fn has_child() {
    if let Some(instance) = instance().filter(|_| !PROCESS.is_over()) {
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
    SLAB.forked();
    if !PROCESS.room.is_closed() {
        // Its number is asked for when it has a report.
        LOCAL.begin(0, config.policy.mode, 0);
        if config.pin != Pin::None {
            let process = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
            pin::begin(config, process, slot.is_bound.load(Ordering::Relaxed));
        }
    }
    if let Some(instance) = instance() {
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
    let Some(instance) = instance() else { return };
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
                instance.take_over();
                match told.config.force {
                    true => instance.begin_placing(),
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
    if memory::locks_new_mappings() { Err(Reason::NoMemory) } else { of_process(told) }
}

/// Gives this thread a block. What libc allocates meanwhile goes to glibc. Out of line, so that what the room needs is
/// not on the stack of what follows.
#[inline(never)]
fn make_block(slot: &ThreadSlot) -> bool {
    let Some(instance) = instance() else { return false };
    let errno = crate::errno::Kept::new();
    slot.state.store(state::BUSY, Ordering::Relaxed);
    let Some(mut inside) = PROCESS.room.wait() else {
        slot.state.store(state::ABSENT, Ordering::Relaxed);
        return false;
    };
    let block = inside.run(|| SLAB.take(instance));
    drop(inside);
    let noticed = block.is_some_and(|block| notice_end(block.as_ptr()));
    drop(errno);
    let Some(block) = block else {
        slot.state.store(state::DELEGATING, Ordering::Relaxed);
        return false;
    };
    if !noticed {
        SLAB.put(block);
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
    let Some(instance) = instance() else { return };
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
