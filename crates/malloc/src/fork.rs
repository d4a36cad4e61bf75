//! What a child of `fork` does. Its pages are copies: the frames behind them change as soon as it
//! writes, and with them all distances. So a child of a process that places leaves everything to
//! glibc, and what it frees of the parent's lines it only ignores. A child of a process that has
//! not begun begins by itself, when it has allocated enough.
//!
//! Neither needs a lock of the parent's: a child uses none of the tables but to read, word by
//! word. So there is nothing to hold during `fork`, and a signal handler may call it at any time.

use crate::process;

/// Has children noticed. Once.
pub(crate) fn prepare() -> bool {
    // SAFETY: the handler is a function that is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(child)) == 0 }
}

extern "C" fn child() {
    process::forked();
}
