//! userfaultfd: page faults that a program resolves itself, for shared memory.
//!
//! A descriptor belongs to the address space that opened it, also in another process that was handed a
//! copy: so whoever has the descriptors of several processes can fill, map and protect pages of all of
//! them. It holds the calls only; what to do about a fault is for its callers.

mod private;

use crate::error::OsError;
use crate::syscall::syscall;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// include/uapi/linux/userfaultfd.h
mod uapi {
    pub(super) const API: u64 = 0xAA;
    pub(super) const USER_MODE_ONLY: usize = 1;
    pub(super) const MODE_MISSING: u64 = 1;
    pub(super) const MODE_WP: u64 = 1 << 1;
    pub(super) const MODE_MINOR: u64 = 1 << 2;
    pub(super) const COPY_WP: u64 = 1 << 1;
    pub(super) const CONTINUE_WP: u64 = 1 << 1;
    pub(super) const WRITEPROTECT_WP: u64 = 1;
    pub(super) const EVENT_PAGEFAULT: u8 = 0x12;
    pub(super) const EVENT_REMAP: u8 = 0x14;
    pub(super) const EVENT_REMOVE: u8 = 0x15;
    pub(super) const EVENT_UNMAP: u8 = 0x16;
    pub(super) const FLAG_WRITE: u64 = 1;
    pub(super) const REGISTER: u32 = 0x00;
    pub(super) const WAKE: u32 = 0x02;
    pub(super) const COPY: u32 = 0x03;
    pub(super) const WRITEPROTECT: u32 = 0x06;
    pub(super) const CONTINUE: u32 = 0x07;
    pub(super) const POISON: u32 = 0x08;
    pub(super) const HANDSHAKE: u32 = 0x3F;

    /// `_IOWR(0xAA, number, bytes)` of include/uapi/asm-generic/ioctl.h.
    pub(super) const fn both(number: u32, bytes: usize) -> usize {
        (3 << 30) | (bytes << 16) | (0xAA << 8) | number as usize
    }

    /// `_IOR(0xAA, number, bytes)`.
    pub(super) const fn read(number: u32, bytes: usize) -> usize {
        (2 << 30) | (bytes << 16) | (0xAA << 8) | number as usize
    }
}

/// What the kernel can do, and what is asked of it (`UFFD_FEATURE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(pub u64);

impl Features {
    /// A message where a range is moved; who moves it waits until it is read (Linux 4.11).
    pub const EVENT_REMAP: Self = Self(1 << 2);
    /// A message where what a range holds is given up (`MADV_DONTNEED`, `MADV_FREE`), alike (4.11): also where who
    /// reads the messages does it.
    pub const EVENT_REMOVE: Self = Self(1 << 3);
    /// A message where a range is unmapped, alike (4.11).
    pub const EVENT_UNMAP: Self = Self(1 << 6);
    /// A fault of a page that is not there, in shared memory (Linux 4.11).
    pub const MISSING_SHMEM: Self = Self(1 << 5);
    /// A signal in place of a message (4.14).
    pub const SIGBUS: Self = Self(1 << 7);
    /// Messages name the thread (4.14).
    pub const THREAD_ID: Self = Self(1 << 8);
    /// A fault of a page that is there and not mapped, in shared memory (5.14).
    pub const MINOR_SHMEM: Self = Self(1 << 10);
    /// The address of a fault to the byte (5.18).
    pub const EXACT_ADDRESS: Self = Self(1 << 11);
    /// Write protection of shared memory (5.19; on AArch64 6.10).
    pub const WP_SHMEM: Self = Self(1 << 12);
    /// Write protection of what is not there (6.4); mapping with protection came with it.
    pub const WP_UNPOPULATED: Self = Self(1 << 13);
    /// Pages that cannot be read (6.6).
    pub const POISON: Self = Self(1 << 14);

    /// The features of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are there.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    len: u64,
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Copy {
    dst: u64,
    src: u64,
    len: u64,
    mode: u64,
    copied: i64,
}

#[repr(C)]
struct Protect {
    range: Range,
    mode: u64,
}

/// Of `CONTINUE` and `POISON` alike.
#[repr(C)]
struct Install {
    range: Range,
    mode: u64,
    done: i64,
}

/// `struct uffd_msg`: of a fault its flags, address and thread; of a range that was moved where it was, where it is,
/// and bytes; of one that was unmapped or emptied its first address and its end.
#[repr(C)]
#[derive(Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    first: u64,
    second: u64,
    third: u64,
}

