//! Filters of system calls, and processes that may not read the clock.
//!
//! A filter (seccomp(2)) that allows what glibc's malloc needs may end the process at any other
//! call, and nobody can be asked what it allows. So a process places only under the very filters
//! that whoever told it to place runs under, which is read from `/proc` at load; and from when the
//! program itself installs one, or has its clock taken away (`PR_SET_TSC`), the system is asked for
//! nothing more (`close::close`). That is seen where the program calls `prctl` and `syscall` of
//! the C library, as libseccomp does; whoever issues the instruction itself is not seen.

use crate::config::Config;
use crate::names::Next;
use crate::status::Status;
use crate::{close, errno};
use core::ffi::{c_int, c_long, c_void};
use core::mem::transmute;

/// A mode of `prctl(PR_SET_SECCOMP)` and an operation of seccomp(2): filters come after it
/// (include/uapi/linux/seccomp.h, `SECCOMP_SET_MODE_STRICT`, `SECCOMP_SET_MODE_FILTER`).
const SET_MODE_STRICT: usize = 0;
const SET_MODE_FILTER: usize = 1;

/// How many filters this process runs under; `None` where that cannot be known: no `/proc`, or a
/// filter and a kernel before 5.9, which does not count them. Asks for nothing that the dynamic
/// linker has not asked for to load a library.
#[must_use]
pub fn count() -> Option<u32> {
    Status::of_process()?.filters
}

/// Whether a process of this status may do more than glibc's malloc: it runs under the filters that it was told
/// of, and reads the clock.
pub(crate) fn allow(config: &Config, status: Option<Status>) -> bool {
    status.and_then(|status| status.filters) == Some(config.filters) && reads_clock()
}

/// Whether this thread may read the time-stamp counter; a parent's refusal is inherited. Where there
/// is no such question nobody refuses it.
fn reads_clock() -> bool {
    let mut answer: c_int = 0;
    let place = (&raw mut answer).expose_provenance();
    // SAFETY: writes an int to the local, if anything (PR_GET_TSC(2const)).
    let asked = unsafe { prctl(libc::PR_GET_TSC, [place, 0, 0, 0]) };
    asked != 0 || answer != libc::PR_TSC_SIGSEGV
}

/// `prctl(2)` is about to be called.
fn before_prctl(option: usize, argument: usize) {
    let is = |of: c_int| usize::try_from(of) == Ok(option & 0xffff_ffff);
    let takes_clock = is(libc::PR_SET_TSC) && usize::try_from(libc::PR_TSC_SIGSEGV) == Ok(argument);
    if is(libc::PR_SET_SECCOMP) || takes_clock {
        close::close();
    }
}

/// `syscall(2)` is about to be called with this number and these first arguments. Gives the C
/// library's function, which is to be called with all that was passed.
pub extern "C" fn before_syscall(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
) -> *mut c_void {
    match number {
        libc::SYS_prctl => before_prctl(first, second),
        // Without a program it is a question whether there are filters.
        libc::SYS_seccomp if first == SET_MODE_FILTER && third == 0 => {}
        libc::SYS_seccomp if first == SET_MODE_STRICT || first == SET_MODE_FILTER => {
            close::close();
        }
        _ => {}
    }
    let found = SYSCALL.find();
    if found.is_null() { unavailable as *mut c_void } else { found }
}

/// `prctl(3)` of the C library, told before.
///
/// # Safety
/// As in C.
pub unsafe fn prctl(option: c_int, arguments: [usize; 4]) -> c_int {
    type Prctl = unsafe extern "C" fn(c_int, ...) -> c_int;
    let [a, b, c, d] = arguments;
    before_prctl(usize::try_from(option).unwrap_or(usize::MAX), a);
    let found = PRCTL.find();
    if found.is_null() {
        errno::set(libc::ENOSYS);
        return -1;
    }
    // SAFETY: the C library's function has had this signature since glibc 2.0.
    let function = unsafe { transmute::<*mut c_void, Prctl>(found) };
    // SAFETY: the caller vouches for the arguments.
    unsafe { function(option, a, b, c, d) }
}

/// Stands for a function that the C library lacks.
extern "C" fn unavailable() -> c_long {
    errno::set(libc::ENOSYS);
    -1
}

static PRCTL: Next = Next::new(c"prctl");
static SYSCALL: Next = Next::new(c"syscall");

/// Looks up what has the same names here. Once, from a constructor: who calls it later may have
/// little stack, or a filter.
pub(crate) fn resolve() {
    PRCTL.find();
    SYSCALL.find();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_reach_the_c_library() {
        // SAFETY: asks a number and changes nothing.
        let dumpable = unsafe { prctl(libc::PR_GET_DUMPABLE, [0; 4]) };
        assert!((0..=2).contains(&dumpable));
        assert!(reads_clock());
        assert!(!before_syscall(libc::SYS_getpid, 0, 0, 0).is_null());
    }
}
