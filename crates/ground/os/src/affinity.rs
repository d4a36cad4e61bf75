//! On which core a thread runs: asking, pinning, setting back, and giving way to everybody else.
//!
//! It knows threads by their number only and creates none. Sets of cores hold 8192, the most that
//! Linux can be built for on x86-64 (arch/x86/Kconfig, `NR_CPUS_RANGE_END`), so that no machine is
//! too large for them.

use crate::arch;
use crate::cache::Features;
use crate::error::OsError;
use crate::syscall::syscall;
use core::mem::size_of;
use isochrone_units::CoreId;

/// Words of a set of cores.
const SET_WORDS: usize = 8192 / 64;

/// A thread of any process, numbered as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(pub i32);

/// A set of cores on which a thread may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSet {
    words: [u64; SET_WORDS],
}

impl CoreSet {
    /// The set that holds `core` alone; empty for a number that no Linux has.
    #[must_use]
    pub fn only(core: CoreId) -> Self {
        let mut words = [0; SET_WORDS];
        if let Some(word) = words.get_mut(usize::from(core.0 / 64)) {
            *word = 1 << (core.0 % 64);
        }
        Self { words }
    }

    /// All cores that any Linux has.
    #[must_use]
    pub const fn all() -> Self {
        Self { words: [u64::MAX; SET_WORDS] }
    }

    /// The cores on which this thread may run.
    ///
    /// # Errors
    /// [`OsError`] where the kernel does not say.
    pub fn of_this_thread() -> Result<Self, OsError> {
        Self::of_thread(ThreadId(0))
    }

    /// The cores on which any thread may run. Thread 0 is the caller.
    ///
    /// # Errors
    /// [`OsError`] where the kernel does not say, or there is no such thread.
    pub fn of_thread(thread: ThreadId) -> Result<Self, OsError> {
        let mut words = [0_u64; SET_WORDS];
        let buffer = words.as_mut_ptr().expose_provenance();
        let arguments = [argument(thread), SET_WORDS * 8, buffer, 0, 0, 0];
        // SAFETY: the kernel writes at most `size_of_val(&words)` bytes to `buffer`, which is `words`, borrowed
        // mutably until the call returns.
        let result = unsafe { syscall(libc::SYS_sched_getaffinity, arguments) };
        result.map_err(|errno| {
            OsError::new(
                "cannot ask on which cores a thread may run",
                errno,
                "allow sched_getaffinity in the sandbox",
            )
        })?;
        Ok(Self { words })
    }

    /// Whether the set holds `core`.
    #[must_use]
    pub fn contains(&self, core: CoreId) -> bool {
        let word = self.words.get(usize::from(core.0 / 64));
        word.is_some_and(|word| word >> (core.0 % 64) & 1 == 1)
    }

    /// The cores in the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CoreId> + '_ {
        const CORES: u16 = 8192;
        const { assert!(CORES as usize == SET_WORDS * 64) };
        (0..CORES).map(CoreId).filter(|&core| self.contains(core))
    }

    /// How many cores are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether the set holds no core.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words == [0; SET_WORDS]
    }
}

/// This thread's number.
#[must_use]
pub fn gettid() -> ThreadId {
    ThreadId(rustix::thread::Pid::as_raw(Some(rustix::thread::gettid())))
}

/// The core that runs this thread. It may be another one by the time the caller looks, unless the
/// thread is pinned.
#[must_use]
#[inline]
pub fn current_core() -> CoreId {
    if Features::detect().rdpid {
        // SAFETY: the CPU has rdpid.
        return CoreId(unsafe { arch::core_register() });
    }
    // By the C library, which needs no file to find the kernel's function, and little of the
    // stack: `malloc` comes here.
    // SAFETY: takes nothing; a failure is a number that no core has.
    CoreId(u16::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(u16::MAX))
}

