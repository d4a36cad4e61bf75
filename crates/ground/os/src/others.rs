//! Which threads of this process are outside of a call: for who must know that a call which some thread had begun has
//! ended, where nothing tells its end. It allocates nothing.

use core::fmt::Write;
use core::mem::MaybeUninit;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir, open, openat};
use rustix::io::{Errno, read};

/// Calls in which a thread may be about to give memory up, or in which another process acts on the same memory while
/// the thread waits for it (vfork(2)).
const GIVE_UP: &[libc::c_long] = &[
    libc::SYS_madvise,
    libc::SYS_process_madvise,
    libc::SYS_clone,
    libc::SYS_clone3,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    // The same number is madvise's in the calls of 32 bits that a process of 64 may make, too.
    libc::SYS_restart_syscall,
];
/// Names of threads in which io_uring does calls of the program: the kernel names them, and they are in no call.
const RING: &[u8] = b"iou-";
/// Bytes of names that are read at once.
const NAMES: usize = 2048;

/// Threads that were listed.
#[derive(Default, PartialEq, Eq)]
struct Listed {
    threads: u32,
    /// Of their numbers, which differ.
    sum: i64,
}

/// Calls `see` for each thread of this process, with whether it was outside of every call that gives memory up, at some
/// moment after this began. One that runs, or waits for a core, may be anywhere, and is not.
///
/// False where not all threads that there were have been seen: what was said of the others is true all the same.
#[must_use]
pub fn each_thread(mut see: impl FnMut(i32, bool)) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = || open(c"/proc/self/task", flags, Mode::empty()).ok();
    let (Some(first), Some(second)) = (folder(), folder()) else { return false };
    let listed = list(&first, |thread| see(thread, is_outside(&first, thread)));
    // The kernel may end the list early where a thread ends that is on it: then the other list has it not.
    listed.is_some() && listed == list(&second, |_| {})
}

fn list(folder: &OwnedFd, mut see: impl FnMut(i32)) -> Option<Listed> {
    let mut names = [MaybeUninit::uninit(); NAMES];
    let mut entries = RawDir::new(folder.as_fd(), &mut names);
    let mut listed = Listed::default();
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = core::str::from_utf8(entry.file_name().to_bytes()).ok()?;
        // Not the folder itself, and not the one above.
        let Ok(thread) = name.parse::<i32>() else { continue };
        listed.threads += 1;
        listed.sum += i64::from(thread);
        see(thread);
    }
    Some(listed)
}

/// What a file of a thread says, of which so many bytes are wanted; nothing where the thread has ended.
fn said<'t>(
    folder: &OwnedFd,
    thread: i32,
    file: &str,
    text: &'t mut [u8],
) -> Result<Option<&'t [u8]>, Errno> {
    // Ten digits and a name.
    let mut path = [0; 32];
    write!(Room(&mut path), "{thread}/{file}\0").map_err(|_| Errno::NAMETOOLONG)?;
    let path = core::ffi::CStr::from_bytes_until_nul(&path).map_err(|_| Errno::INVAL)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = openat(folder, path, flags, Mode::empty());
    match opened.and_then(|file| read(&file, &mut *text)) {
        Ok(bytes) => Ok(Some(&text[..bytes])),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Bytes to write to, as far as there are some.
struct Room<'b>(&'b mut [u8]);

impl Write for Room<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = core::mem::take(&mut self.0);
        let (to, rest) = room.split_at_mut_checked(text.len()).ok_or(core::fmt::Error)?;
        to.copy_from_slice(text.as_bytes());
        self.0 = rest;
        Ok(())
    }
}

fn is_outside(folder: &OwnedFd, thread: i32) -> bool {
    let mut text = [0; 32];
    match said(folder, thread, "syscall", &mut text) {
        Ok(Some(text)) => match call_of(text) {
            // Asleep, and in no call: a fault, or the end of a thread; or a thread of io_uring's.
            Some(-1) => {
                let mut name = [0; 16];
                let name = said(folder, thread, "comm", &mut name);
                name.is_ok_and(|name| name.is_none_or(|name| !name.starts_with(RING)))
            }
            Some(call) => !GIVE_UP.contains(&call),
            None => false,
        },
        Ok(None) => true,
        Err(_) => false,
    }
}

/// The number of the call in which a thread sleeps, -1 of none; nothing where it runs (proc_pid_syscall(5)).
fn call_of(text: &[u8]) -> Option<libc::c_long> {
    let word = text.split(u8::is_ascii_whitespace).next()?;
    core::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::gettid;
    use crate::space::Space;
    use crate::userfault::{Features, Notice, Userfault};
    use core::sync::atomic::{AtomicBool, Ordering};
    use isochrone_units::PAGE_BYTES;
    use std::sync::mpsc::channel;

    /// Whether a thread is seen, and seen outside.
    fn look(thread: i32) -> Option<bool> {
        let mut found = None;
        let _ = each_thread(|seen, outside| {
            if seen == thread {
                found = Some(outside);
            }
        });
        found
    }

    /// Looks until that is seen of a thread.
    fn until(thread: i32, expected: Option<bool>) {
        while look(thread) != expected {
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_sleeps_elsewhere_is_outside_and_who_runs_may_be_anywhere() {
        let (tell, told) = channel();
        let (end, ends) = channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(gettid().0).expect("the test listens");
            let _ = ends.recv();
        });
        let thread = told.recv().expect("a number");
        until(thread, Some(true));
        let (tell, told) = channel();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let stops = stop.clone();
        let runner = std::thread::spawn(move || {
            tell.send(gettid().0).expect("the test listens");
            while !stops.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
        });
        let running = told.recv().expect("a number");
        until(running, Some(false));
        drop(end);
        stop.store(true, Ordering::Relaxed);
        for ended in [sleeper, runner] {
            ended.join().expect("it ends");
        }
        until(thread, None);
    }

    #[test]
    fn who_is_giving_memory_up_is_inside_until_it_has() {
        // Where that is not allowed nobody waits there.
        let Ok(table) = Userfault::open_served(Features::EVENT_REMOVE) else { return };
        let space = Space::new(4 * PAGE_BYTES, false).expect("addresses");
        let _ = space.huge(0, space.len(), false);
        let base = space.as_ptr().expose_provenance();
        table.register_missing(base, space.len()).expect("private memory");
        let (tell, told) = channel();
        let giver = std::thread::spawn(move || {
            tell.send(gettid().0).expect("the test listens");
            let place = core::ptr::with_exposed_provenance_mut::<libc::c_void>(base);
            // SAFETY: the space is this test's, and nobody needs what it holds.
            assert_eq!(unsafe { libc::madvise(place, PAGE_BYTES, libc::MADV_DONTNEED) }, 0);
        });
        let thread = told.recv().expect("a number");
        let folder = open(c"/proc/self/task", OFlags::RDONLY, Mode::empty()).expect("procfs");
        let call = || {
            let mut text = [0; 32];
            said(&folder, thread, "syscall", &mut text).expect("it lives").and_then(call_of)
        };
        while call() != Some(libc::SYS_madvise) {
            std::thread::yield_now();
        }
        assert_eq!(look(thread), Some(false));
        assert_eq!(table.heed(), Ok(Some(Notice::Emptied(base..base + PAGE_BYTES))));
        giver.join().expect("it ends");
    }

    #[test]
    fn calls_are_read_as_the_kernel_writes_them() {
        assert_eq!(call_of(b"running\n"), None);
        assert_eq!(call_of(b"-1 0x7ffc 0x7f00\n"), Some(-1));
        assert_eq!(call_of(b"202 0x7f 0x0\n"), Some(202));
    }
}
