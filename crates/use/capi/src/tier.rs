//! Memory larger than fast memory: a team that runs a function, pieces of its area, and one large array.
//!
//! A worker is known by the thread that it runs in, so its calls need no handle, as in the paper.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use isochrone_tier::live::far::{Compressed, Far, File, Lz4, Memory, Packing, Zstd};
use isochrone_tier::live::{
    Config, Mapped, Mode, Statistics, Tables, Team, TierError, Timed, Worker,
};
use isochrone_tier::pager::Advice;
use isochrone_tier::pages::{Event, Trouble};
use isochrone_tier::policy::PolicyKind;

use crate::sized::{OfC, read, write};
use crate::status::{Failure, Status, told};

/// How much memory and who works on it, `isochrone_tier_options` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTierOptions {
    /// Bytes of this struct, or 0.
    pub size: u64,
    /// Bytes of the area.
    pub area_bytes: u64,
    /// Bytes of it that may be in fast memory.
    pub fast_bytes: u64,
    /// A folder for the file that pages go to.
    pub folder: *const c_char,
    /// Where pages go: memory, a file, memory compressed.
    pub far: u32,
    /// Which leaves, by its place in [`POLICIES`].
    pub policy: u32,
    /// Workers; 0 for one.
    pub workers: u32,
    /// How many movers fetch and evict; 0 for none.
    pub movers: u32,
    /// Pages of a group; 0 for one, with those that follow it where faults do.
    pub group_pages: u32,
    /// [`THREADS`], [`CALLER_WORKS`] and [`SIGBUS`].
    pub flags: u32,
    /// Must be zeros.
    pub reserved: [u64; 4],
}

// SAFETY: numbers and pointers that may be null, without padding.
unsafe impl OfC for IsochroneTierOptions {
    const FIRST: usize = size_of::<Self>();
}

/// What became of an area's pages, `isochrone_tier_statistics` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTierStatistics {
    /// Bytes of this struct, or 0.
    pub size: u64,
    /// Groups that workers fetched, and their bytes with those that came beside them.
    pub fetched: u64,
    /// See above.
    pub fetched_bytes: u64,
    /// Groups that were in fast memory and were only mapped.
    pub mapped: u64,
    /// Groups that left, and their bytes.
    pub left: u64,
    /// See above.
    pub left_bytes: u64,
    /// Of these, groups that needed no copy.
    pub left_clean: u64,
    /// Groups that came before anybody touched them.
    pub prefetched: u64,
    /// Fetched groups that had just left.
    pub came_back: u64,
    /// Time of all faults, and of what they waited for others.
    pub fault_ns: u64,
    /// See above.
    pub wait_ns: u64,
    /// How often.
    pub waits: u64,
    /// The time that the worker waited which waited longest.
    pub longest_wait_ns: u64,
    /// That worker's number.
    pub longest_waiter: u32,
    /// Pages of a group.
    pub group_pages: u32,
    /// [`SERVES_SYSTEM_CALLS`].
    pub flags: u32,
    /// Always 0 so far.
    pub reserved_word: u32,
    /// Always zeros so far.
    pub reserved: [u64; 4],
    /// A line of advice, or nothing.
    pub advice: [u8; ADVICE_BYTES],
}

// SAFETY: numbers only, without padding.
unsafe impl OfC for IsochroneTierStatistics {
    const FIRST: usize = size_of::<Self>();
}

/// Room for a line of advice, with the zero at its end.
pub const ADVICE_BYTES: usize = 256;

