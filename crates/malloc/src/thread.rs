//! A thread's own part of the allocator: its block with magazines and counts, and the word that
//! says what the thread may do.
//!
//! ```text
//!  ABSENT --first object after the start--> (block) --last key destructor--> DEAD
//!     \--nothing is placed, or a child of fork--> DELEGATING
//!  (block) <--each call--> BUSY
//! ```
//!
//! The word is `BUSY` while a call works on the block. So a call that comes in between, from a
//! signal handler or from libc while the block is made, sees that it must not touch it: it
//! allocates from glibc, and frees straight to the bins. No thread ever touches another's block.

use crate::counters::Counters;
use crate::instance::{Instance, Need};
use crate::pin;
use crate::process::{self, PROCESS};
use crate::report::{CLASSES, Lines, Reason, Tally, Word};
use crate::tls::{self, Slot as ThreadSlot};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};
use isochrone_alloc::{Magazines, SizeClass, Slot, ThreadCounts};
use isochrone_units::Level;

/// States that are no block.
pub(crate) mod state {
    use super::Thread;
    use core::ptr;

    /// No block yet.
    pub(crate) const ABSENT: *mut Thread = ptr::null_mut();
    /// In a call.
    pub(crate) const BUSY: *mut Thread = ptr::without_provenance_mut(1);
    /// Its block is gone and will not come back.
    pub(crate) const DEAD: *mut Thread = ptr::without_provenance_mut(2);
    /// It will not have a block.
    pub(crate) const DELEGATING: *mut Thread = ptr::without_provenance_mut(3);

    /// Whether a state is a block.
    #[inline(always)]
    pub(crate) fn is_block(state: *mut Thread) -> bool {
        state.addr() > 3
    }
}

/// Placements after which a thread adds its counts to the process's and looks whether there is
/// work for it.
const TICK_OBJECTS: u32 = 64;

/// Objects of a class that go to glibc after the heap had nothing for one.
const UNTRIED_OBJECTS: u32 = 256;

/// What a thread has.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Thread {
    instance: &'static Instance<'static>,
    /// Placements left until the next tick.
    until_tick: u32,
    /// Objects by class that go to glibc without a try, since the heap has nothing.
    untried: [u32; CLASSES],
    /// How often the key's destructor ran.
    pub(crate) rounds: u32,
    /// Since the last tick.
    placed: [Tally; CLASSES],
    /// Since the last tick: what this thread itself left to glibc.
    size: Tally,
    alignment: Tally,
    /// What the magazines had counted at the last tick.
    counted: ThreadCounts,
    /// The core it was bound to.
    pub(crate) place: pin::Place,
    magazines: Magazines,
}

impl Thread {
    pub(crate) fn new(instance: &'static Instance<'static>, place: pin::Place) -> Self {
        Self {
            instance,
            until_tick: TICK_OBJECTS,
            untried: [0; CLASSES],
            rounds: 0,
            placed: [Tally::default(); CLASSES],
            size: Tally::default(),
            alignment: Tally::default(),
            counted: ThreadCounts::default(),
            place,
            magazines: Magazines::new(),
        }
    }

    /// A slot for an object; null where there is none, which is counted.
    #[inline]
    fn take(&mut self, class: SizeClass, size: usize) -> *mut c_void {
        let core = self.instance.current_core();
        if self.untried[class.index()] == 0
            && let Some(slot) = self.magazines.take(self.instance.heap(), core, class)
        {
            return self.handed_out(slot, class, size);
        }
        self.take_after_growth(core, class, size)
    }

    #[inline]
    fn handed_out(&mut self, slot: Slot, class: SizeClass, size: usize) -> *mut c_void {
        let tally = &mut self.placed[class.index()];
        tally.objects += 1;
        tally.bytes += size as u64;
        self.until_tick -= 1;
        if self.until_tick == 0 {
            self.tick();
        }
        self.instance.address(slot).cast()
    }

