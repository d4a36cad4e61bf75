//! Tasks that are ready, of one region or of the whole machine: first in, first out, behind whatever
//! has a priority above zero.

use super::lock::Lock;
#[cfg(not(all(loom, test)))]
use super::table::Zeroed;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The words of a queue; its ring and its heap are tables of the arena.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Queue {
    lock: Lock,
    /// Tasks in ring and heap together; anybody may look.
    len: AtomicU32,
    head: AtomicU32,
    tail: AtomicU32,
    heaped: AtomicU32,
    /// Order of arrival in the heap.
    arrivals: AtomicU32,
    /// Seats of this queue that watch or sleep, and that a task is worth waking for: where seats share cores, as many
    /// as cores have nobody awake. Changed under the lock.
    resting: AtomicU32,
}

/// Seats of a queue that share cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    /// How many of them watch or sleep; changed under the queue's lock.
    pub(crate) resting: &'a AtomicU32,
    /// The one that lay down last, plus one.
    pub(crate) last: &'a AtomicU32,
    pub(crate) seats: u32,
    /// At most as many as seats.
    pub(crate) cores: u32,
}

impl Group<'_> {
    /// Seats of it that are awake. Who is woken may lie down again before whoever woke it has taken it off: for that
    /// moment it rests twice, and all may rest and one more.
    #[inline]
    pub(crate) fn awake(self) -> u32 {
        self.seats.saturating_sub(self.resting.load(Ordering::Relaxed))
    }

    /// Whether one of its cores has nobody awake.
    #[inline]
    pub(crate) fn has_room(self) -> bool {
        self.awake() < self.cores
    }

    /// One more of its seats rests; whether a core then has nobody awake that had somebody.
    fn rest(self) -> bool {
        self.resting.store(self.resting.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.has_room()
    }

    /// One is up again; whether it is on a core where nobody was awake.
    fn rise(self) -> bool {
        let had_room = self.has_room();
        self.resting.store(self.resting.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        had_room
    }
}

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Queue {}

/// A queue of an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready<'a> {
    pub(super) queue: &'a Queue,
    pub(super) ring: &'a [AtomicU32],
    pub(super) heap: &'a [AtomicU64],
}

