//! A run and the calls that take its handle.

use super::describe::{Given, IsochroneRange, bytes_of, spawned};
use super::kernels::{IsochroneKernel, List, list};
use super::options::{IsochroneTasksOptions, config};
use super::submit::{IsochroneHandle, IsochroneSubmission, Of, submitted};
use super::user::User;
use super::{null, slice, text};
use crate::sized::{OfC, write};
use crate::status::{Failure, Status, told};
use isochrone_atlas_store::save_text;
use isochrone_tasks::live::{Canceller, Runtime, Task};
use isochrone_tasks::{Data, Part, TraceFile};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

/// A run, `isochrone_tasks` in C.
#[derive(Debug)]
pub struct IsochroneTasks {
    user: User,
    /// For all threads.
    canceller: Canceller,
    workers: u32,
    /// For its user.
    used: UnsafeCell<Used>,
}

/// What the thread that started a run has of it.
#[derive(Debug)]
struct Used {
    run: Runtime,
    list: &'static List,
    data: Vec<Data<u8>>,
    traced: bool,
    processes: bool,
}

/// What a run did, `isochrone_tasks_counts` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTasksCounts {
    /// Bytes of this struct, or 0.
    pub size: u64,
    /// Tasks that ran.
    pub tasks: u64,
    /// Tasks left out since another had failed.
    pub left_out: u64,
    /// Time of all workers between taking tasks and asking for more.
    pub busy_ns: u64,
    /// Bytes of tasks' ranges in the region of their worker.
    pub local_bytes: u64,
    /// Bytes in other regions.
    pub remote_bytes: u64,
    /// Tasks taken from other regions.
    pub steals: u64,
    /// Always 0 so far.
    pub reserved: [u64; 2],
}

// SAFETY: numbers only, without padding.
unsafe impl OfC for IsochroneTasksCounts {
    const FIRST: usize = size_of::<Self>();
}

/// Starts a run.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_start(
    options: *const IsochroneTasksOptions,
    kernels: *const IsochroneKernel,
    count: usize,
    tasks: *mut *mut IsochroneTasks,
) -> c_int {
    let start = || {
        if tasks.is_null() {
            return Err(null("tasks"));
        }
        // SAFETY: the caller vouches for the options.
        let config = unsafe { config(options) }?;
        // SAFETY: the caller vouches for the kernels.
        let given = unsafe { slice(kernels, count, "kernels") }?;
        // SAFETY: the caller vouches for their names.
        let list = unsafe { list(given) }?;
        let traced = config.setup.capacity.trace > 0;
        let processes = config.processes;
        let user = User::new()?;
        let run = Runtime::start(config)?;
        let workers = u32::try_from(run.places().len()).unwrap_or(u32::MAX);
        let canceller = run.canceller();
        let used = UnsafeCell::new(Used { run, list, data: Vec::new(), traced, processes });
        let made = Box::new(IsochroneTasks { user, canceller, workers, used });
        // SAFETY: the caller's, and not null.
        unsafe { tasks.write(Box::into_raw(made)) };
        Ok(())
    };
    told(start())
}

/// Waits for all tasks and ends the run; what failed that nobody was told of.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_end(tasks: *mut IsochroneTasks) -> c_int {
    if tasks.is_null() {
        return told(Ok(()));
    }
    // SAFETY: a handle of this library, which no call has ended yet.
    let user = unsafe { &(*tasks).user };
    match user.last_call() {
        Ok(call) => drop(call),
        // In a child of fork there is nobody to end; what there is of the run goes with the process.
        Err(failure) => return told(Err(failure)),
    }
    // SAFETY: its caller gives it up, and no call on it is under way.
    let mut tasks = unsafe { Box::from_raw(tasks) };
    let ended = tasks.used.get_mut().run.wait();
    drop(tasks);
    told(ended.map_err(Failure::from))
}

