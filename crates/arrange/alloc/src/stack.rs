//! Lock-free stacks of indices: what is free lies on them, and anybody may push.
//!
//! The links lie in a table beside the memory, so a free line is never touched. A head carries a
//! tag that every change raises: while head and tag are unchanged nobody pushed or popped, so the
//! links behind the head are what they were, and several entries leave by one compare-and-swap.
//!
//! Every change of a head is a read-modify-write, so each push heads a release sequence that all later changes
//! belong to: whoever loads a head with Acquire sees the links of all entries below it, whoever pushed them. This is so
//! in the model of the language, hence on AArch64, and loom follows it.
//! A tag has 32 bits; a thread would have to sleep through exactly 2^32 changes between its load
//! and its swap to be deceived.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A head: tag in the upper half, index plus one in the lower, so that zero is an empty stack.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head(u64);

impl Head {
    const fn top(self) -> u32 {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// The next state: another top, and the tag raised.
    fn then(self, top: u32) -> u64 {
        (self.0 >> 32).wrapping_add(1) << 32 | u64::from(top)
    }
}

/// A stack: its head, and the table of links that it shares with others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack<'a> {
    head: &'a AtomicU64,
    next: &'a [AtomicU32],
}

impl<'a> Stack<'a> {
    pub(crate) const fn new(head: &'a AtomicU64, next: &'a [AtomicU32]) -> Self {
        Self { head, next }
    }

    /// True if it looked empty: without any order to other changes.
    #[inline]
    pub(crate) fn looks_empty(self) -> bool {
        Head(self.head.load(Ordering::Relaxed)).top() == 0
    }

    /// Leaves all entries behind, which nobody will find any more.
    pub(crate) fn abandon(self) {
        let empty = |head| (Head(head).top() != 0).then(|| Head(head).then(0));
        // Refused where it is empty already.
        let _ = self.head.fetch_update(Ordering::Relaxed, Ordering::Relaxed, empty);
    }

    /// Links `index` in front of `top` (as heads write it). Only who owns `index` may.
    fn link(self, index: u32, top: u32) {
        if let Some(next) = self.next.get(index as usize) {
            next.store(top, Ordering::Relaxed);
        }
    }

    /// Pushes entries that the caller owns; the first of them will be popped first. An index
    /// beyond the table is left out.
    pub(crate) fn push_all(self, entries: &[u32]) {
        let known = |index: &&u32| (**index as usize) < self.next.len();
        let mut entries = entries.iter().filter(known);
        let Some(&first) = entries.next() else { return };
        let mut last = first;
        for &index in entries {
            self.link(last, index + 1);
            last = index;
        }
        let mut head = Head(self.head.load(Ordering::Relaxed));
        loop {
            self.link(last, head.top());
            // Release: the links, and what the caller did with the memory, come before.
            let swap = self.head.compare_exchange_weak(
                head.0,
                head.then(first + 1),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match swap {
                Ok(_) => return,
                Err(found) => head = Head(found),
            }
        }
    }

    /// Pops up to `out.len()` entries by one compare-and-swap; how many.
    pub(crate) fn pop_many(self, out: &mut [u32]) -> usize {
        let mut head = Head(self.head.load(Ordering::Acquire));
        loop {
            let mut top = head.top();
            let mut count = 0;
            for entry in &mut *out {
                let Some(index) = top.checked_sub(1) else { break };
                // Read while others may be popping: whatever it is, it counts only if the swap finds head and tag as
                // they were. Who writes a link has popped its entry, by a swap from the very state that ours is
                // from, and only one of the two succeeds: so that a store may be seen early (AArch64) does no harm.
                let Some(next) = self.next.get(index as usize) else { break };
                *entry = index;
                count += 1;
                top = next.load(Ordering::Relaxed);
            }
            if count == 0 {
                return 0;
            }
            let swap = self.head.compare_exchange_weak(
                head.0,
                head.then(top),
                Ordering::Acquire,
                Ordering::Acquire,
            );
            match swap {
                Ok(_) => return count,
                Err(found) => head = Head(found),
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::vec::Vec;

    fn links(count: usize) -> Vec<AtomicU32> {
        (0..count).map(|_| AtomicU32::default()).collect()
    }

    #[test]
    fn entries_leave_in_the_order_of_their_push() {
        let (head, next) = (AtomicU64::new(0), links(10));
        let stack = Stack::new(&head, &next);
        assert!(stack.looks_empty());
        stack.push_all(&[7]);
        stack.push_all(&[3, 1, 4]);
        let mut out = [99; 3];
        assert_eq!((stack.pop_many(&mut out), out), (3, [3, 1, 4]));
        assert_eq!((stack.pop_many(&mut out), out), (1, [7, 1, 4]));
        assert_eq!(stack.pop_many(&mut out), 0);
        assert_eq!(stack.pop_many(&mut []), 0);
    }

    #[test]
    fn an_index_beyond_the_table_is_left_out() {
        let (head, next) = (AtomicU64::new(0), links(4));
        let stack = Stack::new(&head, &next);
        stack.push_all(&[9, 2, 4, u32::MAX, 1]);
        stack.push_all(&[4]);
        let mut out = [0; 4];
        assert_eq!((stack.pop_many(&mut out), out[..2].to_vec()), (2, std::vec![2, 1]));
    }

    #[test]
    fn what_was_abandoned_is_not_found_and_the_tag_says_so() {
        let (head, next) = (AtomicU64::new(0), links(8));
        let stack = Stack::new(&head, &next);
        stack.abandon();
        assert_eq!(head.load(Ordering::Relaxed), 0);
        stack.push_all(&[5, 6]);
        stack.abandon();
        assert_eq!(head.load(Ordering::Relaxed), 2 << 32);
        stack.push_all(&[7]);
        let mut out = [0; 3];
        assert_eq!((stack.pop_many(&mut out), out[0]), (1, 7));
    }

    #[test]
    fn every_change_raises_the_tag() {
        let (head, next) = (AtomicU64::new(u64::from(u32::MAX) << 32), links(4));
        let stack = Stack::new(&head, &next);
        stack.push_all(&[2]);
        // It wraps, and never into the index.
        assert_eq!(head.load(Ordering::Relaxed), 3);
        stack.pop_many(&mut [0]);
        assert_eq!(head.load(Ordering::Relaxed), 1 << 32);
    }

    #[test]
    fn threads_neither_lose_nor_double_an_entry() {
        const ENTRIES: u32 = 64;
        let (head, next) = (AtomicU64::new(0), links(64));
        let stack = Stack::new(&head, &next);
        stack.push_all(&(0..ENTRIES).collect::<Vec<_>>());
        // Who holds an entry has its lock.
        let held: Vec<Mutex<()>> = (0..ENTRIES).map(|_| Mutex::new(())).collect();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let held = &held;
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let mut mine = [0; 5];
                        let count = stack.pop_many(&mut mine[..1 + (round + thread) % 5]);
                        let of = |index: &u32| held[*index as usize].try_lock().unwrap();
                        let guards: Vec<_> = mine[..count].iter().map(of).collect();
                        drop(guards);
                        stack.push_all(&mine[..count]);
                    }
                });
            }
        });
        let mut all = [0; 65];
        assert_eq!(stack.pop_many(&mut all), 64);
        all[..64].sort_unstable();
        assert!(all[..64].iter().copied().eq(0..ENTRIES));
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
