//! A lock for the slow paths: one word, sleeping on a futex. `std` has none for code below
//! `malloc`, and libc's may allocate.
//!
//! No allocation or free that a magazine can serve takes it.

use crate::tls;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use isochrone_os::futex::{Scope, wait, wake};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

/// How often, and how long each time, it is waited for threads that may be lost: seconds, which no
/// holder needs.
const WAITS: u32 = 5000;
const WAIT_NS: u64 = 1_000_000;

/// A lock that a thread must not take twice.
#[derive(Debug)]
pub(crate) struct Lock {
    word: AtomicU32,
    /// The address of its holder's thread-local storage; read by a child of `fork` only.
    holder: AtomicUsize,
}

/// Gives the lock back when dropped.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    lock: &'a Lock,
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(FREE), holder: AtomicUsize::new(0) }
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let free = self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        // Lazily: a guard that is made and dropped would free what another thread holds.
        free.is_ok().then(|| self.held())
    }

    /// Waits for the lock (Drepper, "Futexes Are Tricky", mutex 2).
    pub(crate) fn hold(&self) -> Held<'_> {
        self.take();
        self.held()
    }

    fn held(&self) -> Held<'_> {
        self.holder.store(me(), Ordering::Relaxed);
        Held { lock: self }
    }

    /// Whether this thread has it: a signal came in between.
    pub(crate) fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == me()
    }

    /// Waits for the lock, but not for ever: its holder may be lost, in a child that was made without
    /// handlers of `fork`, or this thread, which a signal interrupted. `None` then.
    pub(crate) fn hold_in_time(&self) -> Option<Held<'_>> {
        if let Some(held) = self.try_hold() {
            return Some(held);
        }
        for _ in 0..WAITS {
            if self.is_mine() {
                return None;
            }
            if self.word.swap(WAITED_FOR, Ordering::Acquire) == FREE {
                return Some(self.held());
            }
            // Where there is no futex it tries at once.
            let _ = wait(&self.word, WAITED_FOR, Some(WAIT_NS), Scope::Process);
        }
        None
    }

    fn take(&self) {
        let free = self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        if free.is_ok() {
            return;
        }
        while self.word.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            // Where there is no futex this spins, which is right if slow.
            let _ = wait(&self.word, WAITED_FOR, None, Scope::Process);
        }
    }

    /// In a child of `fork`: frees the lock if a thread holds it that there is not any more. True
    /// if so: what the lock guards may be half changed. A lock that this very thread holds, since a
    /// signal came in between whose handler forked, stays its own.
    pub(crate) fn free_of_lost(&self) -> bool {
        let lost = self.word.load(Ordering::Relaxed) != FREE
            && self.holder.load(Ordering::Relaxed) != me();
        if lost {
            self.word.store(FREE, Ordering::Release);
        }
        lost
    }

    fn give(&self) {
        self.holder.store(0, Ordering::Relaxed);
        if self.word.swap(FREE, Ordering::Release) == WAITED_FOR {
            // Nobody sleeps where there is no futex.
            let _ = wake(&self.word, 1, Scope::Process);
        }
    }
}

/// This thread, as long as it lives.
fn me() -> usize {
    tls::address().addr()
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.lock.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    extern crate std;

    #[test]
    fn only_one_holds_it() {
        let lock = Lock::new();
        let value = AtomicU64::new(0);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..2000 {
                        let _held = lock.hold();
                        assert!(lock.try_hold().is_none());
                        // Not atomic as a whole: only the lock makes it so.
                        let seen = value.load(Ordering::Relaxed);
                        std::hint::black_box(seen);
                        value.store(seen + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(value.load(Ordering::Relaxed), 8000);
    }

    #[test]
    fn a_held_lock_is_not_had_twice() {
        let lock = Lock::new();
        let held = lock.try_hold().expect("free");
        assert!(lock.try_hold().is_none());
        assert!(lock.try_hold().is_none(), "a try that failed frees nothing");
        drop(held);
        assert!(lock.try_hold().is_some());
    }

    #[test]
    fn one_that_this_thread_has_is_not_waited_for() {
        let lock = Lock::new();
        assert!(!lock.is_mine());
        let held = lock.hold_in_time().expect("free");
        assert!(lock.is_mine() && lock.hold_in_time().is_none());
        drop(held);
        std::thread::scope(|threads| {
            let held = lock.hold();
            let other = threads.spawn(|| lock.hold_in_time().is_some());
            std::thread::sleep(std::time::Duration::from_millis(5));
            drop(held);
            assert!(other.join().expect("no panic"));
        });
    }

    #[test]
    fn a_lock_of_a_lost_thread_is_freed_and_ones_own_is_kept() {
        let lock = Lock::new();
        assert!(!lock.free_of_lost());
        let mine = lock.hold();
        assert!(!lock.free_of_lost());
        assert!(lock.try_hold().is_none());
        drop(mine);
        std::thread::scope(|threads| {
            threads.spawn(|| core::mem::forget(lock.hold()));
        });
        assert!(lock.try_hold().is_none());
        assert!(lock.free_of_lost());
        assert!(lock.try_hold().is_some());
    }
}