/// Does something with a run.
///
/// # Safety
/// `tasks` is null or a handle of this library that no call has ended.
unsafe fn with(
    tasks: *mut IsochroneTasks,
    work: impl FnOnce(&mut Used) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller vouches for it.
    let Some(tasks) = (unsafe { tasks.as_ref() }) else {
        return told(Err(null("tasks")));
    };
    let call = match tasks.user.call() {
        Ok(call) => call,
        Err(failure) => return told(Err(failure)),
    };
    // SAFETY: this thread alone comes here, and it is in no other call.
    let outcome = work(unsafe { &mut *tasks.used.get() });
    drop(call);
    told(outcome)
}

/// Finds something out about a run and writes it to where its caller wants it, which is called `name`.
///
/// # Safety
/// As for [`with`]; `place` is null or a value's that may be written.
unsafe fn ask<T>(
    tasks: *mut IsochroneTasks,
    place: *mut T,
    name: &'static str,
    find: impl FnOnce(&mut Used) -> Result<T, Failure>,
) -> c_int {
    let work = |tasks: &mut Used| {
        if place.is_null() {
            return Err(null(name));
        }
        let found = find(tasks)?;
        // SAFETY: the caller's, and not null.
        unsafe { place.write(found) };
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}

/// Workers of the run.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_workers(tasks: *const IsochroneTasks) -> u32 {
    // SAFETY: the caller vouches for the handle.
    unsafe { tasks.as_ref() }.map_or(0, |tasks| tasks.workers)
}

/// Registers data.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_data(
    tasks: *mut IsochroneTasks,
    bytes: u64,
    data: *mut u32,
) -> c_int {
    let register = |tasks: &mut Used| {
        let made = tasks.run.data::<u8>(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        tasks.data.push(made);
        Ok(made.id().0)
    };
    // SAFETY: the caller vouches for the handle and the place.
    unsafe { ask(tasks, data, "data", register) }
}

impl Used {
    fn data(&self, number: u32) -> Result<Data<u8>, Failure> {
        // A run numbers its data in the order in which it registers them, and only this handle does.
        let found = usize::try_from(number).ok().and_then(|number| self.data.get(number));
        let none =
            || Failure::argument(format!("data {number}, which this run has not registered"));
        found.copied().ok_or_else(none)
    }

    /// Elements of a part, as the run counts them.
    fn part(&self, data: u32, start: u64, bytes: u64) -> Result<Part<u8>, Failure> {
        let number = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(self.data(data)?.part(number(start), number(bytes)))
    }
}

/// Frees data when the tasks that use them are over.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_free(tasks: *mut IsochroneTasks, data: u32) -> c_int {
    let work = |tasks: &mut Used| Ok(tasks.run.free(tasks.data(data)?)?);
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}

/// Registers a task.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_spawn(
    tasks: *mut IsochroneTasks,
    kernel: u32,
    priority: i32,
    arguments: *const c_void,
    bytes: usize,
    ranges: *const IsochroneRange,
    count: usize,
) -> c_int {
    let work = |tasks: &mut Used| {
        let (list, run) = (tasks.list, &mut tasks.run);
        let register =
            |kernel, arguments, footprint: &_| run.spawn_foreign(kernel, arguments, footprint);
        // SAFETY: the caller vouches for arguments and ranges.
        unsafe {
            spawned(list, kernel, priority, &Given { arguments, bytes, ranges, count }, register)
        }
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}

/// Registers a task with all that may be said of it.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_submit(
    tasks: *mut IsochroneTasks,
    submission: *const IsochroneSubmission,
    handle: *mut IsochroneHandle,
) -> c_int {
    let work = |tasks: &mut Used| {
        let of = Of { list: Some(tasks.list), processes: tasks.processes };
        let run = &mut tasks.run;
        let register =
            |kernel, arguments, footprint: &_| run.spawn_foreign(kernel, arguments, footprint);
        // SAFETY: the caller vouches for the submission and the handle.
        unsafe { submitted(&of, submission, handle, register) }
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}

/// Waits until a task is over.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_wait_for(
    tasks: *mut IsochroneTasks,
    handle: IsochroneHandle,
) -> c_int {
    let task = Task::of_numbers(handle.numbers);
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, |tasks| Ok(tasks.run.wait_task(task)?)) }
}

