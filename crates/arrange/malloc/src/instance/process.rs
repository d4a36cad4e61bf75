//! The process's instance: how it is made, where it is, and from when lines of it are handed out.

use super::{Instance, Served, whole};
use crate::process::{PROCESS, phase};
use crate::report::{Reason, Word};
use crate::settings::{InstanceError, Settings};
use crate::told::Told;
use crate::{front, next};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use isochrone_alloc::live::Classifier;
use isochrone_os::boxed::Boxed;
use rustix::process::{Resource, getrlimit};

/// Where the address space of a process is limited, the part of it that an arena may grow to: what it has taken is lost
/// to the program, used or not.
const SPACE_PARTS: u64 = 16;

/// The process's instance, once there is one.
static INSTANCE: AtomicPtr<Instance<'static>> = AtomicPtr::new(ptr::null_mut());

/// The instance that the process's memory is placed in, once it places.
pub(crate) fn instance() -> Option<&'static Instance<'static>> {
    // SAFETY: null, or an instance that was complete before it was stored and is never freed.
    unsafe { INSTANCE.load(Ordering::Acquire).as_ref() }
}

/// The process's own, which is never dropped.
pub(crate) fn of_process(told: &Told) -> Result<&'static Instance<'static>, Reason> {
    // Asked for now: the program may have set it since it was loaded.
    let space = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    let settings = Settings {
        atlas: told.atlas,
        policy: told.config.policy,
        arena_bytes_max: told.config.arena_bytes_max.min(space / SPACE_PARTS),
        huge_pages: true,
        cores: &[],
    };
    let instance = Instance::open(&settings, Served::Process).map_err(|error| match error {
        InstanceError::Os(_) => Reason::NoMemory,
        _ => Reason::NoAtlas,
    })?;
    if !told.config.force && !Classifier::learns(&instance.atlas) {
        return Err(Reason::NoGain);
    }
    instance.take_step().map_err(|_| Reason::NoMemory)?;
    PROCESS.counters().set(Word::ClockHz, whole(instance.atlas.clock_hz()));
    Ok(Boxed::new(instance).map_err(|_| Reason::NoMemory)?.leak())
}

impl Instance<'static> {
    /// It is the process's from now on.
    pub(crate) fn take_over(&'static self) {
        INSTANCE.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
    }

    /// Places from now on what can be placed. Once, in the room.
    pub(crate) fn begin_placing(&'static self) {
        self.growth.alone(|| self.show());
        // Before anybody is given a line of it.
        front::lead_back();
        next::keep_memory();
        PROCESS.phase.store(phase::PLACING, Ordering::Release);
    }
}
