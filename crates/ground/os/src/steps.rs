//! Address space that is taken in steps, at the end of what was taken before: whoever may need much takes little at
//! first, and a limit (`ulimit -v`, also one that is set later) leaves the program what nobody uses.
//!
//! What grows stays where it is, so that it needs addresses behind it that nobody else takes. A [`Plot`] is where such
//! are likely to be: far below what the kernel hands out next, and below those that were made before. It takes nothing.
//! Where somebody is in the way, a step is refused, and nothing has changed.

use crate::error::OsError;
use crate::pages::kernel_page_bytes;
use crate::span::{HUGE_PAGE_BYTES, at_huge_boundary};
use crate::table::{Atomic, Zeroed, release};
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// Between a plot and what the kernel hands out next, which comes from above: as much as hardly a program maps. No
/// more, since tools that shadow memory know some ranges only (ThreadSanitizer the upper 1.5 TiB).
const GAP_BYTES: usize = 64 << 30;
/// Plots lie within so much of each other.
const PLOTS_BYTES: usize = 1 << 40;
/// Where the lowest plot of the process begins; 0 before there is one. What a plot will grow into looks free.
static LOWEST: AtomicUsize = AtomicUsize::new(0);
const WHAT: &str = "cannot take more addresses";
const ADVICE: &str = "raise ulimit -v, or use a smaller arena";

/// Addresses that are likely to stay free, for several that grow.
#[derive(Debug)]
pub struct Plot {
    /// The next address that it gives; none where there is no such place.
    at: Option<usize>,
}

impl Plot {
    /// A plot for parts of so many bytes in all, each rounded up to [`Self::rounded`].
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let page = kernel_page_bytes();
        // SAFETY: a new range wherever the kernel finds room disturbs nobody.
        let next =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), page, ProtFlags::empty(), flags) };
        let Ok(next) = next else { return Self { at: None } };
        // SAFETY: just mapped, and nobody knows of it.
        let _ = unsafe { rustix::mm::munmap(next, page) };
        let Some(top) = next.addr().checked_sub(GAP_BYTES) else { return Self { at: None } };
        let below = |end: usize| {
            let at = end.checked_sub(bytes)? / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
            let most = PLOTS_BYTES.max(bytes.saturating_add(HUGE_PAGE_BYTES));
            Some(at).filter(|at| *at > GAP_BYTES && top - at <= most)
        };
        // Where so many were made that the lowest is far away, those of the top are likely to be over.
        let next = |lowest: usize| match lowest {
            0 => below(top),
            lowest => below(lowest.min(top)).or_else(|| below(top)),
        };
        // Relaxed: a number that says nothing of other memory.
        let before = LOWEST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        Self { at: before.ok().and_then(next) }
    }

    /// How much of a plot a part of so many bytes takes.
    #[must_use]
    pub const fn rounded(bytes: usize) -> usize {
        bytes.saturating_add(HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
    }

    fn part(&mut self, bytes: usize) -> Option<usize> {
        let at = self.at?;
        self.at = at.checked_add(Self::rounded(bytes));
        self.at.and(Some(at))
    }
}

/// A range whose front is taken.
#[derive(Debug)]
pub(crate) struct Growing {
    pub(crate) base: NonNull<u8>,
    reach: usize,
    access: ProtFlags,
    /// Bytes that are mapped, whole pages of the kernel's.
    taken: AtomicUsize,
}

// SAFETY: the range belongs to the value, not to a thread; what changes in it is atomic.
unsafe impl Send for Growing {}
// SAFETY: through a shared reference only system calls are made on it.
unsafe impl Sync for Growing {}

const FLAGS: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);

impl Growing {
    /// A range that can grow to `reach` bytes, of which `first` are taken, at a 2 MiB boundary. All of it is taken
    /// where nothing is free for it to grow into.
    pub(crate) fn new(
        plot: &mut Plot,
        reach: usize,
        first: usize,
        access: ProtFlags,
    ) -> Result<Self, OsError> {
        let rounded = |bytes: usize| bytes.checked_next_multiple_of(kernel_page_bytes());
        let refused = OsError::invalid(WHAT, ADVICE);
        let reach = rounded(reach).filter(|reach| *reach > 0).ok_or(refused)?;
        let first = rounded(first.max(1)).ok_or(refused)?.min(reach);
        if let Some(at) = plot.part(reach)
            && let Ok(base) = map_at(ptr::without_provenance_mut(at), first, access)
        {
            return Ok(Self { base, reach, access, taken: AtomicUsize::new(first) });
        }
        let base = at_huge_boundary(reach, access, FLAGS, WHAT, ADVICE)?;
        Ok(Self { base, reach, access, taken: AtomicUsize::new(reach) })
    }

