//! Depots: free slots on their way from one thread's magazine to the next one's, a batch at a time.
//!
//! What a thread gives back and another takes again goes as one list of numbers, by one exchange of
//! a head at each end; no mask, link or tally of a single line is touched, which another core would
//! then have to fetch (the depot of J. Bonwick and J. Adams, *Magazines and Vmem*, USENIX 2001). What
//! does not fit goes to the bins, where whoever needs it finds it by distance.
//!
//! A core has a depot of slots that it would keep. Cores of which nothing is known share one.

use crate::class::SizeClass;
use crate::stack::Stack;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64};
use core::array::from_fn;

/// Slots of a batch, at most. A model that is checked on every interleaving has fewer.
pub(crate) const BATCH_SLOTS: usize = if cfg!(all(loom, test)) { 2 } else { 64 };
/// Batches of a depot.
const BATCHES: usize = if cfg!(all(loom, test)) { 2 } else { 32 };

/// Slots of one class, in no bin and in nobody's hand.
#[derive(Debug)]
#[repr(C)]
struct Batch {
    length: AtomicU32,
    slots: [AtomicU32; BATCH_SLOTS],
}

/// Batches of all classes. Zeroed memory is an empty depot.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Depot {
    /// Batches by class.
    full: [AtomicU64; SizeClass::COUNT],
    /// Batches that were used and are empty.
    empty: AtomicU64,
    /// Batches that were used at all: the others are empty too.
    used: AtomicU32,
    next: [AtomicU32; BATCHES],
    batches: [Batch; BATCHES],
}

impl Default for Depot {
    fn default() -> Self {
        let batch =
            |_| Batch { length: AtomicU32::default(), slots: from_fn(|_| AtomicU32::default()) };
        Self {
            full: from_fn(|_| AtomicU64::default()),
            empty: AtomicU64::default(),
            used: AtomicU32::default(),
            next: from_fn(|_| AtomicU32::default()),
            batches: from_fn(batch),
        }
    }
}

impl Depot {
    fn full(&self, class: SizeClass) -> Stack<'_> {
        Stack::new(&self.full[class.index()], &self.next)
    }

    fn empty(&self) -> Stack<'_> {
        Stack::new(&self.empty, &self.next)
    }

    /// Takes in a batch of slots that the caller owns; false where there is no room.
    pub(crate) fn put(&self, class: SizeClass, slots: &[u32]) -> bool {
        let mut index = [0];
        if self.empty().pop_many(&mut index) == 0 && !self.first_use(&mut index[0]) {
            return false;
        }
        let Some(batch) = self.batches.get(index[0] as usize) else { return false };
        for (place, &slot) in batch.slots.iter().zip(slots) {
            place.store(slot, Relaxed);
        }
        let length = u32::try_from(slots.len().min(BATCH_SLOTS)).unwrap_or(0);
        batch.length.store(length, Relaxed);
        self.full(class).push_all(&index);
        true
    }

    fn first_use(&self, index: &mut u32) -> bool {
        let limit = u32::try_from(BATCHES).unwrap_or(0);
        let next = |used: u32| (used < limit).then_some(used + 1);
        let used = self.used.fetch_update(Relaxed, Relaxed, next);
        *index = used.unwrap_or(0);
        used.is_ok()
    }

    /// Takes up to `out.len()` slots of one batch; how many.
    pub(crate) fn take(&self, class: SizeClass, out: &mut [u32]) -> usize {
        let full = self.full(class);
        let mut index = [0];
        if full.looks_empty() || full.pop_many(&mut index) == 0 {
            return 0;
        }
        let Some(batch) = self.batches.get(index[0] as usize) else { return 0 };
        let length = (batch.length.load(Relaxed) as usize).min(BATCH_SLOTS);
        let taken = length.min(out.len());
        // The last ones: what is left stays where it is.
        for (place, slot) in out.iter_mut().zip(&batch.slots[length - taken..length]) {
            *place = slot.load(Relaxed);
        }
        if taken < length {
            batch.length.store(u32::try_from(length - taken).unwrap_or(0), Relaxed);
            full.push_all(&index);
        } else {
            self.empty().push_all(&index);
        }
        taken
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
