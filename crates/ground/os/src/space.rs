//! Address space for data whose pages come when they are touched, so that whoever touches a page first
//! decides where it lives, unless the range is interleaved.
//!
//! It hands out nothing: which part belongs to whom is for its callers.

use crate::error::OsError;
use crate::mapping::{HUGE_PAGE_BYTES, Policy, query_regions, set_policy};
use crate::pages::kernel_page_bytes;
use crate::span::{at_huge_boundary, open_unlocked};
use core::ptr::NonNull;
use isochrone_units::{PAGE_BYTES, RegionId};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

/// Reserved address space, readable and writable.
#[derive(Debug)]
pub struct Space {
    base: NonNull<u8>,
    bytes: usize,
    shared: bool,
}

// SAFETY: the range belongs to the value, not to a thread.
unsafe impl Send for Space {}
// SAFETY: through a shared reference only system calls are made on it.
unsafe impl Sync for Space {}

const ADVICE: &str = "ask for less memory, or raise ulimit -v";

impl Space {
    /// Reserves `bytes`, rounded up to whole pages, at a 2 MiB boundary. With `shared`, processes that
    /// this one forks later see the same memory at the same address.
    ///
    /// # Errors
    /// [`OsError`] where there is not so much address space.
    pub fn new(bytes: usize, shared: bool) -> Result<Self, OsError> {
        Self::reserve(bytes, shared, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// The same, whose pages come when they are touched also where the program locks all of its future memory
    /// (mlockall(2), `MCL_FUTURE`): for more than is ever used of it.
    ///
    /// # Errors
    /// [`OsError`] where there is not so much address space.
    pub fn unlocked(bytes: usize, shared: bool) -> Result<Self, OsError> {
        let space = Self::reserve(bytes, shared, ProtFlags::empty())?;
        // SAFETY: mapped just now, and this value's alone.
        unsafe { open_unlocked(space.as_ptr(), space.bytes) }?;
        Ok(space)
    }

    fn reserve(bytes: usize, shared: bool, access: ProtFlags) -> Result<Self, OsError> {
        const WHAT: &str = "cannot reserve memory";
        let bytes = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES);
        let bytes = bytes.ok_or(OsError::invalid(WHAT, ADVICE))?;
        let kind = if shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
        let base = at_huge_boundary(bytes, access, kind | MapFlags::NORESERVE, WHAT, ADVICE)?;
        Ok(Self { base, bytes, shared })
    }

    /// The first byte. Reading or writing through it is the caller's to justify.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes reserved.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Address and length of whole pages of the kernel's that hold a part.
    fn pages(&self, offset: usize, bytes: usize) -> Result<(usize, usize), OsError> {
        self.units(offset, bytes, kernel_page_bytes())
    }

    /// Address and length of the pages of the kernel's that nobody but a part is in, once it is rounded to pages of
    /// 4 KiB: what others have in a longer page must stay. Perhaps none.
    fn pages_alone(&self, offset: usize, bytes: usize) -> Result<(usize, usize), OsError> {
        let (address, bytes) = self.units(offset, bytes, PAGE_BYTES)?;
        let page = kernel_page_bytes();
        let (first, end) = (address.next_multiple_of(page), (address + bytes) / page * page);
        Ok((first, end.saturating_sub(first)))
    }

    /// Address and length of whole units that hold a part.
    fn units(&self, offset: usize, bytes: usize, unit: usize) -> Result<(usize, usize), OsError> {
        let first = offset / unit * unit;
        let end = offset.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(unit));
        match end {
            Some(end) if end <= self.bytes => {
                Ok((self.base.as_ptr().expose_provenance() + first, end - first))
            }
            _ => Err(OsError::invalid(
                "a part lies outside of its space",
                "use offsets below its length",
            )),
        }
    }

    /// Spreads the pages of a part over `regions`, in turn, as they are touched.
    ///
    /// # Errors
    /// [`OsError`] where a region does not exist or may not be used.
    pub fn interleave(
        &self,
        offset: usize,
        bytes: usize,
        regions: &[RegionId],
    ) -> Result<(), OsError> {
        let (address, bytes) = self.pages(offset, bytes)?;
        set_policy(address, bytes, Policy::Interleave, regions)
    }

