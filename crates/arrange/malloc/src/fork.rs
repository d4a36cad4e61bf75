//! What a child of `fork` does. Its pages are copies: the frames behind them change as soon as it
//! writes, and with them all distances. So a child of a process that places forgets what was known
//! of its pages and goes on with new ones (`Heap::inherit`, `growth::anew`). A child of a process
//! that has not begun begins by itself, when it has allocated enough. The parent writes to copies as well, as long as
//! the child has what was there: what it knows of its pages is looked at again.
//!
//! Nothing is held during `fork`: lists wait for nobody, and what a lock guarded is made anew where
//! its holder was lost. So a signal handler may call it at any time.

use crate::blocks::SLAB;
use crate::config::Pin;
use crate::instance::process::instance;
use crate::pin;
use crate::process::{LOCAL, PROCESS};
use crate::report::{Reason, Word};
use crate::thread::{self, state};
use crate::watched;
use core::sync::atomic::Ordering;

/// Has children noticed. Once.
pub(crate) fn prepare() -> bool {
    // SAFETY: the handlers are functions that are never unloaded.
    unsafe { libc::pthread_atfork(None, Some(parent), Some(child)) == 0 }
}

/// This process has a child of `fork` now.
extern "C" fn parent() {
    if let Some(instance) = instance().filter(|_| !PROCESS.is_over()) {
        instance.growth.has_child();
    }
}

/// This is a child of `fork` now, with one thread.
extern "C" fn child() {
    let slot = thread::slot();
    // What the parent's threads had counted is the parent's.
    LOCAL.clear();
    PROCESS.count_in(&LOCAL);
    slot.alone.clear();
    PROCESS.counted_bytes.store(0, Ordering::Relaxed);
    watched::forked();
    let Some(config) = PROCESS.config() else { return };
    // Who was about to start begins again: nobody had a line of it.
    PROCESS.room.forked();
    SLAB.forked();
    // What the parent has says nothing of what the child will have, as where a server forks for each client.
    if PROCESS.is_over() && PROCESS.reason() == Reason::StaysSmall {
        PROCESS.count_again();
        if slot.state.load(Ordering::Relaxed) == state::DELEGATING {
            slot.state.store(state::ABSENT, Ordering::Relaxed);
        }
    }
    if !PROCESS.room.is_closed() {
        // Its number is asked for when it has a report.
        LOCAL.begin(0, config.policy.mode, 0);
        if config.pin != Pin::None {
            let process = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
            pin::begin(config, process, slot.is_bound.load(Ordering::Relaxed));
        }
    }
    if let Some(instance) = instance() {
        if PROCESS.is_over() {
            LOCAL.set(Word::Aside, PROCESS.reason() as u64 + 1);
        } else {
            instance.forked(&LOCAL, config.start_bytes);
        }
        // Not where a signal came in between: then what it counted last counts twice.
        if thread::with_block(slot, thread::Thread::forked).is_some() {
            LOCAL.add(Word::Threads, 1);
        }
    }
}
