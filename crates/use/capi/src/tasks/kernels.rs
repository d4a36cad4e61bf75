//! Functions of C as kernels.

use super::user::Inside;
use super::{null, text};
use crate::status::Failure;
use isochrone_tasks::live::{Accumulator, Foreign, ForeignKernel};
use isochrone_tasks::{ARGUMENT_BYTES, Mem, Reducible};
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Ranges whose addresses lie on the stack.
const FEW: usize = 16;
/// As many null pointers, for a task without ranges.
const NONE: &[usize; FEW] = &[0; FEW];

/// A task that runs, `isochrone_task` in C.
#[derive(Debug)]
pub struct IsochroneTask<'a> {
    pub(super) mem: &'a Mem<'a>,
    /// The kernels that its own tasks may have.
    pub(super) list: Option<&'static List>,
    /// What it said before it failed.
    pub(super) words: Option<String>,
    /// Its own values of what it reduces; they are combined with the common ones when it is over.
    pub(super) own: Vec<Box<dyn Own + 'a>>,
}

/// Values of a task's own, of any type.
pub(super) trait Own: fmt::Debug {}

impl<T: Reducible + fmt::Debug> Own for Accumulator<'_, T> {}

impl<'a> IsochroneTask<'a> {
    pub(super) const fn new(mem: &'a Mem<'a>, list: Option<&'static List>) -> Self {
        Self { mem, list, words: None, own: Vec::new() }
    }
}

/// A kernel's function, `isochrone_kernel_function` in C.
pub type Function =
    unsafe extern "C" fn(*mut IsochroneTask<'_>, *const c_void, *const *mut c_void) -> c_int;

/// A kernel, `isochrone_kernel` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneKernel {
    /// What errors call it.
    pub name: *const c_char,
    /// What it does.
    pub function: Option<Function>,
}

/// Kernels that a program gave together. Tasks know a kernel by its address, so lists live as long as the
/// process; a program that starts many runs with the same kernels has one.
#[derive(Debug)]
pub(crate) struct List {
    entries: Vec<Entry>,
    kernels: OnceLock<Vec<ForeignKernel>>,
}

/// What a task of a kernel is given.
#[derive(Debug)]
struct Entry {
    name: String,
    function: Function,
    list: OnceLock<&'static List>,
}

static LISTS: Mutex<Vec<&'static List>> = Mutex::new(Vec::new());

/// The list of these kernels.
///
/// # Safety
/// Names are strings of C.
pub(crate) unsafe fn list(given: &[IsochroneKernel]) -> Result<&'static List, Failure> {
    let mut entries = Vec::new();
    for kernel in given {
        let function = kernel.function.ok_or_else(|| null("a kernel's function"))?;
        // SAFETY: the caller vouches for it.
        let name =
            unsafe { text(kernel.name, "kernel") }?.ok_or_else(|| null("a kernel's name"))?;
        entries.push(Entry { name: name.to_owned(), function, list: OnceLock::new() });
    }
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    let alike =
        |a: &Entry, b: &Entry| a.name == b.name && std::ptr::fn_addr_eq(a.function, b.function);
    let same = |list: &&&'static List| {
        list.entries.len() == entries.len()
            && list.entries.iter().zip(&entries).all(|(a, b)| alike(a, b))
    };
    if let Some(list) = lists.iter().find(same) {
        return Ok(list);
    }
    let list: &'static List = Box::leak(Box::new(List { entries, kernels: OnceLock::new() }));
    let kernel = |entry: &'static Entry| {
        // Nobody else has the list yet.
        let _ = entry.list.set(list);
        let context = std::ptr::from_ref(entry).expose_provenance();
        ForeignKernel::new(&entry.name, Foreign { run, discard: None, context })
    };
    let _ = list.kernels.set(list.entries.iter().map(kernel).collect());
    lists.push(list);
    Ok(list)
}

impl List {
    /// The function and the name of a kernel.
    pub(super) fn named(&self, number: u32) -> Option<(Function, &str)> {
        let entry = self.entries.get(usize::try_from(number).ok()?)?;
        Some((entry.function, &entry.name))
    }

    pub(super) fn kernel(&self, number: u32) -> Result<ForeignKernel, Failure> {
        let kernels = self.kernels.get().map_or(&[][..], Vec::as_slice);
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        kernels.get(at).copied().ok_or_else(|| {
            Failure::argument(format!("kernel {number} of {}; they count from 0", kernels.len()))
        })
    }
}

/// Runs a task of a kernel in C.
fn run(
    context: usize,
    arguments: &[u8; ARGUMENT_BYTES],
    mem: &Mem<'_>,
) -> Result<(), isochrone_tasks::Failure> {
    // SAFETY: the context of these kernels is the address of an entry, which is never freed; processes
    // that share tasks are forks of one another and have it at the same place.
    let entry = unsafe { &*std::ptr::with_exposed_provenance::<Entry>(context) };
    let list = entry.list.get().copied();
    // SAFETY: the program gave a function of this type, and vouches for what it does with the ranges that it declared;
    // the arguments live until it returns.
    unsafe { call(entry.function, arguments.as_ptr().cast(), list, mem) }
}

/// Calls a function of C for a task.
///
/// # Safety
/// The function takes these arguments and the ranges that the task declared.
pub(super) unsafe fn call(
    function: Function,
    arguments: *const c_void,
    list: Option<&'static List>,
    mem: &Mem<'_>,
) -> Result<(), isochrone_tasks::Failure> {
    let mut addresses = mem.addresses().peekable();
    if addresses.peek().is_none() {
        // SAFETY: the caller vouches for it.
        return unsafe { call_with(function, arguments, NONE.as_ptr().cast(), list, mem) };
    }
    let mut few = [std::ptr::null_mut::<c_void>(); FEW];
    let mut many = Vec::new();
    for (at, address) in addresses.enumerate() {
        match few.get_mut(at) {
            Some(place) => *place = address.cast(),
            None if many.is_empty() => many = few.iter().copied().chain([address.cast()]).collect(),
            None => many.push(address.cast()),
        }
    }
    let ranges = if many.is_empty() { few.as_ptr() } else { many.as_ptr() };
    // SAFETY: the caller vouches for it.
    unsafe { call_with(function, arguments, ranges, list, mem) }
}

/// The same with the addresses of its ranges.
///
/// # Safety
/// As for [`call`].
#[inline]
unsafe fn call_with(
    function: Function,
    arguments: *const c_void,
    ranges: *const *mut c_void,
    list: Option<&'static List>,
    mem: &Mem<'_>,
) -> Result<(), isochrone_tasks::Failure> {
    let mut task = IsochroneTask::new(mem, list);
    let inside = Inside::begin();
    // SAFETY: the caller vouches for it; the task and the addresses live until it returns.
    let code = unsafe { function(&raw mut task, arguments, ranges) };
    drop(inside);
    match (code, task.words.take()) {
        (0, _) => Ok(()),
        (_, Some(words)) => Err(isochrone_tasks::Failure::new(words)),
        (code, None) => Err(isochrone_tasks::Failure::new(format!("it returned {code}"))),
    }
}