impl From<&Statistics> for IsochroneTierStatistics {
    fn from(found: &Statistics) -> Self {
        let all = found.of_workers();
        let movers = &found.movers;
        let (left, prefetched) = (Event::Evicted, Event::Prefetched);
        let of_both = |event| all.events(event) + movers.events(event);
        let bytes = |groups: u64| groups.saturating_mul(found.group_bytes as u64);
        let (waiter, longest) = found.waited_longest().unwrap_or_default();
        let mut advice = [0; ADVICE_BYTES];
        let words = found.advice().unwrap_or_default();
        let some = words.len().min(ADVICE_BYTES - 1);
        advice[..some].copy_from_slice(&words.as_bytes()[..some]);
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            size: 0,
            fetched: all.events(Event::Missing),
            fetched_bytes: bytes(all.events(Event::Missing) + all.events(Event::Prefetched)),
            mapped: all.events(Event::Minor),
            left: of_both(left),
            left_bytes: bytes(of_both(left)),
            left_clean: of_both(Event::EvictedClean),
            prefetched: of_both(prefetched),
            came_back: all.events(Event::Refetched),
            fault_ns: found.ns(&all, Timed::Fault),
            wait_ns: found.ns(&all, Timed::Wait),
            waits: all.times(Timed::Wait),
            longest_wait_ns: longest,
            longest_waiter: number(waiter),
            group_pages: number(found.group_bytes / PAGE_BYTES),
            flags: if found.serves_system_calls { SERVES_SYSTEM_CALLS } else { 0 },
            reserved_word: 0,
            reserved: [0; 4],
            advice,
        }
    }
}

/// `ISOCHRONE_TIER_SERVES_SYSTEM_CALLS`.
pub const SERVES_SYSTEM_CALLS: u32 = 1;

/// `ISOCHRONE_TIER_THREADS`.
pub const THREADS: u32 = 1;
/// `ISOCHRONE_TIER_CALLER_WORKS`.
pub const CALLER_WORKS: u32 = 2;
/// `ISOCHRONE_TIER_SIGBUS`.
pub const SIGBUS: u32 = 4;
/// Policies by their numbers in C.
const POLICIES: [PolicyKind; 4] =
    [PolicyKind::CoreFifo, PolicyKind::Fifo, PolicyKind::Cmcp, PolicyKind::Sieve];
/// What may be said of a range, by its number in C.
const ADVICE: [Advice; 3] = [Advice::WillNeed, Advice::Cold, Advice::Discard];
const PAGE_BYTES: usize = 4096;

/// One large array, `isochrone_tier_array` in C.
#[derive(Debug)]
#[repr(transparent)]
pub struct IsochroneTierArray(Mapped);

impl IsochroneTierArray {
    /// The handle of an array that somebody else has.
    pub(crate) const fn of(array: &Mapped) -> *const Self {
        ptr::from_ref(array).cast()
    }
}

/// What a team runs, `isochrone_tier_body` in C.
pub type IsochroneTierBody = unsafe extern "C" fn(worker: u32, workers: u32, *mut c_void) -> u64;

thread_local! {
    /// The worker that this thread is, while it runs a body.
    static WORKER: Cell<*mut Worker<'static>> = const { Cell::new(ptr::null_mut()) };
}

/// Faults of a process are those of one area.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// This process's area, while there is one.
#[derive(Debug)]
pub(crate) struct Area;

impl Area {
    pub(crate) fn take() -> Result<Self, Failure> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(Failure::argument(
                "a process has one area at a time: let the team end, or unmap the array, before the next",
            ));
        }
        Ok(Self)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

impl From<TierError> for Failure {
    fn from(error: TierError) -> Self {
        let status = match error {
            TierError::Config(_) => Status::Argument,
            _ => Status::System,
        };
        Self { status, words: error.to_string() }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        let status = match trouble {
            Trouble::Full | Trouble::Pinned => Status::Memory,
            Trouble::NotPinned => Status::Argument,
            Trouble::Elsewhere => Status::Gone,
            Trouble::Far(_) | Trouble::Altered | Trouble::Kernel { .. } => Status::System,
        };
        Self { status, words: trouble.to_string() }
    }
}

pub(crate) fn gone(words: impl ToString) -> Failure {
    Failure { status: Status::Gone, words: words.to_string() }
}

fn whole(value: u64) -> Result<usize, Failure> {
    // Twice as much must have addresses, too.
    let value = usize::try_from(value).ok().filter(|value| *value <= usize::MAX >> 16);
    value.ok_or_else(|| Failure::argument("more bytes than there are addresses"))
}

fn few(value: u32) -> Result<u16, Failure> {
    u16::try_from(value).map_err(|_| {
        Failure::argument(format!(
            "{value} workers or movers; there are 1 to 8191 of both together"
        ))
    })
}

