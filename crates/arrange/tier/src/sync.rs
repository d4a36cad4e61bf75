//! The atomics of the directory, or loom's when its protocol is checked on every interleaving.
//!
//! Lists, locks and counters take the real ones by name: they are held by one actor at a time, or decide
//! nothing.

#[cfg(not(all(loom, test)))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::AtomicU32;

pub(crate) use core::sync::atomic::Ordering;
