//! What a child of `fork` does. Its pages are copies: the frames behind them change as soon as it
//! writes, and with them all distances. So a child of a process that places forgets what was known
//! of its pages and goes on with new ones (`Heap::inherit`, `growth::anew`). A child of a process
//! that has not begun begins by itself, when it has allocated enough. The parent writes to copies as well, as long as
//! the child has what was there: what it knows of its pages is looked at again.
//!
//! Nothing is held during `fork`: lists wait for nobody, and what a lock guarded is made anew where
//! its holder was lost. So a signal handler may call it at any time.

use crate::life;

/// Has children noticed. Once.
pub(crate) fn prepare() -> bool {
    // SAFETY: the handlers are functions that are never unloaded.
    unsafe { libc::pthread_atfork(None, Some(parent), Some(child)) == 0 }
}

extern "C" fn parent() {
    life::has_child();
}

extern "C" fn child() {
    life::forked();
}
