//! Entries of an arena that are atomics alone: seats of workers, tokens, registered memory, and the run's own words.

use super::capacity::{COUNTS, FAILURE_WORDS};
use super::lock;
#[cfg(not(all(loom, test)))]
use super::table::Zeroed;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize};

/// A worker as the others see it.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Seat {
    /// One of [`seat`].
    pub(crate) state: AtomicU32,
    /// Set while the worker waits inside of a task, higher for what is more likely to wait for itself.
    pub(crate) inside: AtomicU32,
    /// The kernel that the worker runs plus one, where workers are processes.
    pub(crate) running: AtomicU32,
    /// The worker's thread as the kernel numbers it, or 0.
    pub(crate) thread: AtomicU32,
    /// Of seats that share cores the first one has [`queue::Group`]'s words.
    pub(crate) group_resting: AtomicU32,
    pub(crate) group_last: AtomicU32,
    /// What the worker counted; only itself writes.
    pub(crate) counts: [AtomicU64; COUNTS],
}

/// States of a seat.
pub(crate) mod seat {
    /// Has work, or looks for it.
    pub(crate) const AWAKE: u32 = 0;
    /// Looks only at this word, for a while.
    pub(crate) const WATCHING: u32 = 1;
    /// Must be woken by the system.
    pub(crate) const ASLEEP: u32 = 2;
    /// Must be woken by the system, and comes back by itself.
    pub(crate) const DOZING: u32 = 3;
}

/// Who waits for a range that one task at a time may use.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Token {
    pub(crate) lock: lock::Lock,
    /// The task that has it, or none.
    pub(crate) holder: AtomicU32,
    /// First and last of those that wait.
    pub(crate) first: AtomicU32,
    pub(crate) last: AtomicU32,
}

/// A registered piece of memory.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Object {
    /// Address of its first byte; 0 on a simulated machine.
    pub(crate) base: AtomicUsize,
    pub(crate) bytes: AtomicU64,
    /// Address of the words that tell where its pages live.
    pub(crate) homes: AtomicUsize,
    /// Bytes of one such word, as a power of two; the state above.
    pub(crate) shift: AtomicU32,
    /// One of [`object`].
    pub(crate) state: AtomicU32,
}

/// States of an object.
pub(crate) mod object {
    pub(crate) const ABSENT: u32 = 0;
    pub(crate) const LIVE: u32 = 1;
    pub(crate) const FREED: u32 = 2;
}

/// Words of the whole run.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Run {
    /// Set when workers shall end.
    pub(crate) stop: AtomicU32,
    /// Tasks of which some failed, and one more while ranges are undone; most runs never look further.
    pub(crate) failures: AtomicU32,
    /// Ranges that are undone: entries of their table that are in use.
    pub(super) broken: AtomicU32,
    /// Seats that are asleep.
    pub(crate) asleep: AtomicU32,
    /// Seats that were woken from sleep so far.
    pub(crate) wakes: AtomicU32,
    /// The worker, plus one, that shall give up waiting: all slept.
    pub(crate) deadlock: AtomicU32,
    /// Kernels known so far.
    pub(crate) kernels: AtomicU32,
    /// Queue for the next task that is dealt.
    pub(crate) deal: AtomicU32,
    /// Tasks of the program that got a number, and tasks that began, where a trace is kept.
    pub(crate) numbered: AtomicU32,
    pub(crate) begun: AtomicU32,
    /// Guards the first failure, and the ranges that are undone.
    pub(crate) failure_lock: lock::Lock,
    /// Whether the program has registered tasks for which it has not waited.
    pub(crate) busy: AtomicU32,
    /// Bytes of the first failure's text, its kernel plus one, and the slot of the task that is to be told.
    pub(crate) failure_len: AtomicU32,
    pub(crate) failure_kernel: AtomicU32,
    pub(crate) failure_of: AtomicU32,
    pub(crate) failure_text: [AtomicU64; FAILURE_WORDS],
}

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Seat {}
// SAFETY: as above.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Token {}
// SAFETY: as above.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Object {}
// SAFETY: as above.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Run {}
