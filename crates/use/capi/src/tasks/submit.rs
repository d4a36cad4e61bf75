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

/// A task's 64 bytes: the words of a [`Call`] and then its arguments, or 0 and the address of a [`Held`].
type Words = [u8; ARGUMENT_BYTES];

/// What lies in a task.
enum Kept {
    Few(Call, Line),
    Many(Box<Held>),
}

fn put(words: &mut Words, at: usize, word: usize) {
    let bytes = word.to_ne_bytes();
    words[at * bytes.len()..][..bytes.len()].copy_from_slice(&bytes);
}

fn word(words: &Words, at: usize) -> usize {
    let mut bytes = [0; size_of::<usize>()];
    let from = at * bytes.len();
    bytes.copy_from_slice(&words[from..][..size_of::<usize>()]);
    usize::from_ne_bytes(bytes)
}

impl Kept {
    /// Into a task.
    fn words(call: Call, arguments: &[u8]) -> Result<Words, Failure> {
        let mut words = [0; ARGUMENT_BYTES];
        if arguments.len() <= FEW {
            let Call { function, discard, list } = call;
            put(&mut words, 0, (function as *const ()).expose_provenance());
            put(&mut words, 1, discard.map_or(0, |it| (it as *const ()).expose_provenance()));
            put(&mut words, 2, list.map_or(0, |it| std::ptr::from_ref(it).expose_provenance()));
            words[ARGUMENT_BYTES - FEW..][..arguments.len()].copy_from_slice(arguments);
            return Ok(words);
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
        let held = Box::new(Held { call, arguments: lines });
        put(&mut words, 1, Box::into_raw(held).expose_provenance());
        Ok(words)
    }

    /// Out of a task.
    ///
    /// # Safety
    /// [`Kept::words`] made the words, and this is called once for them.
    unsafe fn take(words: &Words) -> Self {
        let [first, second, third] = [0, 1, 2].map(|at| word(words, at));
        let place = std::ptr::with_exposed_provenance::<()>;
        if first == 0 {
            // SAFETY: without a function there is the address of what was leaked there.
            return Self::Many(unsafe {
                Box::from_raw(std::ptr::with_exposed_provenance_mut(second))
            });
        }
        // SAFETY: the address of a function of this type, as it was put there.
        let function = unsafe { std::mem::transmute::<*const (), Function>(place(first)) };
        // SAFETY: null, or as above.
        let discard = unsafe { std::mem::transmute::<*const (), Option<Discard>>(place(second)) };
        // SAFETY: null, or a list, which is never freed.
        let list = unsafe { place(third).cast::<List>().as_ref() };
        let mut line = Line([0; 64]);
        line.0[..FEW].copy_from_slice(&words[ARGUMENT_BYTES - FEW..]);
        Self::Few(Call { function, discard, list }, line)
    }

    fn parts(&mut self) -> (Call, *mut c_void) {
        match self {
            Self::Few(call, line) => (*call, std::ptr::from_mut(line).cast()),
            Self::Many(held) => (held.call, held.arguments.as_mut_ptr().cast()),
        }
    }

    /// The program still has what the arguments own.
    ///
    /// # Safety
    /// As for [`Self::take`].
    unsafe fn give_back(words: &Words) {
        // SAFETY: the caller vouches for it.
        drop(unsafe { Self::take(words) });
    }

    /// Ends what the arguments own.
    fn end(mut self) {
        let (call, arguments) = self.parts();
        if let Some(discard) = call.discard {
            // SAFETY: the program gave it for these arguments, and it is called once.
            unsafe { discard(arguments) };
        }
    }
}

fn run(_: usize, arguments: &Words, mem: &Mem<'_>) -> Result<(), isochrone_tasks::Failure> {
    // SAFETY: arguments of such a task are what `Kept::words` made, and it runs once or is discarded.
    let mut kept = unsafe { Kept::take(arguments) };
    let (Call { function, list, .. }, at) = kept.parts();
    // SAFETY: the program gave the function for these arguments and for the ranges that it declared.
    let outcome = unsafe { call(function, at, list, mem) };
    kept.end();
    outcome
}

fn discard(arguments: &Words) {
    // SAFETY: as in `run`.
    unsafe { Kept::take(arguments) }.end();
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
        let call = Call { function, discard: given.discard, list: of.list };
        let words = Kept::words(call, bytes)?;
        let name = name.or(kernels).unwrap_or("function");
        register(kernel(name), words, &footprint).inspect_err(|_| {
            // SAFETY: it was not registered, so nobody else has the words.
            unsafe { Kept::give_back(&words) };
        })?
    };
    if !handle.is_null() {
        // SAFETY: the caller's, and not null.
        unsafe { handle.write(IsochroneHandle { numbers: task.numbers() }) };
    }
    Ok(())
}
