//! The atomics of the live reading, or loom's when its protocols are checked on every interleaving.

#[cfg(not(all(loom, test)))]
pub(super) use core::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(all(loom, test))]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64};

pub(super) use core::sync::atomic::Ordering;
