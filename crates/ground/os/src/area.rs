//! Memory that several processes have at the same address: words for their common state, files in memory
//! whose pages come and go, and a window of addresses to map such files into.

mod private;

pub use private::{Access, Origin, Told};

use crate::error::OsError;
use crate::mapping::Mapping;
use crate::span::{advice_for, at_huge_boundary, open_unlocked};
use crate::syscall::syscall;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use isochrone_units::{PAGE_BYTES, RegionId};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Shared, zeroed words of 32 bits, which a futex needs. Processes forked later have the same.
#[derive(Debug)]
pub struct Words(Mapping);

impl Words {
    /// At least so many words.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory or no file descriptor left.
    pub fn new(words: usize) -> Result<Self, OsError> {
        let bytes = words.saturating_mul(size_of::<AtomicU32>());
        Mapping::shared_memfd(bytes).map(Self)
    }

    /// The same, private to this process, and without memory until they are touched.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space.
    pub fn untouched(words: usize) -> Result<Self, OsError> {
        let bytes = words.saturating_mul(size_of::<AtomicU32>());
        Mapping::absent(bytes).map(Self)
    }

    /// The words.
    #[must_use]
    pub fn as_slice(&self) -> &[AtomicU32] {
        let first = self.0.as_ptr().cast::<AtomicU32>();
        // SAFETY: the mapping is readable, writable, zeroed, page-aligned, and lives as long as `self`.
        // It is private to this value, whose only view of it this is, so every access is atomic and of
        // this size.
        unsafe { core::slice::from_raw_parts(first, self.0.len() / size_of::<AtomicU32>()) }
    }
}

/// A file that has no name and lives in memory.
#[derive(Debug)]
pub struct Memfd {
    fd: OwnedFd,
    bytes: usize,
}

impl Memfd {
    /// A file of holes.
    ///
    /// # Errors
    /// [`OsError`] where there is no file descriptor left.
    pub fn new(bytes: usize) -> Result<Self, OsError> {
        let fd = memfd_create(c"isochrone-area", MemfdFlags::CLOEXEC).map_err(|errno| {
            OsError::of("cannot make shared memory", errno, "close files, or raise ulimit -n")
        })?;
        ftruncate(&fd, bytes as u64).map_err(|errno| {
            OsError::of("cannot size shared memory", errno, "ask for less memory")
        })?;
        Ok(Self { fd, bytes })
    }

