//! Forks: all that is not in memory is fetched before, or there is no fork. Whoever forks without `fork`, as `daemon`
//! does inside of the C library, is caught by handlers of the C library's; there is no way back from there, so where
//! not all fits the process ends with a line. What makes processes behind the C library's back (`clone` without shared
//! memory) leaves them without the window: they end where they touch it, and never read zeros.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::process::abort;

use isochrone_os::signal::say;
use isochrone_tier::live::guest::{Forking, Guest};

use super::kernel::{errno, refuse};
use super::process::{begun_by_nobody, here};

type Fork = unsafe extern "C" fn() -> c_int;

static FORK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static BARE_FORK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// The thread that forks by the functions here.
static FORKER: AtomicI32 = AtomicI32::new(0);
/// What a fork by other ways left for after it.
static LEFT: Left = Left(UnsafeCell::new(None));

const NO_ROOM: &[u8] =
    b"isochrone: no memory for all that a child has; the program ends instead of losing it\n";

struct Left(UnsafeCell<Option<Forking>>);
// SAFETY: touched by the one thread that forks, between its handlers, alone: whoever forks has the lock in it.
unsafe impl Sync for Left {}

/// Looks up the C library's functions.
pub(super) fn resolve() {
    for (name, place) in [(c"fork", &FORK), (c"_Fork", &BARE_FORK)] {
        // SAFETY: a constant name; which library comes next the linker knows by who calls.
        place.store(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }, Ordering::Release);
    }
}

/// From here on forks of the C library's own are seen.
pub(super) fn watch() {
    unsafe extern "C" {
        // glibc's, which `pthread_atfork` is made of (nptl/register-atfork.c).
        fn __register_atfork(
            before: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
            library: *mut c_void,
        ) -> c_int;
    }
    // SAFETY: functions without arguments, which stay: this library is never unloaded.
    unsafe {
        __register_atfork(Some(before), Some(in_parent), Some(in_child), core::ptr::null_mut())
    };
}

fn thread() -> i32 {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() }
}

fn tiered() -> Option<&'static Guest> {
    here().filter(|guest| !guest.is_alone())
}

fn forked_by(real: &AtomicPtr<c_void>) -> c_int {
    let real = real.load(Ordering::Acquire);
    if real.is_null() {
        return refuse(libc::ENOSYS, -1);
    }
    // SAFETY: the C library's function of this name and signature.
    let real: Fork = unsafe { core::mem::transmute::<*mut c_void, Fork>(real) };
    let Some(guest) = tiered() else {
        // SAFETY: as the program called it.
        let child = unsafe { real() };
        if child == 0 {
            begun_by_nobody();
        }
        return child;
    };
    let forking = match guest.before_fork() {
        Ok(forking) => forking,
        Err(why) => return refuse(why, -1),
    };
    FORKER.store(thread(), Ordering::Release);
    // SAFETY: as the program called it.
    let child = unsafe { real() };
    // What follows may change it.
    let why = errno();
    FORKER.store(0, Ordering::Release);
    if child == 0 {
        drop(forking);
    } else {
        guest.after_fork(forking);
    }
    refuse(why, child)
}

/// `fork(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> c_int {
    forked_by(&FORK)
}

/// `_Fork(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Fork() -> c_int {
    forked_by(&BARE_FORK)
}

extern "C" fn before() {
    if FORKER.load(Ordering::Acquire) == thread() {
        return;
    }
    let Some(guest) = tiered() else { return };
    match guest.before_fork() {
        // SAFETY: whoever has a `Forking` is the one thread that forks.
        Ok(forking) => unsafe { *LEFT.0.get() = Some(forking) },
        Err(_) => {
            say(NO_ROOM);
            abort();
        }
    }
}

fn left() -> Option<Forking> {
    // A child has its parent's word, and another number.
    if FORKER.load(Ordering::Acquire) != 0 {
        return None;
    }
    // SAFETY: the thread that forks, or the only one of its child.
    unsafe { &mut *LEFT.0.get() }.take()
}

extern "C" fn in_parent() {
    if let (Some(guest), Some(forking)) = (tiered(), left()) {
        guest.after_fork(forking);
    }
}

extern "C" fn in_child() {
    drop(left());
    begun_by_nobody();
}
