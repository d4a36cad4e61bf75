//! Checks what kernels declare: while a task runs, no page of data can be used but those with a byte of
//! its ranges. A kernel that touches another is killed by SIGSEGV.

use isochrone_os::OsError;

use super::memory::Memory;
use crate::arena::{Arena, Object, object};
use crate::sync::Ordering;

/// Takes all data away but what `task` declared.
pub(crate) fn only(arena: &Arena, memory: &Memory, task: u32) -> Result<(), OsError> {
    all(arena, memory, false)?;
    for access in arena.accesses(task) {
        let Ok(object) = arena.object(access.range) else { continue };
        let start = usize::try_from(access.range.start).unwrap_or(0);
        let bytes = usize::try_from(access.range.bytes).unwrap_or(0);
        memory.protect(object.base.load(Ordering::Relaxed) + start, bytes, true)?;
    }
    Ok(())
}

/// Takes all data away, or gives them back.
pub(crate) fn all(arena: &Arena, memory: &Memory, usable: bool) -> Result<(), OsError> {
    let live = |o: &&Object| o.state.load(Ordering::Acquire) == object::LIVE;
    for object in arena.objects.iter().filter(live) {
        let bytes = usize::try_from(object.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        memory.protect(object.base.load(Ordering::Relaxed), bytes, usable)?;
    }
    Ok(())
}
