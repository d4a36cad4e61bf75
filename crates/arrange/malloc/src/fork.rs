//! What a child of `fork` does. Its pages are copies: the frames behind them change as soon as it
//! writes, and with them all distances. So a child of a process that places forgets what was known
//! of its pages and goes on with new ones (`Heap::inherit`, `growth::anew`). A child of a process
//! that has not begun begins by itself, when it has allocated enough.
//!
//! Nothing is held during `fork`: lists wait for nobody, and what a lock guarded is made anew where
//! its holder was lost. So a signal handler may call it at any time.

use crate::process;

/// Has children noticed. Once.
pub(crate) fn prepare() -> bool {
    // SAFETY: the handler is a function that is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(child)) == 0 }
}

extern "C" fn child() {
    process::forked();
}
