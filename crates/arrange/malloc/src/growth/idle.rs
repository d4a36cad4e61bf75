//! What is idle of an allocator, and how far pages that go back to the system and come again have been followed: plain
//! data.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What threads ask without the lock.
#[derive(Debug)]
pub(super) struct Idle {
    /// Since when more is idle than is kept; 0 where it is not.
    pub(super) since_ns: AtomicU64,
    /// Pages are going back.
    pub(super) returning: AtomicBool,
    /// None go before.
    pub(super) rest_until_ns: AtomicU64,
    /// Pages that had come again when that was looked at last.
    pub(super) come: AtomicU32,
    /// Bytes that stay, used or not, since they were learnt beforehand.
    pub(super) kept_bytes: AtomicU64,
}

impl Idle {
    pub(super) const fn new() -> Self {
        Self {
            since_ns: AtomicU64::new(0),
            returning: AtomicBool::new(false),
            rest_until_ns: AtomicU64::new(0),
            come: AtomicU32::new(0),
            kept_bytes: AtomicU64::new(0),
        }
    }

    /// So many bytes stay.
    pub(super) fn keep(&self, bytes: u64) {
        self.kept_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    /// In a child of `fork`, who has another work.
    pub(super) fn forget(&self) {
        self.since_ns.store(0, Ordering::Relaxed);
        self.returning.store(false, Ordering::Relaxed);
    }

    pub(super) fn rest_until(&self, ns: u64) {
        self.returning.store(false, Ordering::Relaxed);
        self.since_ns.store(0, Ordering::Relaxed);
        self.rest_until_ns.store(ns, Ordering::Relaxed);
    }
}

/// How far whoever holds the lock has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Back {
    /// The page of the arena that is looked at next.
    pub(super) next: u64,
    /// Of the pages that are learnt, the next one to be asked whether it has come again.
    pub(super) look: Option<u64>,
}