impl Ready<'_> {
    /// Tasks that looked ready.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.queue.len.load(Ordering::Relaxed) as usize
    }

    /// Appends a task; true if a seat of the queue rests, and should be woken.
    #[inline]
    pub(crate) fn push(self, task: u32, priority: i32) -> bool {
        let queue = self.queue;
        let guard = queue.lock.hold();
        if priority == 0 {
            let tail = queue.tail.load(Ordering::Relaxed);
            self.ring[tail as usize & (self.ring.len() - 1)].store(task, Ordering::Relaxed);
            queue.tail.store(tail.wrapping_add(1), Ordering::Relaxed);
        } else {
            self.heap_push(task, priority);
        }
        queue.len.store(queue.len.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Under the lock, so that either this sees who lay down before, or he sees the task.
        let resting = queue.resting.load(Ordering::Relaxed) > 0;
        drop(guard);
        resting
    }

    /// Appends tasks without a priority; how many seats of the queue rest.
    pub(crate) fn push_all(self, tasks: &[u32]) -> u32 {
        let queue = self.queue;
        let guard = queue.lock.hold();
        let tail = queue.tail.load(Ordering::Relaxed);
        let places = (tail..).map(|at| &self.ring[at as usize & (self.ring.len() - 1)]);
        places.zip(tasks).for_each(|(place, task)| place.store(*task, Ordering::Relaxed));
        let count = u32::try_from(tasks.len()).unwrap_or(0);
        queue.tail.store(tail.wrapping_add(count), Ordering::Relaxed);
        queue.len.store(queue.len.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        let resting = queue.resting.load(Ordering::Relaxed);
        drop(guard);
        resting
    }

    /// Takes up to `most` tasks (at least one) into `out`; how many.
    pub(crate) fn pop(self, most: usize, out: &mut Vec<u32>) -> usize {
        if self.len() == 0 {
            return 0;
        }
        let queue = self.queue;
        let guard = queue.lock.hold();
        let mut taken = 0;
        while taken < most.max(1) {
            let Some(task) = self.take() else { break };
            out.push(task);
            taken += 1;
        }
        let left = queue.len.load(Ordering::Relaxed) - u32::try_from(taken).unwrap_or(0);
        queue.len.store(left, Ordering::Relaxed);
        drop(guard);
        taken
    }

    /// Takes the first task that `wanted` says yes to, wherever it stands.
    pub(crate) fn pop_if(self, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        if self.len() == 0 {
            return None;
        }
        let queue = self.queue;
        let guard = queue.lock.hold();
        let found = self.remove_from_ring(&wanted).or_else(|| self.remove_from_heap(&wanted));
        if found.is_some() {
            queue.len.store(queue.len.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
        drop(guard);
        found
    }

    fn remove_from_ring(self, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let queue = self.queue;
        let (head, tail) = (queue.head.load(Ordering::Relaxed), queue.tail.load(Ordering::Relaxed));
        let entry = |at: u32| &self.ring[at as usize & (self.ring.len() - 1)];
        let count = tail.wrapping_sub(head);
        let place = |i: u32| entry(head.wrapping_add(i));
        let at = (0..count).find(|i| wanted(place(*i).load(Ordering::Relaxed)))?;
        let found = place(at).load(Ordering::Relaxed);
        for i in at + 1..count {
            place(i - 1).store(place(i).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        queue.tail.store(tail.wrapping_sub(1), Ordering::Relaxed);
        Some(found)
    }

    fn remove_from_heap(self, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let queue = self.queue;
        let count = queue.heaped.load(Ordering::Relaxed) as usize;
        let task = |at: usize| {
            let [a, b, c, d, ..] = self.heap[2 * at + 1].load(Ordering::Relaxed).to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        };
        let at = (0..count).find(|at| wanted(task(*at)))?;
        let found = task(at);
        // Upwards to the top, from where the usual way takes it.
        self.heap[2 * at].store(u64::MAX, Ordering::Relaxed);
        let mut at = at;
        while at > 0 {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        let popped = self.heap_pop();
        debug_assert_eq!(popped, found, "the largest key is on top");
        Some(found)
    }

    /// The first task, under the lock.
    fn take(self) -> Option<u32> {
        let queue = self.queue;
        let (head, tail) = (queue.head.load(Ordering::Relaxed), queue.tail.load(Ordering::Relaxed));
        let heaped = queue.heaped.load(Ordering::Relaxed);
        if heaped > 0 && (head == tail || self.top_is_urgent()) {
            return Some(self.heap_pop());
        }
        if head == tail {
            return None;
        }
        queue.head.store(head.wrapping_add(1), Ordering::Relaxed);
        Some(self.ring[head as usize & (self.ring.len() - 1)].load(Ordering::Relaxed))
    }

    /// Lies down, as one of `group` if the seat shares cores: from here on whoever appends a task knows of it. False
    /// if a task is there already. `say` makes it known where sleepers are looked for.
    pub(crate) fn rest(self, group: Option<Group<'_>>, say: impl FnOnce()) -> bool {
        let queue = self.queue;
        let guard = queue.lock.hold();
        let empty = queue.len.load(Ordering::Relaxed) == 0;
        if empty {
            if group.is_none_or(Group::rest) {
                queue.resting.store(queue.resting.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            say();
        }
        drop(guard);
        empty
    }

    /// Somebody who lay down, as one of `group`, is up again.
    pub(crate) fn rise(self, group: Option<Group<'_>>) {
        let queue = self.queue;
        let guard = queue.lock.hold();
        if group.is_none_or(Group::rise) {
            let resting = queue.resting.load(Ordering::Relaxed);
            debug_assert!(resting > 0, "who rises lay down before");
            queue.resting.store(resting - 1, Ordering::Relaxed);
        }
        drop(guard);
    }

    /// Whether a seat of the queue rests that a task is worth waking for.
    #[inline]
    pub(crate) fn rests(self) -> bool {
        self.queue.resting.load(Ordering::Relaxed) > 0
    }

    fn top_is_urgent(self) -> bool {
        self.heap[0].load(Ordering::Relaxed) >> 32 > ZERO_PRIORITY
    }

    fn key(self, at: usize) -> u64 {
        self.heap[2 * at].load(Ordering::Relaxed)
    }

    fn swap(self, a: usize, b: usize) {
        for word in 0..2 {
            let (x, y) = (&self.heap[2 * a + word], &self.heap[2 * b + word]);
            let (old, new) = (x.load(Ordering::Relaxed), y.load(Ordering::Relaxed));
            x.store(new, Ordering::Relaxed);
            y.store(old, Ordering::Relaxed);
        }
    }

    /// Larger keys are nearer to the top: priority first, then earlier arrival.
    fn heap_push(self, task: u32, priority: i32) {
        let queue = self.queue;
        let arrival = queue.arrivals.load(Ordering::Relaxed);
        queue.arrivals.store(arrival.wrapping_add(1), Ordering::Relaxed);
        let mut at = queue.heaped.load(Ordering::Relaxed) as usize;
        queue.heaped.store(queue.heaped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let rank = u64::from(priority.cast_unsigned() ^ 1 << 31);
        self.heap[2 * at].store(rank << 32 | u64::from(!arrival), Ordering::Relaxed);
        self.heap[2 * at + 1].store(u64::from(task), Ordering::Relaxed);
        while at > 0 && self.key((at - 1) / 2) < self.key(at) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn heap_pop(self) -> u32 {
        let queue = self.queue;
        let left = queue.heaped.load(Ordering::Relaxed) - 1;
        queue.heaped.store(left, Ordering::Relaxed);
        let left = left as usize;
        let [a, b, c, d, ..] = self.heap[1].load(Ordering::Relaxed).to_le_bytes();
        self.swap(0, left);
        let mut at = 0;
        loop {
            let mut largest = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < left && self.key(child) > self.key(largest) {
                    largest = child;
                }
            }
            if largest == at {
                return u32::from_le_bytes([a, b, c, d]);
            }
            self.swap(at, largest);
            at = largest;
        }
    }
}

/// Upper half of the key of a task with priority 0, which never is in the heap.
const ZERO_PRIORITY: u64 = 1 << 31;

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests {
    use super::super::{Arena, Capacity, Heap};
    use super::*;

    fn all(ready: Ready<'_>) -> Vec<u32> {
        let mut out = Vec::new();
        while ready.pop(3, &mut out) > 0 {}
        out
    }

    #[test]
    fn first_in_first_out_behind_what_is_urgent() {
        let arena = Arena::new(&mut Heap, Capacity { tasks: 20, ..Capacity::default() }, 1, 2);
        let ready = arena.ready(1);
        let priorities = [0, 5, -1, 0, 7, 5, -1, 0];
        for (task, priority) in (1..).zip(priorities) {
            assert!(!ready.push(task, priority));
        }
        assert_eq!(ready.len(), 8);
        assert_eq!(all(ready), [5, 2, 6, 1, 4, 8, 3, 7]);
        assert_eq!((ready.len(), arena.ready(0).len()), (0, 0));
    }

    #[test]
    fn a_task_is_taken_from_the_middle_and_the_others_keep_their_order() {
        let arena = Arena::new(&mut Heap, Capacity { tasks: 20, ..Capacity::default() }, 1, 1);
        let ready = arena.ready(0);
        for (task, priority) in (1..).zip([0, 3, 0, 9, 0, 5, -2, 7]) {
            ready.push(task, priority);
        }
        assert_eq!(ready.pop_if(|task| task == 3), Some(3));
        assert_eq!(ready.pop_if(|task| task == 6), Some(6));
        assert_eq!(ready.pop_if(|task| task == 7), Some(7));
        assert_eq!(ready.pop_if(|task| task == 7), None);
        assert_eq!(all(ready), [4, 8, 2, 1, 5]);
    }

    #[test]
    fn who_lies_down_is_seen_by_who_appends() {
        let arena = Arena::new(&mut Heap, Capacity::default(), 1, 1);
        let ready = arena.ready(0);
        assert!(ready.rest(None, || ()) && ready.rests());
        assert!(ready.push(3, 0));
        ready.rise(None);
        assert!(!ready.push(4, 0));
        assert!(!ready.rest(None, || ()), "there are tasks");
        assert_eq!(all(ready), [3, 4]);
    }

    #[test]
    fn of_seats_that_share_cores_as_many_rest_as_cores_have_nobody_awake() {
        let arena = Arena::new(&mut Heap, Capacity::default(), 5, 1);
        let ready = arena.ready(0);
        let first = &arena.seats[0];
        let (resting, last) = (&first.group_resting, &first.group_last);
        let group = Group { resting, last, seats: 4, cores: 2 };
        let worth_waking = || ready.queue.resting.load(Ordering::Relaxed);
        // The fifth seat has a core of its own.
        assert!(ready.rest(None, || ()));
        let lie_down = || assert!(ready.rest(Some(group), || ()));
        let seen: Vec<(u32, bool)> = (0..4)
            .map(|_| {
                lie_down();
                (worth_waking(), group.has_room())
            })
            .collect();
        assert_eq!(seen, [(1, false), (1, false), (2, true), (3, true)]);
        let seen: Vec<(u32, bool)> = (0..4)
            .map(|_| {
                ready.rise(Some(group));
                (worth_waking(), group.has_room())
            })
            .collect();
        assert_eq!(seen, [(2, true), (1, false), (1, false), (1, false)]);
        ready.rise(None);
        assert!(!ready.rests());
    }

    #[test]
    fn a_seat_that_lies_down_again_before_it_is_taken_off_rests_twice_for_that_moment() {
        let arena = Arena::new(&mut Heap, Capacity::default(), 2, 1);
        let ready = arena.ready(0);
        let first = &arena.seats[0];
        let (resting, last) = (&first.group_resting, &first.group_last);
        let group = Group { resting, last, seats: 1, cores: 1 };
        for _ in 0..2 {
            assert!(ready.rest(Some(group), || ()) && group.has_room() && ready.rests());
        }
        ready.rise(Some(group));
        assert!(ready.rests());
        ready.rise(Some(group));
        assert!(!ready.rests() && !group.has_room());
    }

    #[test]
    fn the_ring_turns_round_many_times() {
        let arena = Arena::new(&mut Heap, Capacity { tasks: 16, ..Capacity::default() }, 1, 1);
        let ready = arena.ready(0);
        for round in 0..1000_u32 {
            for task in 0..7 {
                ready.push(round * 7 + task, 0);
            }
            assert_eq!(all(ready), (round * 7..round * 7 + 7).collect::<Vec<_>>());
        }
    }
}
