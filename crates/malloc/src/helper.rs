//! The classifying thread of a process: it learns pages while the program's threads allocate. Only
//! a process that has several threads gets one, so that a program never finds itself with a thread
//! that it did not expect.
//!
//! It blocks all signals, allocates from glibc, and sleeps while there is nothing to do.

use crate::errno::Kept;
use crate::instance::Instance;
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use isochrone_os::futex::{Scope, wait, wake};
use isochrone_os::reserve::Stride;

/// A slice of the thread's: others get at the work in between.
const SLICE_NS: u64 = 200_000;
/// Between two slices it sleeps so long: it takes half of a core at most.
const REST_NS: u64 = 200_000;
/// How much it gives way where the program keeps every core busy: to a tenth of one core (the
/// weights of kernel/sched/core.c, `sched_prio_to_weight`).
const NICENESS: c_int = 10;
/// More than the deepest call needs; a page of it is used.
const STACK_BYTES: usize = 256 << 10;

/// Whether there is a thread.
mod thread {
    pub(super) const NONE: u32 = 0;
    pub(super) const STARTING: u32 = 1;
    pub(super) const RUNNING: u32 = 2;
    /// It could not be made, and is not tried again.
    pub(super) const REFUSED: u32 = 3;
}

/// The thread, and how it is called.
#[derive(Debug)]
pub(crate) struct Helper {
    state: AtomicU32,
    /// Raised by each call.
    calls: AtomicU32,
    /// 1 while it sleeps.
    sleeps: AtomicU32,
    /// glibc's `__libc_single_threaded` (2.32); null where there is none.
    single_threaded: AtomicPtr<c_char>,
}

impl Helper {
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU32::new(thread::NONE),
            calls: AtomicU32::new(0),
            sleeps: AtomicU32::new(0),
            single_threaded: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Finds out how to tell whether the process has several threads. Once, from a constructor.
    pub(crate) fn resolve(&self) {
        // SAFETY: the default search order and a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
        self.single_threaded.store(found.cast(), Ordering::Relaxed);
    }

    /// Whether the process has more than one thread. Without glibc's word: no.
    fn has_threads(&self) -> bool {
        let word = self.single_threaded.load(Ordering::Relaxed);
        if word.is_null() {
            return false;
        }
        // SAFETY: a variable of glibc, there for the process's life; volatile since glibc writes it.
        let single = unsafe { word.read_volatile() };
        single == 0
    }

    /// Whether there is a thread, made now if the process has several and none was tried. The
    /// caller's thread is busy, so what `pthread_create` allocates comes from glibc.
    pub(crate) fn is_there(&self, instance: &'static Instance<'static>) -> bool {
        match self.state.load(Ordering::Acquire) {
            thread::RUNNING => true,
            thread::NONE if self.has_threads() => {
                let taken = self.state.compare_exchange(
                    thread::NONE,
                    thread::STARTING,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if taken.is_err() {
                    return false;
                }
                let _errno = Kept::new();
                let made = make(instance);
                let state = if made { thread::RUNNING } else { thread::REFUSED };
                self.state.store(state, Ordering::Release);
                made
            }
            _ => false,
        }
    }

    /// Says that there is work.
    pub(crate) fn call(&self) {
        self.calls.fetch_add(1, Ordering::Release);
        if self.sleeps.swap(0, Ordering::AcqRel) == 1 {
            // Where there is no futex the thread does not sleep.
            let _ = wake(&self.calls, 1, Scope::Process);
        }
    }

    /// A child of `fork` has no such thread.
    pub(crate) fn forget(&self) {
        self.state.store(thread::NONE, Ordering::Relaxed);
    }

    /// What the thread does, for ever.
    fn run(&self, instance: &Instance<'_>) -> ! {
        loop {
            let calls = self.calls.load(Ordering::Acquire);
            while instance.wants_work() {
                let more = instance.slice(&mut instance.growth.hold(), SLICE_NS, Stride::Whole);
                if !more && !instance.wants_work() {
                    break;
                }
                // Nobody wakes it here: the time is up sooner.
                let _ = wait(&self.sleeps, 0, Some(REST_NS), Scope::Process);
            }
            instance.growth.hold().work.machine.release_sweep();
            self.sleeps.store(1, Ordering::Release);
            let _ = wait(&self.calls, calls, None, Scope::Process);
            self.sleeps.store(0, Ordering::Relaxed);
        }
    }
}

/// Makes the thread, detached and deaf to signals.
fn make(instance: &'static Instance<'static>) -> bool {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: initialises the local.
    if unsafe { libc::pthread_attr_init(attributes) } != 0 {
        return false;
    }
    // SAFETY: initialised above. What is refused leaves the default.
    unsafe { libc::pthread_attr_setstacksize(attributes, STACK_BYTES) };
    // SAFETY: as above.
    unsafe { libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED) };
    let made = with_signals_blocked(|| {
        let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
        let argument = ptr::from_ref(instance).cast_mut().cast();
        // SAFETY: attributes are initialised, `main` never returns and its argument lives for ever.
        unsafe { libc::pthread_create(thread.as_mut_ptr(), attributes, main, argument) == 0 }
    });
    // SAFETY: initialised above, and not used any more.
    unsafe { libc::pthread_attr_destroy(attributes) };
    made
}

/// A new thread inherits the mask of the one that makes it.
fn with_signals_blocked(work: impl FnOnce() -> bool) -> bool {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: initialises the local.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is initialised, `before` is written.
    let masked =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    if masked != 0 {
        return false;
    }
    let result = work();
    // SAFETY: written by the call above, which succeeded.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

extern "C" fn main(instance: *mut c_void) -> *mut c_void {
    crate::process::never_places();
    // SAFETY: takes numbers only; 0 is the calling thread (setpriority(2), "C library/kernel
    // differences"). It goes on at the same priority where that is refused.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
    // SAFETY: a name of less than 16 bytes; it is for people who look at the process.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"isochrone".as_ptr()) };
    // SAFETY: `make` gave a reference to an instance that lives for ever.
    let instance = unsafe { &*instance.cast::<Instance<'static>>() };
    crate::process::PROCESS.helper.run(instance)
}