/// One of several, by its number in C.
fn numbered<T: Copy>(all: &[T], number: u32, what: &str) -> Result<T, Failure> {
    let found = usize::try_from(number).ok().and_then(|number| all.get(number)).copied();
    found.ok_or_else(|| Failure::argument(format!("{number} is no {what}; isochrone.h names them")))
}

/// What the options say.
///
/// # Safety
/// `options` is null or points to options whose folder is null or a string.
pub(crate) unsafe fn settings(
    options: *const IsochroneTierOptions,
) -> Result<(Config, Box<dyn Far>), Failure> {
    if options.is_null() {
        return Err(Failure::argument("no options: the area has no size"));
    }
    // SAFETY: the caller vouches for the pointer.
    let options = unsafe { read(options) }?;
    if options.flags & !(THREADS | CALLER_WORKS | SIGBUS) != 0 || options.reserved != [0; 4] {
        return Err(Failure::argument(
            "options have flags that this library does not know; set what is unused to 0",
        ));
    }
    let (area, fast) = (whole(options.area_bytes)?, whole(options.fast_bytes)?);
    if area == 0 {
        return Err(Failure::argument("an area of no bytes: set area_bytes"));
    }
    let mut config = Config::new(area, fast, few(options.workers)?.max(1));
    config.movers = few(options.movers)?;
    config.group_pages = usize::try_from(options.group_pages.max(1)).unwrap_or(usize::MAX);
    config.follow = options.group_pages == 0;
    config.policy = numbered(&POLICIES, options.policy, "policy")?;
    config.parent_works = options.flags & CALLER_WORKS != 0;
    // By signals is faster, for programs that can do without SIGBUS.
    config.mode = Some(if options.flags & SIGBUS == 0 { Mode::Blocking } else { Mode::Signal });
    if options.flags & THREADS != 0 {
        config.tables = Tables::Shared;
    }
    // Far from memory what was only read is not written back.
    config.plan.clean = options.far != 0;
    let bytes = area.next_multiple_of(16 * PAGE_BYTES);
    // SAFETY: the caller vouches for the folder.
    let far = unsafe { far(&options, bytes) }?;
    Ok((config, far))
}

/// What the options say for memory of so many bytes that the program has already: how much of it may be in fast
/// memory, and where the rest goes.
///
/// # Safety
/// As of [`settings`].
pub(crate) unsafe fn adopting(
    options: *const IsochroneTierOptions,
    bytes: usize,
) -> Result<(usize, Box<dyn Far>), Failure> {
    if options.is_null() {
        return Err(Failure::argument("no options: fast memory has no size"));
    }
    // SAFETY: the caller vouches for the pointer.
    let options = unsafe { read(options) }?;
    if options.flags != 0 || options.reserved != [0; 4] {
        return Err(Failure::argument("flags of memory that is adopted are 0, and so is the rest"));
    }
    // SAFETY: the caller vouches for the folder.
    Ok((whole(options.fast_bytes)?, unsafe { far(&options, bytes) }?))
}

/// Where pages go that are not in fast memory.
///
/// # Safety
/// The folder is null or a string.
unsafe fn far(options: &IsochroneTierOptions, bytes: usize) -> Result<Box<dyn Far>, Failure> {
    match numbered(&[0_u32, 1, 2, 3], options.far, "far tier")? {
        0 => Ok(Box::new(Memory::new(bytes, None).map_err(TierError::from)?)),
        1 if options.folder.is_null() => Err(Failure::argument("a file needs a folder to lie in")),
        1 => {
            // SAFETY: the caller vouches for it.
            let folder = unsafe { CStr::from_ptr(options.folder) };
            let folder = folder.to_str();
            let folder = folder.map_err(|_| Failure::argument("the folder's name is not UTF-8"))?;
            let file = File::new(Path::new(folder), bytes as u64).map_err(|error| Failure {
                status: Status::System,
                words: format!(
                    "no file in {folder}: {error}; name a folder that may be written to"
                ),
            })?;
            Ok(Box::new(file))
        }
        // Page by page, whatever a group has; twice the room, for what does not shrink.
        packed => {
            let packing: &'static dyn Packing = if packed == 2 { &Lz4 } else { &Zstd };
            let far = Compressed::new(packing, bytes, PAGE_BYTES, 2 * bytes);
            Ok(Box::new(far.map_err(TierError::from)?))
        }
    }
}

