//! When a thread of a watched process looks at an allocation: a number that is counted down and drawn anew. It knows
//! nothing of what is looked at.

use core::sync::atomic::{AtomicU16, Ordering};
use isochrone_alloc::mixed;

/// Allocations of a thread from one that is looked at to the next, in the mean. They are drawn, evenly from 1 up to
/// twice as many less one, so that a program which allocates by turns is not always met at the same turn.
const EVERY: u16 = 256;

/// How many allocations of a thread are to come until one is looked at. All zero at first. Atomic for the sake of
/// signal handlers only.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct UntilLooked {
    left: AtomicU16,
    drawn: AtomicU16,
}

impl UntilLooked {
    /// Counts an allocation; true where it is to be looked at, or nothing was drawn yet.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left <= 1 {
            return true;
        }
        self.left.store(left - 1, Ordering::Relaxed);
        false
    }

    /// Allocations since a number was drawn last.
    pub(crate) fn gone(&self) -> u16 {
        self.drawn.load(Ordering::Relaxed).saturating_sub(self.left.load(Ordering::Relaxed))
    }

    /// Draws the next number, by bits that are as good as random. How many allocations there were since the last one,
    /// and this one; none where this is the first of the thread, which is then not looked at.
    pub(crate) fn draw(&self, bits: u64) -> Option<u16> {
        let drawn = self.drawn.load(Ordering::Relaxed);
        let next = mixed(bits, 0) >> 32;
        let next = 1 + u16::try_from(next % u64::from(2 * EVERY - 1)).unwrap_or(0);
        // The first one of a thread is gone, too.
        let gone = u16::from(drawn == 0);
        self.left.store(next, Ordering::Relaxed);
        self.drawn.store(next + gone, Ordering::Relaxed);
        (drawn != 0).then_some(drawn)
    }

    pub(crate) fn clear(&self) {
        self.left.store(0, Ordering::Relaxed);
        self.drawn.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_as_often_as_is_said_and_every_allocation_counts_once() {
        let until = UntilLooked { left: AtomicU16::new(0), drawn: AtomicU16::new(0) };
        let (mut looked, mut counted) = (0_u64, 0);
        let all = 1_000_000_u64;
        for call in 0..all {
            if until.is_due() {
                let calls = until.draw(call);
                looked += u64::from(calls.is_some());
                counted += calls.map_or(0, u64::from);
            }
        }
        assert_eq!(counted + u64::from(until.gone()), all);
        let wanted = all / u64::from(EVERY);
        assert!(looked.abs_diff(wanted) < wanted / 20, "{looked} of {wanted}");
    }
}
