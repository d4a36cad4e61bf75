//! What a pager of one process's own memory needs beside the calls for shared memory: a descriptor to which the kernel
//! tells its own faults too, or none; faults of missing pages alone; and pages that are moved.

use super::{Features, Range, Register, Userfault, handshake, ioctl, open, range, uapi};
use crate::error::OsError;
use crate::syscall::syscall;
use crate::thread::close_here;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};

/// `struct uffdio_move`.
#[repr(C)]
struct Move {
    dst: u64,
    src: u64,
    len: u64,
    mode: u64,
    moved: i64,
}

/// `UFFDIO_UNREGISTER`.
const UNREGISTER: u32 = 0x01;
/// `UFFDIO_MOVE`.
const MOVE: u32 = 0x05;
/// `USERFAULTFD_IOC_NEW`, which is `_IO(0xAA, 0x00)`.
const NEW: usize = 0xAA00;
/// Who may do without `/dev/userfaultfd` is told of the kernel's faults as well (userfaultfd(2)).
const MEND: &str = "run it as root, set vm.unprivileged_userfaultfd=1 (sysctl), or let this user open /dev/userfaultfd";

impl Features {
    /// Pages of private memory are moved, unless a device or another process has them (Linux 6.8).
    pub const MOVE: Self = Self(1 << 16);
}

/// A descriptor that is told of the kernel's own faults, whoever is allowed to give it.
fn open_served() -> Result<OwnedFd, OsError> {
    if let Ok(fd) = open(false) {
        return Ok(fd);
    }
    let refused = |errno| OsError::new("system calls cannot touch absent pages", errno, MEND);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let device = rustix::fs::open(c"/dev/userfaultfd", flags, Mode::empty())
        .map_err(|errno| refused(errno.raw_os_error()))?;
    let number = usize::try_from(device.as_raw_fd()).unwrap_or(usize::MAX);
    let flags = usize::try_from(libc::O_CLOEXEC | libc::O_NONBLOCK).unwrap_or(0);
    // SAFETY: the request takes flags alone and makes a new descriptor.
    let made = unsafe { syscall(libc::SYS_ioctl, [number, NEW, flags, 0, 0, 0]) };
    let made = i32::try_from(made.map_err(refused)?).unwrap_or(-1);
    // SAFETY: the kernel has just made this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

impl Userfault {
    /// Opens one for this address space to which faults of system calls are told, too; it is never one that is told of
    /// the program's faults alone.
    ///
    /// # Errors
    /// [`OsError`] where that is not allowed, or the kernel lacks a feature; its advice mends it.
    pub fn open_served(wanted: Features) -> Result<Self, OsError> {
        let fd = open_served()?;
        let features = handshake(&fd, wanted)?;
        Ok(Self { fd, features, asked: wanted, kernel_faults: true })
    }

    /// Registers a range of private memory of this process: missing pages alone.
    ///
    /// # Errors
    /// [`OsError`] where the range is not private memory.
    pub fn register_missing(&self, address: usize, bytes: usize) -> Result<(), OsError> {
        const ADVICE: &str = "register private memory without a file";
        let mode = uapi::MODE_MISSING;
        let mut register = Register { range: range(address, bytes), mode, ioctls: 0 };
        let request = uapi::both(uapi::REGISTER, size_of::<Register>());
        // SAFETY: registering changes who resolves faults, and no content.
        unsafe { ioctl(self.as_fd(), request, &mut register) }
            .map_err(|errno| OsError::new("cannot register memory with userfaultfd", errno, ADVICE))
    }

    /// Lets faults of a range be the kernel's again, and wakes who waits for one there.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn unregister(&self, address: usize, bytes: usize) -> Result<(), i32> {
        let mut range = range(address, bytes);
        let request = uapi::read(UNREGISTER, size_of::<Range>());
        // SAFETY: it changes who resolves faults, and no content.
        unsafe { ioctl(self.as_fd(), request, &mut range) }
    }

    /// Moves pages of its address space from one place to another, which has none: on return no core reads or writes
    /// them at the first, and what a device was told to write there, is there. Both places must have the same
    /// permissions. Returns the bytes done before the error, if there is one: `ENOENT` for a page that is not there,
    /// `EBUSY` for one that a device or another process has, `EINVAL` where permissions differ, and those of
    /// [`Self::copy`].
    pub fn move_pages(&self, to: usize, from: usize, bytes: usize) -> (usize, Option<i32>) {
        let [dst, src, len] = [to, from, bytes].map(|value| value as u64);
        let mut order = Move { dst, src, len, mode: 0, moved: 0 };
        let request = uapi::both(MOVE, size_of::<Move>());
        // SAFETY: it moves pages between two places of callers that know of it, and changes no content of theirs.
        let result = unsafe { ioctl(self.as_fd(), request, &mut order) };
        (usize::try_from(order.moved).unwrap_or(0), result.err())
    }

    /// The number of its descriptor: for a thread with descriptors of its own, which keeps this one alone.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Closes the number among the descriptors of the calling thread, which never uses this value again; threads with
    /// descriptors of their own keep theirs.
    pub fn close_here(&self) {
        close_here(self.number());
    }
}

const _: () = assert!(size_of::<Range>() == 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Space;
    use isochrone_units::PAGE_BYTES;

    #[test]
    fn requests_are_those_of_the_header() {
        assert_eq!(uapi::both(MOVE, size_of::<Move>()), 0xc028_aa05);
        assert_eq!(core::mem::offset_of!(Move, moved), 32);
        assert_eq!(uapi::read(UNREGISTER, size_of::<Range>()), 0x8010_aa01);
    }

    #[test]
    fn a_page_is_moved_with_what_it_holds() {
        // Where that is not allowed, its error says what mends it; `isochrone run --fast-memory` shows it.
        let Ok(table) = Userfault::open_served(Features::MOVE) else { return };
        assert!(table.sees_kernel_faults());
        let space = Space::new(8 * PAGE_BYTES, false).expect("addresses");
        let _ = space.huge(0, space.len(), false);
        let base = space.as_ptr().expose_provenance();
        table.register_missing(base, 8 * PAGE_BYTES).expect("private memory");
        let page = [7_u8; PAGE_BYTES];
        // SAFETY: `page` is that long, and nobody expects anything there.
        let (done, error) = unsafe { table.copy(base, page.as_ptr(), PAGE_BYTES, false) };
        assert_eq!((done, error), (PAGE_BYTES, None));
        let there = base + 4 * PAGE_BYTES;
        assert_eq!(table.move_pages(there, base, PAGE_BYTES), (PAGE_BYTES, None));
        let other = there + PAGE_BYTES;
        assert_eq!(table.move_pages(other, base, PAGE_BYTES), (0, Some(libc::ENOENT)));
        // SAFETY: inside of the space, and moved there.
        let seen = unsafe { space.as_ptr().wrapping_add(4 * PAGE_BYTES).read() };
        assert_eq!(seen, 7);
    }
}
