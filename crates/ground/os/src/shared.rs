//! Memory that several processes map: a memfd whose bytes are there from the start, found by the
//! process that made it, with one lock for each participant.
//!
//! A participant's lock is a byte of the file, locked by its own description of it. The kernel
//! drops the lock when the participant ends, however it ends, so others see that it is gone. No
//! process identifier is asked whether it is alive: those are given out again.

use crate::error::OsError;
use crate::syscall::syscall;
use core::ops::Range;
use core::ptr::NonNull;
use isochrone_units::PAGE_BYTES;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, fallocate, memfd_create, open};
use rustix::mm::{MapFlags, ProtFlags};

/// Where other processes find shared memory: a process and its file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The process that made it, which has to live until all have opened it.
    pub process: u32,
    /// Its file descriptor.
    pub descriptor: u32,
}

/// Shared memory, mapped.
#[derive(Debug)]
pub struct Shared {
    base: NonNull<u8>,
    bytes: usize,
    file: OwnedFd,
}

// SAFETY: the memory belongs to the value, not to a thread, and the kernel lets any thread use and
// unmap it.
unsafe impl Send for Shared {}
// SAFETY: a shared reference gives the address only; who reads or writes through it answers for it.
unsafe impl Sync for Shared {}

impl Shared {
    /// Makes `bytes` bytes (rounded up to whole pages) of zeros. They are taken now, so that a
    /// machine without room says so here and not by a signal later.
    ///
    /// # Errors
    /// [`OsError`] where there is no room, or no file descriptor left.
    pub fn create(bytes: usize) -> Result<Self, OsError> {
        let bytes = whole_pages(bytes)?;
        let file = new_file()?;
        take(&file, 0..bytes)?;
        Self::of(file, bytes, MapFlags::POPULATE)
    }

    /// Maps `bytes` bytes (rounded up to whole pages) of which none is taken: nobody may touch a page before
    /// [`Self::take`] took it.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space, or no file descriptor left.
    pub fn reserve(bytes: usize) -> Result<Self, OsError> {
        let bytes = whole_pages(bytes)?;
        let file = new_file()?;
        rustix::fs::ftruncate(&file, bytes as u64)
            .map_err(|errno| OsError::of("cannot make shared memory", errno, "raise ulimit -f"))?;
        Self::of(file, bytes, MapFlags::empty())
    }