impl Message {
    fn notice(&self) -> Option<Notice> {
        let [first, second, third] =
            [self.first, self.second, self.third].map(|word| usize::try_from(word).unwrap_or(0));
        match self.event {
            uapi::EVENT_PAGEFAULT => Some(Notice::Fault(Fault {
                address: second,
                write: self.first & uapi::FLAG_WRITE != 0,
                // The lower half, which comes first.
                thread: i32::from_le_bytes(self.third.to_le_bytes()[..4].try_into().ok()?),
            })),
            uapi::EVENT_REMAP => {
                Some(Notice::Moved { range: first..first.saturating_add(third), to: second })
            }
            uapi::EVENT_REMOVE => Some(Notice::Emptied(first..second)),
            uapi::EVENT_UNMAP => Some(Notice::Unmapped(first..second)),
            _ => None,
        }
    }
}

/// What the kernel tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Somebody waits for a page.
    Fault(Fault),
    /// What a registered range holds is worth nothing to the program any more, and is freed as soon as this is read
    /// ([`Features::EVENT_REMOVE`]).
    Emptied(core::ops::Range<usize>),
    /// A registered range was unmapped, or something else was mapped over it ([`Features::EVENT_UNMAP`]).
    Unmapped(core::ops::Range<usize>),
    /// A registered range was moved with what was in memory of it; it is registered at its new place
    /// ([`Features::EVENT_REMAP`]).
    Moved {
        /// Where it was.
        range: core::ops::Range<usize>,
        /// The first address where it is.
        to: usize,
    },
}

/// A fault that a blocked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address that was touched.
    pub address: usize,
    /// It was a write.
    pub write: bool,
    /// Who, with [`Features::THREAD_ID`].
    pub thread: i32,
}

/// A descriptor.
#[derive(Debug)]
pub struct Userfault {
    fd: OwnedFd,
    features: Features,
    asked: Features,
    kernel_faults: bool,
}

/// The way out where a range cannot be registered: shared memory was write-protected first in 5.19, and on AArch64 in
/// 6.10 (arch/arm64/Kconfig, `HAVE_ARCH_USERFAULTFD_WP`).
const REGISTER: &str = if cfg!(target_arch = "aarch64") {
    "register shared memory (memfd), with Linux 6.10 or newer"
} else {
    "register shared memory (memfd), with Linux 5.19 or newer"
};

/// What a kernel that knows userfaultfd says of it, with all that it can do; nothing is opened for good.
///
/// # Errors
/// [`OsError`] where there is none or it is not allowed.
pub fn available() -> Result<Features, OsError> {
    let fd = open(true)?;
    handshake(&fd, Features(0))
}

fn open(user_mode_only: bool) -> Result<OwnedFd, OsError> {
    let only = if user_mode_only { uapi::USER_MODE_ONLY } else { 0 };
    let flags = usize::try_from(libc::O_CLOEXEC | libc::O_NONBLOCK).unwrap_or(0) | only;
    // SAFETY: the call takes flags alone and makes a new descriptor.
    let opened = unsafe { syscall(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]) };
    let fd = opened.map_err(|errno| {
        let advice = match errno {
            libc::ENOSYS => "use a kernel built with CONFIG_USERFAULTFD",
            libc::EPERM => "allow userfaultfd in the sandbox (seccomp), or run outside of it",
            _ => "close files, or raise ulimit -n",
        };
        OsError::new("cannot open userfaultfd", errno, advice)
    })?;
    let fd = i32::try_from(fd).unwrap_or(-1);
    // SAFETY: the kernel has just made this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn handshake(fd: &OwnedFd, wanted: Features) -> Result<Features, OsError> {
    const ADVICE: &str = "use Linux 6.1 or newer";
    let mut api = Api { api: uapi::API, features: wanted.0, ioctls: 0 };
    let request = uapi::both(uapi::HANDSHAKE, size_of::<Api>());
    // SAFETY: `api` is what this request reads and writes, and lives until it returns.
    unsafe { ioctl(fd.as_fd(), request, &mut api) }
        .map_err(|errno| OsError::new("this userfaultfd lacks what is needed", errno, ADVICE))?;
    Ok(Features(api.features))
}

/// # Safety
/// `request` must be one of userfaultfd's that takes a `T`, and what it does must be sound.
unsafe fn ioctl<T>(fd: BorrowedFd<'_>, request: usize, argument: &mut T) -> Result<(), i32> {
    let fd = usize::try_from(fd.as_raw_fd()).unwrap_or(usize::MAX);
    let address = core::ptr::from_mut(argument).expose_provenance();
    // SAFETY: the caller vouches for the request; `argument` is borrowed until the call returns.
    unsafe { syscall(libc::SYS_ioctl, [fd, request, address, 0, 0, 0]) }.map(drop)
}

