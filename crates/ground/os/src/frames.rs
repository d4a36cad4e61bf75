//! Which physical frames stand behind pages, as `/proc/self/pagemap` tells a privileged reader
//! (Documentation/admin-guide/mm/pagemap.rst).
//!
//! Inside a virtual machine these are the guest's frames, not the host's. Without
//! `CAP_SYS_ADMIN` the kernel reports every frame as 0, which here is `None`, never a number.

use crate::error::OsError;
use crate::pages::pages_in_kernel_page;
use isochrone_units::PageAddr;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};

/// Pages asked for in one read.
const BATCH: usize = 512;

/// This process's page map.
#[derive(Debug)]
pub struct Pagemap {
    file: OwnedFd,
}

impl Pagemap {
    /// Opens it. That it opens does not mean that it shows frames: see [`Self::shows_frames`].
    ///
    /// # Errors
    /// [`OsError`] where there is none, or it is hidden.
    pub fn open() -> Result<Self, OsError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = open(c"/proc/self/pagemap", flags, Mode::empty()).map_err(|errno| {
            OsError::of(
                "cannot open /proc/self/pagemap",
                errno,
                "run as root with /proc mounted to key pages by their frames; all else works",
            )
        })?;
        Ok(Self { file })
    }

    /// Whether this process is told frames, tried on a page that is present for certain.
    #[must_use]
    pub fn shows_frames(&self) -> bool {
        let here = [1_u8];
        // Reading it makes the page present, whatever the stack was before.
        core::hint::black_box(&here);
        let address = core::hint::black_box(here.as_ptr()).addr();
        self.frame(page_of(address)).is_some()
    }

    /// The frame behind a page, which is a virtual address divided by the page size.
    #[must_use]
    pub fn frame(&self, page: PageAddr) -> Option<u64> {
        let mut out = [None];
        self.frames(page, &mut out).ok()?;
        out[0]
    }

    /// The frames behind the pages from `first` on, one for each slot of `out`; `None` for a page
    /// that is absent, swapped out, or whose frame this process may not know.
    ///
    /// # Errors
    /// [`OsError`] where the read fails; `out` is all `None` from there on.
    pub fn frames(&self, first: PageAddr, out: &mut [Option<u64>]) -> Result<(), OsError> {
        out.fill(None);
        let in_one = pages_in_kernel_page() as u64;
        let mut page = first.0;
        for slots in out.chunks_mut(BATCH) {
            let mut bytes = [0_u8; BATCH * 8];
            let span = Entries::of(page, slots.len() as u64, in_one);
            let room = usize::try_from(span.count).unwrap_or(BATCH).min(BATCH) * 8;
            let read = rustix::io::pread(&self.file, &mut bytes[..room], span.first * 8).map_err(
                |errno| {
                    OsError::of(
                        "cannot read /proc/self/pagemap",
                        errno,
                        "give a range of pages that lies in this process's address space",
                    )
                },
            )?;
            let (entries, _) = bytes[..read].as_chunks();
            for (slot, number) in slots.iter_mut().zip(page..) {
                let entry = entries.get(span.place(number));
                let frame = entry.and_then(|entry| frame_of(u64::from_le_bytes(*entry)));
                *slot = frame.map(|frame| frame * in_one + number % in_one);
            }
            page += slots.len() as u64;
        }
        Ok(())
    }
}

/// Entries of the page map that tell of a range of pages: one for each page of the kernel's.
struct Entries {
    first: u64,
    count: u64,
    in_one: u64,
}

impl Entries {
    fn of(page: u64, pages: u64, in_one: u64) -> Self {
        let first = page / in_one;
        Self { first, count: (page + pages).div_ceil(in_one) - first, in_one }
    }

    /// Which of them tells of a page.
    fn place(&self, page: u64) -> usize {
        usize::try_from(page / self.in_one - self.first).unwrap_or(usize::MAX)
    }
}

/// The page that holds an address.
#[must_use]
pub fn page_of(address: usize) -> PageAddr {
    PageAddr((address / isochrone_units::PAGE_BYTES) as u64)
}

/// Bits 0 to 54 hold the frame if bit 63 says that the page is present. Frame 0 belongs to the
/// firmware on every machine with a page map, and is what the kernel writes for "not for you".
fn frame_of(entry: u64) -> Option<u64> {
    let (present, frame) = (entry >> 63 == 1, entry & ((1 << 55) - 1));
    (present && frame != 0).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Backing, Mapping};
    use std::collections::BTreeSet;
    use std::vec;

    #[test]
    fn entries_are_read_as_the_kernel_writes_them() {
        assert_eq!(frame_of(1 << 63 | 0x1234), Some(0x1234));
        assert_eq!(frame_of(1 << 63 | 1 << 55 | 1 << 61 | 7), Some(7));
        assert_eq!(frame_of(1 << 63), None);
        // A swapped page: bit 62, with the swap's place where a frame would stand.
        assert_eq!(frame_of(1 << 62 | 0x1234), None);
    }

    #[test]
    fn a_page_of_the_kernel_s_tells_of_all_pages_in_it() {
        let small = Entries::of(7, 512, 1);
        assert_eq!((small.first, small.count, small.place(9)), (7, 512, 2));
        let long = Entries::of(7, 12, 4);
        assert_eq!((long.first, long.count), (1, 4), "7 to 18 lie in 4-7, 8-11, 12-15, 16-19");
        assert_eq!((long.place(7), long.place(8), long.place(18)), (0, 1, 3));
    }

    #[test]
    fn pages_have_frames_of_their_own_for_root_and_none_for_others() {
        let pagemap = Pagemap::open().expect("Linux has it");
        let mapping = Mapping::anonymous(1000 << 12, Backing::Small).expect("4 MB");
        let first = page_of(mapping.as_ptr().addr());
        let mut frames = vec![Some(1); 1000];
        pagemap.frames(first, &mut frames).expect("our own pages");
        if !pagemap.shows_frames() {
            // Not root: nothing may be invented.
            assert!(frames.iter().all(Option::is_none));
            return;
        }
        let distinct: BTreeSet<u64> = frames.iter().copied().flatten().collect();
        assert_eq!(distinct.len(), 1000);
        assert_eq!(pagemap.frame(PageAddr(first.0 + 999)), frames[999]);
    }

    #[test]
    fn an_absent_page_has_no_frame() {
        let pagemap = Pagemap::open().expect("Linux has it");
        assert_eq!(pagemap.frame(PageAddr(0)), None);
    }
}
