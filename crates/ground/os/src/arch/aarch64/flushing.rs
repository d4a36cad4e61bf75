//! Whether a program may flush lines: one `dc civac`, tried under a handler for the signal that a refusal is.
//!
//! Linux permits it. A hypervisor or another kernel may trap it and then kill the program with `SIGILL`, and there
//! is nothing to ask beforehand. So whoever measures tries it once. Whoever is a guest in another program's process
//! never comes here: it would have to touch that program's handlers.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

/// Set by the handler: the instruction was refused.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// Held while the handler is installed.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Bytes of an instruction, every one of them.
const INSTRUCTION: u64 = 4;

/// Whether `dc civac` works for this process. The handler of `SIGILL` is another one meanwhile: for programs that
/// are wholly ours.
pub(crate) fn try_flush() -> bool {
    let line = [0_u64; 8];
    let address = line.as_ptr();
    works(|| {
        // SAFETY: the line lives here; a flush leaves its content alone.
        unsafe { asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags)) }
    })
}

/// Whether `one` runs without an instruction that is refused. Instructions that are refused are stepped over.
fn works(one: impl FnOnce()) -> bool {
    // Acquire and Release: what one caller does with the handler is over before the next one begins.
    while BUSY.swap(true, Ordering::Acquire) {
        super::pause();
    }
    REFUSED.store(false, Ordering::Relaxed);
    let before = install();
    if before.is_some() {
        one();
    }
    // Relaxed: set by a signal that this very thread got, at an instruction before this one.
    let refused = REFUSED.load(Ordering::Relaxed);
    if let Some(before) = &before {
        // SAFETY: what `sigaction` said was there before.
        unsafe { libc::sigaction(libc::SIGILL, before, ptr::null_mut()) };
    }
    BUSY.store(false, Ordering::Release);
    before.is_some() && !refused
}

/// Puts the handler there, and says what was there before.
fn install() -> Option<libc::sigaction> {
    // SAFETY: all zeros are a valid `sigaction`: no handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut before = action;
    action.sa_sigaction = step_over as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: valid values; the handler has the signature that SA_SIGINFO demands and touches its arguments and an
    // atomic alone.
    let result = unsafe { libc::sigaction(libc::SIGILL, &raw const action, &raw mut before) };
    (result == 0).then_some(before)
}

extern "C" fn step_over(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    REFUSED.store(true, Ordering::Relaxed);
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel passes a valid `ucontext_t` for the time of the handler.
    unsafe { (*context).uc_mcontext.pc += INSTRUCTION };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_that_is_refused_is_told_and_the_program_goes_on() {
        // SAFETY: an instruction that is undefined for ever (UDF), which is stepped over.
        assert!(!works(|| unsafe { asm!("udf #0", options(nomem, nostack)) }));
        assert!(works(|| ()), "an earlier refusal is forgotten");
        assert!(try_flush(), "Linux permits it");
    }
}
