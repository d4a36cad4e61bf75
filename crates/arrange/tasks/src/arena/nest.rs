//! Tasks that a task of this worker registered and that wait for nothing: the owner takes the newest, whoever has no
//! work the oldest. So a recursive program goes depth first on each worker, and what is taken elsewhere is large.
//!
//! The deque of Chase and Lev (SPAA 2005) with the orders of Lê, Pop, Cohen and Zappa Nardelli (PPoPP 2013), in a
//! ring of fixed size. `bottom` is the owner's alone; `top` only grows, by compare-and-swap. Owner and taker see
//! each other by a SeqCst fence between the write to one end and the look at the other.

#[cfg(not(all(loom, test)))]
use super::table::Zeroed;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Tasks that a nest holds. Programs that recurse need as many as they are deep.
pub(crate) const ROOM: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

/// A nest.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Nest {
    top: Top,
    bottom: AtomicU64,
    tasks: [AtomicU32; ROOM],
}

/// A line of its own.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Top(AtomicU64);

impl Default for Nest {
    fn default() -> Self {
        let tasks = core::array::from_fn(|_| AtomicU32::default());
        Self { top: Top::default(), bottom: AtomicU64::default(), tasks }
    }
}

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Nest {}

/// What the owner knows of its nest without looking.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// At least so many were taken.
    top: u64,
    bottom: u64,
}

impl Ends {
    /// Whether nothing is left, as far as the owner knows: if so, nothing is.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.top == self.bottom
    }
}

impl Nest {
    /// The owner's view of a nest that others may have used before.
    pub(crate) fn ends(&self) -> Ends {
        let bottom = self.bottom.load(Ordering::Relaxed);
        Ends { top: self.top.0.load(Ordering::Acquire), bottom }
    }

    fn place(&self, at: u64) -> &AtomicU32 {
        // Below `ROOM`.
        #[allow(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
        &self.tasks[(at % ROOM as u64) as usize]
    }

    /// Adds the newest task; only the owner. False if there is no room.
    #[inline]
    pub(crate) fn push(&self, ends: &mut Ends, task: u32) -> bool {
        if ends.bottom - ends.top >= ROOM as u64 {
            // Acquire: who took what was in the place has read it.
            ends.top = self.top.0.load(Ordering::Acquire);
            if ends.bottom - ends.top >= ROOM as u64 {
                return false;
            }
        }
        self.place(ends.bottom).store(task, Ordering::Relaxed);
        ends.bottom += 1;
        // Release: what was written of the task comes before anybody finds it.
        self.bottom.store(ends.bottom, Ordering::Release);
        true
    }

    /// Takes the newest task; only the owner.
    #[inline]
    pub(crate) fn pop(&self, ends: &mut Ends) -> Option<u32> {
        if ends.is_empty() {
            return None;
        }
        let last = ends.bottom - 1;
        // Release: who takes the older ones by this number finds what was written of them.
        self.bottom.store(last, Ordering::Release);
        // Either this sees who took the last one, or he sees that it is no longer there.
        fence(Ordering::SeqCst);
        ends.top = self.top.0.load(Ordering::Acquire);
        let task = self.place(last).load(Ordering::Relaxed);
        if ends.top < last {
            ends.bottom = last;
            return Some(task);
        }
        // It is the last one, and goes to whoever moves `top`; both ends then stand behind it.
        let won = ends.top == last && self.advance(last);
        self.bottom.store(ends.bottom, Ordering::Release);
        ends.top = ends.bottom;
        won.then_some(task)
    }

    /// Takes the oldest task. Anybody.
    pub(crate) fn steal(&self) -> Option<u32> {
        loop {
            let top = self.top.0.load(Ordering::Acquire);
            // See `pop`.
            fence(Ordering::SeqCst);
            if top >= self.bottom.load(Ordering::Acquire) {
                return None;
            }
            let task = self.place(top).load(Ordering::Relaxed);
            if self.advance(top) {
                return Some(task);
            }
        }
    }

    /// Whether the task at `top` is the caller's, whose place the owner may then use again.
    fn advance(&self, top: u64) -> bool {
        let orders = (Ordering::SeqCst, Ordering::Relaxed);
        self.top.0.compare_exchange(top, top + 1, orders.0, orders.1).is_ok()
    }

    /// Whether there looked to be a task.
    #[inline]
    pub(crate) fn holds_some(&self) -> bool {
        self.bottom.load(Ordering::Acquire) > self.top.0.load(Ordering::Acquire)
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_takes_the_newest_and_others_the_oldest() {
        let nest = Nest::default();
        let mut ends = nest.ends();
        assert!(ends.is_empty() && nest.pop(&mut ends).is_none() && nest.steal().is_none());
        for round in 0..100 {
            let first = round * 1000;
            let room = u32::try_from(ROOM).unwrap();
            assert!((0..room).all(|i| nest.push(&mut ends, first + i)));
            assert!(!nest.push(&mut ends, 0), "it is full");
            assert_eq!(nest.steal(), Some(first));
            assert!(nest.push(&mut ends, first + room), "room came back");
            assert_eq!(nest.pop(&mut ends), Some(first + room));
            assert_eq!(nest.pop(&mut ends), Some(first + room - 1));
            assert!((1..room - 2).all(|i| nest.steal() == Some(first + i)) && nest.holds_some());
            assert_eq!(nest.pop(&mut ends), Some(first + room - 2), "the last one");
            assert_eq!((nest.pop(&mut ends), nest.steal()), (None, None));
            assert!(ends.is_empty() && !nest.holds_some());
        }
    }

    #[test]
    fn whoever_takes_has_a_line_of_its_own() {
        assert_eq!(core::mem::offset_of!(Nest, bottom), 64);
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_tests {
    use loom::sync::Arc;

    use super::*;

    /// What an owner does beside somebody who takes twice.
    fn all_are_taken_once(owner: fn(&Nest, &mut Ends, &mut Vec<u32>)) {
        loom::model(move || {
            let nest = Arc::new(Nest::default());
            let mut ends = nest.ends();
            assert!(nest.push(&mut ends, 1) && nest.push(&mut ends, 2));
            let other = nest.clone();
            let thief = loom::thread::spawn(move || {
                let both = [other.steal(), other.steal()];
                both.into_iter().flatten().collect::<Vec<u32>>()
            });
            let mut all = Vec::new();
            owner(&nest, &mut ends, &mut all);
            all.extend(thief.join().unwrap());
            all.extend(core::iter::from_fn(|| nest.pop(&mut ends)));
            all.sort_unstable();
            let pushed = u32::try_from(all.len()).unwrap();
            assert!(pushed >= 2 && all == (1..=pushed).collect::<Vec<u32>>(), "{all:?}");
        });
    }

    #[test]
    fn the_last_task_is_taken_once() {
        all_are_taken_once(|nest, ends, all| {
            all.extend(nest.pop(ends));
            all.extend(nest.pop(ends));
        });
    }

    #[test]
    fn every_task_is_taken_once_while_places_are_used_again() {
        all_are_taken_once(|nest, ends, all| {
            all.extend(nest.pop(ends));
            if nest.push(ends, 3) {
                all.extend(nest.pop(ends));
            } else {
                all.push(3);
            }
        });
    }
}
