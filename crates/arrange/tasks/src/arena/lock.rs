//! A lock for a few instructions, in memory that processes may share.

use crate::sync::{AtomicU32, Ordering, give_way, spin_loop};

/// Looks at a lock before the holder's processor is given up: a holder that the system took off its
/// core does not come back by our spinning.
const LOOKS: u32 = 200;

/// Zero is free.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Lock(AtomicU32);

/// The lock is held while this lives.
#[derive(Debug)]
pub(crate) struct Guard<'a>(&'a Lock);

impl Lock {
    /// Waits until the lock is free, and takes it.
    #[inline]
    pub(crate) fn hold(&self) -> Guard<'_> {
        while self.0.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        Guard(self)
    }

    #[cold]
    fn wait(&self) {
        let mut looks = 0;
        while self.0.load(Ordering::Relaxed) != 0 {
            looks += 1;
            if looks > LOOKS || cfg!(any(all(loom, test), all(shuttle, test))) {
                give_way();
                return;
            }
            spin_loop();
        }
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}
