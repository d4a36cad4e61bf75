//! AArch64: the virtual counter, the timed load, the dependent chase, and the maintenance of single lines.
//!
//! Order is kept in two ways (Arm ARM, DDI 0487, B2.3.12 "Memory barriers"). `dsb` waits until earlier accesses
//! are complete, `dsb ishld` until earlier loads are. `isb` lets nothing behind it begin before what is in front
//! of it is done, and that is what orders a read of the counter, which may otherwise be made early
//! (D12.1.2 "The virtual counter"). Nothing here checks an address: that is done once, where a batch begins.

mod flushing;
mod records;

pub(crate) use flushing::try_flush;

use crate::processor::Features;
use core::arch::asm;

/// Whether [`timed_load`] times loads on this kind of CPU.
pub(crate) const TIMED_LOADS: bool = true;
/// Whether the counter of every CPU of this kind is fine enough for one load. Here it depends: 1 GHz since
/// Armv8.6, 25 to 100 MHz on most before, and nobody promises that it goes by ones.
pub(crate) const COUNTER_IS_FINE: bool = false;

/// Why lines cannot be flushed where they cannot.
pub(crate) const NO_FLUSH: &str =
    "cannot flush cache lines: `dc civac` is refused to programs here (SIGILL)";

/// Bytes that a flush puts out: the smallest line of all caches (CTR_EL0.DminLine, Arm ARM, D19.2.34).
pub(crate) fn line_bytes() -> usize {
    let types: u64;
    // SAFETY: reads a register that Linux lets every program read, or reads for it (SCTLR_EL1.UCT).
    unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) }
    // The logarithm of the words, of four bytes each.
    4 << (types >> 16 & 0xf)
}

/// Counts in a second, as the firmware has written it down (CNTFRQ_EL0).
pub(crate) fn nominal_hz() -> Option<u64> {
    let hz: u64;
    // SAFETY: reads a register that Linux lets every program read (CNTKCTL_EL1.EL0VCTEN).
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) }
    (hz > 0).then_some(hz)
}

/// Reads the counter before something that is timed: loads that came before are complete, and what is timed has
/// not begun.
#[inline(always)]
pub(crate) fn start() -> u64 {
    let now: u64;
    // SAFETY: barriers and a counter that Linux lets every program read. Not `nomem`: the compiler moves no access
    // of its own across it.
    unsafe {
        asm!("dsb ishld", "isb", "mrs {now}, cntvct_el0", "isb", now = out(reg) now,
            options(nostack, preserves_flags));
    }
    now
}

/// Reads the counter after something that is timed: loads that are timed are complete.
#[inline(always)]
pub(crate) fn stop() -> u64 {
    let now: u64;
    // SAFETY: as in `start`.
    unsafe {
        asm!("dsb ishld", "isb", "mrs {now}, cntvct_el0", now = out(reg) now,
            options(nostack, preserves_flags));
    }
    now
}

/// Reads the counter without order, to see its steps.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    let now: u64;
    // SAFETY: as in `start`.
    unsafe { asm!("mrs {now}, cntvct_el0", now = out(reg) now, options(nostack, preserves_flags)) }
    now
}

/// Counts of a timed region with nothing in it: [`timed_load`] without the load.
#[inline(always)]
pub(crate) fn timed_nothing() -> u32 {
    let (begin, end): (u64, u64);
    // SAFETY: as in `start`.
    unsafe {
        asm!(
            "dsb ishld", "isb", "mrs {begin}, cntvct_el0", "isb",
            "dsb ishld", "isb", "mrs {end}, cntvct_el0",
            begin = out(reg) begin, end = out(reg) end,
            options(nostack, preserves_flags),
        );
    }
    difference(begin, end)
}

/// Counts that one load of eight bytes takes, the timer's own cost included.
///
/// # Safety
/// `address` is valid for a read of eight bytes.
#[inline(always)]
pub(crate) unsafe fn timed_load(address: *const u64) -> u32 {
    let (begin, end): (u64, u64);
    // SAFETY: the caller vouches for the address; the rest is as in `start`.
    unsafe {
        asm!(
            "dsb ishld", "isb", "mrs {begin}, cntvct_el0", "isb",
            "ldr {value}, [{address}]",
            "dsb ishld", "isb", "mrs {end}, cntvct_el0",
            address = in(reg) address, value = out(reg) _,
            begin = out(reg) begin, end = out(reg) end,
            options(nostack, preserves_flags),
        );
    }
    difference(begin, end)
}