impl Userfault {
    /// Opens one for this address space. With `kernel_faults` it also sees faults of system calls where
    /// that is permitted: [`Self::sees_kernel_faults`].
    ///
    /// # Errors
    /// [`OsError`] where the kernel lacks a feature, or does not allow it.
    pub fn open(wanted: Features, kernel_faults: bool) -> Result<Self, OsError> {
        let (fd, kernel_faults) = match kernel_faults.then(|| open(false)) {
            Some(Ok(fd)) => (fd, true),
            _ => (open(true)?, false),
        };
        let features = handshake(&fd, wanted)?;
        Ok(Self { fd, features, asked: wanted, kernel_faults })
    }

    /// One that another process opened and handed over.
    #[must_use]
    pub const fn received(fd: OwnedFd, features: Features) -> Self {
        Self { fd, features, asked: Features(0), kernel_faults: false }
    }

    /// Whether it was opened here, and sees faults of system calls.
    #[must_use]
    pub const fn sees_kernel_faults(&self) -> bool {
        self.kernel_faults
    }

    /// What its kernel can do.
    #[must_use]
    pub const fn features(&self) -> Features {
        self.features
    }

    /// Whether all of these were asked for when it was opened here: it tells of nothing else.
    #[must_use]
    pub const fn was_asked(&self, features: Features) -> bool {
        self.asked.has(features)
    }

    /// The descriptor, to hand over.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Registers a range of this process: missing pages, pages that are there and not mapped, and writes
    /// to protected ones.
    ///
    /// # Errors
    /// [`OsError`] where the range is not shared memory, or the kernel is too old.
    pub fn register(&self, address: usize, bytes: usize) -> Result<(), OsError> {
        let mode = uapi::MODE_MISSING | uapi::MODE_WP | uapi::MODE_MINOR;
        let mut register = Register { range: range(address, bytes), mode, ioctls: 0 };
        let request = uapi::both(uapi::REGISTER, size_of::<Register>());
        // SAFETY: registering changes who resolves faults, and no content.
        unsafe { ioctl(self.as_fd(), request, &mut register) }.map_err(|errno| {
            OsError::new("cannot register memory with userfaultfd", errno, REGISTER)
        })
    }

    /// Puts bytes into a range of its address space that has no pages, and maps them; with `protect`
    /// without permission to write. Returns the bytes done before the error, if there is one: `EEXIST`
    /// for a page that is there, `EAGAIN` while the mapping changes, `ESRCH` for a process that ended.
    ///
    /// # Safety
    /// `from` must be readable for `bytes`, and what is put into the range must be what its users expect
    /// there.
    pub unsafe fn copy(
        &self,
        to: usize,
        from: *const u8,
        bytes: usize,
        protect: bool,
    ) -> (usize, Option<i32>) {
        let mode = if protect { uapi::COPY_WP } else { 0 };
        let src = from.expose_provenance() as u64;
        let mut copy = Copy { dst: to as u64, src, len: bytes as u64, mode, copied: 0 };
        let request = uapi::both(uapi::COPY, size_of::<Copy>());
        // SAFETY: the caller vouches for source and range.
        let result = unsafe { ioctl(self.as_fd(), request, &mut copy) };
        (usize::try_from(copy.copied).unwrap_or(0), result.err())
    }

    /// Maps pages that are there; with `protect` without permission to write
    /// ([`Features::WP_UNPOPULATED`]). Returns the bytes done before the error, if there is one:
    /// `EEXIST` for a page that is mapped, `EFAULT` for one that is not there, and those of [`Self::copy`].
    pub fn map(&self, to: usize, bytes: usize, protect: bool) -> (usize, Option<i32>) {
        let mode = if protect { uapi::CONTINUE_WP } else { 0 };
        let mut install = Install { range: range(to, bytes), mode, done: 0 };
        let request = uapi::both(uapi::CONTINUE, size_of::<Install>());
        // SAFETY: it makes what the file holds visible where the file is mapped.
        let result = unsafe { ioctl(self.as_fd(), request, &mut install) };
        (usize::try_from(install.done).unwrap_or(0), result.err())
    }

    /// Takes permission to write away, or gives it back and wakes who waits for it. When it is taken
    /// away no core writes there any more on return.
    ///
    /// # Errors
    /// The kernel's error number: `EAGAIN` while the mapping changes, `ESRCH` for a process that ended.
    pub fn protect(&self, address: usize, bytes: usize, protect: bool) -> Result<(), i32> {
        let mode = if protect { uapi::WRITEPROTECT_WP } else { 0 };
        let mut change = Protect { range: range(address, bytes), mode };
        let request = uapi::both(uapi::WRITEPROTECT, size_of::<Protect>());
        // SAFETY: it makes writes faults or lets them be; no content changes.
        unsafe { ioctl(self.as_fd(), request, &mut change) }
    }

