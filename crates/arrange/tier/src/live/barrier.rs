//! Where all workers meet. One that dies before it comes is noticed: the others get an error and no one
//! waits for ever.

use core::sync::atomic::Ordering;

use isochrone_os::futex::{self, Scope};
use isochrone_os::race;

use super::process::Process;
use crate::names::Actor;

/// A worker ended, so that nobody can meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("worker {0} ended before it came")]
pub struct Gone(pub u16);

/// Looks between two looks at who lives.
const SLEEP_NS: u64 = 20_000_000;

/// Meets all others; `epoch` counts how often this worker did.
pub(super) fn meet(process: &Process, epoch: &mut u32) -> Result<(), Gone> {
    let met = come(process, epoch);
    race::acquire(process.common.barrier()[0]);
    met
}

fn come(process: &Process, epoch: &mut u32) -> Result<(), Gone> {
    let workers = process.config.workers;
    let [count, now, woken] = process.common.barrier();
    let mine = epoch.wrapping_add(1);
    *epoch = mine;
    race::release(count);
    if count.fetch_add(1, Ordering::AcqRel) + 1 == u32::from(workers) {
        count.store(0, Ordering::Relaxed);
        now.store(mine, Ordering::Release);
        woken.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(now, u32::MAX >> 1, Scope::Shared);
        return Ok(());
    }
    let reached = |epoch: u32| epoch.wrapping_sub(mine).cast_signed() >= 0;
    for _ in 0..process.config.spins {
        if reached(now.load(Ordering::Acquire)) {
            return Ok(());
        }
        isochrone_os::pause::pause();
    }
    loop {
        let seen = now.load(Ordering::Acquire);
        if reached(seen) {
            return Ok(());
        }
        let _ = futex::wait(now, seen, Some(SLEEP_NS), Scope::Shared);
        let ended = |worker: &u16| {
            process.common.mail(*worker)[0].load(Ordering::Acquire) != 0
                || process.is_dead(Actor(*worker))
        };
        if let Some(gone) = (0..workers).find(ended) {
            // It may have come before it ended.
            return if reached(now.load(Ordering::Acquire)) { Ok(()) } else { Err(Gone(gone)) };
        }
    }
}
