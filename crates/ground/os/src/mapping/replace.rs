//! Giving one page another frame while its content stays: what the kernel does when it migrates
//! a page, at a moment that a test can choose.
//!
//! It never touches the page's neighbours, though a huge page that holds it is split.

use super::{Backing, Mapping};
use crate::error::OsError;
use crate::pages::kernel_page_bytes;
use core::ffi::c_void;
use core::sync::atomic::Ordering;
use isochrone_units::{PAGE_BYTES, PageAddr};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

impl Mapping {
    /// Puts another frame behind `page`, a page of private memory. The old and the new frame
    /// exist at once, so they differ for certain. A word that another thread writes meanwhile may
    /// keep its old value.
    ///
    /// # Errors
    /// [`OsError`] for a page outside, for shared memory, and for pages of the pool.
    pub fn replace_frame(&self, page: PageAddr) -> Result<(), OsError> {
        const WORDS: usize = PAGE_BYTES / 8;
        if page.0 >= self.pages() {
            return Err(OsError::invalid(
                "cannot replace the frame of a page outside of the mapping",
                "number pages from 0 to Mapping::pages() - 1",
            ));
        }
        if self.memfd.is_some() || self.backing == Backing::HugeTlb2M {
            return Err(OsError::unsupported(
                "cannot replace a frame of shared memory or of a pool's huge page",
                "use private memory with transparent huge pages or small ones",
            ));
        }
        if kernel_page_bytes() != PAGE_BYTES {
            return Err(OsError::unsupported(
                "cannot replace the frame of a part of a page: this kernel's are longer than 4 KiB",
                "use a kernel with pages of 4 KiB",
            ));
        }
        let fresh = Self::anonymous(PAGE_BYTES, Backing::Small)?;
        let first = usize::try_from(page.0).unwrap_or(usize::MAX) * WORDS;
        let old = self.words()[first..first + WORDS].iter();
        for (new, old) in fresh.words().iter().zip(old) {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let target = core::ptr::with_exposed_provenance_mut(self.page_address(page));
        let flags = MremapFlags::MAYMOVE;
        // SAFETY: `fresh` is one page that only this function knows; the target is one page inside
        // of this mapping. The kernel makes other threads wait that use it meanwhile, and leaves
        // it mapped with the same content and access, so every atomic word in it stays valid.
        let moved = unsafe {
            rustix::mm::mremap_fixed(fresh.address(), PAGE_BYTES, PAGE_BYTES, flags, target)
        };
        match moved {
            Ok(_) => {
                // Its page is part of this mapping now, which will unmap it.
                core::mem::forget(fresh);
                Ok(())
            }
            Err(errno) => {
                self.mend(target, &fresh);
                Err(OsError::of("cannot replace a frame", errno, "raise vm.max_map_count"))
            }
        }
    }

    /// A remap that failed late may have left a hole: fills it, with the content of `copy`.
    fn mend(&self, target: *mut c_void, copy: &Self) {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the target is one page inside of this mapping, which is private memory; it is
        // mapped afterwards whether it was before or not.
        let filled = unsafe { rustix::mm::mmap_anonymous(target, PAGE_BYTES, access, flags) };
        if filled.is_ok() {
            let first = (target.addr() - self.as_ptr().addr()) / 8;
            for (word, copy) in self.words()[first..].iter().zip(copy.words()) {
                word.store(copy.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }
}
