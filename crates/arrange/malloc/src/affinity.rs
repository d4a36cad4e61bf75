//! On which cores a thread may run is the program's to say. The functions by which it says that are exported: a
//! thread that it has bound is bound by nobody else, nor let go (`pin`). Each note is a store; then the C library's
//! function is called as it was.

use crate::names::Next;
use crate::thread::slot;
use crate::{errno, pin};
use core::ffi::{c_int, c_long, c_void};
use core::mem::transmute;
use core::sync::atomic::Ordering;

static SCHED: Next = Next::new(c"sched_setaffinity");
static THREAD: Next = Next::new(c"pthread_setaffinity_np");
static ATTRIBUTES: Next = Next::new(c"pthread_attr_setaffinity_np");

/// Looks them up. Once, from a constructor: who calls them later may have little stack.
pub fn resolve() {
    SCHED.find();
    THREAD.find();
    ATTRIBUTES.find();
}

/// A thread is about to be bound: this one, or any other.
fn note(is_this: bool) {
    if is_this {
        slot().is_bound.store(true, Ordering::Relaxed);
    } else {
        pin::program_binds_others();
    }
}

/// `syscall(2)` is about to be called with this number and this first argument.
pub fn before_syscall(number: c_long, first: usize) {
    if number == libc::SYS_sched_setaffinity {
        note(first == 0);
    }
}

/// `sched_setaffinity(2)` of the C library, told before. Whose number it is, other than 0, only the system knows.
///
/// # Safety
/// As in C.
pub unsafe fn sched_setaffinity(thread: c_int, bytes: usize, cores: *const c_void) -> c_int {
    type Function = unsafe extern "C" fn(c_int, usize, *const c_void) -> c_int;
    note(thread == 0);
    let found = SCHED.find();
    if found.is_null() {
        errno::set(libc::ENOSYS);
        return -1;
    }
    // SAFETY: the C library's function has had this signature since glibc 2.3.4.
    let function = unsafe { transmute::<*mut c_void, Function>(found) };
    // SAFETY: the caller vouches for the arguments.
    unsafe { function(thread, bytes, cores) }
}

/// `pthread_setaffinity_np(3)` of the C library, told before.
///
/// # Safety
/// As in C.
pub unsafe fn pthread_setaffinity_np(
    thread: libc::pthread_t,
    bytes: usize,
    cores: *const c_void,
) -> c_int {
    type Function = unsafe extern "C" fn(libc::pthread_t, usize, *const c_void) -> c_int;
    // SAFETY: asks for a number and changes nothing.
    note(thread == unsafe { libc::pthread_self() });
    let found = THREAD.find();
    if found.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: the C library's function has had this signature since glibc 2.3.4.
    let function = unsafe { transmute::<*mut c_void, Function>(found) };
    // SAFETY: the caller vouches for the arguments.
    unsafe { function(thread, bytes, cores) }
}

/// `pthread_attr_setaffinity_np(3)` of the C library, told before: a thread is to begin on these cores.
///
/// # Safety
/// As in C.
pub unsafe fn pthread_attr_setaffinity_np(
    attributes: *mut c_void,
    bytes: usize,
    cores: *const c_void,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, usize, *const c_void) -> c_int;
    note(false);
    let found = ATTRIBUTES.find();
    if found.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: the C library's function has had this signature since glibc 2.3.4.
    let function = unsafe { transmute::<*mut c_void, Function>(found) };
    // SAFETY: the caller vouches for the arguments.
    unsafe { function(attributes, bytes, cores) }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn who_binds_itself_is_known_and_the_c_library_does_it() {
        let is_bound = || slot().is_bound.load(Ordering::Relaxed);
        let in_thread = |work: &(dyn Fn() + Sync)| {
            std::thread::scope(|threads| threads.spawn(work).join().expect("no assertion failed"));
        };
        let mut set = [0_u64; 128];
        let bytes = size_of_val(&set);
        // SAFETY: so many bytes can be written.
        let got = unsafe { libc::sched_getaffinity(0, bytes, (&raw mut set).cast()) };
        assert_eq!(got, 0);
        in_thread(&|| {
            assert!(!is_bound());
            // SAFETY: the set was filled, and this thread has it already.
            assert_eq!(unsafe { sched_setaffinity(0, bytes, (&raw const set).cast()) }, 0);
            assert!(is_bound());
        });
        in_thread(&|| {
            assert!(!is_bound());
            // SAFETY: asks for a number and changes nothing.
            let this = unsafe { libc::pthread_self() };
            // SAFETY: as above.
            let set = unsafe { pthread_setaffinity_np(this, bytes, (&raw const set).cast()) };
            assert!(set == 0 && is_bound());
        });
        in_thread(&|| {
            before_syscall(libc::SYS_getpid, 0);
            assert!(!is_bound());
            before_syscall(libc::SYS_sched_setaffinity, 0);
            assert!(is_bound());
        });
    }
}