    /// Gets memory, and tries once more; then leaves some objects to glibc without a try, since
    /// to find out that nothing is there takes long.
    #[cold]
    #[inline(never)]
    fn take_after_growth(&mut self, core: u16, class: SizeClass, size: usize) -> *mut c_void {
        let untried = &mut self.untried[class.index()];
        if *untried == 0 {
            self.instance.grow(Need::Now);
            if let Some(slot) = self.magazines.take(self.instance.heap(), core, class) {
                return self.handed_out(slot, class, size);
            }
            *untried = UNTRIED_OBJECTS;
        }
        self.untried[class.index()] -= 1;
        let reason = self.instance.why_empty();
        PROCESS.counters().delegated(reason, Tally { objects: 1, bytes: size as u64 });
        ptr::null_mut()
    }

    #[inline]
    fn put(&mut self, slot: Slot) {
        let core = self.instance.current_core();
        match self.magazines.put(self.instance.heap(), core, slot) {
            Ok(class) => self.untried[class.index()] = 0,
            Err(misuse) => process::misused(self.instance, misuse),
        }
    }

    /// Adds up, and does a slice of the process's work if there is some.
    #[cold]
    #[inline(never)]
    fn tick(&mut self) {
        self.until_tick = TICK_OBJECTS;
        let counters = PROCESS.counters();
        self.count(counters);
        let core = self.instance.current_core();
        self.instance.sample_pool(core, counters);
        counters.raise(Word::PeakBytes, self.instance.heap().live_bytes());
        self.instance.grow(Need::Soon);
    }

    /// Adds what this thread counted to what the process did.
    pub(crate) fn count(&mut self, counters: &Counters) {
        for (class, tally) in self.placed.iter_mut().enumerate() {
            counters.placed(class, core::mem::take(tally));
        }
        counters.delegated(Reason::Size, core::mem::take(&mut self.size));
        counters.delegated(Reason::Alignment, core::mem::take(&mut self.alignment));
        let now = *self.magazines.counts();
        let before = core::mem::replace(&mut self.counted, now);
        counters.add(Word::Drawn, now.drawn_slots - before.drawn_slots);
        counters.add(Word::Near, now.near_slots - before.near_slots);
        counters.add(Word::HomeChanges, now.home_changes - before.home_changes);
        for level in Level::ALL {
            counters.distances(Lines::HandedOut, level, &now.drawn, &before.drawn);
        }
    }

    /// Gives every slot back, and counts for the last time.
    pub(crate) fn retire(&mut self) {
        self.magazines.flush(self.instance.heap());
        self.count(PROCESS.counters());
        pin::unbind(self.place);
    }
}

/// Runs `work` on this thread's block, during which the thread is busy. `None` if it has none.
#[inline(always)]
pub(crate) fn with_block<T>(slot: &ThreadSlot, work: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    let block = slot.state.load(Ordering::Relaxed);
    if !state::is_block(block) {
        return None;
    }
    slot.state.store(state::BUSY, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    // SAFETY: a state that is a block is this thread's own, and it is reached through its slot
    // only, which says now that it is busy: nothing else can have a reference.
    let thread = unsafe { &mut *block };
    let result = work(thread);
    compiler_fence(Ordering::SeqCst);
    slot.state.store(block, Ordering::Relaxed);
    Some(result)
}

/// Memory for an object near the core that runs this thread. Null where it is left to glibc.
#[inline(always)]
pub(crate) fn place(class: SizeClass, size: usize) -> *mut c_void {
    let slot = tls::slot();
    match with_block(slot, |thread| thread.take(class, size)) {
        Some(found) => found,
        None => process::place_without_block(slot, class, size),
    }
}

/// Frees a slot of the process's arena.
#[inline(always)]
pub(crate) fn release(freed: Slot) {
    let slot = tls::slot();
    if with_block(slot, |thread| thread.put(freed)).is_none() {
        process::release_without_block(slot, freed);
    }
}

/// Counts an object that can never be placed.
#[inline]
pub(crate) fn count_left(reason: Reason, size: usize) {
    with_block(tls::slot(), |thread| {
        let tally = match reason {
            Reason::Alignment => &mut thread.alignment,
            _ => &mut thread.size,
        };
        tally.objects += 1;
        tally.bytes += size as u64;
    });
}
