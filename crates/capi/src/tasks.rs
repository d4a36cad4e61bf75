//! Tasks that wait for one another by the bytes that they read and write.

pub mod kernels;
pub mod task;

use crate::status::{Failure, Status, told};
use isochrone_host::{SysRoot, this_machine};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{
    ARGUMENT_BYTES, Data, DataId, Footprint, Mode, Part, Policy, Range, Regime, TaskError, Topology,
};
use kernels::{IsochroneKernel, list};
use std::ffi::{CStr, c_char, c_int, c_void};

/// A run, `isochrone_tasks` in C.
#[derive(Debug)]
pub struct IsochroneTasks {
    run: Runtime,
    list: &'static kernels::List,
    data: Vec<Data<u8>>,
}

/// How a run is set up, `isochrone_tasks_options` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTasksOptions {
    /// A regime's name, or null.
    pub regime: *const c_char,
    /// A policy's name, or null.
    pub policy: *const c_char,
    /// Workers, or 0.
    pub workers: u32,
    /// [`PROCESSES`], [`UNPINNED`].
    pub flags: u32,
    /// 0.
    pub reserved: u64,
}

/// A range of a task, `isochrone_range` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneRange {
    /// The data's number.
    pub data: u32,
    /// How the range is used.
    pub mode: u32,
    /// First byte.
    pub start: u64,
    /// How many.
    pub bytes: u64,
}

/// What a run did, `isochrone_tasks_counts` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTasksCounts {
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
    /// 0.
    pub reserved: [u64; 2],
}

/// `ISOCHRONE_TASKS_PROCESSES`.
pub const PROCESSES: u32 = 1;
/// `ISOCHRONE_TASKS_UNPINNED`.
pub const UNPINNED: u32 = 2;

/// Modes by their numbers in C.
const MODES: [Mode; 4] = [Mode::In, Mode::Out, Mode::InOut, Mode::Commutative];
/// Linux's `ENOMEM`.
const NO_MEMORY: i32 = 12;

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Self {
        let status = match &error {
            TaskError::Failed { .. } => Status::Failed,
            TaskError::Deadlock { .. } => Status::Deadlock,
            TaskError::WorkerDied { .. } => Status::Gone,
            TaskError::TooDeep | TaskError::TooManyData => Status::Memory,
            TaskError::System(os) if os.errno == NO_MEMORY => Status::Memory,
            TaskError::System(_) => Status::System,
            _ => Status::Argument,
        };
        Self { status, words: error.to_string() }
    }
}

fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is a null pointer"))
}

/// # Safety
/// `text` is null or a string of C.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for it.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| Failure::argument(format!("the name of the {what} is no UTF-8")))
}

/// # Safety
/// Null, or points to `count` values.
unsafe fn slice<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() => Err(null(what)),
        // SAFETY: the caller vouches for it.
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// What the options come to.
///
/// # Safety
/// Null, or points to options.
unsafe fn config(options: *const IsochroneTasksOptions) -> Result<Config, Failure> {
    // SAFETY: the caller vouches for it.
    let options = unsafe { options.as_ref() };
    let none = (std::ptr::null(), std::ptr::null());
    let (regime, policy) = options.map_or(none, |o| (o.regime, o.policy));
    let (workers, flags, reserved) =
        options.map_or((0, 0, 0), |o| (o.workers, o.flags, o.reserved));
    if flags & !(PROCESSES | UNPINNED) != 0 || reserved != 0 {
        return Err(Failure::argument(
            "options have flags that this library does not know; set what is unused to 0",
        ));
    }
    // SAFETY: the caller vouches for what the options point to.
    let regime = unsafe { text(regime, "regime") }?;
    // SAFETY: as above.
    let policy = unsafe { text(policy, "policy") }?;
    let regime: Regime =
        regime.map_or(Ok(Regime::Isochrone), str::parse).map_err(Failure::argument)?;
    let machine = this_machine(&SysRoot::live())
        .map_err(|error| Failure { status: Status::System, words: error.to_string() })?;
    let workers = match usize::try_from(workers).unwrap_or(usize::MAX) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    };
    let mut config = Config::new(regime, workers, Topology::of(&machine));
    if let Some(name) = policy {
        config.policy = Policy::preset(name).ok_or_else(|| {
            let names: Vec<&str> = Policy::PRESETS.iter().map(|preset| preset.name).collect();
            Failure::argument(format!("{name:?} is no policy; choose {}", names.join(", ")))
        })?;
    }
    config.processes = flags & PROCESSES != 0;
    config.pin = flags & UNPINNED == 0;
    Ok(config)
}

