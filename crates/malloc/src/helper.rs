//! The classifying thread of a process: it learns pages while the program's threads allocate. Only
//! a process that has several threads gets one, so that a program never finds itself with a thread
//! that it did not expect.
//!
//! It blocks all signals, allocates from glibc, and sleeps while there is nothing to do. Where the
//! program keeps its cores busy it takes a small part of what the program does, since the program
//! waits for it then.

use crate::errno::Kept;
use crate::instance::Instance;
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use isochrone_os::clock;
use isochrone_os::futex::{Scope, wait, wake};
use isochrone_os::reserve::Stride;

/// A slice of the thread's: others get at the work in between.
const SLICE_NS: u64 = 200_000;
/// Between two slices it sleeps so long at least: it takes half of a core at most.
const REST_NS: u64 = 200_000;
/// Of a program that keeps every core busy it takes one part in so many of the processor time.
const BUSY_PARTS: u64 = 32;
/// It looks this often whether one does.
const PACE_NS: u64 = 4_000_000;
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
            let mut pace = Pace::new(instance.users().count());
            while instance.wants_work() {
                let more = instance.slice(&mut instance.growth.hold(), SLICE_NS, Stride::Whole);
                if !more && !instance.wants_work() {
                    break;
                }
                // Nobody wakes it here: the time is up sooner.
                let _ = wait(&self.sleeps, 0, Some(pace.rest_ns()), Scope::Process);
            }
            instance.growth.hold().work.machine.release_sweep();
            self.sleeps.store(1, Ordering::Release);
            let _ = wait(&self.calls, calls, None, Scope::Process);
            self.sleeps.store(0, Ordering::Relaxed);
        }
    }
}

/// How long the thread rests.
#[derive(Debug)]
struct Pace {
    cores: u64,
    /// When it looked last, and the processor time of the program's and of its own threads then.
    seen: [u64; 3],
    /// The processor time of its own at its last rest.
    own_ns: u64,
    busy: bool,
}

impl Pace {
    fn new(cores: usize) -> Self {
        let cores = u64::try_from(cores).unwrap_or(u64::MAX);
        let seen = Self::look();
        // Until it is known that cores idle it takes little.
        Self { cores, seen, own_ns: seen[2], busy: true }
    }

    fn look() -> [u64; 3] {
        let own = clock::thread_cpu_ns();
        [clock::monotonic_ns(), clock::process_cpu_ns().saturating_sub(own), own]
    }

    fn rest_ns(&mut self) -> u64 {
        let now = Self::look();
        let [wall, others, _] = core::array::from_fn(|at| now[at].saturating_sub(self.seen[at]));
        if wall >= PACE_NS {
            self.busy = is_busy(wall, others, self.cores);
            self.seen = now;
        }
        let took = now[2].saturating_sub(core::mem::replace(&mut self.own_ns, now[2]));
        if self.busy { (took * BUSY_PARTS / self.cores.max(1)).max(REST_NS) } else { REST_NS }
    }
}

/// Whether threads that took so much processor time left less than half of a core to others.
fn is_busy(wall: u64, others: u64, cores: u64) -> bool {
    others.saturating_add(wall / 2) >= wall.saturating_mul(cores)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_busy_where_less_than_half_of_a_core_is_left() {
        assert!(is_busy(1000, 1600, 2));
        assert!(!is_busy(1000, 1400, 2));
        assert!(is_busy(1000, 500, 1));
        assert!(!is_busy(1000, 63_000, 64));
    }

    #[test]
    fn it_rests_at_least_its_share_and_longer_in_a_busy_program() {
        let mut pace = Pace::new(2);
        let before = clock::thread_cpu_ns();
        while clock::thread_cpu_ns() < before + 1_000_000 {}
        pace.busy = true;
        pace.seen[0] = clock::monotonic_ns();
        assert!(pace.rest_ns() >= 16_000_000);
        pace.busy = false;
        pace.seen[0] = clock::monotonic_ns();
        assert_eq!(pace.rest_ns(), REST_NS);
    }
}