/// Follows `8 * eights` links from `address` and returns where that leads. Each link is the
/// address of the next, so each load waits for the one before it.
///
/// # Safety
/// `address` and every link met on the way is valid for a read of eight bytes and holds such a
/// link; `eights` is not 0.
#[inline(always)]
pub(crate) unsafe fn follow_eights(mut address: *const u64, eights: u64) -> *const u64 {
    // SAFETY: the caller vouches for every address that is read.
    unsafe {
        asm!(
            "2:",
            "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]",
            "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            p = inout(reg) address, n = inout(reg) eights => _,
            options(nostack, readonly),
        );
    }
    address
}

/// Cleans and invalidates a line to the point of coherency; ordered by [`fence`]. Caches of all cores are in front
/// of that point, a cache of the whole system may lie behind it (Arm ARM, D7.4.8).
///
/// # Safety
/// `address` is mapped and [`Features::clflush`] is set.
#[inline(always)]
pub(crate) unsafe fn flush_line(address: *const u64) {
    // SAFETY: the caller vouches for the address; the content of memory stays.
    unsafe { asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags)) }
}

/// Never called: [`Features::clflushopt`] is not set. `dc civac` waits for no other one anyway.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn flush_line_unordered(_address: *const u64) {
    unreachable!("callers look at Features::clflushopt first")
}

/// Never called: [`Features::cldemote`] is not set. No instruction of this architecture demotes a line.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn demote_line(_address: *const u64) {
    unreachable!("callers look at Features::cldemote first")
}

/// Asks for a line for writing (PRFM PSTL1KEEP), which raises no exception (Arm ARM, C6.2 "PRFM").
#[inline(always)]
pub(crate) fn claim_line(address: *const u8) {
    // SAFETY: a hint that changes no memory and never faults.
    unsafe { asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Asks for a line for reading (PRFM PLDL1KEEP), likewise.
#[inline(always)]
pub(crate) fn fetch_line(address: *const u8) {
    // SAFETY: a hint that changes no memory and never faults.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Waits until all earlier loads, stores and flushes are done. Of the full system: a flush goes as far as the point
/// of coherency, which may lie outside of the inner shareable domain.
#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: a barrier touches no memory.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
}

/// Lets no later load be made before all earlier ones.
#[inline(always)]
pub(crate) fn order_loads() {
    // SAFETY: a barrier touches no memory.
    unsafe { asm!("dmb ishld", options(nostack, preserves_flags)) }
}

/// Waits a little, and says that nothing else is to be done. `yield` is for threads that share a core, and for
/// emulators, which let another core run; it costs nothing elsewhere, so that `isb` makes the pause (as `spin_loop`
/// does).
///
/// Not `wfe`: it sleeps until an event, and a write is one only for who has loaded the word exclusively (Arm ARM, "Wait
/// for Event mechanism"). Where that load is missing it sleeps until the kernel's event stream, 100 us; hypervisors may
/// trap it; and how long a core takes to wake would be part of each hand-over that is measured.
#[inline(always)]
pub(crate) fn pause() {
    // SAFETY: a hint and a barrier; they touch no memory.
    unsafe { asm!("yield", "isb", options(nomem, nostack, preserves_flags)) }
}

/// Never called: [`Features::rdpid`] is not set.
///
/// # Safety
/// None is needed; it touches nothing.
pub(crate) unsafe fn core_register() -> u16 {
    unreachable!("callers look at Features::rdpid first")
}

/// Where the loader has put glibc's `__rseq_offset` and `__rseq_size`; null where there is no such name, as in a glibc
/// before 2.35. They are weak here and not in a `global_asm!`: what is weak is so in one object file, and the compiler
/// may put that block into another one.
#[cfg(target_env = "gnu")]
pub(crate) fn rseq_names() -> (*const isize, *const u32) {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: two loads from this module's own table of addresses, which the loader has filled in.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset, size = out(reg) size,
            options(nostack, readonly, preserves_flags),
        );
    }
    (offset, size)
}

