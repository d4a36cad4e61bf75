//! Memory to measure: mapped at a 2 MiB boundary, present from the start, with an honest word
//! about the pages that back it, and unmapped when dropped.
//!
//! Safe code sees a mapping as atomic words ([`Mapping::words`]), since several threads measure
//! the same memory. It never hands out a reference to plain bytes. What concerns regions is in
//! `regions`, the exchange of a frame in `replace`.

mod regions;
mod replace;

pub use crate::span::HUGE_PAGE_BYTES;
pub(crate) use regions::{Policy, query_regions, set_policy};

use crate::error::OsError;
use crate::pages::kernel_page_bytes;
use crate::span::at_huge_boundary;
use crate::syscall::syscall;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU64;
use isochrone_units::{LINE_BYTES, LineAddr, PAGE_BYTES, PageAddr};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Memory that is made present at once, and then again: a millisecond each where huge pages are to be had, and up to
/// ten on a guest. Nobody else of the process can map anything meanwhile, nor can it be stopped, and beside thirty
/// programs a hundredth of a second takes a third.
const PART_BYTES: usize = 2 * HUGE_PAGE_BYTES;

/// The pages that back a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Huge pages of 2 MiB from the pool that the administrator set aside.
    HugeTlb2M,
    /// Huge pages of 2 MiB that the kernel made of ordinary ones.
    Transparent2M,
    /// Pages of 4 KiB, or a mixture.
    Small,
}

/// Mapped, present, zeroed memory.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    backing: Backing,
    huge_share: Option<f64>,
    memfd: Option<OwnedFd>,
}

