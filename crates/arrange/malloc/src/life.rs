//! The life of a process: it is told what to do, and it ends.

use crate::counting::count_alone;
use crate::entry::{Back, Front};
use crate::instance::process::instance;
use crate::process::{LOCAL, PROCESS, phase, report_late};
use crate::report::{Reason, Word};
use crate::status::Status;
use crate::told::Told;
use crate::{blocks, code, filters, fork, front, loading, memory, next, pin, thread, watched};
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use isochrone_os::clock;
use isochrone_os::signal::on_new_stack;

/// What loading takes of a stack, several times over: a record, and the status of the process as a text. That of the
/// process may be small, and its arguments and environment lie on it.
const LOAD_STACK_BYTES: usize = 256 << 10;

/// Somebody has told the process what to do.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Tells the process what to do, by the record at `path`. Once, before it has other threads.
/// `counting` is `malloc` as long as objects are only counted, `placing` are the functions to which calls lead while
/// something is to be placed, and `back` those that take back
/// what may have been placed.
pub(crate) fn begin(path: Option<&CStr>, counting: *mut c_void, placing: &Front, back: &Back) {
    if BEGUN.swap(true, Ordering::AcqRel) {
        return;
    }
    next::resolve();
    front::lead_back_later(back);
    front::lead_back_on();
    filters::resolve();
    loading::resolve();
    let begun =
        path.map(|path| on_new_stack(LOAD_STACK_BYTES, || begin_as_told(path, counting, placing)));
    if begun.is_none_or(|begun| begun.is_err()) {
        stay_transparent();
    }
}

/// Everything goes to the next allocator.
fn stay_transparent() {
    PROCESS.room.close();
    front::lead_on();
    PROCESS.phase.store(phase::TRANSPARENT, Ordering::Release);
    loading::nothing_is_placed();
}

/// Out of line, so that nothing of it is on the stack of the process.
#[inline(never)]
fn begin_as_told(path: &CStr, counting: *mut c_void, placing: &Front) {
    let status = Status::of_process();
    if status.is_some_and(|status| !status.is_traced) {
        code::may_go_back();
    }
    let told = Told::read(path, |config| filters::allow(config, status));
    let Some(told) = told.filter(|_| !PROCESS.room.is_closed()) else {
        return stay_transparent();
    };
    let began = clock::monotonic_ns();
    let config = &told.config;
    let mode = config.policy.mode;
    let process = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    if !config.reports.is_empty()
        && let Some(report) = memory::map_report(&config.reports, process, began)
    {
        PROCESS.count_in(report);
    }
    PROCESS.counters().begin(process, mode, 0);
    pin::begin(config, process, false);
    PROCESS.heed(told);
    if config.watches {
        if fork::prepare() {
            watched::begin();
        } else {
            PROCESS.delegate(Reason::NoMemory);
        }
        return PROCESS
            .counters()
            .set(Word::StartupNs, clock::monotonic_ns().saturating_sub(began));
    }
    if told.atlas.is_empty() {
        PROCESS.delegate(Reason::NoAtlas);
    } else if blocks::prepare() && fork::prepare() {
        PROCESS.phase.store(phase::COUNTING, Ordering::Release);
        front::lead_to_counting(counting, placing);
    } else {
        PROCESS.delegate(Reason::NoMemory);
    }
    PROCESS.counters().set(Word::StartupNs, clock::monotonic_ns().saturating_sub(began));
}

/// The process ends by `exit`: what this thread has not added yet, it adds now.
pub fn end() {
    let slot = thread::slot();
    thread::with_block(slot, |thread| thread.count(PROCESS.counters()));
    if PROCESS.config().is_none() {
        return;
    }
    count_alone(slot);
    watched::end(slot);
    if let Some(mut inside) = PROCESS.room.wait() {
        report_late(&mut inside);
        pin::end();
        inside.run(note_live);
    }
    PROCESS.counters().set(Word::Ended, 1);
}

/// Says what is live at the end, if anybody will read it.
fn note_live() {
    let placing = PROCESS.phase.load(Ordering::Acquire) == phase::PLACING;
    if let Some(instance) = instance().filter(|_| placing)
        && !ptr::eq(PROCESS.counters(), &LOCAL)
    {
        instance.note_live(PROCESS.counters());
    }
}
