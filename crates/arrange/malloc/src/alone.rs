//! What a thread counts while it has no block, in one word of its thread-local storage: objects and
//! bytes that went to glibc and are not yet counted for all, and how often it asked for more.
//!
//! One load, one addition and one store for each object; a signal handler that comes in between
//! costs a count and nothing else.

use crate::report::Tally;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One object: above 32 bits of bytes.
const OBJECT: u64 = 1 << 32;
/// One call: above 16 bits of objects.
const CALL: u64 = 1 << 48;
/// Bytes, or objects, that are counted for all: so far below the ends of their fields that an
/// object of 256 bytes does not leave these.
const ENOUGH: u64 = 4096 | 4096 << 32;

/// The word. Zero counts nothing.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Alone {
    word: AtomicU64,
}

impl Alone {
    /// Counts an object of at most 256 bytes; false where so much is counted that it must first
    /// be taken, and then nothing was done.
    #[inline(always)]
    pub(crate) fn count(&self, size: usize) -> bool {
        let counted = self.word.load(Relaxed).wrapping_add(OBJECT | size as u64);
        let has_room = counted & ENOUGH == 0;
        if has_room {
            self.word.store(counted, Relaxed);
        }
        has_room
    }

    /// What was counted, which is to be counted for all.
    pub(crate) fn take(&self) -> Tally {
        let counted = self.word.load(Relaxed);
        self.word.store(counted / CALL * CALL, Relaxed);
        Tally { objects: counted % CALL / OBJECT, bytes: counted % OBJECT }
    }

    /// The thread asks once more for what a block would give; true once it did so `calls` times.
    pub(crate) fn asks(&self, calls: u64) -> bool {
        let counted = self.word.load(Relaxed);
        let enough = counted / CALL >= calls;
        if !enough {
            self.word.store(counted + CALL, Relaxed);
        }
        enough
    }

    /// Nothing was counted and nothing asked.
    pub(crate) fn clear(&self) {
        self.word.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_bytes_and_calls_do_not_touch_each_other() {
        let alone = Alone { word: AtomicU64::new(0) };
        let (mut objects, mut bytes) = (0, 0);
        for round in 0..100_000_u64 {
            let size = round * 7 % 257;
            assert_eq!(alone.asks(5), round >= 5);
            if !alone.count(usize::try_from(size).unwrap()) {
                let tally = alone.take();
                assert!(tally.bytes + size >= 4096 || tally.objects >= 4095);
                (objects, bytes) = (objects + tally.objects, bytes + tally.bytes);
                assert!(alone.count(usize::try_from(size).unwrap()));
            }
        }
        let last = alone.take();
        assert_eq!(objects + last.objects, 100_000);
        let all: u64 = (0..100_000).map(|round| round * 7 % 257).sum();
        assert_eq!(bytes + last.bytes, all);
        alone.clear();
        assert!(!alone.asks(1));
    }

    #[test]
    fn objects_of_no_size_are_counted_for_all_in_time() {
        let alone = Alone { word: AtomicU64::new(0) };
        let counted = (0..10_000).take_while(|_| alone.count(0)).count();
        assert_eq!(counted, 4095);
    }
}