    /// Opens and maps what another process reserved.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_reserved(place: Place) -> Result<Self, OsError> {
        Self::opened(place, MapFlags::empty())
    }

    /// Takes the pages of these bytes, for all processes: a later touch cannot fail.
    ///
    /// # Errors
    /// [`OsError`] where there is no room.
    ///
    /// # Panics
    /// If there are no such bytes.
    pub fn take(&self, bytes: Range<usize>) -> Result<(), OsError> {
        assert!(bytes.start <= bytes.end && bytes.end <= self.bytes, "{bytes:?} of {}", self.bytes);
        take(&self.file, bytes)
    }

    /// Has pages that were taken at hand in this process, so that a first touch does not wait for the kernel. Where the
    /// kernel cannot (before 5.14), it does.
    ///
    /// # Panics
    /// If there are no such bytes.
    pub fn populate(&self, bytes: Range<usize>) {
        assert!(bytes.start <= bytes.end && bytes.end <= self.bytes, "{bytes:?} of {}", self.bytes);
        let first = self.base.as_ptr().wrapping_add(bytes.start);
        // SAFETY: the range is mapped, as was just checked; its pages are made present and keep what they hold.
        let _sooner_or_later = unsafe {
            rustix::mm::madvise(first.cast(), bytes.len(), rustix::mm::Advice::LinuxPopulateWrite)
        };
    }

    /// Opens and maps what another process made.
    ///
    /// # Errors
    /// [`OsError`] where that process has ended, or may not be looked into.
    pub fn open(place: Place) -> Result<Self, OsError> {
        Self::opened(place, MapFlags::POPULATE)
    }

    fn opened(place: Place, how: MapFlags) -> Result<Self, OsError> {
        let file = open_again(Some(place.process), place.descriptor)?;
        let bytes = rustix::fs::fstat(&file).map_or(0, |stat| stat.st_size);
        Self::of(file, usize::try_from(bytes).unwrap_or(0), how)
    }

    /// Where others find it, as long as this value lives.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            process: rustix::process::getpid().as_raw_nonzero().get().unsigned_abs(),
            descriptor: self.file.as_raw_fd().unsigned_abs(),
        }
    }

    fn of(file: OwnedFd, bytes: usize, how: MapFlags) -> Result<Self, OsError> {
        const ADVICE: &str = "ask for less memory, or raise ulimit -v";
        let flags = MapFlags::SHARED | how;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new range wherever the kernel finds room disturbs nobody.
        let base =
            unsafe { rustix::mm::mmap(core::ptr::null_mut(), bytes, access, flags, &file, 0) }
                .map_err(|errno| OsError::of("cannot map shared memory", errno, ADVICE))?;
        let base = NonNull::new(base.cast()).ok_or(OsError::new(
            "cannot map shared memory",
            libc::ENOMEM,
            ADVICE,
        ))?;
        Ok(Self { base, bytes, file })
    }

    /// The first byte. Reading or writing through it is the caller's to justify.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes mapped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is mapped, which is never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Sits down as participant `who`, or finds the seat taken. The seat is free again when it is
    /// dropped, or when the process ends, however it ends. A child process by `fork` keeps it taken.
    ///
    /// # Errors
    /// [`OsError`] where the kernel has no such locks (before 3.15), or no file descriptor is left.
    pub fn sit(&self, who: u32) -> Result<Option<Seat>, OsError> {
        // Not by this process's number, which is another's in the /proc of other processes.
        let file = open_again(None, self.place().descriptor)?;
        match lock(&file, libc::F_OFD_SETLK, who) {
            Ok(_) => Ok(Some(Seat { _file: file })),
            Err(libc::EAGAIN | libc::EACCES) => Ok(None),
            Err(errno) => Err(OsError::new("cannot lock shared memory", errno, LOCKS)),
        }
    }

    /// Whether somebody sits as participant `who`.
    ///
    /// # Errors
    /// [`OsError`] where the kernel has no such locks (before 3.15).
    pub fn is_taken(&self, who: u32) -> Result<bool, OsError> {
        lock(&self.file, libc::F_OFD_GETLK, who)
            .map(|kind| kind != libc::F_UNLCK)
            .map_err(|errno| OsError::new("cannot look at a lock of shared memory", errno, LOCKS))
    }
}

fn whole_pages(bytes: usize) -> Result<usize, OsError> {
    bytes.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or(OsError::invalid(
        "cannot make shared memory",
        "ask for less than the address space holds",
    ))
}

fn new_file() -> Result<OwnedFd, OsError> {
    memfd_create(c"isochrone", MemfdFlags::CLOEXEC).map_err(|errno| {
        OsError::of("cannot make shared memory", errno, "close files, or raise ulimit -n")
    })
}

/// Takes pages of a file. Unlike ftruncate this takes the memory: a later touch cannot fail.
fn take(file: &OwnedFd, bytes: Range<usize>) -> Result<(), OsError> {
    const ROOM: &str = "raise the memory limit (cgroup, ulimit -f), or use fewer or smaller teams";
    // The kernel would take pages until the machine has none left, and then end some process.
    if bytes.len() as u64 > free_bytes() / 2 {
        return Err(OsError::new("shared memory is exhausted", libc::ENOMEM, ROOM));
    }
    fallocate(file, FallocateFlags::empty(), bytes.start as u64, bytes.len() as u64)
        .map_err(|errno| OsError::of("shared memory is exhausted", errno, ROOM))
}