    /// Bytes from its begin to its end, holes included.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// The descriptor.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes a range out of every mapping of it and frees its pages.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn punch(&self, at: usize, bytes: usize) -> Result<(), i32> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.fd, mode, at as u64, bytes as u64).map_err(Errno::raw_os_error)
    }

    /// Reads a range to `to`, whole; a hole reads as zeros.
    ///
    /// # Errors
    /// The kernel's error number.
    ///
    /// # Safety
    /// `to` must be writable for `bytes`, and nobody may rely on what was there.
    pub unsafe fn read(&self, at: usize, to: *mut u8, bytes: usize) -> Result<(), i32> {
        let mut done = 0;
        while done < bytes {
            let fd = usize::try_from(self.fd.as_raw_fd()).unwrap_or(usize::MAX);
            let place = to.wrapping_add(done).expose_provenance();
            // SAFETY: the caller vouches for the buffer.
            let read =
                unsafe { syscall(libc::SYS_pread64, [fd, place, bytes - done, at + done, 0, 0]) };
            match read {
                Ok(0) => return Err(libc::EIO),
                Ok(more) => done += more,
                Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Writes a range, whole: puts pages there without mapping them.
    ///
    /// # Errors
    /// The kernel's error number.
    ///
    /// # Safety
    /// `from` must be readable for `bytes`, and what is put into the file must be what its users expect
    /// there.
    pub unsafe fn write(&self, at: usize, from: *const u8, bytes: usize) -> Result<(), i32> {
        let mut done = 0;
        while done < bytes {
            let fd = usize::try_from(self.fd.as_raw_fd()).unwrap_or(usize::MAX);
            let place = from.wrapping_add(done).expose_provenance();
            // SAFETY: the caller vouches for the buffer.
            let written =
                unsafe { syscall(libc::SYS_pwrite64, [fd, place, bytes - done, at + done, 0, 0]) };
            match written {
                Ok(0) => return Err(libc::EIO),
                Ok(more) => done += more,
                Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Whether the page at an offset is in memory.
    #[must_use]
    pub fn holds(&self, at: usize) -> bool {
        self.holds_within(at, PAGE_BYTES)
    }

    /// Whether any page of a range is in memory.
    #[must_use]
    pub fn holds_within(&self, at: usize, bytes: usize) -> bool {
        let seek = rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::Data(at as u64));
        seek.is_ok_and(|data| data < (at + bytes) as u64)
    }

    /// Bytes in memory.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        rustix::fs::fstat(&self.fd)
            .map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0) * 512)
    }
}

/// Reserved addresses, free in every process that is forked later, to map files into; or memory that somebody has.
#[derive(Debug)]
pub struct Window {
    base: NonNull<u8>,
    bytes: usize,
    /// It is somebody else's, and stays when the value goes.
    lent: bool,
}

// SAFETY: the range belongs to the value, not to a thread.
unsafe impl Send for Window {}
// SAFETY: through a shared reference only system calls are made on it.
unsafe impl Sync for Window {}

const ADVICE: &str = "ask for less memory, or raise ulimit -v";

impl Window {
    /// Reserves whole pages at a 2 MiB boundary; nothing is accessible yet.
    ///
    /// # Errors
    /// [`OsError`] where there is not so much address space.
    pub fn reserve(bytes: usize) -> Result<Self, OsError> {
        const WHAT: &str = "cannot reserve a window";
        let bytes = bytes.checked_next_multiple_of(PAGE_BYTES);
        let bytes = bytes.ok_or(OsError::invalid(WHAT, ADVICE))?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let base = at_huge_boundary(bytes, ProtFlags::empty(), flags, WHAT, ADVICE)?;
        Ok(Self { base, bytes, lent: false })
    }

    /// Whole pages that somebody has, and keeps when the value goes.
    ///
    /// # Safety
    /// They stay mapped as long as the value lives, and whoever has them bears with what the value's methods do there.
    #[must_use]
    pub const unsafe fn over(base: NonNull<u8>, bytes: usize) -> Self {
        Self { base, bytes, lent: true }
    }

    /// The first byte. Reading or writing through it is the caller's to justify.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Maps a whole file at an offset. Children have nothing there: an access of theirs must not fill
    /// holes with zeros. No huge pages: one would make its neighbours look present. No page comes with it, and none is
    /// locked, also where the program locks all of its future memory.
    ///
    /// # Errors
    /// [`OsError`] where the file does not fit or the kernel refuses.
    pub fn map(&self, at: usize, file: &Memfd) -> Result<(), OsError> {
        if at.checked_add(file.len()).is_none_or(|end| end > self.bytes) {
            return Err(OsError::invalid("a file does not fit the window", "map less"));
        }
        let place = self.base.as_ptr().wrapping_add(at);
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the range lies in this value's reservation; whoever reads it takes what the file has.
        unsafe {
            rustix::mm::mmap(place.cast(), file.len(), ProtFlags::empty(), flags, &file.fd, 0)
        }
        .map_err(|errno| {
            OsError::of("cannot map shared memory", errno, advice_for(errno, ADVICE))
        })?;
        // SAFETY: the mapping made just now.
        unsafe { open_unlocked(place, file.len()) }?;
        for advice in [Advice::LinuxDontFork, Advice::LinuxNoHugepage] {
            // SAFETY: as above; neither advice changes content.
            let advised = unsafe { rustix::mm::madvise(place.cast(), file.len(), advice) };
            match advised {
                // Huge pages are not built in.
                Err(Errno::INVAL) if advice == Advice::LinuxNoHugepage => {}
                other => other.map_err(|errno| {
                    OsError::of(
                        "cannot advise on shared memory",
                        errno,
                        "allow madvise in the sandbox",
                    )
                })?,
            }
        }
        Ok(())
    }

    /// Lets new pages of a part come from a region of memory; a file that is mapped there takes the
    /// policy for all processes. What is there already stays.
    ///
    /// # Errors
    /// [`OsError`] where the region does not exist or may not be used.
    pub fn prefer(&self, at: usize, bytes: usize, region: RegionId) -> Result<(), OsError> {
        if at.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(OsError::invalid("a part lies outside of the window", "prefer less"));
        }
        let address = self.base.as_ptr().expose_provenance() + at;
        crate::mapping::set_policy(address, bytes, crate::mapping::Policy::Prefer, &[region])
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.lent {
            return;
        }
        // SAFETY: the range is this value's, and nothing borrows from it any more.
        let result = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    #[test]
    fn words_are_zero_and_shared() {
        let words = Words::new(5000).expect("20 kB");
        assert!(words.as_slice().len() >= 5000);
        assert!(words.as_slice().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn a_punched_range_reads_as_zeros_and_holds_nothing() {
        let file = Memfd::new(8 * PAGE_BYTES).expect("a file");
        let page = [7_u8; PAGE_BYTES];
        let mut seen = [9_u8; PAGE_BYTES];
        // SAFETY: `page` is that long; nobody expects anything of the file.
        unsafe { file.write(2 * PAGE_BYTES, page.as_ptr(), PAGE_BYTES) }.expect("room");
        assert!(
            file.holds(2 * PAGE_BYTES) && !file.holds(PAGE_BYTES) && !file.holds(3 * PAGE_BYTES)
        );
        assert_eq!(file.resident_bytes(), PAGE_BYTES as u64);
        // SAFETY: `seen` is that long.
        unsafe { file.read(2 * PAGE_BYTES, seen.as_mut_ptr(), PAGE_BYTES) }.expect("a page");
        assert_eq!(seen, page);
        file.punch(2 * PAGE_BYTES, PAGE_BYTES).expect("a hole");
        assert!(!file.holds(2 * PAGE_BYTES));
        // SAFETY: as above.
        unsafe { file.read(2 * PAGE_BYTES, seen.as_mut_ptr(), PAGE_BYTES) }.expect("a hole");
        assert_eq!(seen, [0; PAGE_BYTES]);
    }

    #[test]
    fn a_file_appears_in_its_window_and_nowhere_else() {
        let window = Window::reserve(64 * PAGE_BYTES).expect("addresses");
        let file = Memfd::new(8 * PAGE_BYTES).expect("a file");
        window.map(16 * PAGE_BYTES, &file).expect("it fits");
        assert!(window.map(60 * PAGE_BYTES, &file).is_err());
        let byte = window.as_ptr().wrapping_add(17 * PAGE_BYTES);
        // SAFETY: the second page of the file, mapped above, and this thread's alone.
        unsafe { byte.write(5) };
        let mut seen = [0];
        // SAFETY: one byte.
        unsafe { file.read(PAGE_BYTES, seen.as_mut_ptr(), 1) }.expect("a page");
        assert_eq!(seen, [5]);
    }
}
