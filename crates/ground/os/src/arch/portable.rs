//! Any other CPU: the system's clock in the place of the counter, a chase in plain Rust, and
//! nothing that needs an instruction of its own. It never pretends: what it cannot time or flush
//! is missing from its features, and the callers turn that into an error.

use crate::processor::Features;
use core::sync::atomic::{Ordering, fence as order};

/// Whether [`timed_load`] times loads on this kind of CPU.
pub(crate) const TIMED_LOADS: bool = false;
/// Whether the counter of every CPU of this kind is fine enough for one load.
pub(crate) const COUNTER_IS_FINE: bool = false;

/// Why lines cannot be flushed.
pub(crate) const NO_FLUSH: &str = "cannot flush cache lines: no flush is known for this CPU";

/// What is assumed where nobody says.
pub(crate) fn line_bytes() -> usize {
    isochrone_units::LINE_BYTES
}

/// Nothing is known of the system's clock.
pub(crate) fn nominal_hz() -> Option<u64> {
    None
}

/// No flush is known here.
pub(crate) fn try_flush() -> bool {
    false
}

/// Nanoseconds of the system's raw monotonic clock.
pub(crate) fn counter() -> u64 {
    crate::clock::monotonic_ns()
}

/// [`counter`] after everything before it, as far as the compiler and the memory model go.
pub(crate) fn start() -> u64 {
    order(Ordering::SeqCst);
    let now = counter();
    order(Ordering::SeqCst);
    now
}

/// [`counter`] after what is timed.
pub(crate) fn stop() -> u64 {
    start()
}

/// Nanoseconds of a timed region with nothing in it.
pub(crate) fn timed_nothing() -> u32 {
    let begin = start();
    u32::try_from(stop().saturating_sub(begin)).unwrap_or(u32::MAX)
}

/// Never called: [`TIMED_LOADS`] is false. A system clock is too coarse for one load.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn timed_load(_address: *const u64) -> u32 {
    unreachable!("callers look at TIMED_LOADS first")
}

/// Follows `8 * eights` links from `address` and returns where that leads.
///
/// # Safety
/// `address` and every link met on the way is valid for a read of eight bytes and holds such a
/// link.
pub(crate) unsafe fn follow_eights(mut address: *const u64, eights: u64) -> *const u64 {
    for _ in 0..eights * 8 {
        let link = address.cast::<*const u64>();
        // SAFETY: the caller vouches for every address that is read.
        address = unsafe { link.read_volatile() };
    }
    address
}

/// Never called: [`Features::clflush`] is not set.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn flush_line(_address: *const u64) {
    unreachable!("callers look at Features::clflush first")
}

/// Never called: [`Features::clflushopt`] is not set.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn flush_line_unordered(_address: *const u64) {
    unreachable!("callers look at Features::clflushopt first")
}

/// Never called: [`Features::cldemote`] is not set.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn demote_line(_address: *const u64) {
    unreachable!("callers look at Features::cldemote first")
}

/// Does nothing: a hint may.
pub(crate) fn claim_line(_address: *const u8) {}

/// Does nothing: a hint may.
pub(crate) fn fetch_line(_address: *const u8) {}

/// Orders all earlier loads and stores before all later ones.
pub(crate) fn fence() {
    order(Ordering::SeqCst);
}

/// Waits a little, and says that nothing else is to be done.
#[inline(always)]
pub(crate) fn pause() {
    core::hint::spin_loop();
}

/// Orders all earlier loads before all later ones.
pub(crate) fn order_loads() {
    order(Ordering::Acquire);
}

/// Never called: [`Features::rdpid`] is not set.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn core_register() -> u16 {
    unreachable!("callers look at Features::rdpid first")
}

/// No word of a thread's own is known here.
pub(crate) fn rseq_names() -> (*const isize, *const u32) {
    (core::ptr::null(), core::ptr::null())
}

/// Never called: [`rseq_names`] has none.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn thread_word(_at: isize) -> u32 {
    unreachable!("callers have no place to ask for")
}

/// Loads eight bytes and forgets them.
///
/// # Safety
/// `address` is valid for a read of eight bytes.
pub(crate) unsafe fn touch_line(address: *const u64) {
    // SAFETY: the caller vouches for the address.
    core::hint::black_box(unsafe { address.read_volatile() });
}

/// This processor's frames are not known here.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn was_write(_context: *const core::ffi::c_void) -> Option<bool> {
    None
}

/// Which CPU this is is not asked.
pub(crate) fn signature() -> Option<crate::processor::Signature> {
    None
}

/// Calls a function, on the stack that its caller is on: another one would take instructions of this architecture.
///
/// # Safety
/// `function` may be called with `argument`.
pub(crate) unsafe fn call_on(
    _top: *mut u8,
    function: extern "C" fn(*mut core::ffi::c_void),
    argument: *mut core::ffi::c_void,
) {
    function(argument);
}

/// Nothing is known of this CPU.
pub(crate) fn features() -> Features {
    Features::NONE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_claims_no_feature_and_its_clock_goes_forward() {
        assert_eq!(features(), Features::NONE);
        let (first, second) = (start(), stop());
        assert!(second >= first && first > 0);
    }

    #[test]
    fn eights_follow_the_links() {
        let mut links = [0_usize; 3];
        let at = links.as_mut_ptr();
        let address = |i: usize| at.wrapping_add(i).expose_provenance();
        let ring = [address(1), address(2), address(0)];
        for (i, link) in ring.into_iter().enumerate() {
            let word = at.wrapping_add(i);
            // SAFETY: `i` is below 3, the length of `links`.
            unsafe { word.write(link) };
        }
        // SAFETY: the three words hold one another's addresses, and all of them live here.
        let end = unsafe { follow_eights(at.cast_const().cast(), 2) };
        assert_eq!(end.addr(), address(16 % 3));
    }
}
