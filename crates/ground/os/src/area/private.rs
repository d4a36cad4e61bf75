//! A window of private memory, of which parts are used: a reservation whose parts are opened, emptied, advised on and
//! closed again.

use super::{ADVICE, Window};
use crate::error::OsError;
use crate::mapping::Mapping;
use crate::syscall::syscall;
use core::sync::atomic::Ordering;
use isochrone_units::PAGE_BYTES;
use rustix::io::Errno;
use rustix::mm::{Advice, MprotectFlags};

/// What may be done to pages, in the bits of `mprotect(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(pub u32);

impl Access {
    /// Nothing: who touches them is sent `SIGSEGV`.
    pub const NONE: Self = Self(0);
    /// They may be read and written.
    pub const BOTH: Self = Self(3);
}

/// Advice that changes no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Small pages alone.
    Small,
    /// Children get none of it.
    NoFork,
    /// Children get a copy of it.
    Fork,
}

impl Window {
    /// Lets a part be used.
    ///
    /// # Errors
    /// The kernel's error number.
    ///
    /// # Safety
    /// Nobody may rely on another access to the part.
    pub unsafe fn allow(&self, at: usize, bytes: usize, access: Access) -> Result<(), i32> {
        let flags = MprotectFlags::from_bits_retain(access.0);
        let place = self.place(at, bytes)?;
        // SAFETY: the part lies in this value's reservation, and the caller vouches for its users.
        unsafe { rustix::mm::mprotect(place, bytes, flags) }.map_err(Errno::raw_os_error)
    }

    /// Takes the pages of a part out of this process's tables: the next access is a fault. Private pages are freed with
    /// it; those of a file stay in the file.
    ///
    /// # Errors
    /// The kernel's error number.
    ///
    /// # Safety
    /// Nobody may need what private pages hold.
    pub unsafe fn empty(&self, at: usize, bytes: usize) -> Result<(), i32> {
        /// include/uapi/asm-generic/mman-common.h, since Linux 5.18: also of pages that are locked.
        const MADV_DONTNEED_LOCKED: usize = 24;
        let place = self.place(at, bytes)?.expose_provenance();
        // SAFETY: the part lies in this value's reservation, and the caller vouches for its content.
        unsafe { syscall(libc::SYS_madvise, [place, bytes, MADV_DONTNEED_LOCKED, 0, 0, 0]) }
            .map(drop)
    }

    /// Makes pages of a part this process's alone, where they are shared with a child of it until one of both writes.
    ///
    /// # Errors
    /// The kernel's error number; `EINVAL` where they may not be written.
    pub fn unshare(&self, at: usize, bytes: usize) -> Result<(), i32> {
        let place = self.place(at, bytes)?;
        // SAFETY: the part lies in this value's reservation; no content changes (madvise(2), MADV_POPULATE_WRITE).
        unsafe { rustix::mm::madvise(place, bytes, Advice::LinuxPopulateWrite) }
            .map_err(Errno::raw_os_error)
    }

    /// Tells the kernel something about a part.
    ///
    /// # Errors
    /// [`OsError`] where it refuses.
    pub fn tell(&self, at: usize, bytes: usize, told: Told) -> Result<(), OsError> {
        let advice = match told {
            Told::Small => Advice::LinuxNoHugepage,
            Told::NoFork => Advice::LinuxDontFork,
            Told::Fork => Advice::LinuxDoFork,
        };
        let place =
            self.place(at, bytes).map_err(|errno| refused(Errno::from_raw_os_error(errno)))?;
        // SAFETY: the part lies in this value's reservation; none of these changes content.
        match unsafe { rustix::mm::madvise(place, bytes, advice) } {
            // Huge pages are not built in.
            Err(Errno::INVAL) if told == Told::Small => Ok(()),
            other => other.map_err(refused),
        }
    }

    fn place(&self, at: usize, bytes: usize) -> Result<*mut core::ffi::c_void, i32> {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= self.len());
        if inside { Ok(self.as_ptr().wrapping_add(at).cast()) } else { Err(libc::EINVAL) }
    }
}

/// Tells a process from its children: a child that has memory of its own finds that it is one from its first
/// instruction on, whoever made it. One that shares its parent's memory (vfork(2)) is taken for its parent.
#[derive(Debug)]
pub struct Origin(Mapping);

impl Origin {
    /// This process.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory.
    pub fn new() -> Result<Self, OsError> {
        let page = Mapping::absent(PAGE_BYTES)?;
        // SAFETY: memory of this value's alone; children find zeros there, and nothing else changes.
        unsafe { rustix::mm::madvise(page.as_ptr().cast(), page.len(), Advice::LinuxWipeOnFork) }
            .map_err(refused)?;
        page.words()[0].store(1, Ordering::Release);
        Ok(Self(page))
    }

    /// Whether this is the process that made the value.
    #[inline]
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.0.words()[0].load(Ordering::Relaxed) != 0
    }
}

const fn refused(errno: Errno) -> OsError {
    OsError::of("cannot advise the kernel about a window", errno, ADVICE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{End, ProcessId, end, wait};

    #[test]
    fn a_part_is_opened_emptied_and_closed() {
        let window = Window::reserve(8 * PAGE_BYTES).expect("addresses");
        window.tell(0, window.len(), Told::Small).expect("advice");
        // SAFETY: nobody has the window yet.
        unsafe { window.allow(PAGE_BYTES, PAGE_BYTES, Access::BOTH) }.expect("a page");
        let byte = window.as_ptr().wrapping_add(PAGE_BYTES);
        // SAFETY: opened above.
        unsafe { byte.write(7) };
        window.unshare(PAGE_BYTES, PAGE_BYTES).expect("it may be written");
        // SAFETY: as above.
        assert_eq!(unsafe { byte.read() }, 7);
        // SAFETY: nobody needs it.
        unsafe { window.empty(PAGE_BYTES, PAGE_BYTES) }.expect("a page");
        // SAFETY: as above.
        assert_eq!(unsafe { byte.read() }, 0);
        assert_eq!(window.unshare(3 * PAGE_BYTES, PAGE_BYTES), Err(libc::EINVAL));
        // SAFETY: outside.
        assert_eq!(unsafe { window.empty(8 * PAGE_BYTES, PAGE_BYTES) }, Err(libc::EINVAL));
    }

    #[test]
    fn a_child_knows_that_it_is_one() {
        let origin = Origin::new().expect("a page");
        assert!(origin.is_here());
        // SAFETY: the child reads a word and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            end(i32::from(origin.is_here()));
        }
        assert_eq!(wait(ProcessId(child), true), Ok(Some(End::Code(0))));
        assert!(origin.is_here());
    }
}
