//! What the function of a running task may ask for.

use super::kernels::List;
use super::{IsochroneRange, described, null};
use crate::status::{Failure, Status, told};
use isochrone_tasks::Mem;
use std::ffi::{CStr, c_char, c_int, c_void};

/// A task that runs, `isochrone_task` in C.
#[derive(Debug)]
pub struct IsochroneTask<'a> {
    pub(super) mem: &'a Mem<'a>,
    pub(super) list: Option<&'static List>,
    /// What it said before it failed.
    pub(super) words: Option<String>,
}

/// A kernel's function, `isochrone_kernel_function` in C.
pub type Function =
    unsafe extern "C" fn(*mut IsochroneTask<'_>, *const c_void, *const *mut c_void) -> c_int;

/// Does something with a running task.
///
/// # Safety
/// `task` is null or what the kernel that runs was given.
unsafe fn within(
    task: *mut IsochroneTask<'_>,
    work: impl FnOnce(&mut IsochroneTask<'_>) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller vouches for it.
    match unsafe { task.as_mut() } {
        Some(task) => told(work(task)),
        None => told(Err(null("task"))),
    }
}

/// Registers a task of a running task's own.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_spawn(
    task: *mut IsochroneTask<'_>,
    kernel: u32,
    priority: i32,
    arguments: *const c_void,
    bytes: usize,
    ranges: *const IsochroneRange,
    count: usize,
) -> c_int {
    let work = |task: &mut IsochroneTask<'_>| {
        let list = task.list.ok_or_else(|| Failure::argument("this run has no kernels"))?;
        let kernel = list.kernel(kernel)?;
        // SAFETY: the caller vouches for arguments and ranges.
        let child = unsafe { described(priority, (arguments, bytes), (ranges, count)) };
        let (arguments, footprint) = child?;
        task.mem.spawn_foreign(kernel, arguments, &footprint)?;
        Ok(())
    };
    // SAFETY: the caller vouches for the task.
    unsafe { within(task, work) }
}

/// Waits until all tasks of a running task's own are over.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_wait(task: *mut IsochroneTask<'_>) -> c_int {
    // SAFETY: the caller vouches for the task.
    unsafe { within(task, |task| Ok(task.mem.wait()?)) }
}

/// The number of the worker that runs a task.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_worker(task: *const IsochroneTask<'_>) -> u32 {
    // SAFETY: the caller vouches for the task.
    unsafe { task.as_ref() }.map_or(u32::MAX, |task| task.mem.worker())
}

/// Says why a task fails.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_fail(
    task: *mut IsochroneTask<'_>,
    words: *const c_char,
) -> c_int {
    // SAFETY: the caller vouches for both.
    if let Some(task) = unsafe { task.as_mut() }
        && !words.is_null()
    {
        // SAFETY: not null, and the caller's.
        task.words = Some(unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned());
    }
    Status::Failed.code()
}