/// A participant's presence: a lock that ends with it.
#[derive(Debug)]
pub struct Seat {
    _file: OwnedFd,
}

/// One `fcntl` on the byte of `who` (fcntl(2), "Open file description locks"); returns the kind of lock
/// that the kernel wrote back.
fn lock(file: &OwnedFd, command: i32, who: u32) -> Result<i32, i32> {
    let number = |kind: i32| i16::try_from(kind).unwrap_or(0);
    let mut lock = libc::flock {
        l_type: number(libc::F_WRLCK),
        l_whence: number(libc::SEEK_SET),
        l_start: i64::from(who),
        l_len: 1,
        l_pid: 0,
    };
    let pointer = (&raw mut lock).expose_provenance();
    let file = file.as_raw_fd().unsigned_abs() as usize;
    let command = command.unsigned_abs() as usize;
    // SAFETY: fcntl with a lock command reads and writes one `struct flock`, which lives here, and
    // the descriptor is open.
    unsafe { syscall(libc::SYS_fcntl, [file, command, pointer, 0, 0, 0]) }?;
    Ok(i32::from(lock.l_type))
}

/// A new description of shared memory of a process; none: of this one.
fn open_again(process: Option<u32>, descriptor: u32) -> Result<OwnedFd, OsError> {
    let mut path = [0; 40];
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    open(path_of(process, descriptor, &mut path), flags, Mode::empty()).map_err(|errno| {
        OsError::of(
            "cannot open another process's shared memory",
            errno,
            "run all processes as one user, in one process namespace, with /proc mounted",
        )
    })
}

/// Memory that nothing uses, not even as a cache of files (sysinfo(2)).
fn free_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.freeram as u64).saturating_mul(u64::from(info.mem_unit))
}

const LOCKS: &str = "run Linux 3.15 or newer, and allow fcntl in the sandbox";

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the range is this value's, nothing borrows from it any more, and nobody unmaps
        // it twice.
        let result = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
    }
}

/// `/proc/PROCESS/fd/DESCRIPTOR`, written into `out`; none: of this process.
fn path_of(process: Option<u32>, descriptor: u32, out: &mut [u8; 40]) -> &core::ffi::CStr {
    let mut end = 0;
    let mut put = |bytes: &[u8]| {
        for &byte in bytes {
            out[end] = byte;
            end += 1;
        }
    };
    put(b"/proc/");
    match process {
        Some(process) => digits(process, &mut put),
        None => put(b"self"),
    }
    put(b"/fd/");
    digits(descriptor, &mut put);
    // At most 6 + 10 + 4 + 10 bytes were written, so zeros follow.
    core::ffi::CStr::from_bytes_until_nul(out).unwrap_or(c"")
}

fn digits(mut number: u32, put: &mut impl FnMut(&[u8])) {
    let mut text = [b'0'; 10];
    let mut first = text.len() - 1;
    loop {
        text[first] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
        first -= 1;
    }
    put(&text[first..]);
}

/// Orders the memory accesses of all processes that called [`register_barriers`]: whatever any of
/// their threads did before is seen by this one, and whatever this one did before is seen by what
/// they do from now on. Slow (microseconds), so that the other side needs no fence at all.
///
/// # Errors
/// [`OsError`] where the kernel has no such barrier (before 4.16) or this process did not register.
pub fn barrier_of_all() -> Result<(), OsError> {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED, "cannot order memory of all processes")
}

/// Makes this process one of those that [`barrier_of_all`] reaches.
///
/// # Errors
/// [`OsError`] where the kernel has no such barrier (before 4.16).
pub fn register_barriers() -> Result<(), OsError> {
    membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, "cannot register for memory barriers")
}

/// include/uapi/linux/membarrier.h
const MEMBARRIER_CMD_GLOBAL_EXPEDITED: usize = 1 << 1;
/// include/uapi/linux/membarrier.h
const MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED: usize = 1 << 2;

