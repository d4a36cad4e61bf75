//! A thread's own part of the allocator: its block with magazines and counts, and the word that
//! says what the thread may do.
//!
//! ```text
//!  ABSENT --first object after the start--> (block) --last key destructor--> DEAD
//!     \--nothing is placed--> DELEGATING <--nothing is placed any more-- (block)
//!  (block) <--each call--> BUSY
//! ```
//!
//! The word is `BUSY` while a call works on the block. So a call that comes in between, from a
//! signal handler or from libc while the block is made, sees that it must not touch it: it
//! allocates from glibc, and frees straight to the bins. No thread ever touches another's block.

use crate::alone::Alone;
use crate::counters::Counters;
use crate::growth::slices::Need;
use crate::instance::Instance;
use crate::misuse::misused;
use crate::pin;
use crate::process::{ARENA, PROCESS};
use crate::report::{CLASSES, Lines, Reason, Tally, Word};
use crate::room::Inside;
use crate::tls;
use crate::until_looked::UntilLooked;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering, compiler_fence};
use isochrone_alloc::{Magazines, SizeClass, Slot, ThreadCounts};
use isochrone_os::rseq::CoreWord;
use isochrone_units::{CoreId, Level};

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

/// What a thread has of its own before it has anything else. All zero at first. Atomic for the
/// sake of signal handlers only: no other thread ever sees it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ThreadSlot {
    /// One of [`state`], or the thread's block.
    pub(crate) state: AtomicPtr<Thread>,
    /// What it counts without a block.
    pub(crate) alone: Alone,
    /// The program has said on which cores it may run.
    pub(crate) is_bound: AtomicBool,
    /// Objects that cannot be placed, which it asked for while pages were learnt, without multiples of 256.
    pub(crate) unplaced: AtomicU8,
    /// When an allocation is looked at, where the process is only watched.
    pub(crate) until_looked: UntilLooked,
}

const _: () =
    assert!(size_of::<ThreadSlot>() == tls::BYTES && align_of::<ThreadSlot>() == tls::ALIGN);

/// This thread's slot. It is gone when the thread is, which is why nothing may keep it longer than
/// one call: `'static` is what a thread can say of itself while it runs.
#[inline(always)]
pub(crate) fn slot() -> &'static ThreadSlot {
    let place = tls::address().cast::<ThreadSlot>();
    // SAFETY: the address is this thread's own slot: mapped, as long and as aligned as asserted above, zeroed when the
    // thread began, which is a value of it, and there for as long as this thread can run this line. All its words are
    // atomic, and nothing else reads or writes them by another type.
    unsafe { &*place }
}

/// Placements after which a thread adds its counts to the process's and looks whether there is
/// work for it.
const TICK_OBJECTS: u32 = 256;
/// One object of a class placed, in the word that counts them: above 32 bits of bytes, from minus
/// [`TICK_OBJECTS`] up.
const OBJECT: u64 = 1 << 32;
/// Nothing placed since the last tick.
const NONE_PLACED: u64 = (TICK_OBJECTS as u64).wrapping_neg() << 32;
/// Of a word that counts: a tick is not due.
const NOT_DUE: u64 = 1 << 63;

/// A core that no machine has (Linux has 8192 at most).
const NOWHERE: CoreId = CoreId(u16::MAX);

/// Objects of a class that go to glibc after the heap had nothing for one.
const UNTRIED_OBJECTS: u32 = 256;

/// What a thread has.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Thread {
    pub(crate) own: Own,
    magazines: Magazines,
}

/// What a thread has beside its magazines.
#[derive(Debug)]
pub(crate) struct Own {
    /// The next block that no thread has, where none has this one.
    pub(crate) link: *mut Thread,
    instance: &'static Instance<'static>,
    /// Where the arena begins.
    start: *mut u8,
    /// Where the kernel says on which core this thread runs.
    core_word: CoreWord,
    /// The core that the magazines are for; one that there is not where each call is to be looked
    /// at: before the first, and where misuse is to be found.
    home: CoreId,
    /// The place of that core in the atlas.
    home_place: u16,
    /// Objects by class that go to the next allocator without a try, since the heap has nothing.
    untried: [u32; CLASSES],
    /// How often the key's destructor ran.
    pub(crate) rounds: u32,
    /// Since the last tick, by class: see [`OBJECT`].
    placed: [u64; CLASSES],
    /// Since the last tick: what this thread itself left to the next allocator.
    pub(crate) size: Tally,
    pub(crate) alignment: Tally,
    /// What the magazines had counted at the last tick.
    counted: ThreadCounts,
    /// The core it was bound to, if it was asked.
    place: Option<pin::Place>,
}

