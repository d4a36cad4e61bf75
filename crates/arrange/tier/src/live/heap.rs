//! Pieces of the area for who asks (the paper's `malloc_global`), and back. For arrays, not for small objects:
//! a piece is whole groups, found first fit.
//!
//! The state is one word for each group: the length of the piece that begins there, or 0. Each change is one
//! store, so who is killed in the middle leaves it as it was or as it was to be.

use core::sync::atomic::{AtomicU32, Ordering};

use isochrone_os::futex::{self, Scope};

/// The lock, a line of its own.
const HEAD_WORDS: usize = 16;
/// The piece is being given back.
const LEAVING: u32 = 1 << 31;
/// A wait ends by itself after this, so that a dead holder is noticed.
const WAIT_NS: u64 = 5_000_000;

/// A view of the words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heap<'a> {
    lock: &'a AtomicU32,
    lengths: &'a [AtomicU32],
}

impl<'a> Heap<'a> {
    pub(super) const fn words(groups: u32) -> usize {
        HEAD_WORDS + groups as usize
    }

    pub(super) fn new(words: &'a [AtomicU32], groups: u32) -> Self {
        Self { lock: &words[0], lengths: &words[HEAD_WORDS..][..groups as usize] }
    }

    /// Runs `act` while nobody else changes the pieces. `me` is not 0; `is_dead` says whether the holder of
    /// a number will never give the lock back.
    fn locked<T>(&self, me: u32, is_dead: impl Fn(u32) -> bool, act: impl FnOnce() -> T) -> T {
        loop {
            let before = self.lock.compare_exchange(0, me, Ordering::Acquire, Ordering::Acquire);
            let Err(holder) = before else { break };
            let steal = || {
                let order = (Ordering::Acquire, Ordering::Relaxed);
                self.lock.compare_exchange(holder, me, order.0, order.1).is_ok()
            };
            if is_dead(holder) && steal() {
                break;
            }
            let _ = futex::wait(self.lock, holder, Some(WAIT_NS), Scope::Shared);
        }
        let result = act();
        self.lock.store(0, Ordering::Release);
        let _ = futex::wake(self.lock, 1, Scope::Shared);
        result
    }

    fn length(&self, group: usize) -> u32 {
        self.lengths[group].load(Ordering::Relaxed)
    }

    /// The first of `want` neighbouring groups that nobody has; they are the caller's now.
    pub(super) fn take(&self, want: u32, me: u32, is_dead: impl Fn(u32) -> bool) -> Option<u32> {
        self.locked(me, is_dead, || {
            let (mut at, mut free) = (0, 0);
            while at < self.lengths.len() {
                let length = self.length(at) & !LEAVING;
                if length > 0 {
                    (at, free) = (at + length as usize, 0);
                    continue;
                }
                (at, free) = (at + 1, free + 1);
                if free == want {
                    let first = at - want as usize;
                    self.lengths[first].store(want, Ordering::Relaxed);
                    return u32::try_from(first).ok();
                }
            }
            None
        })
    }

    /// Begins to give a piece back; its length, or `None` if no piece begins there. Nobody else gets it
    /// before [`Self::give`].
    pub(super) fn leave(&self, first: u32, me: u32, is_dead: impl Fn(u32) -> bool) -> Option<u32> {
        let word = self.lengths.get(first as usize)?;
        self.locked(me, is_dead, || {
            let length = word.load(Ordering::Relaxed);
            let whole = length > 0 && length & LEAVING == 0;
            whole.then(|| {
                word.store(length | LEAVING, Ordering::Relaxed);
                length
            })
        })
    }

    /// Gives a piece back that was left.
    pub(super) fn give(&self, first: u32) {
        self.lengths[first as usize].store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROUPS: u32 = 24;

    fn words() -> Vec<AtomicU32> {
        (0..Heap::words(GROUPS)).map(|_| AtomicU32::new(0)).collect()
    }

    proptest! {
        /// Pieces never overlap, and what is refused would not have fitted.
        #[test]
        fn pieces_do_not_overlap(steps in prop::collection::vec((any::<bool>(), 1..9_u32), 0..80)) {
            let words = words();
            let heap = Heap::new(&words, GROUPS);
            let mut pieces: Vec<(u32, u32)> = Vec::new();
            for (take, number) in steps {
                if take {
                    let used = |group: u32| pieces.iter().any(|(f, n)| (*f..f + n).contains(&group));
                    let fits = (0..=GROUPS - number).find(|f| !(*f..f + number).any(used));
                    prop_assert_eq!(heap.take(number, 1, |_| false), fits);
                    pieces.extend(fits.map(|first| (first, number)));
                } else if !pieces.is_empty() {
                    let (first, length) = pieces.swap_remove(number as usize % pieces.len());
                    prop_assert_eq!(heap.leave(first, 1, |_| false), Some(length));
                    prop_assert_eq!(heap.leave(first, 1, |_| false), None, "twice");
                    heap.give(first);
                }
            }
        }
    }

    #[test]
    fn a_dead_holder_does_not_keep_the_lock() {
        let words = words();
        words[0].store(7, Ordering::Relaxed);
        let heap = Heap::new(&words, GROUPS);
        assert_eq!(heap.take(3, 1, |holder| holder == 7), Some(0));
        assert_eq!(heap.leave(1, 1, |_| false), None, "no piece begins there");
        assert_eq!(heap.leave(GROUPS, 1, |_| false), None, "outside");
    }
}
