//! What this process was told, and its pager, which begins with the first large mapping.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use isochrone_malloc::next;
use isochrone_os::affinity::CoreSet;
use isochrone_os::futex::{self, Scope};
use isochrone_os::signal::{hold, say};
use isochrone_os::{clock, process};
use isochrone_tier::live::guest::record::{BYTES, State, Tally, WORDS, Word};
use isochrone_tier::live::guest::told::{SUFFIX, Told};
use isochrone_tier::live::guest::{Guest, Settings};

use super::kernel::memory;

/// Addresses for large mappings: more than the memory of any machine that this was tried on, and halved where there are
/// not so many.
const WINDOW_BYTES: usize = 256 << 30;
/// Of a process with other rights than its parent, or one that outlives it.
const UNRECORDED: &[u8] =
    b"isochrone: a process cannot write its record where the report looks for it; the report lacks it\n";
/// Threads that resolve faults at most.
const HANDLERS_MOST: usize = 4;

/// Nothing was told, so nothing is done.
const UNTOLD: u32 = 0;
/// The first large mapping begins the pager.
const READY: u32 = 1;
/// Somebody begins it now.
const BUSY: u32 = 2;
/// It runs.
const ON: u32 = 3;
/// It could not begin.
const OFF: u32 = 4;

static STATE: AtomicU32 = AtomicU32::new(UNTOLD);
static GUEST: AtomicPtr<Guest> = AtomicPtr::new(core::ptr::null_mut());
static TOLD: OnceLock<Told> = OnceLock::new();
static TALLY: OnceLock<Tally> = OnceLock::new();
/// Mappings of so many bytes are large.
static LARGE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Reads what the process is told; whether it is told anything.
pub(super) fn begin(told: Option<&CStr>) -> bool {
    next::resolve();
    let told = told.and_then(|text| text.to_str().ok()).and_then(Told::parse);
    let Some(told) = told else { return false };
    LARGE.store(told.large_bytes, Ordering::Relaxed);
    let is_told = TOLD.set(told).is_ok();
    if is_told {
        STATE.store(READY, Ordering::Release);
    }
    is_told
}

/// Says in the record that the process ends by itself.
pub(super) extern "C" fn end() {
    let is_alone = here().is_some_and(Guest::is_alone);
    if let Some(tally) = TALLY.get().filter(|_| !is_alone) {
        tally.end();
    }
}

/// Whether so many bytes are to be paged.
#[inline]
pub(super) fn is_large(bytes: usize) -> bool {
    bytes >= LARGE.load(Ordering::Relaxed)
}

/// The pager, if it has begun; also in a child, whose pages are the kernel's.
#[inline]
pub(super) fn here() -> Option<&'static Guest> {
    if STATE.load(Ordering::Acquire) != ON {
        return None;
    }
    // SAFETY: set once, before the state, to a value that lives as long as the process.
    unsafe { GUEST.load(Ordering::Relaxed).as_ref() }
}

/// Whether large mappings of this process are to be paged.
pub(super) fn is_told() -> bool {
    matches!(STATE.load(Ordering::Acquire), READY | BUSY | ON)
}

/// The pager, for something new: begun, if it can be.
#[inline]
pub(super) fn wanted() -> Option<&'static Guest> {
    if matches!(STATE.load(Ordering::Acquire), READY | BUSY) {
        begin_pager();
    }
    here().filter(|guest| !guest.is_alone())
}

/// Begins the pager, or waits until it has begun: no thread has a large mapping before.
#[cold]
fn begin_pager() {
    // A handler of this thread would wait for it.
    let _held = hold();
    if STATE.compare_exchange(READY, BUSY, Ordering::AcqRel, Ordering::Acquire).is_err() {
        while STATE.load(Ordering::Acquire) == BUSY {
            let _ = futex::wait(&STATE, BUSY, None, Scope::Process);
        }
        return;
    }
    let guest = start();
    let state = if guest.is_some() { ON } else { OFF };
    let pointer = guest.map_or(core::ptr::null(), core::ptr::from_ref);
    GUEST.store(pointer.cast_mut(), Ordering::Relaxed);
    STATE.store(state, Ordering::Release);
    let _ = futex::wake(&STATE, u32::MAX >> 1, Scope::Process);
}

/// In a child that was made while another thread began the pager: nobody goes on with that here.
pub(super) fn begun_by_nobody() {
    if STATE.compare_exchange(BUSY, OFF, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        say(b"isochrone: untiered: a child of a process that just began to be paged\n");
    }
}

fn start() -> Option<&'static Guest> {
    let told = TOLD.get()?;
    let tally = Tally::new(record(&told.reports)?, process::this().0);
    let tally = *TALLY.get_or_init(|| tally);
    let cores = CoreSet::of_this_thread().map_or(1, |cores| cores.iter().count());
    let handlers = u16::try_from(cores.clamp(2, HANDLERS_MOST)).unwrap_or(2);
    let Told { fast_bytes, ref far, .. } = *told;
    let settings = Settings { fast_bytes, window_bytes: WINDOW_BYTES, far: far.clone(), handlers };
    match Guest::start(&settings, tally) {
        Ok(guest) => Some(guest),
        Err(error) => {
            tally.come(State::Untiered);
            tally.set(Word::Errno, u64::from(error.errno.unsigned_abs()));
            None
        }
    }
}

/// The words of this process's record: of a file that outlives it, or of memory where none can be made; then a line
/// says so, since the report will not.
fn record(folder: &str) -> Option<&'static [AtomicU64]> {
    let name = format!("{folder}/{}-{}{SUFFIX}", process::this().0, clock::monotonic_ns());
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(name).ok();
    let file = file.filter(|file| file.set_len(BYTES as u64).is_ok());
    let (kind, number) = match &file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => {
            say(UNRECORDED);
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
        }
    };
    let words: *const AtomicU64 = core::ptr::with_exposed_provenance(memory(BYTES, kind, number)?);
    // SAFETY: mapped just now, zeroed, readable and writable, page-aligned and never unmapped; all use it by atomics.
    Some(unsafe { core::slice::from_raw_parts(words, WORDS) })
}
