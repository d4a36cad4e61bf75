//! What goes to glibc is counted by threads that have no block: in a word of each, and now and then for all. It places
//! nothing and begins nothing.

use crate::process::{PROCESS, lacks_report, phase, report_late};
use crate::report::Reason;
use crate::thread::{ThreadSlot, state};
use core::sync::atomic::Ordering;

/// Whether a thread without a block only counts, and everything goes to glibc.
#[inline(always)]
pub(crate) fn only_counts(slot: &ThreadSlot) -> bool {
    let state = slot.state.load(Ordering::Relaxed);
    state == state::DELEGATING
        || state == state::ABSENT && phase::only_counts(PROCESS.phase.load(Ordering::Relaxed))
}

/// Counts a placeable object that goes to glibc, for the thread and now and then for all. True if it was for all.
pub(crate) fn count_one(slot: &ThreadSlot, size: usize) -> bool {
    let is_full = !slot.alone.count(size);
    if is_full {
        count_alone(slot);
        slot.alone.count(size);
    }
    is_full
}

/// Counts for all what this thread has counted without a block.
#[inline(never)]
#[unsafe(link_section = "isochrone_called")]
pub(crate) fn count_alone(slot: &ThreadSlot) {
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

/// Whether so much was allocated that placing is worth a beginning.
pub(crate) fn is_enough() -> bool {
    let needed = PROCESS.config().map_or(u64::MAX, |config| config.start_bytes);
    PROCESS.counted_bytes() >= needed
}
