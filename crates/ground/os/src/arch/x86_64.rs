//! x86-64: the time-stamp counter, the timed load, the dependent chase, and the cache-control
//! instructions.
//!
//! Order is kept by `lfence` alone. On Intel it waits until all earlier instructions are complete
//! and lets no later one begin (SDM vol. 2, LFENCE); on AMD it does so because Linux sets
//! `DE_CFG[1]` wherever it can (APM vol. 2, section 3.2.4 of the MSR list: "LFENCE serializing").
//! Nothing here checks an address: that is done once, where a batch begins.

use crate::processor::Features;
use crate::processor::Signature;
use core::arch::asm;
use core::arch::x86_64::__cpuid_count;

/// Whether [`timed_load`] times loads on this kind of CPU.
pub(crate) const TIMED_LOADS: bool = true;
/// Whether the counter of every CPU of this kind is fine enough for one load: its steps are 10 ns at most.
pub(crate) const COUNTER_IS_FINE: bool = true;

/// Why lines cannot be flushed where they cannot.
pub(crate) const NO_FLUSH: &str = "cannot flush cache lines: this CPU has no clflush";

/// Bytes that a flush puts out: 64 on every CPU of this kind with caches.
pub(crate) fn line_bytes() -> usize {
    isochrone_units::LINE_BYTES
}

/// Nobody is asked: the rate is measured where it is needed.
pub(crate) fn nominal_hz() -> Option<u64> {
    None
}

/// Nothing has to be tried: CPUID says what there is.
pub(crate) fn try_flush() -> bool {
    true
}

/// Reads the counter before something that is timed: what came before is complete, and what is
/// timed has not begun.
#[inline(always)]
pub(crate) fn start() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: fences and a counter read; they touch no memory, and rdtsc is permitted to user
    // code on every Linux (unless forbidden by prctl, which stops the program with a signal).
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high,
            options(nostack, preserves_flags));
    }
    join(low, high)
}

/// Reads the counter after something that is timed: what is timed is complete.
#[inline(always)]
pub(crate) fn stop() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: as in `start`.
    unsafe {
        asm!("lfence", "rdtsc", out("eax") low, out("edx") high,
            options(nostack, preserves_flags));
    }
    join(low, high)
}

/// Reads the counter without order, to see its steps.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: as in `start`.
    unsafe {
        asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags));
    }
    join(low, high)
}

/// Cycles of a timed region with nothing in it: [`timed_load`] without the load.
#[inline(always)]
pub(crate) fn timed_nothing() -> u32 {
    let (low0, high0, low1, high1): (u32, u32, u32, u32);
    // SAFETY: as in `start`.
    unsafe {
        asm!(
            "lfence", "rdtsc", "mov {low0:e}, eax", "mov {high0:e}, edx", "lfence",
            "lfence", "rdtsc",
            low0 = out(reg) low0, high0 = out(reg) high0, out("eax") low1, out("edx") high1,
            options(nostack, preserves_flags),
        );
    }
    difference(join(low0, high0), join(low1, high1))
}

/// Cycles that one load of eight bytes takes, the timer's own cost included.
///
/// # Safety
/// `address` is valid for a read of eight bytes.
#[inline(always)]
pub(crate) unsafe fn timed_load(address: *const u64) -> u32 {
    let (low0, high0, low1, high1): (u32, u32, u32, u32);
    // SAFETY: the caller vouches for the address; the rest is as in `start`. The block is not
    // marked `nomem`, so the compiler moves no access of its own across it.
    unsafe {
        asm!(
            "lfence", "rdtsc", "mov {low0:e}, eax", "mov {high0:e}, edx", "lfence",
            "mov {value}, qword ptr [{address}]",
            "lfence", "rdtsc",
            address = in(reg) address, value = out(reg) _,
            low0 = out(reg) low0, high0 = out(reg) high0, out("eax") low1, out("edx") high1,
            options(nostack, preserves_flags),
        );
    }
    difference(join(low0, high0), join(low1, high1))
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
            "mov {p}, qword ptr [{p}]", "mov {p}, qword ptr [{p}]",
            "mov {p}, qword ptr [{p}]", "mov {p}, qword ptr [{p}]",
            "mov {p}, qword ptr [{p}]", "mov {p}, qword ptr [{p}]",
            "mov {p}, qword ptr [{p}]", "mov {p}, qword ptr [{p}]",
            "dec {n}",
            "jnz 2b",
            p = inout(reg) address, n = inout(reg) eights => _,
            options(nostack, readonly),
        );
    }
    address
}

