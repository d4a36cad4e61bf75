//! An object comes and goes: by the block of the thread that runs, and without one where it has none. What is on the
//! path of every object calls nothing.

use crate::counting::only_counts;
use crate::process::PROCESS;
use crate::report::Reason;
use crate::thread::{Entered, ThreadSlot, slot, state, with_block};
use crate::without_block;
use core::ffi::c_void;
use core::sync::atomic::Ordering;
use isochrone_alloc::{SizeClass, Slot};

/// What can be done with an object without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtHand {
    /// A slot near the core that runs this thread.
    Slot(*mut c_void),
    /// It is counted, and for glibc.
    Counted,
    Nothing,
}

/// Does what can be done without a call.
#[inline(always)]
pub(crate) fn place_at_hand(class: SizeClass, size: usize) -> AtHand {
    let slot = slot();
    match Entered::enter(slot) {
        Some(mut entered) => {
            let found = entered.thread().take_at_hand(class, size);
            found.map_or(AtHand::Nothing, AtHand::Slot)
        }
        None if only_counts(slot) && slot.alone.count(size) => AtHand::Counted,
        None => AtHand::Nothing,
    }
}

/// Counts an object in a thread's word alone; false where there is more to be done, and then nothing was. Of a thread
/// that ends, or is in a call already, what is counted so has the others' reason.
#[inline(always)]
pub(crate) fn count_at_hand(size: usize) -> bool {
    slot().alone.count(size)
}

/// Does what else there is to be done for an object that is only counted. False where more than that is due by now, and
/// then nothing was done.
pub(crate) fn count_on(size: usize) -> bool {
    without_block::count_on(slot(), size)
}

/// The same, wherever it comes from. Null where it is left to glibc.
pub(crate) fn place(class: SizeClass, size: usize) -> *mut c_void {
    let slot = slot();
    if PROCESS.is_over() {
        step_aside(slot);
    }
    match with_block(slot, |thread| thread.take(class, size)) {
        Some(found) => found,
        None => without_block::place_without_block(slot, class, size),
    }
}

/// Frees a slot of a class of the process's arena where this thread keeps every slot and has room; false
/// where not, and then nothing was done.
#[inline(always)]
pub(crate) fn keep_any(freed: Slot, class: SizeClass) -> bool {
    Entered::enter(slot()).is_some_and(|mut entered| entered.thread().keep_any(freed, class))
}

/// Frees a slot of the process's arena where this thread can keep it; false where it cannot, and
/// then nothing was done.
#[inline(always)]
pub(crate) fn keep(freed: Slot) -> bool {
    Entered::enter(slot()).is_some_and(|mut entered| entered.thread().keep(freed))
}

/// Frees a slot of the process's arena. Where nothing is placed any more it is nobody's from now on.
pub(crate) fn release(freed: Slot) {
    let slot = slot();
    if PROCESS.is_over() {
        return step_aside(slot);
    }
    if with_block(slot, |thread| thread.put(freed)).is_none() {
        without_block::release_without_block(slot, freed);
    }
}

/// Nothing is placed any more: this thread leaves everything to glibc, and what it has at hand is
/// nobody's.
#[cold]
#[inline(never)]
fn step_aside(slot: &ThreadSlot) {
    if with_block(slot, |thread| thread.leave_for_good(PROCESS.counters())).is_some() {
        slot.state.store(state::DELEGATING, Ordering::Relaxed);
    }
}

/// Learns, if that is under way, in a thread that asks for what cannot be placed: the program may ask for nothing
/// smaller any more, and what learning has present stays until it is over.
#[inline]
pub(crate) fn learn_in_time() {
    if PROCESS.is_learning() {
        without_block::learn_in_time(slot());
    }
}

/// Counts an object that can never be placed.
#[inline]
pub(crate) fn count_left(reason: Reason, size: usize) {
    let slot = slot();
    let counted = with_block(slot, |thread| {
        let tally = match reason {
            Reason::Alignment => &mut thread.own.alignment,
            _ => &mut thread.own.size,
        };
        tally.objects += 1;
        tally.bytes += size as u64;
    });
    if counted.is_none() {
        learn_in_time();
    }
}
