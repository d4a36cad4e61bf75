//! A few bytes of thread-local storage, reached without a call.
//!
//! A replacement of `malloc` must not use dynamic thread-local storage: its access function
//! allocates (glibc manual, "Replacing malloc"). Stable Rust compiles `thread_local!` of a shared
//! library to just that. So the storage is declared in assembly and read by the initial-exec model:
//! its offset from the thread pointer is a constant that the dynamic linker fills in at load. It
//! holds no value with a destructor and knows nothing of what its words mean.

use crate::alone::Alone;
use core::arch::global_asm;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr};

/// What a thread has of its own before it has anything else. All zero at first. Atomic for the
/// sake of signal handlers only: no other thread ever sees it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Slot {
    /// One of the states of `thread::state`, or the thread's block.
    pub(crate) state: AtomicPtr<c_void>,
    /// What it counts without a block.
    pub(crate) alone: Alone,
    /// The program has said on which cores it may run.
    pub(crate) is_bound: AtomicBool,
}

const _: () = assert!(size_of::<Slot>() == 24 && align_of::<Slot>() == 8);

// Hidden, so that the library and a program that both contain this crate have a slot each.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
global_asm!(
    ".pushsection .tbss.isochrone_thread_slot,\"awT\",%nobits",
    ".p2align 3",
    ".globl isochrone_thread_slot",
    ".hidden isochrone_thread_slot",
    ".type isochrone_thread_slot,%object",
    ".size isochrone_thread_slot,24",
    "isochrone_thread_slot:",
    ".zero 24",
    ".popsection",
);

/// Where this thread's slot is.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn address() -> *const Slot {
    let slot: *const Slot;
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

/// Where this thread's slot is.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn address() -> *const Slot {
    let slot: *const Slot;
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

/// This thread's slot. It is gone when the thread is, which is why nothing may keep it longer than
/// one call: `'static` is what a thread can say of itself while it runs.
#[inline(always)]
pub(crate) fn slot() -> &'static Slot {
    // SAFETY: the address is this thread's own slot: mapped, aligned, zeroed when the thread began,
    // and there for as long as this thread can run this line. All its words
    // are atomic.
    unsafe { &*address() }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    use crate::report::Tally;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn every_thread_has_its_own_zeroed_slot() {
        let mine = std::ptr::from_ref(slot()).addr();
        assert!(slot().alone.count(7));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(move || {
                    let slot = slot();
                    assert_ne!(std::ptr::from_ref(slot).addr(), mine);
                    assert!(slot.state.load(Relaxed).is_null());
                    assert_eq!(slot.alone.take(), Tally::default());
                    assert!(slot.alone.count(9));
                    std::thread::yield_now();
                    assert_eq!(slot.alone.take(), Tally { objects: 1, bytes: 9 });
                });
            }
        });
        assert_eq!(slot().alone.take(), Tally { objects: 1, bytes: 7 });
    }
}
