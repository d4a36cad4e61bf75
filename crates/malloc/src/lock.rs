//! A lock for the slow paths: one word, sleeping on a futex. `std` has none for code below
//! `malloc`, and libc's may allocate.
//!
//! No allocation or free that a magazine can serve takes it.

use core::sync::atomic::{AtomicU32, Ordering};
use isochrone_os::futex::{Scope, wait, wake};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

/// A lock that a thread must not take twice.
#[derive(Debug)]
pub(crate) struct Lock {
    word: AtomicU32,
}

/// Gives the lock back when dropped.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    lock: &'a Lock,
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(FREE) }
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let free = self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        // Lazily: a guard that is made and dropped would free what another thread holds.
        free.is_ok().then(|| Held { lock: self })
    }

    /// Waits for the lock (Drepper, "Futexes Are Tricky", mutex 2).
    pub(crate) fn hold(&self) -> Held<'_> {
        self.take();
        Held { lock: self }
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

    /// Frees the lock in a child of `fork`, where whoever held it does not exist.
    pub(crate) fn reset(&self) {
        self.word.store(FREE, Ordering::Release);
    }

    fn give(&self) {
        if self.word.swap(FREE, Ordering::Release) == WAITED_FOR {
            // Nobody sleeps where there is no futex.
            let _ = wake(&self.word, 1, Scope::Process);
        }
    }
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
        core::mem::forget(lock.hold());
        assert!(lock.try_hold().is_none());
        lock.reset();
        assert!(lock.try_hold().is_some());
    }
}