impl Thread {
    /// A new block in zeroed memory. The magazines are right as they are, and of those of a class that the thread
    /// never uses no page is touched.
    ///
    /// # Safety
    /// `place` is memory for a block, zeroed, and nobody else's.
    pub(crate) unsafe fn begin(place: NonNull<Self>, instance: &'static Instance<'static>) {
        let own = Own {
            link: ptr::null_mut(),
            instance,
            start: instance.address(Slot(0)),
            core_word: instance.core_word(),
            home: NOWHERE,
            home_place: 0,
            untried: [0; CLASSES],
            rounds: 0,
            placed: [NONE_PLACED; CLASSES],
            size: Tally::default(),
            alignment: Tally::default(),
            counted: ThreadCounts::default(),
            place: None,
        };
        // SAFETY: the caller vouches for the memory; nothing is read.
        let field = unsafe { &raw mut (*place.as_ptr()).own };
        // SAFETY: as above.
        unsafe { field.write(own) };
    }

    /// A slot that is at hand, where that is all there is to do. It calls nothing.
    #[inline(always)]
    pub(crate) fn take_at_hand(&mut self, class: SizeClass, size: usize) -> Option<*mut c_void> {
        let placed = self.placed_with(class, size);
        if placed & NOT_DUE == 0 || !self.own.core_word.says(self.own.home) {
            return None;
        }
        let slot = self.magazines.take_at_home(class)?;
        ARENA.hand_out(slot, class);
        self.own.placed[class.index()] = placed;
        Some(self.own.start.wrapping_add(slot.offset()).cast())
    }

    /// What is counted of a class with one more object.
    #[inline(always)]
    fn placed_with(&self, class: SizeClass, size: usize) -> u64 {
        self.own.placed[class.index()].wrapping_add(OBJECT | size as u64)
    }

    /// A slot for an object; null where there is none, which is counted.
    pub(crate) fn take(&mut self, class: SizeClass, size: usize) -> *mut c_void {
        let core = self.core();
        let place = self.own.instance.dense(core);
        if self.placed_with(class, size) & NOT_DUE == 0 {
            self.tick();
        }
        if self.own.untried[class.index()] == 0
            && let Some(slot) = self.magazines.take(self.own.instance.heap(), place, class)
        {
            self.settle(core, place);
            return self.handed_out(slot, class, size);
        }
        self.take_after_growth(place, class, size)
    }

    /// The core that runs this thread; its last one where only the system could say, and may not be
    /// asked any more.
    fn core(&self) -> CoreId {
        let asks = self.own.core_word.is_known() || !PROCESS.room.is_closed();
        if asks { self.own.core_word.core() } else { self.own.home }
    }

    /// The magazines have just made this core their home.
    fn settle(&mut self, core: CoreId, place: u16) {
        self.own.home = if self.own.instance.is_checked() { NOWHERE } else { core };
        self.own.home_place = place;
    }

    fn handed_out(&mut self, slot: Slot, class: SizeClass, size: usize) -> *mut c_void {
        ARENA.hand_out(slot, class);
        self.own.placed[class.index()] = self.placed_with(class, size);
        self.own.start.wrapping_add(slot.offset()).cast()
    }

    /// Gets memory, and tries once more; then leaves some objects to glibc without a try, since
    /// to find out that nothing is there takes long.
    #[cold]
    #[inline(never)]
    fn take_after_growth(&mut self, core: u16, class: SizeClass, size: usize) -> *mut c_void {
        let untried = &mut self.own.untried[class.index()];
        if *untried == 0 {
            if let Some(mut inside) = PROCESS.room.enter() {
                self.own.instance.grow(&mut inside, Need::Now);
            }
            self.own.instance.join_in_time();
            if let Some(slot) = self.magazines.take(self.own.instance.heap(), core, class) {
                return self.handed_out(slot, class, size);
            }
            *untried = UNTRIED_OBJECTS;
        }
        self.own.untried[class.index()] -= 1;
        let reason = self.own.instance.why_empty();
        PROCESS.counters().delegated(reason, Tally { objects: 1, bytes: size as u64 });
        ptr::null_mut()
    }

    /// Keeps a freed slot at hand, where every slot is kept. It calls nothing.
    #[inline(always)]
    pub(crate) fn keep_any(&mut self, slot: Slot, class: SizeClass) -> bool {
        self.own.core_word.says(self.own.home) && self.magazines.put_any_at_home(class, slot)
    }

    /// Keeps a freed slot at hand, where that is all there is to do. It calls nothing.
    #[inline(always)]
    pub(crate) fn keep(&mut self, slot: Slot) -> bool {
        self.own.core_word.says(self.own.home)
            && self.magazines.put_at_home(self.own.instance.heap(), self.own.home_place, slot)
    }

    /// Takes a freed slot.
    pub(crate) fn put(&mut self, slot: Slot) {
        let core = self.core();
        let place = self.own.instance.dense(core);
        match self.magazines.put(self.own.instance.heap(), place, slot) {
            Ok(class) => {
                self.settle(core, place);
                self.own.untried[class.index()] = 0;
            }
            Err(misuse) => misused(misuse),
        }
    }

