//! The atomics of the free lists, or loom's when their protocols are checked on every
//! interleaving. Nothing else of the crate names an atomic type from elsewhere.
//!
//! A tally decides nobody's ownership, so no interleaving of it is followed.

#[cfg(not(all(loom, test)))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64};
#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

#[cfg(not(all(loom, test)))]
pub(crate) use core::sync::atomic::fence;
pub(crate) use core::sync::atomic::{AtomicI32 as Tally, Ordering};
#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::fence;
