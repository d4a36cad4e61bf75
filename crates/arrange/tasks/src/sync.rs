//! The atomics of everything that workers share, or loom's when the protocols are checked on every
//! interleaving, or shuttle's when larger cases run in random ones. Nothing else of the crate names an atomic
//! type from elsewhere, but for the words that tell where data live: they steer, and decide nobody's ownership.

#[cfg(not(any(all(loom, test), all(shuttle, test))))]
pub(crate) use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, fence};
#[cfg(not(any(all(loom, test), all(shuttle, test))))]
pub(crate) use isochrone_os::pause::pause as spin_loop;
#[cfg(all(loom, test))]
pub(crate) use loom::hint::spin_loop;
#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, fence};

#[cfg(all(shuttle, test))]
pub(crate) use shuttle::hint::spin_loop;
#[cfg(all(shuttle, test))]
pub(crate) use shuttle::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, fence};

pub(crate) use core::sync::atomic::Ordering;
use isochrone_os::futex::Scope;

/// Loom takes `SeqCst` accesses for `AcqRel` ones, and orders by fences only: this is the fence that the
/// accesses around it already are for everybody else.
#[cfg(all(loom, test))]
pub(crate) fn model_order() {
    fence(Ordering::SeqCst);
}

/// Nothing: only loom needs it.
#[cfg(not(all(loom, test)))]
#[inline]
pub(crate) fn model_order() {}

/// Sleeps while `word` holds `expected`, at most so long.
#[cfg(not(any(all(loom, test), all(shuttle, test))))]
pub(crate) fn sleep(word: &AtomicU32, expected: u32, timeout_ns: Option<u64>, scope: Scope) {
    // A kernel without futex makes this a loop that looks again and again, which is slow and right.
    let _ = isochrone_os::futex::wait(word, expected, timeout_ns, scope);
}

/// Wakes one that sleeps on `word`.
#[cfg(not(any(all(loom, test), all(shuttle, test))))]
pub(crate) fn rouse(word: &AtomicU32, scope: Scope) {
    let _ = isochrone_os::futex::wake(word, 1, scope);
}

/// In models nobody sleeps in the kernel: they drive the scheduler themselves.
#[cfg(any(all(loom, test), all(shuttle, test)))]
pub(crate) fn sleep(_: &AtomicU32, _: u32, _: Option<u64>, _: Scope) {
    give_way();
}

/// As [`sleep`].
#[cfg(any(all(loom, test), all(shuttle, test)))]
pub(crate) fn rouse(_: &AtomicU32, _: Scope) {}

/// Lets another thread go on.
#[cfg(not(any(all(loom, test), all(shuttle, test))))]
pub(crate) fn give_way() {
    std::thread::yield_now();
}

#[cfg(all(loom, test))]
pub(crate) use loom::thread::yield_now as give_way;
#[cfg(all(shuttle, test))]
pub(crate) use shuttle::thread::yield_now as give_way;
