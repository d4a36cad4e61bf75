//! One actor on this machine: what it has at hand, its clock, and how it waits.

use core::sync::atomic::{AtomicU32, Ordering};
use std::cell::{Cell, RefCell};

use isochrone_os::OsError;
use isochrone_os::futex::{self, Scope};
use isochrone_os::space::Space as Memory;
use isochrone_os::userfault::Userfault;

use super::common::Timed;
use super::far::Scratch;
use super::process::{Process, timed};
use crate::names::{Actor, Group, Run};
use crate::pager::{BATCH_MOST, Caller};

/// An actor.
#[derive(Debug)]
pub(super) struct Context<'t> {
    pub(super) process: &'t Process,
    pub(super) caller: Caller,
    /// Where bytes rest between the area and a far tier that is not memory.
    pub(super) bounce: Memory,
    /// What the caller will fetch next, if a far tier that is not memory may read it now.
    pub(super) ahead: RefCell<Ahead>,
    /// What the far tier needs at hand.
    pub(super) scratch: RefCell<Scratch>,
    /// The group behind the one that was fetched last.
    pub(super) follows: Cell<Group>,
}

/// A run that its owner will fetch when there is room for it.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Where it rests meanwhile.
    pub(super) buffer: Memory,
    /// It was foreseen, and nobody has read it yet.
    pub(super) wanted: Option<Run>,
    /// It was read.
    pub(super) here: Option<Run>,
}

impl<'t> Context<'t> {
    pub(super) fn new(process: &'t Process, actor: Actor, worker: u32) -> Result<Self, OsError> {
        let space = process.space_of(worker);
        let bounce = Memory::new(BATCH_MOST as usize * process.area.group_bytes(), false)?;
        let room = if process.far.is_memory() { 1 } else { BATCH_MOST as usize };
        let ahead = Ahead {
            buffer: Memory::new(room * process.area.group_bytes(), false)?,
            wanted: None,
            here: None,
        };
        let (ahead, scratch) = (RefCell::new(ahead), RefCell::new(process.far.scratch()?));
        let (caller, follows) = (Caller { actor, space, worker }, Cell::new(Group(0)));
        Ok(Self { process, caller, bounce, ahead, scratch, follows })
    }

    /// Whether the kernel tells of its own faults in this worker's tables, too.
    pub(super) fn serves_system_calls(&self) -> bool {
        let table = self.process.userfault(self.caller.space);
        table.is_some_and(Userfault::sees_kernel_faults)
    }

    pub(super) fn time<T>(&self, what: Timed, act: impl FnOnce() -> T) -> T {
        self.spring(what, false);
        let (result, cycles) = timed(act);
        self.spring(what, true);
        self.process.common.time(self.caller.actor, what, cycles);
        result
    }

    /// Ends, or stops, here if there is a trap for this actor at this step.
    fn spring(&self, step: Timed, after: bool) {
        let Some(trap) = self.process.config.trap else { return };
        let here = trap.actor == self.caller.actor && trap.step == step && trap.after == after;
        if here && self.process.common.counters(trap.actor).times(step) == trap.times {
            let _ = isochrone_os::process::signal(isochrone_os::process::this(), trap.signal);
        }
    }

    /// Looks at a word for a while before sleeping: what others do to an entry is mostly shorter than a
    /// sleep and a wake. Returns whether it changed.
    fn spin(&self, word: &AtomicU32, value: u32) -> bool {
        for _ in 0..self.process.config.spins {
            if word.load(Ordering::Acquire) != value {
                return true;
            }
            isochrone_os::pause::pause();
        }
        false
    }

    pub(super) fn sleep(&self, word: &AtomicU32, value: u32, ns: u64) {
        if !self.spin(word, value) {
            // Without a futex this is a spin that is slow.
            let _ = futex::wait(word, value, Some(ns), Scope::Shared);
        }
    }
}
