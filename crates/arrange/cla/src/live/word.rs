//! The word of a line, and how a rank waits for it.
//!
//! A wait polls for a while, then gives its core away again and again, then sleeps in the kernel. A
//! writer must wake sleepers, yet its half of a call takes a few nanoseconds and has no room for a
//! fence. So the two sides are not alike: a writer stores its word and then looks at a count of
//! sleepers, without a fence in between; a sleeper counts itself, then orders the memory of *all*
//! processes (`membarrier`), then looks at the word once more. Either the writer sees the sleeper, or
//! the sleeper sees the word. Where the kernel has no such barrier, a sleep is short.
//!
//! On AArch64 that is so as well: the kernel interrupts every core that runs one of the processes, and a full barrier
//! (`dmb ish`) is done between two instructions of the writer. A load that was made early is made again after it.
//! A published value is a Release store (`stlr`), after all loads and stores before it; what is read behind a flag is
//! behind an Acquire load, so that the plain copies of a message need no barrier of their own.

use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::program::Compare;

/// The word of a shared line.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Word(AtomicU64);

impl Word {
    /// The value, and all that its writer did before.
    #[inline]
    pub(super) fn load(&self) -> u64 {
        // Partner: `store` and `add`.
        self.0.load(Ordering::Acquire)
    }

    /// Publishes a value after all that this rank did before.
    #[inline]
    pub(super) fn store(&self, value: u64) {
        // Partner: `load`.
        self.0.store(value, Ordering::Release);
    }

    /// Adds in one step: the only read-modify-write of a program.
    #[inline]
    pub(super) fn add(&self, value: u64) {
        // Acquire as well: a waiter that sees the last addition sees what came before all of them.
        self.0.fetch_add(value, Ordering::AcqRel);
    }

    /// Publishes `value` in place of `seen`, and returns whether it did; nothing happens where the word holds something
    /// else: whoever asked may have given up and gone on, and then the word is not this one's any more.
    #[inline]
    pub(super) fn answer(&self, seen: u64, value: u64) -> bool {
        self.0.compare_exchange(seen, value, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Publishes `value`, unless the word holds more.
    pub(super) fn raise(&self, value: u64) {
        // Acquire as well: whoever sees the greatest value sees what came before each smaller one.
        self.0.fetch_max(value, Ordering::AcqRel);
    }

    /// Publishes with a locked instruction, as the paper does (section 3); to be measured.
    #[inline]
    pub(super) fn swap(&self, value: u64) {
        self.0.swap(value, Ordering::AcqRel);
    }

    /// The half of the word that a futex looks at: the low one. Only the kernel reads through it.
    #[cfg(not(all(loom, test)))]
    pub(super) fn futex(&self) -> &core::sync::atomic::AtomicU32 {
        let low = usize::from(cfg!(target_endian = "big"));
        let halves = (&raw const self.0).cast::<core::sync::atomic::AtomicU32>();
        // SAFETY: a u64 has two aligned u32 halves, which live as long as `self`; nothing in this
        // program reads or writes through the result, its address alone goes to the kernel.
        unsafe { halves.wrapping_add(low).as_ref_unchecked() }
    }

    #[cfg(all(loom, test))]
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

/// What a rank can do while nothing comes.
pub(super) trait Rest {
    /// Lets others run on this core.
    fn give_way(&self);
    /// Orders memory as a fence in every process would; returns whether it did.
    fn order_all(&self) -> bool;
    /// A writer's half of that order: nothing at all, where [`Rest::order_all`] reaches it.
    fn order_self(&self);
    /// Sleeps while the word has the value `seen`, for a while at most.
    fn sleep(&self, word: &Word, seen: u64, long: bool);
    /// Wakes all that sleep on the word.
    fn wake(&self, word: &Word);
}

/// Publishes a value and wakes whoever sleeps.
#[inline]
pub(super) fn publish<R: Rest>(rest: &R, sleepers: &AtomicU32, word: &Word, store: impl Fn(&Word)) {
    store(word);
    rest.order_self();
    // Relaxed: ordered by the sleeper's barrier, wherever in this program order it falls.
    if sleepers.load(Ordering::Relaxed) != 0 {
        rest.wake(word);
    }
}

/// Sleeps once, unless the comparison holds by now.
pub(super) fn sleep<R: Rest>(
    rest: &R,
    sleepers: &AtomicU32,
    word: &Word,
    compare: Compare,
    value: u64,
) {
    sleepers.fetch_add(1, Ordering::SeqCst);
    let ordered = rest.order_all();
    let seen = word.load();
    if !compare.holds(seen, value) {
        rest.sleep(word, seen, ordered);
    }
    sleepers.fetch_sub(1, Ordering::SeqCst);
}