    /// Lets threads that wait for a fault in the range try again.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn wake(&self, address: usize, bytes: usize) -> Result<(), i32> {
        let mut range = range(address, bytes);
        let request = uapi::read(uapi::WAKE, size_of::<Range>());
        // SAFETY: waking changes no content.
        unsafe { ioctl(self.as_fd(), request, &mut range) }
    }

    /// Makes every access to a range without pages end in `SIGBUS`, system calls' too
    /// ([`Features::POISON`]).
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn poison(&self, address: usize, bytes: usize) -> Result<(), i32> {
        let mut install = Install { range: range(address, bytes), mode: 0, done: 0 };
        let request = uapi::both(uapi::POISON, size_of::<Install>());
        // SAFETY: the range has no pages, so no content is lost.
        unsafe { ioctl(self.as_fd(), request, &mut install) }
    }

    /// The next fault that somebody waits for, `None` if there is none now.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn next(&self) -> Result<Option<Fault>, i32> {
        Ok(self.heed()?.and_then(|notice| match notice {
            Notice::Fault(fault) => Some(fault),
            _ => None,
        }))
    }

    /// What the kernel tells next: faults before all else. `None` if there is nothing now.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn heed(&self) -> Result<Option<Notice>, i32> {
        let mut message = Message::default();
        let fd = usize::try_from(self.fd.as_raw_fd()).unwrap_or(usize::MAX);
        let buffer = core::ptr::from_mut(&mut message).expose_provenance();
        // SAFETY: the kernel writes one message of this size into `message`, borrowed until it returns.
        let read = unsafe { syscall(libc::SYS_read, [fd, buffer, size_of::<Message>(), 0, 0, 0]) };
        match read {
            Ok(_) => Ok(message.notice()),
            Err(libc::EAGAIN) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Sleeps until there is a fault, at most some milliseconds.
    pub fn wait(&self, milliseconds: i32) {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one `pollfd`, borrowed until the call returns. An error is an early return.
        let _ = unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
    }
}

const fn range(address: usize, bytes: usize) -> Range {
    Range { start: address as u64, len: bytes as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_header() {
        let told = |event, first, second, third| {
            Message { event, reserved: [0; 7], first, second, third }.notice()
        };
        let fault = Fault { address: 0x5000, write: true, thread: 77 };
        assert_eq!(told(0x12, 1, 0x5000, 77), Some(Notice::Fault(fault)));
        assert_eq!(
            told(0x14, 0x1000, 0x9000, 0x2000),
            Some(Notice::Moved { range: 0x1000..0x3000, to: 0x9000 })
        );
        assert_eq!(told(0x16, 0x1000, 0x3000, 0), Some(Notice::Unmapped(0x1000..0x3000)));
        assert_eq!(told(0x15, 0x1000, 0x3000, 0), Some(Notice::Emptied(0x1000..0x3000)));
        assert_eq!(told(0x13, 0x1000, 0x3000, 0), None);
    }

    #[test]
    fn requests_are_those_of_the_header() {
        // As the C compiler expands the macros of linux/userfaultfd.h.
        assert_eq!(uapi::both(uapi::HANDSHAKE, size_of::<Api>()), 0xc018_aa3f);
        assert_eq!(uapi::both(uapi::REGISTER, size_of::<Register>()), 0xc020_aa00);
        assert_eq!(uapi::read(uapi::WAKE, size_of::<Range>()), 0x8010_aa02);
        assert_eq!(uapi::both(uapi::COPY, size_of::<Copy>()), 0xc028_aa03);
        assert_eq!(uapi::both(uapi::WRITEPROTECT, size_of::<Protect>()), 0xc018_aa06);
        assert_eq!(uapi::both(uapi::CONTINUE, size_of::<Install>()), 0xc020_aa07);
        assert_eq!(uapi::both(uapi::POISON, size_of::<Install>()), 0xc020_aa08);
        assert_eq!(size_of::<Message>(), 32);
        assert_eq!(core::mem::offset_of!(Message, second), 16);
        assert_eq!(core::mem::offset_of!(Message, third), 24);
    }

    #[test]
    fn an_unknown_feature_is_refused_with_advice() {
        match Userfault::open(Features(1 << 60), false) {
            Err(error) => assert!(error.advice.contains("Linux") || error.is_permission()),
            Ok(_) => panic!("feature 60 does not exist"),
        }
    }
}
