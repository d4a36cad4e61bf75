//! Tasks with all that one may say of them: a function of their own, a name, arguments of any size that may own
//! something, and a handle to wait for.
//!
//! What does not fit a task's 64 bytes lies on the heap of this process. So where workers are processes a task has a
//! kernel's number and small plain arguments, as by `isochrone_tasks_spawn`, and may have a handle.

use super::describe::{Given, IsochroneRange, described};
use super::kernels::{Function, List, call};
use super::slice;
use super::text;
use crate::sized::{OfC, read};
use crate::status::Failure;
use isochrone_tasks::live::{Foreign, ForeignKernel, Task};
use isochrone_tasks::{ARGUMENT_BYTES, Footprint, Mem, TaskError};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// A task as it is submitted, `isochrone_submission` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneSubmission {
    /// Bytes of this struct, or 0.
    pub size: u64,
    /// What it does; none for the kernel's function.
    pub function: Option<Function>,
    /// What traces and errors call it; null for the kernel's name, or "function".
    pub name: *const c_char,
    /// The kernel's number, where there is no function.
    pub kernel: u32,
    /// Larger ones first among ready tasks.
    pub priority: i32,
    /// The arguments, which are copied.
    pub arguments: *const c_void,
    /// Bytes of them.
    pub bytes: u64,
    /// Its ranges, which are copied.
    pub ranges: *const IsochroneRange,
    /// How many.
    pub count: u64,
    /// Ends the arguments, once, whether the task ran or was left out.
    pub discard: Option<Discard>,
    /// Must be zeros.
    pub reserved: [u64; 4],
}

/// What ends a task's arguments.
pub type Discard = unsafe extern "C" fn(*mut c_void);

// SAFETY: numbers, pointers and functions that may be null, without padding.
unsafe impl OfC for IsochroneSubmission {
    const FIRST: usize = size_of::<Self>();
}

/// A task that may be waited for, `isochrone_handle` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneHandle {
    /// See [`Task::numbers`].
    pub numbers: [u32; 2],
}

/// Arguments of C begin at a line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// What a task has on the heap; its address is the task's arguments.
#[derive(Debug)]
struct Held {
    function: Function,
    discard: Option<Discard>,
    arguments: Vec<Line>,
    list: Option<&'static List>,
}

impl Held {
    fn at(arguments: &[u8; ARGUMENT_BYTES]) -> *mut Self {
        let (address, _) = arguments.split_at(size_of::<usize>());
        let address = usize::from_ne_bytes(address.try_into().unwrap_or_default());
        std::ptr::with_exposed_provenance_mut(address)
    }

    fn arguments(self: Box<Self>) -> [u8; ARGUMENT_BYTES] {
        let mut bytes = [0; ARGUMENT_BYTES];
        let address = Box::into_raw(self).expose_provenance().to_ne_bytes();
        bytes[..address.len()].copy_from_slice(&address);
        bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(discard) = self.discard {
            // SAFETY: the program gave it for these arguments, and it is called once.
            unsafe { discard(self.arguments.as_mut_ptr().cast()) };
        }
    }
}

fn run(
    _: usize,
    arguments: &[u8; ARGUMENT_BYTES],
    mem: &Mem<'_>,
) -> Result<(), isochrone_tasks::Failure> {
    // SAFETY: arguments of such a task are what `Held::arguments` made, and it runs once or is discarded.
    let held = unsafe { Box::from_raw(Held::at(arguments)) };
    // SAFETY: the program gave the function for these arguments and for the ranges that it declared.
    unsafe { call(held.function, held.arguments.as_ptr().cast(), held.list, mem) }
}

fn discard(arguments: &[u8; ARGUMENT_BYTES]) {
    // SAFETY: as in `run`.
    drop(unsafe { Box::from_raw(Held::at(arguments)) });
}

/// The kernel of tasks of this name. Tasks know it by its address: there is one for each name.
fn kernel(name: &str) -> ForeignKernel {
    static KERNELS: Mutex<BTreeMap<String, ForeignKernel>> = Mutex::new(BTreeMap::new());
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kernels.get(name) {
        return *found;
    }
    let made = ForeignKernel::new(name, Foreign { run, discard: Some(discard), context: 0 });
    kernels.insert(name.to_owned(), made);
    made
}

/// Whose tasks they are.
pub(super) struct Of {
    pub(super) list: Option<&'static List>,
    /// Whether workers are processes.
    pub(super) processes: bool,
}

/// Registers what a program submits: `register` enters it.
///
/// # Safety
/// As `isochrone.h` says of `isochrone_tasks_submit`.
pub(super) unsafe fn submitted(
    of: &Of,
    submission: *const IsochroneSubmission,
    handle: *mut IsochroneHandle,
    register: impl FnOnce(ForeignKernel, [u8; ARGUMENT_BYTES], &Footprint) -> Result<Task, TaskError>,
) -> Result<(), Failure> {
    if submission.is_null() {
        return Err(super::null("submission"));
    }
    // SAFETY: the caller vouches for it.
    let given = unsafe { read(submission) }?;
    if given.reserved != [0; 4] {
        return Err(Failure::argument(
            "a submission has bits that this library does not know; set what is unused to 0",
        ));
    }
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let ranges = Given {
        arguments: std::ptr::null(),
        bytes: 0,
        ranges: given.ranges,
        count: number(given.count),
    };
    // SAFETY: the caller vouches for the ranges.
    let (_, footprint) = unsafe { described(given.priority, &ranges) }?;
    // SAFETY: the caller vouches for the arguments.
    let bytes = unsafe { slice(given.arguments.cast::<u8>(), number(given.bytes), "arguments") }?;
    // SAFETY: the caller vouches for the name.
    let name = unsafe { text(given.name, "task") }?;
    let named = || of.list.and_then(|list| list.named(given.kernel));
    let plain = given.function.is_none() && name.is_none() && given.discard.is_none();
    let task = if plain && bytes.len() <= ARGUMENT_BYTES {
        let list = of.list.ok_or_else(|| Failure::argument("this run has no kernels"))?;
        let mut kept = [0; ARGUMENT_BYTES];
        kept[..bytes.len()].copy_from_slice(bytes);
        register(list.kernel(given.kernel)?, kept, &footprint)?
    } else {
        if of.processes {
            return Err(Failure::argument(
                "where workers are processes a task has a kernel's number and 64 bytes of arguments at most: its \
                 function, name and longer arguments would be of one process",
            ));
        }
        let (function, kernels) = match given.function {
            Some(function) => (function, None),
            None => {
                let found = named().ok_or_else(|| {
                    Failure::argument(format!("no function, and no kernel {}", given.kernel))
                })?;
                (found.0, Some(found.1))
            }
        };
        let mut lines = vec![Line([0; 64]); bytes.len().div_ceil(64).max(1)];
        for (line, some) in lines.iter_mut().zip(bytes.chunks(64)) {
            line.0[..some.len()].copy_from_slice(some);
        }
        let held = Held { function, discard: given.discard, arguments: lines, list: of.list };
        let arguments = Box::new(held).arguments();
        let name = name.or(kernels).unwrap_or("function");
        register(kernel(name), arguments, &footprint).inspect_err(|_| {
            // It was not registered, so the program still has what its arguments own.
            // SAFETY: nobody else has it.
            let mut held = unsafe { Box::from_raw(Held::at(&arguments)) };
            held.discard = None;
        })?
    };
    if !handle.is_null() {
        // SAFETY: the caller's, and not null.
        unsafe { handle.write(IsochroneHandle { numbers: task.numbers() }) };
    }
    Ok(())
}
