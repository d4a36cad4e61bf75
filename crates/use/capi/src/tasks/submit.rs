//! Tasks with all that one may say of them: a function of their own, a name, arguments of any size that may own
//! something, and a handle to wait for.
//!
//! What does not fit a task's 64 bytes lies on the heap of this process. So where workers are processes a task has a
//! kernel's number and small plain arguments, as by `isochrone_tasks_spawn`, and may have a handle.

use super::describe::{IsochroneRange, described};
use super::kernels::{Function, List, call};
use super::slice;
use super::text;
use crate::sized::{OfC, read};
use crate::status::{Failure, Status};
use isochrone_tasks::live::{Foreign, ForeignKernel, Task};
use isochrone_tasks::{ARGUMENT_BYTES, Footprint, Mem, TaskError};
use std::cell::Cell;
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

/// Bytes of arguments that fit a task beside its function.
const FEW: usize = ARGUMENT_BYTES - 3 * size_of::<usize>();

/// What a task knows of its function: what it is, what ends its arguments, and the run's kernels.
#[derive(Clone, Copy, Debug)]
struct Call {
    function: Function,
    discard: Option<Discard>,
    list: Option<&'static List>,
}

/// What a task has whose arguments are more than [`FEW`] bytes: it lies on the heap, and its address in the task.
#[derive(Debug)]
struct Held {
    call: Call,
    arguments: Vec<Line>,
}

/// A task's 64 bytes.
type Words = [u8; ARGUMENT_BYTES];

/// What they are: a [`Call`] and then its arguments; or no function and, in the place of what ends arguments, the
/// address of a [`Held`].
#[derive(Clone, Copy)]
#[repr(C)]
struct Kept {
    function: Option<Function>,
    second: usize,
    list: Option<&'static List>,
    arguments: [u8; FEW],
}

const _: () = assert!(size_of::<Kept>() == size_of::<Words>());

impl Kept {
    /// For a task.
    fn new(call: Call, arguments: &[u8]) -> Result<Self, Failure> {
        let mut few = [0; FEW];
        if let Some(room) = few.get_mut(..arguments.len()) {
            room.copy_from_slice(arguments);
            let Call { function, discard, list } = call;
            let second = discard.map_or(0, |it| (it as *const ()).expose_provenance());
            return Ok(Self { function: Some(function), second, list, arguments: few });
        }
        let mut lines = Vec::new();
        lines.try_reserve_exact(arguments.len().div_ceil(64)).map_err(|_| Failure {
            status: Status::Memory,
            words: format!("no memory for {} bytes of a task's arguments", arguments.len()),
        })?;
        lines.extend(arguments.chunks(64).map(|some| {
            let mut line = Line([0; 64]);
            line.0[..some.len()].copy_from_slice(some);
            line
        }));
        let held = Box::into_raw(Box::new(Held { call, arguments: lines })).expose_provenance();
        Ok(Self { function: None, second: held, list: None, arguments: few })
    }

    fn words(self) -> Words {
        // SAFETY: of the same size, without padding, and any bytes are words.
        unsafe { std::mem::transmute::<Self, Words>(self) }
    }

    /// # Safety
    /// [`Kept::words`] made the words.
    unsafe fn of(words: &Words) -> Self {
        // SAFETY: the caller vouches for it.
        unsafe { std::mem::transmute::<Words, Self>(*words) }
    }

    /// What it is, to be used once, with its arguments at a line: `work` may keep nothing of them.
    ///
    /// # Safety
    /// This is the only use of what the task has.
    #[inline]
    unsafe fn once<T>(self, work: impl FnOnce(Call, *mut c_void) -> T) -> T {
        let Some(function) = self.function else {
            let held = std::ptr::with_exposed_provenance_mut::<Held>(self.second);
            // SAFETY: without a function there is the address of what was leaked there, and this is its only use.
            let mut held = unsafe { Box::from_raw(held) };
            return work(held.call, held.arguments.as_mut_ptr().cast());
        };
        let discard = std::ptr::with_exposed_provenance::<()>(self.second);
        // SAFETY: null, or the address of a function of this type, as it was put there.
        let discard = unsafe { std::mem::transmute::<*const (), Option<Discard>>(discard) };
        let mut line = Line([0; 64]);
        line.0[..FEW].copy_from_slice(&self.arguments);
        let call = Call { function, discard, list: self.list };
        work(call, std::ptr::from_mut(&mut line).cast())
    }
}

impl Call {
    /// Ends what the arguments own.
    ///
    /// # Safety
    /// They are this call's, and nobody uses them any more.
    unsafe fn end(self, arguments: *mut c_void) {
        if let Some(discard) = self.discard {
            // SAFETY: the program gave it for these arguments, and it is called once.
            unsafe { discard(arguments) };
        }
    }
}

fn run(_: usize, arguments: &Words, mem: &Mem<'_>) -> Result<(), isochrone_tasks::Failure> {
    // SAFETY: arguments of such a task are what `Kept::words` made.
    let kept = unsafe { Kept::of(arguments) };
    let work = |now: Call, at: *mut c_void| {
        // SAFETY: the program gave the function for these arguments and for the ranges that it declared.
        let outcome = unsafe { call(now.function, at, now.list, mem) };
        // SAFETY: the function has returned.
        unsafe { now.end(at) };
        outcome
    };
    // SAFETY: a task runs once or is discarded.
    unsafe { kept.once(work) }
}

fn discard(arguments: &Words) {
    // SAFETY: as in `run`.
    let kept = unsafe { Kept::of(arguments) };
    // SAFETY: as in `run`, and the function was never called.
    let end = |now: Call, at: *mut c_void| unsafe { now.end(at) };
    // SAFETY: as in `run`.
    unsafe { kept.once(end) };
}

thread_local! {
    /// The kernel of the name that this thread gave last.
    static LAST: Cell<Option<ForeignKernel>> = const { Cell::new(None) };
}

/// The kernel of tasks of this name. Tasks know it by its address: there is one for each name.
fn kernel(name: &str) -> ForeignKernel {
    static KERNELS: Mutex<BTreeMap<String, ForeignKernel>> = Mutex::new(BTreeMap::new());
    // Most tasks have the name of the one before, and threads that submit do not wait for one another.
    if let Some(last) = LAST.get().filter(|last| last.name() == name) {
        return last;
    }
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = kernels.get(name).copied();
    let made = found.unwrap_or_else(|| {
        let made = ForeignKernel::new(name, Foreign { run, discard: Some(discard), context: 0 });
        kernels.insert(name.to_owned(), made);
        made
    });
    LAST.set(Some(made));
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
    let mut footprint = Footprint::new();
    let count = number(given.count);
    // SAFETY: the caller vouches for the ranges.
    unsafe { described(&mut footprint, given.priority, given.ranges, count) }?;
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
        let call = Call { function, discard: given.discard, list: of.list };
        let kept = Kept::new(call, bytes)?;
        let name = name.or(kernels).unwrap_or("function");
        register(kernel(name), kept.words(), &footprint).inspect_err(|_| {
            // The program still has what the arguments own.
            // SAFETY: it was not registered, so nobody else has the words.
            unsafe { kept.once(|_, _| ()) };
        })?
    };
    if !handle.is_null() {
        // SAFETY: the caller's, and not null.
        unsafe { handle.write(IsochroneHandle { numbers: task.numbers() }) };
    }
    Ok(())
}