/// Puts a line out of every cache of the machine, modified or not; ordered by [`fence`].
///
/// # Safety
/// `address` is mapped.
#[inline(always)]
pub(crate) unsafe fn flush_line(address: *const u64) {
    // SAFETY: the caller vouches for the address; flushing changes no memory.
    unsafe { asm!("clflush [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// [`flush_line`] that does not wait for other flushes. The CPU must have `clflushopt`.
///
/// # Safety
/// `address` is mapped and [`Features::clflushopt`] is set.
#[inline(always)]
pub(crate) unsafe fn flush_line_unordered(address: *const u64) {
    // SAFETY: the caller vouches for address and CPU; flushing changes no memory.
    unsafe { asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Asks that a line move from the near caches into the last-level cache.
///
/// # Safety
/// `address` is mapped. On a CPU without `cldemote` this does nothing.
#[inline(always)]
pub(crate) unsafe fn demote_line(address: *const u64) {
    // SAFETY: the caller vouches for the address. The bytes are `cldemote [rax]`, NP 0F 1C /0
    // (SDM vol. 2), written out since assemblers may not know them; a hint, a nop elsewhere.
    unsafe {
        asm!(".byte 0x0f, 0x1c, 0x00", in("rax") address, options(nostack, preserves_flags));
    }
}

/// Asks for a line for writing (PREFETCHW). A prefetch raises no exception, and a CPU without it does
/// nothing (SDM vol. 2, PREFETCHW).
#[inline(always)]
pub(crate) fn claim_line(address: *const u8) {
    // SAFETY: a hint that changes no memory and never faults.
    unsafe { asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Asks for a line for reading (PREFETCHT0), which raises no exception (SDM vol. 2, PREFETCHh).
#[inline(always)]
pub(crate) fn fetch_line(address: *const u8) {
    // SAFETY: a hint that changes no memory and never faults.
    unsafe { asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Waits until all earlier loads, stores and flushes are done.
#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: a fence touches no memory.
    unsafe { asm!("mfence", options(nostack, preserves_flags)) }
}

/// Waits a little, and says that nothing else is to be done.
#[inline(always)]
pub(crate) fn pause() {
    core::hint::spin_loop();
}

/// Waits until all earlier loads are done, so that no later one is made in advance.
#[inline(always)]
pub(crate) fn order_loads() {
    // SAFETY: a fence touches no memory.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) }
}

/// The core that runs this, from the register that Linux keeps it in. The CPU must have `rdpid`.
///
/// # Safety
/// [`Features::rdpid`] is set.
#[inline(always)]
pub(crate) unsafe fn core_register() -> u16 {
    let value: u64;
    // SAFETY: the caller vouches for the CPU; the instruction reads IA32_TSC_AUX only.
    unsafe { asm!("rdpid {}", out(reg) value, options(nomem, nostack, preserves_flags)) }
    // Linux keeps node << 12 | cpu there (arch/x86/include/asm/segment.h, VDSO_CPUNODE_BITS).
    let [low, high, ..] = value.to_le_bytes();
    u16::from_le_bytes([low, high & 0x0f])
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
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
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
        asm!("mov {value:e}, dword ptr fs:[{at}]", at = in(reg) at, value = out(reg) value,
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
        asm!("mov {value}, qword ptr [{address}]", address = in(reg) address, value = out(reg) _,
            options(nostack, readonly, preserves_flags));
    }
}

/// Whether the access that a signal is about was a write.
///
/// # Safety
/// `context` is the `ucontext_t` of a signal that is being handled.
pub(crate) unsafe fn was_write(context: *const core::ffi::c_void) -> Option<bool> {
    /// Bit 1 of a page fault's error code (Intel SDM volume 3, figure 4-12).
    const WRITE: i64 = 2;
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the caller vouches for it.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    Some(registers[usize::try_from(libc::REG_ERR).unwrap_or(0)] & WRITE != 0)
}

/// What CPUID says of this CPU. Slow inside a virtual machine, where each CPUID leaves it.
pub(crate) fn features() -> Features {
    let highest = __cpuid_count(0, 0).eax;
    let basic = __cpuid_count(1, 0);
    let bit = |word: u32, bit: u32| word >> bit & 1 == 1;
    let mut found = Features { clflush: bit(basic.edx, 19), ..Features::NONE };
    found.hypervisor = bit(basic.ecx, 31);
    if highest >= 7 {
        let extended = __cpuid_count(7, 0);
        found.clflushopt = bit(extended.ebx, 23);
        found.clwb = bit(extended.ebx, 24);
        found.rdpid = bit(extended.ecx, 22);
        found.cldemote = bit(extended.ecx, 25);
    }
    if __cpuid_count(0x8000_0000, 0).eax >= 0x8000_0007 {
        found.invariant_tsc = bit(__cpuid_count(0x8000_0007, 0).edx, 8);
    }
    found
}

/// Who made this CPU, and which it is.
pub(crate) fn signature() -> Option<Signature> {
    let names = __cpuid_count(0, 0);
    let mut vendor = [0; 12];
    for (bytes, word) in vendor.chunks_exact_mut(4).zip([names.ebx, names.edx, names.ecx]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let word = __cpuid_count(1, 0).eax;
    let part = |from: u32, bits: u32| word >> from & ((1 << bits) - 1);
    // Extended parts count where the family is 15, and that of the model for Intel's 6 too.
    let (family, model) = (part(8, 4), part(4, 4));
    let extended = if family == 15 || family == 6 { part(16, 4) << 4 } else { 0 };
    let family = if family == 15 { family + part(20, 8) } else { family };
    Some(Signature { vendor, family, model: model + extended })
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
    // SAFETY: the stack is the caller's promise. r12 keeps the old one: a callee preserves it (System V ABI,
    // figure 3.4), and whatever else a call may change is named. A C function does not unwind.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {function}",
            "mov rsp, r12",
            top = in(reg) top,
            function = in(reg) function,
            in("rdi") argument,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// The two halves that rdtsc returns, as one number.
#[inline(always)]
fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// `later - earlier`, at most `u32::MAX` (over a second: a thread that was put aside) and at
/// least 0 (the counter of another core, behind this one's).
#[inline(always)]
fn difference(earlier: u64, later: u64) -> u32 {
    u32::try_from(later.saturating_sub(earlier)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_saturates_at_both_ends() {
        assert_eq!(difference(5, 7), 2);
        assert_eq!(difference(7, 5), 0);
        assert_eq!(difference(0, 1 << 40), u32::MAX);
        assert_eq!(join(2, 1), (1 << 32) + 2);
    }

    #[test]
    fn the_features_are_those_that_linux_lists() {
        let text = std::fs::read_to_string("/proc/cpuinfo").expect("x86 Linux has it");
        let line = text.lines().find(|line| line.starts_with("flags")).expect("flags");
        let has = |word: &str| line.split_whitespace().any(|flag| flag == word);
        let found = features();
        assert_eq!(found.clflush, has("clflush"));
        assert_eq!(found.clflushopt, has("clflushopt"));
        assert_eq!(found.cldemote, has("cldemote"));
        assert_eq!(found.clwb, has("clwb"));
        assert_eq!(found.rdpid, has("rdpid"));
        assert_eq!(found.hypervisor, has("hypervisor"));
        // nonstop_tsc is CPUID 8000_0007h EDX[8] (arch/x86/kernel/cpu/{amd,intel}.c).
        assert_eq!(found.invariant_tsc, has("nonstop_tsc"));
    }
}