/// Runs a function in every worker of a new team, and waits for all.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_run(
    options: *const IsochroneTierOptions,
    body: Option<IsochroneTierBody>,
    argument: *mut c_void,
    values: *mut u64,
) -> c_int {
    let argument = argument.expose_provenance();
    let run = || {
        let body = body.ok_or_else(|| Failure::argument("no function to run"))?;
        let _area = Area::take()?;
        // SAFETY: the caller vouches for the options.
        let (config, far) = unsafe { settings(options) }?;
        let report = Team::new(config, far)?.run(|worker| {
            let (index, workers) = (worker.index(), worker.workers());
            WORKER.set(ptr::from_mut(worker).cast());
            let argument = ptr::with_exposed_provenance_mut(argument);
            // SAFETY: the caller vouches for body and argument.
            let value = unsafe { body(index.into(), workers.into(), argument) };
            WORKER.set(ptr::null_mut());
            Ok(value)
        })?;
        let all = report.values().map_err(gone)?;
        if !values.is_null() {
            // SAFETY: the caller has room for a value of each worker.
            unsafe { ptr::copy_nonoverlapping(all.as_ptr(), values, all.len()) };
        }
        Ok(())
    };
    told(run())
}

/// Does something as the worker that this thread is.
fn as_worker<T>(act: impl FnOnce(&mut Worker<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
    let worker = WORKER.get();
    // SAFETY: set by `isochrone_tier_run` while the worker runs its body in this thread; nobody else uses it
    // meanwhile, and no call of a worker calls another.
    let worker = unsafe { worker.as_mut() };
    let outside = || Failure::argument("not in a worker: call it in what isochrone_tier_run runs");
    act(worker.ok_or_else(outside)?)
}

/// Bytes of the area, from its start, if all of them lie in it.
fn range(worker: &Worker<'_>, at: *const c_void, bytes: usize) -> Result<Range<usize>, Failure> {
    let last = at.addr().checked_add(bytes.max(1) - 1);
    let both = worker.offset_of(at.addr()).zip(last.and_then(|last| worker.offset_of(last)));
    let (from, _) = both.ok_or_else(|| Failure::argument("addresses outside of the area"))?;
    Ok(from..from + bytes)
}

/// A piece of the area, of zeros.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_malloc_global(bytes: usize) -> *mut c_void {
    let mut piece = ptr::null_mut();
    told(as_worker(|worker| {
        let found = worker.malloc_global(bytes).ok_or_else(|| Failure {
            status: Status::Memory,
            words: format!("no {bytes} bytes of the area are free in one piece: make it larger"),
        })?;
        piece = found.as_ptr().cast();
        Ok(())
    }));
    piece
}

/// Gives a piece back.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_free_global(at: *mut c_void) -> c_int {
    let Some(at) = NonNull::new(at.cast::<u8>()) else { return Status::Ok.code() };
    told(as_worker(|worker| Ok(worker.free_global(at)?)))
}

/// Says something of a range.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_tier_advise(at: *const c_void, bytes: usize, advice: u32) -> c_int {
    told(as_worker(|worker| {
        let advice = numbered(&ADVICE, advice, "advice")?;
        Ok(worker.advise(range(worker, at, bytes)?, advice)?)
    }))
}

/// Keeps a range in fast memory.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_tier_pin(at: *const c_void, bytes: usize) -> c_int {
    told(as_worker(|worker| Ok(worker.pin(range(worker, at, bytes)?.start, bytes)?)))
}

/// Lets it leave again.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_tier_unpin(at: *const c_void, bytes: usize) -> c_int {
    told(as_worker(|worker| Ok(worker.unpin(range(worker, at, bytes)?.start, bytes)?)))
}

/// Meets all workers.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_tier_barrier() -> c_int {
    told(as_worker(|worker| worker.barrier().map_err(gone)))
}

/// The sum of what all workers give.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_sum(mine: f64, sum: *mut f64) -> c_int {
    told(as_worker(|worker| {
        if sum.is_null() {
            return Err(Failure::argument("no room for the sum"));
        }
        let all = worker.sum(mine).map_err(gone)?;
        // SAFETY: the caller's, and not null.
        unsafe { sum.write(all) };
        Ok(())
    }))
}

