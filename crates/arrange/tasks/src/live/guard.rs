//! Checks what kernels declare: while a task runs, no page of data can be used but those with a byte of
//! its ranges. A kernel that touches another is killed by SIGSEGV.

use isochrone_os::OsError;

use super::env::Shared;
use crate::arena::object;
use crate::sync::Ordering;

/// Takes all data away but what `task` declared.
pub(crate) fn only(shared: &Shared, task: u32) -> Result<(), OsError> {
    all(shared, false)?;
    for access in shared.scheduler.arena.accesses(task) {
        let Ok(object) = shared.scheduler.arena.object(access.range) else { continue };
        let start = usize::try_from(access.range.start).unwrap_or(0);
        let bytes = usize::try_from(access.range.bytes).unwrap_or(0);
        shared.memory.protect(object.base.load(Ordering::Relaxed) + start, bytes, true)?;
    }
    Ok(())
}

/// Takes all data away, or gives them back.
pub(crate) fn all(shared: &Shared, usable: bool) -> Result<(), OsError> {
    let live = |o: &&crate::arena::Object| o.state.load(Ordering::Acquire) == object::LIVE;
    for object in shared.scheduler.arena.objects.iter().filter(live) {
        let bytes = usize::try_from(object.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        shared.memory.protect(object.base.load(Ordering::Relaxed), bytes, usable)?;
    }
    Ok(())
}