    /// Asks for huge pages for a part, or forbids them: a huge page lives in one region as a whole.
    ///
    /// # Errors
    /// [`OsError`] where the kernel knows no huge pages.
    pub fn huge(&self, offset: usize, bytes: usize, wanted: bool) -> Result<(), OsError> {
        let advice = if wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        let (address, bytes) = self.pages(offset, bytes)?;
        Self::advise(address, bytes, advice)
    }

    /// Lets the pages of a part be used, or not at all: whoever touches them then is sent SIGSEGV.
    ///
    /// # Errors
    /// [`OsError`] for a part outside, or where the kernel refuses.
    pub fn protect(&self, offset: usize, bytes: usize, usable: bool) -> Result<(), OsError> {
        let pages = if usable { Self::pages } else { Self::pages_alone };
        let (address, bytes) = pages(self, offset, bytes)?;
        let flags = if usable {
            MprotectFlags::READ | MprotectFlags::WRITE
        } else {
            MprotectFlags::empty()
        };
        let pointer = core::ptr::with_exposed_provenance_mut(address);
        // SAFETY: the part is this value's, and no content changes. A reference into pages that may not
        // be used ends the process at its next use; it never reads or writes anything else.
        unsafe { rustix::mm::mprotect(pointer, bytes, flags) }.map_err(|errno| {
            OsError::of("cannot change who may use memory", errno, "raise vm.max_map_count")
        })
    }

    /// Gives the pages of a part back; they read as zeroes, and are new when touched again.
    ///
    /// # Errors
    /// [`OsError`] where the kernel refuses.
    pub fn release(&self, offset: usize, bytes: usize) -> Result<(), OsError> {
        // A shared page is gone only when its hole is punched.
        let advice = if self.shared { Advice::LinuxRemove } else { Advice::LinuxDontNeed };
        let (address, bytes) = self.pages_alone(offset, bytes)?;
        Self::advise(address, bytes, advice)
    }

    fn advise(address: usize, bytes: usize, advice: Advice) -> Result<(), OsError> {
        if bytes == 0 {
            return Ok(());
        }
        let pointer = core::ptr::with_exposed_provenance_mut(address);
        // SAFETY: callers give a part of theirs. Advice about huge pages changes no content; where content
        // goes, it is the caller who said that nobody needs it, and zeroes are valid for all that
        // lies in such memory.
        unsafe { rustix::mm::madvise(pointer, bytes, advice) }
            .map_err(|errno| OsError::of("cannot advise the kernel about memory", errno, ADVICE))
    }

    /// The region of each page from `offset` on, as the kernel says; `None` for one that nobody touched.
    ///
    /// # Errors
    /// [`OsError`] for pages outside, or a kernel without regions.
    pub fn regions_of(&self, offset: usize, out: &mut [Option<RegionId>]) -> Result<(), OsError> {
        let (address, _) = self.units(offset, out.len().saturating_mul(PAGE_BYTES), PAGE_BYTES)?;
        query_regions(address, out)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: the range is this value's, and whoever used it promised not to outlive it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};

    fn word(space: &Space, offset: usize) -> &AtomicU64 {
        let place = space.as_ptr().wrapping_add(offset).cast::<AtomicU64>();
        // SAFETY: tests name offsets inside, which are multiples of eight; the space outlives the word.
        unsafe { &*place }
    }

    #[test]
    fn pages_come_when_they_are_touched_and_go_when_released() {
        let page = kernel_page_bytes();
        for shared in [false, true] {
            let space = Space::new(1 << 30, shared).expect("address space");
            // Some kernels give huge pages unasked, and others know none.
            let _ = space.huge(0, space.len(), false);
            let present = |index: usize| {
                let mut region = [None];
                space.regions_of(index * page, &mut region).expect("move_pages");
                region[0].is_some()
            };
            assert_eq!([0, 1, 2, 3].map(present), [false; 4]);
            word(&space, 2 * page).store(7, Ordering::Relaxed);
            assert_eq!([0, 1, 2, 3].map(present), [false, false, true, false]);
            space.release(0, 4 * page).expect("release");
            assert_eq!(word(&space, 2 * page).load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn parts_outside_are_refused() {
        let space = Space::new(1, false).expect("2 MiB");
        assert_eq!(space.len(), 2 << 20);
        assert!(space.release(space.len(), 1).is_err());
        assert!(space.interleave(0, 4096, &[RegionId(5000)]).is_err());
        space.interleave(0, space.len(), &[RegionId(0)]).expect("region 0 is everywhere");
    }
}