    /// Adds up, and does a slice of the process's work if there is some.
    #[cold]
    #[inline(never)]
    fn tick(&mut self) {
        let counters = PROCESS.counters();
        self.count(counters);
        counters.raise(Word::PeakBytes, self.own.instance.heap().live_bytes());
        // Nothing of what follows need be done now.
        let Some(mut inside) = PROCESS.room.enter() else {
            return self.magazines.renew(self.own.instance.heap());
        };
        self.own.instance.begin_anew(&mut inside, counters);
        self.magazines.renew(self.own.instance.heap());
        self.bind(&mut inside);
        let core = self.own.instance.current_core();
        self.own.instance.sample_pool(core, counters);
        self.own.instance.grow(&mut inside, Need::Soon);
    }

    /// Binds the thread once lines matter: what waits for no line gains nothing by staying.
    fn bind(&mut self, inside: &mut Inside<'_>) {
        let Some(config) = PROCESS.config().filter(|_| self.own.instance.is_worth_it()) else {
            return;
        };
        let is_bound = slot().is_bound.load(Ordering::Relaxed);
        match &mut self.own.place {
            Some(place) => pin::loosen(place, config, is_bound),
            none => *none = Some(inside.run(|| pin::bind(config, is_bound))),
        }
    }

    /// Adds what this thread counted to what the process did.
    pub(crate) fn count(&mut self, counters: &Counters) {
        for (class, placed) in self.own.placed.iter_mut().enumerate() {
            let counted = core::mem::replace(placed, NONE_PLACED).wrapping_sub(NONE_PLACED);
            let tally = Tally { objects: counted / OBJECT, bytes: counted % OBJECT };
            counters.placed(class, tally);
        }
        counters.delegated(Reason::Size, core::mem::take(&mut self.own.size));
        counters.delegated(Reason::Alignment, core::mem::take(&mut self.own.alignment));
        let now = *self.magazines.counts();
        let before = core::mem::replace(&mut self.own.counted, now);
        counters.add(Word::Drawn, now.drawn_slots - before.drawn_slots);
        counters.add(Word::Near, now.near_slots - before.near_slots);
        counters.add(Word::HomeChanges, now.home_changes - before.home_changes);
        for level in Level::ALL {
            counters.distances(Lines::HandedOut, level, &now.drawn, &before.drawn);
        }
    }

    /// This thread is the one of a child of `fork`: what it counted is the parent's, and so is its
    /// place. What it has at hand is its own.
    pub(crate) fn forked(&mut self) {
        self.own.placed = [NONE_PLACED; CLASSES];
        (self.own.size, self.own.alignment) = (Tally::default(), Tally::default());
        self.own.counted = *self.magazines.counts();
        self.own.untried = [0; CLASSES];
        self.own.place = None;
    }

    /// Counts for the last time.
    pub(crate) fn leave_for_good(&mut self, counters: &Counters) {
        self.count(counters);
        if let Some(place) = self.own.place.take() {
            pin::unbind(place);
        }
    }

    /// Gives every slot back, and counts for the last time. The block is as good as new then, for
    /// another thread.
    pub(crate) fn retire(&mut self) {
        if !PROCESS.is_over() {
            self.magazines.leave(self.own.instance.heap());
        }
        self.leave_for_good(PROCESS.counters());
        self.own.home = NOWHERE;
        self.own.untried = [0; CLASSES];
        self.own.rounds = 0;
    }
}

/// This thread's block while a call works on it, during which the thread is busy.
pub(crate) struct Entered<'s> {
    slot: &'s ThreadSlot,
    block: *mut Thread,
}

impl<'s> Entered<'s> {
    /// `None` where the thread has no block, or is in a call already.
    #[inline(always)]
    pub(crate) fn enter(slot: &'s ThreadSlot) -> Option<Self> {
        let block = slot.state.load(Ordering::Relaxed);
        if !state::is_block(block) {
            return None;
        }
        slot.state.store(state::BUSY, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(Self { slot, block })
    }

    /// The block.
    #[inline(always)]
    pub(crate) fn thread(&mut self) -> &mut Thread {
        // SAFETY: a state that is a block is this thread's own, and it is reached through its slot
        // only, which says now that it is busy: nothing else can have a reference.
        unsafe { &mut *self.block }
    }
}

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.slot.state.store(self.block, Ordering::Relaxed);
    }
}

/// Runs `work` on this thread's block, during which the thread is busy. `None` if it has none.
#[inline(always)]
pub(crate) fn with_block<T>(slot: &ThreadSlot, work: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    let mut entered = Entered::enter(slot)?;
    Some(work(entered.thread()))
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    use crate::report::Tally;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn every_thread_has_its_own_zeroed_slot() {
        let mine = std::ptr::from_ref(slot()).addr();
        assert!(slot().alone.count(7));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(move || {
                    let slot = slot();
                    assert_ne!(std::ptr::from_ref(slot).addr(), mine);
                    assert!(slot.state.load(Relaxed).is_null());
                    assert_eq!(slot.alone.take(), Tally::default());
                    assert!(slot.alone.count(9));
                    std::thread::yield_now();
                    assert_eq!(slot.alone.take(), Tally { objects: 1, bytes: 9 });
                });
            }
        });
        assert_eq!(slot().alone.take(), Tally { objects: 1, bytes: 7 });
    }
}