/// Likewise: there are none without glibc.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn rseq_names() -> (*const isize, *const u32) {
    (core::ptr::null(), core::ptr::null())
}

/// The 32-bit word `at` bytes from the thread pointer, read anew each time.
///
/// # Safety
/// Every thread of the process has four readable bytes there.
#[inline(always)]
pub(crate) unsafe fn thread_word(at: isize) -> u32 {
    let value: u32;
    // SAFETY: the caller vouches for the address. Not `pure`: the kernel changes the word.
    unsafe {
        asm!("mrs {thread}, tpidr_el0", "ldr {value:w}, [{thread}, {at}]",
            thread = out(reg) _, at = in(reg) at, value = lateout(reg) value,
            options(nostack, readonly, preserves_flags));
    }
    value
}

/// Loads eight bytes and forgets them: the line is in the near caches afterwards.
///
/// # Safety
/// `address` is valid for a read of eight bytes, which others may be writing: the load is one
/// instruction that the compiler does not look into.
#[inline(always)]
pub(crate) unsafe fn touch_line(address: *const u64) {
    // SAFETY: the caller vouches for the address.
    unsafe {
        asm!("ldr {value}, [{address}]", address = in(reg) address, value = out(reg) _,
            options(nostack, readonly, preserves_flags));
    }
}

/// What a program may know of this CPU without a question to the kernel. A flush is part of the architecture, and
/// Linux lets every program use it (SCTLR_EL1.UCI); [`try_flush`] says whether something else takes it away.
pub(crate) fn features() -> Features {
    // The counter runs at one rate by definition (Arm ARM, D12.1.1).
    Features { clflush: true, invariant_tsc: true, ..Features::NONE }
}

/// Whether the access that a signal is about was a write; `None` where the kernel does not say.
///
/// # Safety
/// `context` is the `ucontext_t` of a signal that is being handled.
pub(crate) unsafe fn was_write(context: *const core::ffi::c_void) -> Option<bool> {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the caller vouches for it; only the place is computed.
    let last = unsafe { &raw const (*context).uc_mcontext.pstate };
    // Records of the kernel's follow, aligned to 16 bytes (arch/arm64/include/uapi/asm/sigcontext.h).
    let first = last.wrapping_add(1).cast::<u8>();
    let first = first.wrapping_add(first.align_offset(RECORD_ALIGNMENT));
    // SAFETY: the caller vouches for it: the kernel has written records there, and one that ends them.
    unsafe { records::was_write(first.cast()) }
}

/// Of the records behind a signal's registers.
const RECORD_ALIGNMENT: usize = 16;

/// Which CPU this is cannot be had without a trap, and nothing here is listed for it.
pub(crate) fn signature() -> Option<crate::processor::Signature> {
    None
}

/// Calls a function on another stack.
///
/// # Safety
/// `top` is the end of a stack that nobody uses, writable, large enough and aligned to 16 bytes; `function` may be
/// called with `argument`.
pub(crate) unsafe fn call_on(
    top: *mut u8,
    function: extern "C" fn(*mut core::ffi::c_void),
    argument: *mut core::ffi::c_void,
) {
    // SAFETY: the stack is the caller's promise. x20 keeps the old one: a callee preserves it (AAPCS64, 6.1.1), and
    // whatever else a call may change is named. A C function does not unwind.
    unsafe {
        asm!(
            "mov x20, sp",
            "mov sp, {top}",
            "blr {function}",
            "mov sp, x20",
            top = in(reg) top,
            function = in(reg) function,
            inout("x0") argument => _,
            out("x20") _,
            clobber_abi("C"),
        );
    }
}

/// `later - earlier`, at most `u32::MAX` (a thread that was put aside for long) and at least 0.
#[inline(always)]
fn difference(earlier: u64, later: u64) -> u32 {
    u32::try_from(later.saturating_sub(earlier)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_forward_at_a_rate_that_is_known() {
        let (first, second) = (start(), stop());
        assert!(second >= first && first > 0);
        assert!(nominal_hz().is_some_and(|hz| hz >= 1_000_000));
        assert_eq!((difference(5, 7), difference(7, 5)), (2, 0));
    }
}
