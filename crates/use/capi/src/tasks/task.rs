//! What the function of a running task may ask for.

use super::describe::{Given, IsochroneRange, spawned};
use super::kernels::IsochroneTask;
use super::null;
use super::submit::{IsochroneHandle, IsochroneSubmission, Of, submitted};
use crate::status::{Failure, Status, told};
use isochrone_tasks::Reducible;
use isochrone_tasks::live::Task;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

impl<'a> IsochroneTask<'a> {
    /// Where the task's own values for a range are.
    fn own<T: Reducible + fmt::Debug>(&mut self, range: usize) -> Result<*mut c_void, Failure> {
        let found = self.mem.accumulate_at::<T>(range);
        let mut own = Box::new(found.map_err(|why| Failure::argument(why.text()))?);
        let first = own.as_mut_ptr();
        self.own.push(own);
        Ok(first.cast())
    }
}

/// Gives a task its own values for a range.
type Give = fn(&mut IsochroneTask<'_>, usize) -> Result<*mut c_void, Failure>;

/// Types of elements, by their numbers in C.
const TYPES: [Give; 6] = [
    |task, range| task.own::<i32>(range),
    |task, range| task.own::<i64>(range),
    |task, range| task.own::<u32>(range),
    |task, range| task.own::<u64>(range),
    |task, range| task.own::<f32>(range),
    |task, range| task.own::<f64>(range),
];

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
        let mem = task.mem;
        let register =
            |kernel, arguments, footprint: &_| mem.spawn_foreign(kernel, arguments, footprint);
        // SAFETY: the caller vouches for arguments and ranges.
        unsafe {
            spawned(list, kernel, priority, &Given { arguments, bytes, ranges, count }, register)
        }
    };
    // SAFETY: the caller vouches for the task.
    unsafe { within(task, work) }
}

/// Registers a task of a running task's own, with all that may be said of it.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_submit(
    task: *mut IsochroneTask<'_>,
    submission: *const IsochroneSubmission,
    handle: *mut IsochroneHandle,
) -> c_int {
    let work = |task: &mut IsochroneTask<'_>| {
        let mem = task.mem;
        let of = Of { list: task.list, processes: mem.is_shared() };
        let register =
            |kernel, arguments, footprint: &_| mem.spawn_foreign(kernel, arguments, footprint);
        // SAFETY: the caller vouches for the submission and the handle.
        unsafe { submitted(&of, submission, handle, register) }
    };
    // SAFETY: the caller vouches for the task.
    unsafe { within(task, work) }
}

/// Waits until a task is over.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_wait_for(
    task: *mut IsochroneTask<'_>,
    handle: IsochroneHandle,
) -> c_int {
    let other = Task::of_numbers(handle.numbers);
    // SAFETY: the caller vouches for the task.
    unsafe { within(task, |task| Ok(task.mem.wait_task(other)?)) }
}

/// Leaves out tasks beside a running one.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_cancel(task: *mut IsochroneTask<'_>) -> c_int {
    let cancel = |task: &mut IsochroneTask<'_>| {
        task.mem.cancel();
        Ok(())
    };
    // SAFETY: the caller vouches for the task.
    unsafe { within(task, cancel) }
}

/// Whether what a running task does is of no use any more.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_is_in_vain(task: *const IsochroneTask<'_>) -> c_int {
    // SAFETY: the caller vouches for the task.
    unsafe { task.as_ref() }.map_or(0, |task| c_int::from(task.mem.is_in_vain()))
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

/// A running task's own values for a range that it reduces.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_task_reduce(
    task: *mut IsochroneTask<'_>,
    range: usize,
    element: u32,
    own: *mut *mut c_void,
) -> c_int {
    let work = |task: &mut IsochroneTask<'_>| {
        if own.is_null() {
            return Err(null("own"));
        }
        let of_type = usize::try_from(element).ok().and_then(|element| TYPES.get(element));
        let of_type = of_type.ok_or_else(|| {
            Failure::argument(format!("{element} is no type of elements; isochrone.h names them"))
        })?;
        let first = of_type(task, range)?;
        // SAFETY: the caller's, and not null.
        unsafe { own.write(first) };
        Ok(())
    };
    // SAFETY: the caller vouches for the task.
    unsafe { within(task, work) }
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
