//! The process does no more than glibc's allocator does: a filter of system calls is about to come, or its clock goes.

use crate::instance::process::instance;
use crate::process::{PROCESS, phase};
use crate::report::Reason;
use core::sync::atomic::Ordering;

/// Asks the system for nothing any more that glibc's allocator does not ask for, from when this
/// returns: what is placed stays, and is handed out again; nothing is learnt, bound or reported.
pub(crate) fn close() {
    if PROCESS.room.is_closed() {
        return;
    }
    PROCESS.room.close();
    if let Some(instance) = instance() {
        instance.wait_for_memory();
    }
    match PROCESS.phase.load(Ordering::Acquire) {
        phase::COUNTING | phase::LEARNING => PROCESS.delegate(Reason::Filtered),
        // What threads have at hand is all that they get where glibc can have no memory.
        phase::PLACING => PROCESS.set_aside(Reason::Filtered, phase::CLOSED),
        _ => {}
    }
}
