//! What a thread does without a block: it counts, begins what is to be begun once for the process, and asks for a block
//! when it has allocated or freed some objects. Nothing here is on the path of a thread that has one.

use crate::blocks::make_block;
use crate::code;
use crate::config::Config;
use crate::counting::{count_one, is_enough};
use crate::front;
use crate::growth::slices::Need;
use crate::instance::Instance;
use crate::instance::process::{instance, of_process};
use crate::memory;
use crate::misuse::misused;
use crate::process::{PROCESS, phase};
use crate::report::{Reason, Tally, Word};
use crate::thread::{self, ThreadSlot, state};
use crate::told::Told;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;
use isochrone_alloc::{SizeClass, Slot};
use isochrone_os::clock;

/// Calls that a thread makes without a block before it gets one: many threads do no more, and a
/// block costs as much as starting one.
const YOUNG_CALLS: u64 = 16;

/// Second-level caches that a program's small objects lie in before pages are learnt. In one they are not waited for.
const WORTH_CACHES: u64 = 1;
/// The same where no gain is promised: of two half stays in one, and learning, which may be in vain, has two and a half
/// present.
const DOUBTFUL_CACHES: u64 = 2;

/// Times what placing begins by that a program asks for, while it has too little in use, until it is left alone for
/// good: 256 MiB. That takes a tenth of a second of nothing but `malloc`, and what it has by then it frees before it
/// asks for more. Counting took 2 to 6 % of such programs until their end.
const SMALL_STARTS: u64 = 256;

/// What a thread without a block does with an object that could be placed.
#[cold]
#[unsafe(link_section = "isochrone_called")]
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

/// Counts an object of a thread that has no state yet, in a process that counts, and begins what is to be begun. False
/// in any other, and then nothing was done.
pub(crate) fn count_on(slot: &ThreadSlot, size: usize) -> bool {
    let counts = slot.state.load(Ordering::Relaxed) == state::ABSENT
        && PROCESS.phase.load(Ordering::Acquire) == phase::COUNTING;
    if counts {
        count_one(slot, size);
        if is_enough() {
            if is_worth_a_start() {
                start(slot);
            } else if stays_small() {
                step_aside();
            }
        }
    }
    counts
}

/// What a thread does that has no state yet.
fn place_first(slot: &ThreadSlot, class: SizeClass, size: usize, one: Tally) -> *mut c_void {
    match PROCESS.phase.load(Ordering::Acquire) {
        phase::COUNTING => _ = count_on(slot, size),
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

/// Whether there is anything to be learnt in an instance: else its tables would lie there for nothing.
fn is_worth_a_start() -> bool {
    let worth = |config: &Config| {
        let caches = if config.promised { WORTH_CACHES } else { DOUBTFUL_CACHES };
        let bytes = config.policy.l2_bytes.saturating_mul(caches);
        config.force || PROCESS.footprint.reaches(bytes)
    };
    PROCESS.config().is_some_and(worth)
}

/// Whether so much was asked for, while so little was in use, that no more is waited for.
fn stays_small() -> bool {
    let start = PROCESS.config().map_or(u64::MAX, |config| config.start_bytes);
    PROCESS.counted_bytes() / SMALL_STARTS >= start
}

/// Leaves everything to the next allocator, since what the program has of small objects lies in a cache.
#[inline(never)]
fn step_aside() {
    let Some(_inside) = PROCESS.room.enter() else { return };
    if PROCESS.phase.load(Ordering::Acquire) == phase::COUNTING {
        PROCESS.delegate(Reason::StaysSmall);
    }
}

/// Learns now and then, in a thread that asks for what could not be placed: for one in 256 of these, since looking
/// whether it is time for a slice takes as long as some objects do.
#[cold]
pub(crate) fn learn_in_time(slot: &ThreadSlot) {
    let before = slot.unplaced.load(Ordering::Relaxed);
    slot.unplaced.store(before.wrapping_add(1), Ordering::Relaxed);
    if before == 0 && slot.state.load(Ordering::Relaxed) == state::ABSENT {
        learn(slot);
    }
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
                front::lead_from_counting();
                match told.config.force {
                    true => instance.begin_placing(),
                    false => {
                        PROCESS.phase.store(phase::LEARNING, Ordering::Release);
                        front::lead_realloc_back();
                    }
                }
            }
            Err(reason) => {
                PROCESS.delegate(reason);
                told.forget_atlas();
            }
        }
        PROCESS.counters().set(Word::StartNs, clock::monotonic_ns().saturating_sub(began));
    });
    // A slice takes less of it.
    inside.give_stack_back();
    code::give_back();
    slot.state.store(state::ABSENT, Ordering::Relaxed);
}

/// The instance. Its tables are larger than what of them is used, so there is none where all of a mapping is present.
fn begun(told: &Told) -> Result<&'static Instance<'static>, Reason> {
    if memory::locks_new_mappings() { Err(Reason::NoMemory) } else { of_process(told) }
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