    pub(crate) const fn reach(&self) -> usize {
        self.reach
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Takes addresses up to so many bytes, as far as the range reaches. One thread at a time: of two, one is refused.
    pub(crate) fn widen(&self, bytes: usize) -> Result<(), OsError> {
        let taken = self.taken();
        let bytes = bytes.checked_next_multiple_of(kernel_page_bytes()).unwrap_or(self.reach);
        let bytes = bytes.min(self.reach);
        if bytes > taken {
            map_at(self.base.as_ptr().wrapping_add(taken), bytes - taken, self.access)?;
            self.taken.store(bytes, Ordering::Release);
        }
        Ok(())
    }

    /// Gives back what is taken beyond so many bytes.
    ///
    /// # Safety
    /// Nobody uses it, or ever will before it is taken again.
    pub(crate) unsafe fn narrow(&self, bytes: usize) {
        let taken = self.taken();
        let Some(bytes) = bytes.max(1).checked_next_multiple_of(kernel_page_bytes()) else {
            return;
        };
        if bytes < taken {
            self.taken.store(bytes, Ordering::Release);
            let place = self.base.as_ptr().wrapping_add(bytes);
            // SAFETY: the range is this value's, and the caller vouches that nobody uses it.
            let result = unsafe { rustix::mm::munmap(place.cast(), taken - bytes) };
            debug_assert!(result.is_ok(), "a part of a mapping can be unmapped");
        }
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        // SAFETY: the range is this value's, and nothing borrows from it any more.
        let result = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.taken()) };
        debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
    }
}

/// Maps a range there, if nobody has any of it.
fn map_at(place: *mut u8, bytes: usize, access: ProtFlags) -> Result<NonNull<u8>, OsError> {
    let flags = FLAGS | MapFlags::FIXED_NOREPLACE;
    // SAFETY: the kernel refuses where somebody has any of it, so that nobody is disturbed.
    let found = unsafe { rustix::mm::mmap_anonymous(place.cast(), bytes, access, flags) };
    let found: *mut u8 = found.map_err(|errno| OsError::of(WHAT, errno, ADVICE))?.cast();
    if found.addr() == place.addr()
        && let Some(found) = NonNull::new(found)
    {
        return Ok(found);
    }
    // A kernel before 4.17 takes the place for a hint.
    // SAFETY: just mapped, and nobody knows of it.
    let _ = unsafe { rustix::mm::munmap(found.cast(), bytes) };
    Err(OsError::of(WHAT, Errno::EXIST, ADVICE))
}

/// A slice of atomics that can become longer while others use it; what is there stays where it is. Zeroed, and present
/// page by page as it is first written.
#[derive(Debug)]
pub struct Steps<T> {
    range: Growing,
    /// Entries that there are.
    length: AtomicUsize,
    most: usize,
    entries: PhantomData<T>,
}

// SAFETY: the memory belongs to the value, as that of a `Box<[T]>` does.
unsafe impl<T: Send> Send for Steps<T> {}
// SAFETY: shared references to it give shared references to its entries only.
unsafe impl<T: Sync> Sync for Steps<T> {}

impl<T: Atomic + Zeroed> Steps<T> {
    /// None of up to `most` entries.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space left.
    pub fn new(plot: &mut Plot, most: usize) -> Result<Self, OsError> {
        let refused = OsError::invalid("cannot make so large a table", "ask for fewer entries");
        let bytes = most.max(1).checked_mul(size_of::<T>()).ok_or(refused)?;
        let range = Growing::new(plot, bytes, 1, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { range, length: AtomicUsize::new(0), most, entries: PhantomData })
    }

    /// Bytes of a plot that such a table takes.
    #[must_use]
    pub const fn plot_bytes(most: usize) -> usize {
        Plot::rounded(most.saturating_mul(size_of::<T>()))
    }

    /// Takes address space for so many entries, at most as many as it was made for. There are no more of them before
    /// [`Self::settle`]. One thread at a time.
    ///
    /// # Errors
    /// [`OsError`] where there is none; then nothing has changed.
    pub fn widen(&self, entries: usize) -> Result<(), OsError> {
        self.range.widen(entries.min(self.most).saturating_mul(size_of::<T>()))
    }

    /// There are so many entries from now on, as far as there is address space for them; never fewer than before.
    pub fn settle(&self, entries: usize) {
        let entries = entries.min(self.range.taken() / size_of::<T>()).min(self.most);
        self.length.fetch_max(entries, Ordering::Release);
    }

    /// Gives back the address space that was taken for entries that there are not. One thread at a time, and none in
    /// [`Self::widen`] or [`Self::settle`] meanwhile.
    pub fn narrow(&self) {
        // SAFETY: entries are reached through slices of the length only, which is never less than it was.
        unsafe { self.range.narrow(self.len() * size_of::<T>()) };
    }

    /// Gives the memory back to the system, while others may use it: every entry is zero from now on, and takes memory
    /// again when it is written. Nothing happens where that is refused.
    pub fn give_back(&self) {
        // SAFETY: the range is this value's, private and anonymous, and holds atomics.
        unsafe { release(self.range.base.as_ptr(), self.range.taken()) };
    }

    /// Bytes of address space.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.range.taken()
    }

    /// Entries that it can have.
    #[must_use]
    pub const fn most(&self) -> usize {
        self.most
    }
}