fn membarrier(command: usize, what: &'static str) -> Result<(), OsError> {
    // SAFETY: membarrier takes numbers only and changes no memory.
    let result = unsafe { syscall(libc::SYS_membarrier, [command, 0, 0, 0, 0, 0]) };
    let advice = "run Linux 4.16 or newer; without it sleepers look again after a millisecond";
    result.map(drop).map_err(|errno| OsError::new(what, errno, advice))
}

/// Lets another thread of this core run, if there is one.
pub fn give_way() {
    rustix::thread::sched_yield();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_opens_shows_the_same_bytes() {
        let one = Shared::create(100).expect("memory");
        assert_eq!(one.len(), PAGE_BYTES);
        let two = Shared::open(one.place()).expect("this process's own file");
        assert_ne!(one.as_ptr(), two.as_ptr());
        // SAFETY: both views map the page, and one thread uses them.
        unsafe { one.as_ptr().write_volatile(7) };
        // SAFETY: as above.
        assert_eq!(unsafe { two.as_ptr().read_volatile() }, 7);
    }

    #[test]
    fn a_seat_is_free_again_when_its_holder_ends() {
        let shared = Shared::create(100).expect("memory");
        assert_eq!(shared.is_taken(3), Ok(false));
        let seat = shared.sit(3).expect("locks").expect("free");
        assert_eq!(shared.is_taken(3), Ok(true));
        assert_eq!(shared.is_taken(4), Ok(false));
        assert!(shared.sit(3).expect("locks").is_none());
        drop(seat);
        assert_eq!(shared.is_taken(3), Ok(false));
    }

    #[test]
    fn too_much_is_refused_with_the_reason() {
        let error = Shared::create(1 << 60).expect_err("nobody has an exbibyte");
        assert_eq!(error.errno, libc::ENOMEM);
        assert_eq!(error.what, "shared memory is exhausted");
        assert!(Shared::create(usize::MAX).is_err());
    }

    #[test]
    fn what_is_reserved_takes_memory_where_it_is_taken_and_is_seen_by_all() {
        let one = Shared::reserve(64 * PAGE_BYTES).expect("address space");
        one.take(3 * PAGE_BYTES..5 * PAGE_BYTES).expect("room");
        one.populate(3 * PAGE_BYTES..5 * PAGE_BYTES);
        let taken = rustix::fs::fstat(&one.file).expect("a file").st_blocks;
        assert_eq!(usize::try_from(taken).expect("some") * 512, 2 * PAGE_BYTES);
        let two = Shared::open_reserved(one.place()).expect("this process's own file");
        assert_eq!(two.len(), 64 * PAGE_BYTES);
        let at = |shared: &Shared| shared.as_ptr().wrapping_add(4 * PAGE_BYTES);
        // SAFETY: both views map the page, which was taken, and one thread uses them.
        unsafe { at(&one).write_volatile(9) };
        // SAFETY: as above.
        assert_eq!(unsafe { at(&two).read_volatile() }, 9);
        assert!(Shared::reserve(usize::MAX).is_err());
    }

    #[test]
    fn what_is_not_there_is_not_opened() {
        let place = Place { process: 4_000_000_000, descriptor: 1_234_567_890 };
        let is = |process, descriptor, path: &core::ffi::CStr| {
            assert_eq!(path_of(process, descriptor, &mut [0; 40]), path);
        };
        is(Some(place.process), place.descriptor, c"/proc/4000000000/fd/1234567890");
        is(Some(1), 0, c"/proc/1/fd/0");
        is(None, 10, c"/proc/self/fd/10");
        assert_eq!(Shared::open(place).expect_err("no such process").errno, libc::ENOENT);
    }

    #[test]
    fn barriers_work_or_say_that_they_do_not() {
        if register_barriers().is_ok() {
            assert_eq!(barrier_of_all(), Ok(()));
        }
        give_way();
    }
}