/// Writes the cores on which this thread may run to the front of `out`, in ascending order, and
/// returns how many there are: more than `out.len()` if it was too short. Where the kernel does
/// not say, that is the one core that runs this thread now.
pub fn allowed(out: &mut [CoreId]) -> usize {
    let set = CoreSet::of_this_thread().unwrap_or_else(|_| CoreSet::only(current_core()));
    for (slot, core) in out.iter_mut().zip(set.iter()) {
        *slot = core;
    }
    set.len()
}

/// Makes this thread run on `core` and nowhere else. It does so when this returns.
///
/// # Errors
/// [`OsError`] where `core` is absent, offline or outside the cpuset.
pub fn pin(core: CoreId) -> Result<(), OsError> {
    set_thread_affinity(ThreadId(0), core)?;
    if current_core() == core {
        return Ok(());
    }
    Err(OsError::new(
        "the thread was pinned and still runs elsewhere",
        libc::EBUSY,
        "another program changes affinities; stop it, or measure without pinning",
    ))
}

/// Lets this thread run on the cores of `set` again, as [`CoreSet::of_this_thread`] gave them
/// before [`pin`].
///
/// # Errors
/// [`OsError`] where none of them is online and inside the cpuset any more.
pub fn restore(set: &CoreSet) -> Result<(), OsError> {
    restore_thread(ThreadId(0), set)
}

/// Lets any thread run on the cores of `set` again, from outside. Thread 0 is the caller.
///
/// # Errors
/// [`OsError`] where none of them is online and inside the cpuset any more, or the thread has ended.
pub fn restore_thread(thread: ThreadId, set: &CoreSet) -> Result<(), OsError> {
    set_affinity(thread, set)
}

/// Pins any thread, from outside. Thread 0 is the caller.
///
/// # Errors
/// [`OsError`] where thread or core does not exist, or the thread is somebody else's.
pub fn set_thread_affinity(thread: ThreadId, core: CoreId) -> Result<(), OsError> {
    set_affinity(thread, &CoreSet::only(core))
}

fn set_affinity(thread: ThreadId, set: &CoreSet) -> Result<(), OsError> {
    let buffer = set.words.as_ptr().expose_provenance();
    let arguments = [argument(thread), SET_WORDS * 8, buffer, 0, 0, 0];
    // SAFETY: the kernel reads `SET_WORDS * 8` bytes at `buffer`, which is `set.words`, borrowed
    // until the call returns; affinities change no memory.
    let result = unsafe { syscall(libc::SYS_sched_setaffinity, arguments) };
    result.map(drop).map_err(|errno| {
        let advice = match errno {
            libc::EINVAL => "choose a core that is online and in this process's cpuset",
            libc::ESRCH => "the thread has ended; ask for its number again",
            _ => "allow sched_setaffinity in the sandbox, or measure without pinning",
        };
        OsError::new("cannot pin the thread to a core", errno, advice)
    })
}

/// Makes this thread run only while nobody else wants its core (`SCHED_IDLE`): it keeps a virtual
/// core awake and takes time from nobody.
///
/// # Errors
/// [`OsError`] where a sandbox forbids it.
pub fn set_idle_priority() -> Result<(), OsError> {
    /// `struct sched_param` of the kernel (include/uapi/linux/sched/types.h).
    #[repr(C)]
    struct Parameters {
        priority: i32,
    }
    const { assert!(size_of::<Parameters>() == 4) };
    // include/uapi/linux/sched.h.
    const SCHED_IDLE: usize = 5;
    let parameters = Parameters { priority: 0 };
    let pointer = (&raw const parameters).expose_provenance();
    // SAFETY: thread 0 is the caller; the kernel reads one `sched_param` at `pointer`, which lives
    // until the call returns; priorities change no memory.
    let result =
        unsafe { syscall(libc::SYS_sched_setscheduler, [0, SCHED_IDLE, pointer, 0, 0, 0]) };
    result.map(drop).map_err(|errno| {
        OsError::new(
            "cannot give this thread idle priority",
            errno,
            "allow sched_setscheduler in the sandbox, or measure without --awake",
        )
    })
}