/// The footprint and the arguments of a task.
///
/// # Safety
/// As `isochrone.h` says of `isochrone_tasks_spawn`.
unsafe fn described(
    priority: i32,
    (arguments, bytes): (*const c_void, usize),
    (ranges, count): (*const IsochroneRange, usize),
) -> Result<([u8; ARGUMENT_BYTES], Footprint), Failure> {
    let mut kept = [0; ARGUMENT_BYTES];
    let room = kept.get_mut(..bytes).ok_or_else(|| {
        Failure::argument(format!(
            "{bytes} bytes of arguments; a task has {ARGUMENT_BYTES} at most"
        ))
    })?;
    // SAFETY: the caller vouches for the arguments.
    room.copy_from_slice(unsafe { slice(arguments.cast::<u8>(), bytes, "arguments") }?);
    let mut footprint = Footprint::new();
    footprint.priority(priority);
    // SAFETY: the caller vouches for the ranges.
    for range in unsafe { slice(ranges, count, "ranges") }? {
        let mode = usize::try_from(range.mode).ok().and_then(|mode| MODES.get(mode));
        let mode = mode.ok_or_else(|| {
            Failure::argument(format!("{} is no mode; isochrone.h names them", range.mode))
        })?;
        if range.bytes == 0 {
            return Err(Failure::argument("a range of no bytes; leave it out"));
        }
        footprint.access(bytes_of(range.data, range.start, range.bytes), *mode);
    }
    Ok((kept, footprint))
}

const fn bytes_of(data: u32, start: u64, bytes: u64) -> Range {
    Range { data: DataId(data), start, bytes }
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
        let run = Runtime::start(config)?;
        let made = Box::new(IsochroneTasks { run, list, data: Vec::new() });
        // SAFETY: the caller's, and not null.
        unsafe { tasks.write(Box::into_raw(made)) };
        Ok(())
    };
    told(start())
}

/// Waits for all tasks and ends the run.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_end(tasks: *mut IsochroneTasks) {
    if !tasks.is_null() {
        // SAFETY: a handle of this library, which its caller gives up.
        drop(unsafe { Box::from_raw(tasks) });
    }
}

/// Does something with a run.
///
/// # Safety
/// `tasks` is null or a handle of this library that no other thread uses now.
unsafe fn with(
    tasks: *mut IsochroneTasks,
    work: impl FnOnce(&mut IsochroneTasks) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller vouches for it.
    match unsafe { tasks.as_mut() } {
        Some(tasks) => told(work(tasks)),
        None => told(Err(null("tasks"))),
    }
}

/// Workers of the run.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tasks_workers(tasks: *const IsochroneTasks) -> u32 {
    // SAFETY: the caller vouches for the handle.
    let workers = unsafe { tasks.as_ref() }.map_or(0, |tasks| tasks.run.places().len());
    u32::try_from(workers).unwrap_or(u32::MAX)
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
    let work = |tasks: &mut IsochroneTasks| {
        if data.is_null() {
            return Err(null("data"));
        }
        let made = tasks.run.data::<u8>(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        tasks.data.push(made);
        // SAFETY: the caller's, and not null.
        unsafe { data.write(made.id().0) };
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}

impl IsochroneTasks {
    fn data(&self, number: u32) -> Result<Data<u8>, Failure> {
        let found = self.data.iter().find(|data| data.id().0 == number);
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
    let work = |tasks: &mut IsochroneTasks| Ok(tasks.run.free(tasks.data(data)?)?);
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
    let work = |tasks: &mut IsochroneTasks| {
        let kernel = tasks.list.kernel(kernel)?;
        // SAFETY: the caller vouches for arguments and ranges.
        let task = unsafe { described(priority, (arguments, bytes), (ranges, count)) };
        let (arguments, footprint) = task?;
        tasks.run.spawn_foreign(kernel, arguments, &footprint)?;
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
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
    let work = |tasks: &mut IsochroneTasks| Ok(tasks.run.wait_on(bytes_of(data, start, bytes))?);
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
    let work = |tasks: &mut IsochroneTasks| {
        if address.is_null() {
            return Err(null("address"));
        }
        let found = tasks.run.read(tasks.part(data, start, bytes)?)?.as_ptr();
        // SAFETY: the caller's, and not null.
        unsafe { address.write(found.cast()) };
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
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
    let work = |tasks: &mut IsochroneTasks| {
        if address.is_null() {
            return Err(null("address"));
        }
        let found = tasks.run.write(tasks.part(data, start, bytes)?)?.as_mut_ptr();
        // SAFETY: the caller's, and not null.
        unsafe { address.write(found.cast()) };
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
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
    let work = |tasks: &mut IsochroneTasks| {
        if counts.is_null() {
            return Err(null("counts"));
        }
        let found = tasks.run.report();
        let found = IsochroneTasksCounts {
            tasks: found.tasks,
            left_out: found.left_out,
            busy_ns: found.busy_ns,
            local_bytes: found.local_bytes(),
            remote_bytes: found.remote_bytes(),
            steals: found.steals.iter().sum(),
            reserved: [0; 2],
        };
        // SAFETY: the caller's, and not null.
        unsafe { counts.write(found) };
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(tasks, work) }
}