/// Leaves out all tasks that have not begun; by any thread.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_cancel(tasks: *mut IsochroneTasks) -> c_int {
    // SAFETY: the caller vouches for the handle.
    let Some(tasks) = (unsafe { tasks.as_ref() }) else {
        return told(Err(null("tasks")));
    };
    told(tasks.user.is_here().map(|()| tasks.canceller.cancel()))
}

/// Registers memory of the program's as data.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_adopt(
    tasks: *mut IsochroneTasks,
    memory: *mut c_void,
    bytes: u64,
    data: *mut u32,
) -> c_int {
    let register = |tasks: &mut Used| {
        let first = NonNull::new(memory.cast::<u8>()).ok_or_else(|| null("memory"))?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: the caller vouches for the memory until the data are freed or the run has ended.
        let made = unsafe { tasks.run.adopt::<u8>(first, bytes) }?;
        tasks.data.push(made);
        Ok(made.id().0)
    };
    // SAFETY: the caller vouches for the handle and the place.
    unsafe { ask(tasks, data, "data", register) }
}

/// Waits until all tasks are over.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_wait(tasks: *mut IsochroneTasks) -> c_int {
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, |tasks| Ok(tasks.run.wait()?)) }
}

/// Waits until the tasks that write a range are over.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_wait_on(
    tasks: *mut IsochroneTasks,
    data: u32,
    start: u64,
    bytes: u64,
) -> c_int {
    let work = |tasks: &mut Used| Ok(tasks.run.wait_on(bytes_of(data, start, bytes))?);
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}

/// Waits until the tasks that write a range are over; where it is.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_read(
    tasks: *mut IsochroneTasks,
    data: u32,
    start: u64,
    bytes: u64,
    address: *mut *const c_void,
) -> c_int {
    let place =
        |tasks: &mut Used| Ok(tasks.run.read(tasks.part(data, start, bytes)?)?.as_ptr().cast());
    // SAFETY: the caller vouches for the handle and the address's place.
    unsafe { ask(tasks, address, "address", place) }
}

/// Waits until the tasks that use a range are over; where it is.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_write(
    tasks: *mut IsochroneTasks,
    data: u32,
    start: u64,
    bytes: u64,
    address: *mut *mut c_void,
) -> c_int {
    let place = |tasks: &mut Used| {
        Ok(tasks.run.write(tasks.part(data, start, bytes)?)?.as_mut_ptr().cast())
    };
    // SAFETY: the caller vouches for the handle and the address's place.
    unsafe { ask(tasks, address, "address", place) }
}

/// What the run did so far.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_report(
    tasks: *mut IsochroneTasks,
    counts: *mut IsochroneTasksCounts,
) -> c_int {
    let count = |tasks: &mut Used| {
        if counts.is_null() {
            return Err(null("counts"));
        }
        let found = tasks.run.report();
        let known = IsochroneTasksCounts {
            size: 0,
            tasks: found.tasks,
            left_out: found.left_out,
            busy_ns: found.busy_ns,
            local_bytes: found.local_bytes(),
            remote_bytes: found.remote_bytes(),
            steals: found.steals.iter().sum(),
            reserved: [0; 2],
        };
        // SAFETY: not null, and the caller vouches for it.
        unsafe { write(counts, &known) }
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, count) }
}

/// Writes what ran where and when.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_trace(
    tasks: *mut IsochroneTasks,
    path: *const c_char,
) -> c_int {
    let work = |tasks: &mut Used| {
        // SAFETY: the caller vouches for the name.
        let path = unsafe { text(path, "file") }?.ok_or_else(|| null("the file's name"))?;
        if !tasks.traced {
            return Err(Failure::argument(
                "this run keeps no trace; start it with ISOCHRONE_TASKS_TRACED",
            ));
        }
        tasks.run.wait()?;
        let mut file = TraceFile::new();
        file.add("tasks", &tasks.run.trace());
        let saved = save_text(&file.text(), Path::new(path));
        saved.map_err(|error| Failure { status: Status::System, words: error.to_string() })
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}
