//! Threads that the C library knows nothing of: it does not count them when it decides that the last thread has ended,
//! sends them no signal of its own, and they have file descriptors of their own, so that the program neither sees nor
//! closes what they work with.
//!
//! Such a thread has no storage of its own for thread-local variables but a few zeroed pages: what runs in it calls the
//! kernel and itself, and nothing that keeps something for each thread.

use crate::error::OsError;
use crate::space::Space;
use crate::syscall::syscall;
use core::ffi::{CStr, c_int, c_void};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// Of a thread: its stack below the middle, and around three quarters what stands for thread-local storage.
const BYTES: usize = 2 << 20;

/// What such a thread does; what it is given lives as long as the process.
pub type Work = extern "C" fn(*mut c_void) -> c_int;

/// Starts a thread whose signals are all blocked.
///
/// # Errors
/// [`OsError`] where there is no memory, or no thread can be made.
///
/// # Safety
/// `work` must be sound with `argument`, in any thread and for as long as the process lives, and must use nothing that
/// is thread-local.
pub unsafe fn start_apart(work: Work, argument: *mut c_void) -> Result<(), OsError> {
    let space = Space::new(BYTES, false)?;
    // A huge page for a few kilobytes would be a waste; refused where there are none.
    let _ = space.huge(0, space.len(), false);
    let (stack, own) =
        (space.as_ptr().wrapping_add(BYTES / 2), space.as_ptr().wrapping_add(BYTES / 4 * 3));
    let first = own.cast::<usize>();
    let itself = own.expose_provenance();
    for word in [0, 2] {
        // SAFETY: inside of the space; the first word and the third of a thread's control block are its own address on
        // x86-64 (System V psABI, thread-local storage), and are not looked at elsewhere.
        unsafe { first.wrapping_add(word).write(itself) };
    }
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS;
    let held = crate::signal::hold_all();
    let none = core::ptr::null_mut::<c_void>();
    // SAFETY: the stack is new and 1 MiB long, and the caller vouches for the work.
    let made = unsafe {
        libc::clone(work, stack.cast(), flags, argument, none, own.cast::<c_void>(), none)
    };
    drop(held);
    if made < 0 {
        let what = "cannot start a thread";
        return Err(OsError::new(what, libc::EAGAIN, "raise ulimit -u, or the cgroup's pids.max"));
    }
    // The thread has it as long as the process lives.
    core::mem::forget(space);
    Ok(())
}

/// Gives the calling thread, one of [`start_apart`], its name, and takes from it what it does not need: its descriptors
/// but those that it keeps, and its rights. The C library does not know of it, so a program that gives up rights later
/// would leave them here.
pub fn settle(name: &CStr, kept: &[i32]) {
    let name = name.as_ptr().expose_provenance();
    let option = usize::try_from(libc::PR_SET_NAME).unwrap_or(0);
    // SAFETY: a name is read, and the kernel cuts it.
    let _ = unsafe { syscall(libc::SYS_prctl, [option, name, 0, 0, 0, 0]) };
    let mut first = 0_usize;
    loop {
        let next = kept.iter().filter_map(|kept| usize::try_from(*kept).ok());
        let next = next.filter(|kept| *kept >= first).min();
        let end = next.unwrap_or(u32::MAX as usize + 1);
        if first < end {
            // SAFETY: the descriptors are this thread's own copies, which nobody uses.
            let _ = unsafe { syscall(libc::SYS_close_range, [first, end - 1, 0, 0, 0, 0]) };
        }
        let Some(kept) = next else { break };
        first = kept + 1;
    }
    drop_rights();
}

/// Closes a descriptor of the calling thread, which whoever has it there never uses again; threads with descriptors of
/// their own keep theirs.
pub fn close_here(number: i32) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    // SAFETY: the caller says that nobody uses the number here.
    let _ = unsafe { syscall(libc::SYS_close, [number, 0, 0, 0, 0, 0]) };
}

/// Capabilities of the calling thread alone (capset(2)).
fn drop_rights() {
    /// include/uapi/linux/capability.h: `_LINUX_CAPABILITY_VERSION_3`, and this thread.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    let (header, none) = (HEADER, [0_u32; 6]);
    let [header, none] = [header.as_ptr(), none.as_ptr()].map(<*const u32>::expose_provenance);
    // SAFETY: a header and two sets of three words, which are read. Nobody works with rights in this thread.
    let _ = unsafe { syscall(libc::SYS_capset, [header, none, 0, 0, 0, 0]) };
}

/// Lets others of this core go on first.
pub fn give_way() {
    rustix::thread::sched_yield();
}

/// Writes one line to the standard error of the process, from a thread that has it not.
pub fn say_apart(line: &[u8]) {
    // A copy of the program's descriptor: one that is opened has a place of its own in the file, and what the program
    // and its parents say later would be written over the line.
    if let Ok(file) = borrowed(2) {
        // A thread that serves others waits for no reader.
        let mut ready = [PollFd::new(&file, PollFlags::OUT)];
        if poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
        {
            let _ = rustix::io::write(&file, line);
        }
        return;
    }
    // The first thread has ended, or a filter of system calls does not let us.
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if let Ok(file) = rustix::fs::open(c"/proc/self/fd/2", flags, Mode::empty()) {
        // If nobody reads it, there is nothing to do about it.
        let _ = rustix::io::write(&file, line);
    }
}

/// A copy of a descriptor of the process's first thread, for the calling thread.
fn borrowed(number: i32) -> rustix::io::Result<OwnedFd> {
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    pidfd_getfd(process, number, PidfdGetfdFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::{self, Scope};
    use core::sync::atomic::{AtomicU32, Ordering};

    static SEEN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn work(_: *mut c_void) -> c_int {
        settle(c"isochrone-test", &[2, 1]);
        SEEN.store(1, Ordering::Release);
        let _ = futex::wake(&SEEN, 1, Scope::Process);
        0
    }

    #[test]
    fn a_thread_apart_works_and_leaves_our_descriptors_alone() {
        let file = std::fs::File::open("/proc/self/stat").expect("procfs");
        // SAFETY: the work uses a static word alone.
        unsafe { start_apart(work, core::ptr::null_mut()) }.expect("a thread");
        while SEEN.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&SEEN, 0, Some(100_000_000), Scope::Process);
        }
        file.metadata().expect("still open");
    }
}