// SAFETY: the memory belongs to the value, not to a thread, and the kernel lets any thread use and
// unmap it.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference safe code reads and writes the memory by atomics only, and
// the timed loads read it by instructions that are atomic on aligned words.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` (rounded up to whole pages, 2 MiB ones where asked for) of private memory, and
    /// touches all of it. Where transparent huge pages are not to be had, the memory comes all
    /// the same and [`Self::backing`] and [`Self::huge_share`] say so; pages of the pool are had
    /// or refused.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory, or the pool has not enough pages.
    pub fn anonymous(bytes: usize, wanted: Backing) -> Result<Self, OsError> {
        Self::anonymous_while(bytes, wanted, &mut || true)
    }

    /// As [`Self::anonymous`], in parts of some tens of MiB, since a large memory takes long: `go_on` is asked before
    /// each but the first, and what is not there when it says no is left out of the mapping, which is shorter then.
    ///
    /// # Errors
    /// As [`Self::anonymous`].
    pub fn anonymous_while(
        bytes: usize,
        wanted: Backing,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, OsError> {
        let (unit, source) = match wanted {
            Backing::Transparent2M => {
                let mut mapping = Self::untouched(bytes)?;
                mapping.populate_while(go_on)?;
                return Ok(mapping);
            }
            Backing::HugeTlb2M => (HUGE_PAGE_BYTES, Source::Pool),
            Backing::Small => (kernel_page_bytes(), Source::Private),
        };
        let bytes = round_up(bytes, unit)?;
        let base = match source {
            Source::Pool => map(ptr::null_mut(), bytes, source)?,
            _ => map_aligned(bytes, source)?,
        };
        let mut mapping =
            Self { base, bytes, backing: Backing::Small, huge_share: Some(0.0), memfd: None };
        if wanted == Backing::Small {
            // Refused where transparent huge pages are not built in, and then not needed.
            let _ = mapping.advise(Advice::LinuxNoHugepage);
        }
        let mut present = 0;
        while present < bytes && (present == 0 || go_on()) {
            let end = bytes.min(present + PART_BYTES);
            mapping.populate_part(present..end)?;
            present = end;
        }
        mapping.cut(present);
        if wanted == Backing::HugeTlb2M {
            (mapping.backing, mapping.huge_share) = (wanted, Some(1.0));
        }
        Ok(mapping)
    }

    /// Maps address space for `bytes` (rounded up to whole pages), whose pages come as
    /// [`Self::populate_part`] is called, small ones: for a caller who may not wait for all at once.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space.
    pub fn absent(bytes: usize) -> Result<Self, OsError> {
        let bytes = round_up(bytes, kernel_page_bytes())?;
        let base = map_aligned(bytes, Source::Private)?;
        let mapping =
            Self { base, bytes, backing: Backing::Small, huge_share: Some(0.0), memfd: None };
        // Refused where transparent huge pages are not built in, and then not needed.
        let _ = mapping.advise(Advice::LinuxNoHugepage);
        Ok(mapping)
    }

    /// Maps address space for `bytes` (rounded up to whole pages), of huge pages where they can be had, whose pages
    /// come when a thread touches them or calls [`Self::populate_part`]: so each thread has its own where it runs, and
    /// a region can be chosen ([`Self::bind`]) before there is anything to be moved.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space.
    pub fn untouched(bytes: usize) -> Result<Self, OsError> {
        let bytes = round_up(bytes, HUGE_PAGE_BYTES)?;
        let base = map_aligned(bytes, Source::Private)?;
        let mapping = Self { base, bytes, backing: Backing::Small, huge_share: None, memfd: None };
        // Refused where transparent huge pages are not built in.
        let _ = mapping.advise(Advice::LinuxHugepage);
        Ok(mapping)
    }

    /// Makes the pages of a mapping of [`Self::untouched`] present, in parts of some tens of MiB, huge ones where they
    /// can be had; `go_on` is asked before each but the first, and what is not there when it says no is left out of the
    /// mapping, which is shorter then.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory.
    pub fn populate_while(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<(), OsError> {
        let (mut present, mut huge) = (0, Some(0));
        while present < self.bytes && (present == 0 || go_on()) {
            let end = self.bytes.min(present + PART_BYTES);
            self.populate_part(present..end)?;
            huge = huge.and_then(|huge| Some(huge + self.collapse(present..end)?));
            present = end;
        }
        self.cut(present);
        self.note_huge(huge);
        Ok(())
    }

    /// Maps `bytes` (rounded up to whole pages) of new memory that other processes can map too:
    /// children by inheritance, others through [`Self::memfd`].
    ///
    /// # Errors
    /// [`OsError`] where there is no memory or no file descriptor left.
    pub fn shared_memfd(bytes: usize) -> Result<Self, OsError> {
        let bytes = round_up(bytes, kernel_page_bytes())?;
        let memfd = memfd_create(c"isochrone", MemfdFlags::CLOEXEC).map_err(|errno| {
            OsError::of("cannot make shared memory", errno, "close files, or raise ulimit -n")
        })?;
        ftruncate(&memfd, bytes as u64).map_err(|errno| {
            OsError::of("cannot size shared memory", errno, "ask for less memory")
        })?;
        Self::of_memfd(memfd, bytes)
    }

    /// Maps the same shared memory once more, at another address.
    ///
    /// # Errors
    /// [`OsError`] for private memory, or where there is no address space left.
    pub fn second_view(&self) -> Result<Self, OsError> {
        let memfd = self.memfd.as_ref().ok_or(OsError::invalid(
            "cannot view private memory twice",
            "map it with Mapping::shared_memfd",
        ))?;
        let copy = rustix::io::fcntl_dupfd_cloexec(memfd, 0).map_err(|errno| {
            OsError::of("cannot duplicate a file", errno, "close files, or raise ulimit -n")
        })?;
        Self::of_memfd(copy, self.bytes)
    }

    fn of_memfd(memfd: OwnedFd, bytes: usize) -> Result<Self, OsError> {
        let base = map_aligned(bytes, Source::Shared(&memfd))?;
        let mapping = Self {
            base,
            bytes,
            backing: Backing::Small,
            huge_share: Some(0.0),
            memfd: Some(memfd),
        };
        mapping.populate()?;
        Ok(mapping)
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

    /// Lines mapped; `LineAddr(0)` is the first.
    #[must_use]
    pub fn lines(&self) -> u64 {
        (self.bytes / LINE_BYTES) as u64
    }

    /// Pages of 4 KiB mapped; `PageAddr(0)` is the first.
    #[must_use]
    pub fn pages(&self) -> u64 {
        (self.bytes / PAGE_BYTES) as u64
    }

    /// The virtual page behind page `index` of the mapping, as [`crate::frames::Pagemap`] wants.
    #[must_use]
    pub fn virtual_page(&self, index: PageAddr) -> PageAddr {
        PageAddr(crate::frames::page_of(self.base.addr().get()).0 + index.0)
    }

    /// The weakest kind of page found behind any part, when the memory was mapped.
    #[must_use]
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// The share of 2 MiB blocks that huge pages backed when the memory was mapped; `None` where
    /// the kernel (before 6.1) does not say.
    #[must_use]
    pub fn huge_share(&self) -> Option<f64> {
        self.huge_share
    }

    /// The file descriptor of shared memory, which stays the mapping's own.
    #[must_use]
    pub fn memfd(&self) -> Option<i32> {
        self.memfd.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// The memory as words that any thread may read and write.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        let first = self.base.as_ptr().cast::<AtomicU64>();
        // SAFETY: `bytes` bytes from `base` are mapped, readable, writable, initialised (zeroed by
        // the kernel) and page-aligned for as long as `self` lives. All that safe code can do to
        // them meanwhile is atomic: other views and threads have them as atomic words too, a ring
        // of links holds the mapping exclusively, and a replaced frame keeps its content.
        unsafe { core::slice::from_raw_parts(first, self.bytes / size_of::<AtomicU64>()) }
    }

    /// Keeps the memory from being swapped or migrated by reclaim.
    ///
    /// # Errors
    /// [`OsError`] where the limit on locked memory is lower.
    pub fn lock(&self) -> Result<(), OsError> {
        // SAFETY: the range is this value's; locking changes no content.
        unsafe { rustix::mm::mlock(self.address(), self.bytes) }.map_err(|errno| {
            OsError::of(
                "cannot lock memory",
                errno,
                "raise the limit (ulimit -l) or run as root; unlocked memory can be measured too",
            )
        })
    }

    /// Address of a line, not checked here.
    pub(crate) fn line(&self, line: LineAddr) -> *const u64 {
        let offset = usize::try_from(line.0).unwrap_or(usize::MAX).wrapping_mul(LINE_BYTES);
        self.base.as_ptr().wrapping_add(offset).cast_const().cast()
    }

    /// Checks once that all `lines` lie inside, so that the loops need not.
    pub(crate) fn check_lines(&self, lines: &[LineAddr]) -> Result<(), OsError> {
        if lines.iter().all(|line| line.0 < self.lines()) {
            return Ok(());
        }
        Err(OsError::invalid(
            "a line lies outside of the mapping",
            "number lines from 0 to Mapping::lines() - 1",
        ))
    }

    fn address(&self) -> *mut c_void {
        self.base.as_ptr().cast()
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range is this value's, and the advice used here (huge page or not) changes
        // no content.
        unsafe { rustix::mm::madvise(self.address(), self.bytes, advice) }
    }

    /// Makes every page present and writable.
    fn populate(&self) -> Result<(), OsError> {
        self.populate_part(0..self.bytes)
    }

    /// Makes the pages that hold these bytes present and writable; what is there stays, and what
    /// lies beyond the mapping is left out.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory.
    pub fn populate_part(&self, bytes: Range<usize>) -> Result<(), OsError> {
        let page = kernel_page_bytes();
        let end = bytes.end.next_multiple_of(page).min(self.bytes);
        let start = (bytes.start / page * page).min(end);
        let place = self.address().cast::<u8>().wrapping_add(start).cast();
        // SAFETY: the range is this value's; populating changes no content. Unlike a plain touch
        // it gives an error, not a signal, where memory is short.
        let result = unsafe { rustix::mm::madvise(place, end - start, Advice::LinuxPopulateWrite) };
        match result {
            // Before Linux 5.14: touch a word of each page, without changing it.
            Err(Errno::INVAL) => {
                let word = |byte: usize| byte / size_of::<AtomicU64>();
                let words = &self.words()[word(start)..word(end)];
                for word in words.iter().step_by(word(PAGE_BYTES)) {
                    word.fetch_or(0, core::sync::atomic::Ordering::Relaxed);
                }
                Ok(())
            }
            other => other.map_err(|errno| {
                OsError::of("cannot get memory", errno, "ask for less memory, or free some")
            }),
        }
    }

    /// Makes huge pages where there are none yet: how many blocks of these bytes have them now, or `None` where
    /// nobody can tell (before Linux 6.1).
    fn collapse(&self, bytes: Range<usize>) -> Option<usize> {
        if self.collapse_range(bytes.start, bytes.len()).is_ok() {
            return Some(bytes.len() / HUGE_PAGE_BYTES);
        }
        let mut huge = 0;
        for offset in bytes.step_by(HUGE_PAGE_BYTES) {
            match self.collapse_range(offset, HUGE_PAGE_BYTES) {
                Ok(()) => huge += 1,
                Err(libc::EINVAL) => return None,
                Err(_) => {}
            }
        }
        Some(huge)
    }

    /// Notes how many blocks have huge pages.
    #[allow(clippy::cast_precision_loss, reason = "blocks of 2 MiB are far fewer than 2^53")]
    fn note_huge(&mut self, huge: Option<usize>) {
        let blocks = self.bytes / HUGE_PAGE_BYTES;
        self.huge_share = huge.map(|huge| huge as f64 / blocks as f64);
        if huge == Some(blocks) {
            self.backing = Backing::Transparent2M;
        }
    }

    /// Gives back what lies behind the first `bytes`, a whole number of pages and more than none.
    fn cut(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let behind = self.address().cast::<u8>().wrapping_add(bytes).cast();
        // SAFETY: the range is the end of this value's, which is borrowed exclusively: nobody sees it.
        let result = unsafe { rustix::mm::munmap(behind, self.bytes - bytes) };
        debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
        self.bytes = bytes;
    }

    /// Succeeds if huge pages back the whole range afterwards (madvise(2), `MADV_COLLAPSE`).
    fn collapse_range(&self, offset: usize, bytes: usize) -> Result<(), i32> {
        /// include/uapi/asm-generic/mman-common.h; libc has it for glibc targets only.
        const MADV_COLLAPSE: usize = 25;
        let address = self.base.as_ptr().wrapping_add(offset).expose_provenance();
        // SAFETY: callers give a range inside of this mapping; collapsing keeps its content.
        unsafe { syscall(libc::SYS_madvise, [address, bytes, MADV_COLLAPSE, 0, 0, 0]) }.map(drop)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this value's, nothing borrows from it any more, and nobody unmaps
        // it twice.
        let result = unsafe { rustix::mm::munmap(self.address(), self.bytes) };
        debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
    }
}

/// Where the pages of a new mapping come from.
#[derive(Clone, Copy)]
enum Source<'f> {
    Private,
    Pool,
    Shared(&'f OwnedFd),
}

/// `bytes` rounded up to a multiple of `unit`; at least one unit.
fn round_up(bytes: usize, unit: usize) -> Result<usize, OsError> {
    bytes.max(1).checked_next_multiple_of(unit).ok_or(OsError::invalid(
        "cannot map so much memory",
        "ask for less than the address space holds",
    ))
}

/// Maps at a 2 MiB boundary.
fn map_aligned(bytes: usize, source: Source<'_>) -> Result<NonNull<u8>, OsError> {
    let bytes = round_up(bytes, kernel_page_bytes())?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let what = "cannot map memory";
    let base = at_huge_boundary(bytes, access, MapFlags::PRIVATE, what, ADVICE)?;
    match source {
        Source::Shared(_) => map(base.as_ptr().cast(), bytes, source).inspect_err(|_| {
            // SAFETY: the reserved range is still this function's alone.
            let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
        }),
        Source::Private | Source::Pool => Ok(base),
    }
}

/// One mmap call; at `place`, which must then be a reserved range of that size, or anywhere.
fn map(place: *mut c_void, bytes: usize, source: Source<'_>) -> Result<NonNull<u8>, OsError> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let result = match source {
        Source::Private => {
            // SAFETY: a new range wherever the kernel finds room disturbs nobody.
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }
        }
        Source::Pool => {
            let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
            // SAFETY: as above.
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, flags) }
        }
        Source::Shared(file) => {
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: `map_aligned` gives a range that it has just reserved and nobody else knows.
            unsafe { rustix::mm::mmap(place, bytes, access, flags, file, 0) }
        }
    };
    let address = result.map_err(|errno| match source {
        Source::Pool => OsError::of(
            "cannot get huge pages from the pool",
            errno,
            "write a number to /proc/sys/vm/nr_hugepages, or use transparent huge pages",
        ),
        Source::Private | Source::Shared(_) => OsError::of("cannot map memory", errno, ADVICE),
    })?;
    // Linux gives no null mapping unless asked to.
    NonNull::new(address.cast()).ok_or(OsError::new("cannot map memory", libc::ENOMEM, ADVICE))
}

const ADVICE: &str = "ask for less memory, or raise ulimit -v";

#[cfg(test)]
mod tests;
