//! What finishing tasks do to those that wait for them, by any number of workers at once.
//!
//! A task's `successors` word holds its age and the first edge to a successor. Whoever registers a
//! successor pushes an edge by compare-and-swap, which fails once the age has changed; who finishes the
//! task swaps in the next age, and owns the edges that were there. So an edge is either pushed before
//! the end and seen by it, or refused, and then there is nothing to wait for.

use isochrone_os::cache::fetch_line;
use isochrone_os::race;

use crate::arena::slot::flag;
use crate::arena::slot::{NONE, TaskRef};
use crate::arena::{Arena, age, head};
use crate::sync::Ordering;

/// Successors whose lines are asked for together: a stencil's task has three.
const AT_ONCE: usize = if cfg!(all(loom, test)) { 2 } else { 8 };

impl Arena {
    /// Makes `after` wait for `task` through a free `edge`. False if the task is over, and the edge
    /// still free. Who calls this has counted the edge in `pending` of `after` before.
    #[inline]
    pub(crate) fn follow(&self, task: TaskRef, after: u32, edge: u32) -> bool {
        let word = &self.slot(task.slot).successors;
        let entry = &self.edges[edge as usize];
        entry.to.store(after, Ordering::Relaxed);
        // Acquire: where the task is over, what it wrote comes before whoever need not wait for it.
        let mut seen = word.load(Ordering::Acquire);
        loop {
            if age(seen) != task.age {
                race::acquire(word);
                return false;
            }
            entry.next.store(head(seen), Ordering::Relaxed);
            let new = u64::from(task.age) << 32 | u64::from(edge);
            // Release: the edge's words come before it can be found.
            match word.compare_exchange_weak(seen, new, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
    }

    /// The seat to wake plus one when a sentinel waits for nothing any more; 0 for a task.
    #[inline]
    fn waiter_of(&self, slot: u32) -> u32 {
        let slot = self.slot(slot);
        if slot.flags.load(Ordering::Relaxed) & flag::SENTINEL == 0 {
            return 0;
        }
        slot.waiter.load(Ordering::Relaxed)
    }

    /// Ends the task in `slot`: from here on nobody can wait for it. Calls `ready` for each successor
    /// that waits for nothing else, with the seat to wake plus one where it is a sentinel and 0 where it
    /// is a task, and `free` for each edge.
    #[inline]
    pub(crate) fn end(
        &self,
        slot: u32,
        mut ready: impl FnMut(u32, u32),
        mut free: impl FnMut(u32),
    ) {
        let word = &self.slot(slot).successors;
        let next_age = age(word.load(Ordering::Relaxed)).wrapping_add(1);
        race::release(word);
        // Acquire: what whoever pushed an edge wrote. Release: what the task wrote comes before anybody
        // sees that it is over.
        let last = word.swap(u64::from(next_age) << 32, Ordering::AcqRel);
        let mut edge = head(last);
        while edge != NONE {
            // Who registered the successors has their lines: they are asked for before the first is waited for.
            let (mut some, mut count) = ([NONE; AT_ONCE], 0);
            while edge != NONE && count < AT_ONCE {
                let entry = &self.edges[edge as usize];
                some[count] = entry.to.load(Ordering::Relaxed);
                self.slot(some[count]).claim(1);
                let next = entry.next.load(Ordering::Relaxed);
                free(edge);
                (edge, count) = (next, count + 1);
            }
            for &after in &some[..count] {
                // Before the last of those it waits for is over: then whoever waits may take a sentinel's slot
                // for another task at once.
                let waiter = self.waiter_of(after);
                if self.satisfy(after, 1) {
                    ready(after, waiter);
                }
            }
        }
    }

    /// Asks for what [`Self::end`] of a task that begins now will look at first.
    #[inline]
    pub(crate) fn prepare_end(&self, slot: u32) {
        let first = head(self.slot(slot).successors.load(Ordering::Relaxed));
        if first != NONE {
            fetch_line(core::ptr::from_ref(&self.edges[first as usize]).cast());
        }
    }

    /// Takes `count` from what a task waits for; true for whoever takes the last.
    #[inline]
    pub(crate) fn satisfy(&self, slot: u32, count: u32) -> bool {
        let pending = &self.slot(slot).pending;
        race::release(pending);
        // AcqRel: whoever takes the last sees all that came before every task it waited for ended.
        pending.fetch_sub(count, Ordering::AcqRel) == count
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_tests;
