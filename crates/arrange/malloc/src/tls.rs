//! A few bytes of thread-local storage, reached without a call.
//!
//! A replacement of `malloc` must not use dynamic thread-local storage: its access function
//! allocates (glibc manual, "Replacing malloc"). Stable Rust compiles `thread_local!` of a shared
//! library to just that. So the storage is declared in assembly and read by the initial-exec model:
//! its offset from the thread pointer is a constant that the dynamic linker fills in at load. It
//! holds no value with a destructor and knows nothing of what its words mean.

use core::arch::global_asm;

/// How many bytes there are for each thread, all zero at first.
pub(crate) const BYTES: usize = 24;
/// What their address is a multiple of.
pub(crate) const ALIGN: usize = 8;

// Hidden, so that the library and a program that both contain this crate have a slot each.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
global_asm!(
    ".pushsection .tbss.isochrone_thread_slot,\"awT\",%nobits",
    ".balign {align}",
    ".globl isochrone_thread_slot",
    ".hidden isochrone_thread_slot",
    ".type isochrone_thread_slot,%object",
    ".size isochrone_thread_slot,{bytes}",
    "isochrone_thread_slot:",
    ".zero {bytes}",
    ".popsection",
    bytes = const BYTES,
    align = const ALIGN,
);

/// Where this thread's bytes are: mapped, zeroed when the thread began, and there for as long as this thread can run.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn address() -> *const u8 {
    let slot: *const u8;
    // SAFETY: reads the offset that the linker has put into the global offset table and the thread
    // pointer at fs:0 (System V psABI, x86-64 TLS, initial exec); changes flags only. The result
    // is the same whenever this thread asks.
    unsafe {
        core::arch::asm!(
            "mov {slot}, qword ptr [rip + isochrone_thread_slot@GOTTPOFF]",
            "add {slot}, qword ptr fs:[0]",
            slot = out(reg) slot,
            options(pure, nomem, nostack),
        );
    }
    slot
}

/// Where this thread's bytes are: mapped, zeroed when the thread began, and there for as long as this thread can run.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn address() -> *const u8 {
    let slot: *const u8;
    // SAFETY: reads the offset that the linker has put into the global offset table and the thread
    // pointer (ELF for the Arm 64-bit Architecture, TLS initial exec); changes nothing else. The
    // result is the same whenever this thread asks.
    unsafe {
        core::arch::asm!(
            "adrp {slot}, :gottprel:isochrone_thread_slot",
            "ldr {slot}, [{slot}, #:gottprel_lo12:isochrone_thread_slot]",
            "mrs {pointer}, tpidr_el0",
            "add {slot}, {slot}, {pointer}",
            slot = out(reg) slot,
            pointer = out(reg) _,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    slot
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("add the initial-exec access sequence of this architecture here");
