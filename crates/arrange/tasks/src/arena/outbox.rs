//! Ready tasks that a worker has not brought to the common queue yet. It appends them without a lock and
//! without an operation that waits for other cores; anybody takes some from the front.
//!
//! `tail` is the owner's alone; `head` only grows, by compare-and-swap of whoever takes. The owner writes over
//! a place only after it saw `head` beyond it, and then nobody who read the old task there can take it.

#[cfg(not(all(loom, test)))]
use super::table::Zeroed;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Tasks that an outbox holds: with `tail` they fill a line.
pub(crate) const ROOM: usize = if cfg!(all(loom, test)) { 2 } else { 14 };

/// Workers beyond which looking into every outbox costs more than the queue's lock.
const WORKERS_MAX: usize = 16;

/// Whether so many workers may have outboxes.
pub(crate) const fn may_have(workers: usize) -> bool {
    workers <= WORKERS_MAX
}

/// An outbox.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Outbox {
    head: Front,
    tail: AtomicU64,
    tasks: [AtomicU32; ROOM],
}

/// A line of its own.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Front(AtomicU64);

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Outbox {}

/// What the owner knows of its outbox without looking.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// At least so many were taken.
    head: u64,
    tail: u64,
}

impl Outbox {
    /// The owner's view of an outbox that others may have used before.
    pub(crate) fn ends(&self) -> Ends {
        let tail = self.tail.load(Ordering::Relaxed);
        Ends { head: self.head.0.load(Ordering::Acquire), tail }
    }

    fn place(&self, at: u64) -> &AtomicU32 {
        // Below `ROOM`.
        #[allow(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
        &self.tasks[(at % ROOM as u64) as usize]
    }

    /// Appends a task; only the owner. False if there is no room.
    #[inline]
    pub(crate) fn push(&self, ends: &mut Ends, task: u32) -> bool {
        if ends.tail - ends.head >= ROOM as u64 {
            // Acquire: who took what was in the place has read it.
            ends.head = self.head.0.load(Ordering::Acquire);
            if ends.tail - ends.head >= ROOM as u64 {
                return false;
            }
        }
        self.place(ends.tail).store(task, Ordering::Relaxed);
        ends.tail += 1;
        // Release: what was written of the task comes before anybody finds it.
        self.tail.store(ends.tail, Ordering::Release);
        true
    }

    /// Tasks that looked to be there.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let head = self.head.0.load(Ordering::Acquire);
        let len = self.tail.load(Ordering::Acquire).saturating_sub(head);
        usize::try_from(len).unwrap_or(ROOM)
    }

    /// Takes up to `most` tasks from the front into `out`; how many. Anybody.
    pub(crate) fn take(&self, most: usize, out: &mut Vec<u32>) -> usize {
        let before = out.len();
        loop {
            let head = self.head.0.load(Ordering::Acquire);
            let tail = self.tail.load(Ordering::Acquire);
            let count = tail.saturating_sub(head).min(most as u64);
            if count == 0 {
                return 0;
            }
            out.extend((head..head + count).map(|at| self.place(at).load(Ordering::Relaxed)));
            // Release: the tasks were read before the owner may write over them.
            let taken = self.head.0.compare_exchange(
                head,
                head + count,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return out.len() - before;
            }
            out.truncate(before);
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_out_in_order_and_room_comes_back() {
        let outbox = Outbox::default();
        let mut ends = outbox.ends();
        let (mut next, mut out) = (0, Vec::new());
        for round in 0..100 {
            while outbox.push(&mut ends, next) {
                next += 1;
            }
            assert_eq!(outbox.len(), ROOM);
            assert_eq!(outbox.take(1 + round % ROOM, &mut out), 1 + round % ROOM);
        }
        while outbox.take(3, &mut out) > 0 {}
        assert_eq!(out, (0..next).collect::<Vec<u32>>());
        assert_eq!(outbox.len(), 0);
    }

    #[test]
    fn an_outbox_is_two_lines() {
        assert_eq!(size_of::<Outbox>(), 128);
        assert_eq!(core::mem::offset_of!(Outbox, tail), 64);
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_tests {
    use loom::sync::Arc;

    use super::*;

    #[test]
    fn every_task_is_taken_once_while_places_are_used_again() {
        loom::model(|| {
            let outbox = Arc::new(Outbox::default());
            let other = outbox.clone();
            let thief = loom::thread::spawn(move || {
                let mut out = Vec::new();
                other.take(2, &mut out);
                other.take(1, &mut out);
                out
            });
            let mut ends = outbox.ends();
            let mut refused = Vec::new();
            for task in 1..=3 {
                if !outbox.push(&mut ends, task) {
                    refused.push(task);
                }
            }
            let mut all = thief.join().unwrap();
            outbox.take(ROOM, &mut all);
            all.extend(refused);
            assert_eq!(all, [1, 2, 3], "in order, each once");
        });
    }
}