impl<T> Deref for Steps<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let length = self.length.load(Ordering::Acquire);
        // SAFETY: so many entries are mapped until the value is dropped, aligned, since a range begins at a 2 MiB
        // boundary, and of zero bytes, which `new` asks to be a value of `T`, or of what was written.
        unsafe { core::slice::from_raw_parts(self.range.base.as_ptr().cast(), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU8, AtomicU32};

    /// A part of a plot of so much.
    fn growing(reach: usize, first: usize) -> Growing {
        Growing::new(&mut Plot::new(Plot::rounded(reach)), reach, first, ProtFlags::READ)
            .expect("address space")
    }

    #[test]
    fn a_range_takes_what_it_was_widened_to_and_gives_back_the_rest() {
        let range = growing(1 << 34, 1);
        assert_eq!((range.reach(), range.taken()), (1 << 34, kernel_page_bytes()));
        assert!(range.base.addr().get().is_multiple_of(HUGE_PAGE_BYTES));
        range.widen(5 << 20).expect("5 MiB");
        range.widen(1).expect("it is there");
        assert_eq!(range.taken(), 5 << 20);
        let last = range.base.as_ptr().wrapping_add((5 << 20) - 1);
        // SAFETY: mapped, and read only.
        assert_eq!(unsafe { last.read() }, 0);
        // SAFETY: nobody uses it.
        unsafe { range.narrow(1 << 20) };
        assert_eq!(range.taken(), 1 << 20);
        range.widen(usize::MAX).expect("as far as it reaches");
        assert_eq!(range.taken(), 1 << 34);
    }

    #[test]
    fn ranges_of_different_plots_grow_as_far_as_they_reach() {
        let ranges: std::vec::Vec<Growing> = (0..8).map(|_| growing(16 << 20, 1)).collect();
        for bytes in [4 << 20, 8 << 20, 16 << 20] {
            for range in &ranges {
                range.widen(bytes).expect("nobody is in the way");
            }
        }
        // What is far more than all that plots lie within begins at the top again.
        let far: std::vec::Vec<Plot> = (0..40).map(|_| Plot::new(1 << 36)).collect();
        assert!(far.iter().all(|plot| plot.at.is_some()));
    }

    #[test]
    fn whoever_is_in_the_way_stays_and_nothing_has_changed() {
        let range = growing(1 << 30, 1 << 20);
        let place = range.base.as_ptr().wrapping_add(3 << 20);
        let other = map_at(place, 1 << 20, ProtFlags::READ).expect("nobody is there");
        assert!(range.widen(4 << 20).is_err_and(|error| error.errno == libc::EEXIST));
        assert_eq!(range.taken(), 1 << 20);
        range.widen(3 << 20).expect("up to there");
        assert!(range.widen((3 << 20) + 1).is_err());
        // SAFETY: mapped above, and nobody else's.
        unsafe { rustix::mm::munmap(other.as_ptr().cast(), 1 << 20) }.expect("it is mapped");
        range.widen(4 << 20).expect("it is gone");
    }

    #[test]
    fn without_a_plot_all_is_taken_at_once() {
        let range = Growing::new(&mut Plot { at: None }, 3 << 20, 1, ProtFlags::READ);
        assert_eq!(range.expect("3 MiB").taken(), 3 << 20);
        assert!(Growing::new(&mut Plot { at: None }, 0, 1, ProtFlags::READ).is_err());
        assert!(Growing::new(&mut Plot { at: None }, usize::MAX, 1, ProtFlags::READ).is_err());
    }

    #[test]
    fn parts_of_a_plot_grow_without_meeting() {
        let most = 3 << 20;
        let mut plot = Plot::new(2 * Steps::<AtomicU32>::plot_bytes(most));
        let tables = [(); 2].map(|()| Steps::<AtomicU32>::new(&mut plot, most).expect("a page"));
        for (table, value) in tables.iter().zip([1, 2]) {
            table.widen(most).expect("address space");
            table.settle(most);
            table[most - 1].store(value, Ordering::Relaxed);
        }
        assert!(tables.iter().all(|table| table.len() == most));
        assert_eq!(tables.map(|table| table[most - 1].load(Ordering::Relaxed)), [1, 2]);
    }

    #[test]
    fn entries_are_there_once_they_are_settled_and_stay() {
        let mut plot = Plot::new(Steps::<AtomicU8>::plot_bytes(1 << 30));
        let table = Steps::<AtomicU8>::new(&mut plot, 1 << 30).expect("a page");
        assert!(table.is_empty());
        table.widen(1 << 20).expect("a MiB");
        assert!(table.is_empty());
        table.settle(1000);
        table[999].store(7, Ordering::Relaxed);
        table.narrow();
        assert_eq!((table.len(), table.bytes()), (1000, kernel_page_bytes()));
        table.settle(1 << 20);
        assert_eq!(table.len(), kernel_page_bytes(), "no more than there is address space for");
        table.settle(1);
        assert_eq!(table.len(), kernel_page_bytes());
        assert_eq!(table[999].load(Ordering::Relaxed), 7);
        table.give_back();
        assert_eq!(table[999].load(Ordering::Relaxed), 0);
    }
}