/// A thread's number as a system call takes it: sign-extended, the kernel uses the low half.
fn argument(thread: ThreadId) -> usize {
    isize::try_from(thread.0).unwrap_or(-1).cast_unsigned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::vec::Vec;

    /// The cores of this thread, at most 64 of them.
    pub(crate) fn cores() -> Vec<CoreId> {
        let mut out = [CoreId(u16::MAX); 64];
        let found = allowed(&mut out);
        out[..found.min(64)].to_vec()
    }

    #[test]
    fn pinning_really_pins_and_is_undone() {
        let before = CoreSet::of_this_thread().expect("the kernel says");
        let cores = cores();
        assert_eq!(before.iter().take(64).collect::<Vec<_>>(), cores);
        for &core in &cores {
            pin(core).expect("an allowed core");
            assert_eq!(CoreSet::of_this_thread(), Ok(CoreSet::only(core)));
            for _ in 0..100 {
                std::thread::yield_now();
                assert_eq!(current_core(), core);
            }
        }
        restore(&before).expect("what was allowed is allowed");
        assert_eq!(CoreSet::of_this_thread(), Ok(before));
    }

    #[test]
    fn the_core_is_the_one_that_the_kernel_names() {
        for core in cores() {
            pin(core).expect("an allowed core");
            assert_eq!(rustix::thread::sched_getcpu(), usize::from(core.0));
        }
    }

    #[test]
    fn a_thread_is_pinned_from_outside() {
        let cores = cores();
        let target = *cores.last().expect("one core at least");
        let (tell, hear) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            tell.send(gettid()).expect("the test listens");
            wait.recv().expect("the test answers");
            (CoreSet::of_this_thread(), current_core())
        });
        let thread = hear.recv().expect("a number");
        let before = CoreSet::of_thread(thread).expect("the kernel says");
        set_thread_affinity(thread, target).expect("our own thread");
        assert_eq!(CoreSet::of_thread(thread), Ok(CoreSet::only(target)));
        restore_thread(thread, &before).expect("it had them before");
        assert_eq!(CoreSet::of_thread(thread), Ok(before));
        set_thread_affinity(thread, target).expect("our own thread");
        go.send(()).expect("the worker waits");
        let (set, core) = worker.join().expect("the worker ends");
        assert_eq!((set, core), (Ok(CoreSet::only(target)), target));
    }

    #[test]
    fn cores_and_threads_that_do_not_exist_are_refused() {
        assert!(pin(CoreId(8191)).is_err_and(|e| e.errno == libc::EINVAL));
        assert!(pin(CoreId(u16::MAX)).is_err_and(|e| e.errno == libc::EINVAL));
        let nobody = set_thread_affinity(ThreadId(i32::MAX), CoreId(0));
        assert!(nobody.is_err_and(|e| e.errno == libc::ESRCH));
    }

    #[test]
    fn a_short_buffer_is_filled_and_the_count_is_whole() {
        let whole = cores().len();
        let mut none = [CoreId(9); 0];
        assert!(allowed(&mut none) >= whole);
    }

    #[test]
    fn sets_of_cores() {
        let set = CoreSet::only(CoreId(130));
        assert!(set.contains(CoreId(130)) && !set.contains(CoreId(2)) && !set.is_empty());
        assert_eq!((set.len(), set.iter().next()), (1, Some(CoreId(130))));
        assert!(CoreSet::only(CoreId(8192)).is_empty());
    }

    #[test]
    fn an_idle_thread_says_so() {
        std::thread::spawn(|| {
            set_idle_priority().expect("everybody may lower himself");
            // SAFETY: thread 0 is the caller; the call touches no memory.
            let policy = unsafe { syscall(libc::SYS_sched_getscheduler, [0; 6]) };
            assert_eq!(policy, Ok(5));
        })
        .join()
        .expect("no assertion failed");
    }
}