/// Maps one large array for all threads of this process.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_map(
    options: *const IsochroneTierOptions,
    array: *mut *mut IsochroneTierArray,
    at: *mut *mut c_void,
) -> c_int {
    let map = || {
        if array.is_null() || at.is_null() {
            return Err(Failure::argument("no room for the handle or the address"));
        }
        let area = Area::take()?;
        // SAFETY: the caller vouches for the options.
        let (config, far) = unsafe { settings(options) }?;
        let mapped = Mapped::new(config, far)?;
        let first = mapped.as_ptr().cast();
        // SAFETY: the caller's, and not null.
        unsafe { at.write(first) };
        let handle = Box::into_raw(Box::new(IsochroneTierArray(mapped)));
        // SAFETY: the caller's, and not null.
        unsafe { array.write(handle) };
        // Until it is unmapped.
        std::mem::forget(area);
        Ok(())
    };
    told(map())
}

/// Does something with bytes of an array.
///
/// # Safety
/// `array` is null or was given by [`isochrone_tier_map`] and is still mapped.
unsafe fn with(
    array: *const IsochroneTierArray,
    at: *const c_void,
    bytes: usize,
    act: impl FnOnce(&Mapped, Range<usize>) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller vouches for it.
    let array = unsafe { array.as_ref() };
    let found = array.ok_or_else(|| Failure::argument("array is a null pointer"));
    told(found.and_then(|IsochroneTierArray(array)| {
        let from = at.addr().checked_sub(array.as_ptr().addr());
        let inside = |from: &usize| from.checked_add(bytes).is_some_and(|end| end <= array.len());
        let from = from.filter(inside);
        let from = from.ok_or_else(|| Failure::argument("addresses outside of the array"))?;
        act(array, from..from + bytes)
    }))
}

/// Keeps a range of an array in fast memory.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_array_pin(
    array: *const IsochroneTierArray,
    at: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller vouches for the handle.
    unsafe { with(array, at, bytes, |array, range| Ok(array.pin(range)?)) }
}

/// Lets it leave again.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_array_unpin(
    array: *const IsochroneTierArray,
    at: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller vouches for the handle.
    unsafe { with(array, at, bytes, |array, range| Ok(array.unpin(range)?)) }
}

/// Says something of a range of an array.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_array_advise(
    array: *const IsochroneTierArray,
    at: *const c_void,
    bytes: usize,
    advice: u32,
) -> c_int {
    let advise = |array: &Mapped, range| {
        let advice = numbered(&ADVICE, advice, "advice")?;
        Ok(array.advise(range, advice)?)
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(array, at, bytes, advise) }
}

/// What became of an array's pages.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_array_count(
    array: *const IsochroneTierArray,
    statistics: *mut IsochroneTierStatistics,
) -> c_int {
    // SAFETY: the caller vouches for the handle.
    let found =
        unsafe { array.as_ref() }.ok_or_else(|| Failure::argument("array is a null pointer"));
    let found = found.and_then(|IsochroneTierArray(array)| Ok(array.statistics()?));
    // SAFETY: the caller vouches for the place.
    told(found.and_then(|found| unsafe { counted(&found, statistics) }))
}

/// What became of the pages of the area of the team that runs.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_count(statistics: *mut IsochroneTierStatistics) -> c_int {
    // SAFETY: the caller vouches for the place.
    told(as_worker(|worker| unsafe { counted(&worker.statistics(), statistics) }))
}

/// # Safety
/// `place` is null or a struct of C that may be written.
unsafe fn counted(found: &Statistics, place: *mut IsochroneTierStatistics) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::argument("no room for the statistics"));
    }
    // SAFETY: not null, and the caller vouches for it.
    unsafe { write(place, &found.into()) }
}

/// Takes an array away.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_unmap(array: *mut IsochroneTierArray) {
    if !array.is_null() {
        // SAFETY: a handle of this library, which its caller gives up.
        drop(unsafe { Box::from_raw(array) });
        drop(Area);
    }
}
