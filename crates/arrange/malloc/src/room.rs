//! The one place from which the process's allocator asks the system for more than glibc's malloc
//! asks it: files, clocks, cores. Who works in it does so alone, with its signals waiting, on a
//! stack of the room's own, since `malloc` is called on the 16 KiB of a thread and the 4 KiB of a
//! coroutine.
//!
//! It can be closed for good, which waits for whoever is in it: from then on nothing here is asked
//! of the system, whatever a filter of system calls forbids.

use crate::lock::{Held, Lock};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};
use isochrone_os::signal::SharedStack;

/// Several times what the largest frames below add up to (some 150 KiB); pages come as they are
/// touched.
const STACK_BYTES: usize = 1 << 20;

/// The room.
#[derive(Debug)]
pub(crate) struct Room {
    lock: Lock,
    closed: AtomicBool,
    stack: UnsafeCell<Option<SharedStack>>,
}

// SAFETY: the stack is reached through `Inside` only, which holds the lock.
unsafe impl Sync for Room {}

/// Being in the room; leaves when dropped.
#[derive(Debug)]
pub(crate) struct Inside<'a> {
    room: &'a Room,
    _held: Held<'a>,
}

impl Room {
    pub(crate) const fn new() -> Self {
        let stack = UnsafeCell::new(None);
        Self { lock: Lock::new(), closed: AtomicBool::new(false), stack }
    }

    /// Whether nobody may enter any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Enters, unless it is closed or somebody is in it: what is to be done there can wait.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        if self.is_closed() { None } else { self.inside(self.lock.try_hold()?) }
    }

    /// Enters when nobody is in it. `None` where it is closed, or where this thread is in it: a
    /// signal came in between.
    pub(crate) fn wait(&self) -> Option<Inside<'_>> {
        if self.is_closed() { None } else { self.inside(self.lock.hold_in_time()?) }
    }

    fn inside<'a>(&'a self, held: Held<'a>) -> Option<Inside<'a>> {
        // Again: whoever closes it waits for the lock afterwards.
        if self.is_closed() {
            return None;
        }
        // SAFETY: the lock is held, so this is the only reference.
        let stack = unsafe { &mut *self.stack.get() };
        if stack.is_none() {
            *stack = SharedStack::new(STACK_BYTES).ok();
        }
        if stack.is_none() {
            self.closed.store(true, Ordering::Release);
            return None;
        }
        Some(Inside { room: self, _held: held })
    }

    /// Lets nobody in any more, and waits for whoever is in it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.lock.hold_in_time());
    }

    /// In a child of `fork`: who was in it is not there any more.
    pub(crate) fn forked(&self) {
        self.lock.free_of_lost();
    }
}

impl Inside<'_> {
    /// Works on the room's stack.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        // SAFETY: the lock is held, and `&mut self` is the only reference.
        let stack = unsafe { (*self.room.stack.get()).as_ref() };
        match stack {
            // SAFETY: the lock is held, and `self` is borrowed, so nobody works on it.
            Some(stack) => unsafe { stack.run(work) },
            // Not the work: it would have its frame on the caller's stack.
            None => unreachable!("whoever entered has seen it"),
        }
    }

    /// Gives back what the work so far has made present of the stack, which was more than what follows will need.
    pub(crate) fn give_stack_back(&mut self) {
        // SAFETY: the lock is held, and `&mut self` is the only reference.
        let stack = unsafe { (*self.room.stack.get()).as_ref() };
        // SAFETY: as above; whoever works on it has borrowed `self`.
        stack.inspect(|stack| unsafe { stack.give_back() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn one_at_a_time_is_in_it_until_it_is_closed() {
        let room = Room::new();
        let mut inside = room.enter().expect("open and empty");
        assert!(room.enter().is_none() && room.wait().is_none());
        let large = inside
            .run(|| std::hint::black_box([1_u8; 200_000]).iter().filter(|&&b| b == 1).count());
        assert_eq!(large, 200_000);
        drop(inside);
        assert!(room.wait().is_some());
        room.close();
        assert!(room.enter().is_none() && room.wait().is_none() && room.is_closed());
    }

    #[test]
    fn closing_waits_for_who_is_in_it() {
        let room = Room::new();
        let done = AtomicU32::new(0);
        let began = AtomicU32::new(0);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut inside = room.enter().expect("open and empty");
                began.store(1, Ordering::Release);
                inside.run(|| {
                    while !room.is_closed() {
                        std::hint::spin_loop();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(5));
                });
                done.store(1, Ordering::Release);
            });
            while began.load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
            room.close();
            assert_eq!(done.load(Ordering::Acquire), 1);
        });
    }

    #[test]
    fn who_is_in_it_may_close_it() {
        let room = Room::new();
        let inside = room.enter().expect("open and empty");
        room.close();
        drop(inside);
        assert!(room.enter().is_none());
    }
}
