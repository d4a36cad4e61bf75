//! The free frames of the fast tier: a counter that may be slept on.

use core::sync::atomic::{AtomicU32, Ordering};

/// Somebody sleeps until a frame is given back.
const WAITERS: u32 = 1 << 31;

/// One word: the count, and whether somebody waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames<'a>(pub(super) &'a AtomicU32);

impl<'a> Frames<'a> {
    pub(super) fn format(&self, frames: u32) {
        self.0.store(frames, Ordering::Release);
    }

    pub(super) fn free(&self) -> u32 {
        self.0.load(Ordering::Acquire) & !WAITERS
    }

    /// Takes up to `most`; returns how many.
    pub(super) fn take(&self, most: u32) -> u32 {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let taken = most.min(seen & !WAITERS);
            if taken == 0 {
                return 0;
            }
            let swapped =
                self.0.compare_exchange(seen, seen - taken, Ordering::AcqRel, Ordering::Relaxed);
            match swapped {
                Ok(_) => return taken,
                Err(other) => seen = other,
            }
        }
    }

    /// Gives some back; the word to wake, if somebody waits.
    #[must_use = "who waits must be woken"]
    pub(super) fn give(&self, frames: u32) -> Option<&'a AtomicU32> {
        if frames == 0 {
            return None;
        }
        let before = self.0.fetch_add(frames, Ordering::AcqRel);
        if before & WAITERS == 0 {
            return None;
        }
        self.0.fetch_and(!WAITERS, Ordering::AcqRel);
        Some(self.0)
    }

    /// The word to wake because a group can be evicted now, if somebody waits.
    #[must_use = "who waits must be woken"]
    pub(super) fn nudge(&self) -> Option<&'a AtomicU32> {
        // SeqCst, as the change of the group's entry before it, and as `announce` and the look for a
        // victim after that: of two who write one word and then read the other's, one sees what the
        // other wrote. Acquire and Release do not promise that; x86-64 keeps it anyway, since a
        // locked operation lies in between.
        if self.0.load(Ordering::SeqCst) & WAITERS == 0 {
            return None;
        }
        self.0.fetch_and(!WAITERS, Ordering::AcqRel);
        Some(self.0)
    }

    /// Says that somebody is about to sleep because there is none, and looks for a victim once more
    /// before; the value to sleep on, or `None` if there is a frame now.
    pub(super) fn announce(&self) -> Option<u32> {
        // SeqCst: see `nudge`.
        let before = self.0.fetch_or(WAITERS, Ordering::SeqCst);
        (before & !WAITERS == 0).then_some(WAITERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_and_waiters_told() {
        let word = AtomicU32::new(0);
        let frames = Frames(&word);
        frames.format(3);
        assert_eq!((frames.take(2), frames.take(2), frames.take(2)), (2, 1, 0));
        assert!(frames.give(0).is_none());
        assert_eq!(frames.announce(), Some(WAITERS));
        assert!(frames.give(2).is_some());
        assert_eq!(frames.free(), 2);
        assert_eq!(frames.announce(), None, "there are some");
        assert_eq!(frames.take(9), 2);
        assert_eq!(frames.free(), 0);
    }
}
