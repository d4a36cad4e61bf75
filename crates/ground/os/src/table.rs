//! Tables for code that stands below `malloc`: slices of memory straight from the kernel, zeroed,
//! present page by page as they are first used, and unmapped when dropped.
//!
//! A [`Table`] has all its entries from the start, a [`Stack`] has as many as were pushed, up to
//! its capacity. They never move, and they are not for measuring: nothing is said of the pages
//! behind them.

use crate::error::OsError;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};
use isochrone_units::{Cycles, LineAddr, PAGE_BYTES, PageAddr};
use rustix::mm::{MapFlags, ProtFlags};

const NO_ROOM: &str = "raise ulimit -v, or use a smaller arena";

/// Types whose values may be made of zero bytes.
pub trait Zeroed: sealed::Zeroed {}

impl<T: sealed::Zeroed> Zeroed for T {}

/// Types whose values may change while they are shared.
pub trait Atomic: sealed::Atomic {}

impl<T: sealed::Atomic> Atomic for T {}

mod sealed {
    /// # Safety
    /// All bytes zero is a value of the type.
    #[allow(clippy::missing_safety_doc, reason = "private; the safety section is above")]
    pub unsafe trait Zeroed {}

    /// # Safety
    /// The type is an atomic number.
    #[allow(clippy::missing_safety_doc, reason = "private; the safety section is above")]
    pub unsafe trait Atomic: Zeroed {}
}

macro_rules! zeroed {
    ($($type:ty),*) => {$(
        // SAFETY: a number, or a plain wrapper of one: zero bytes are the number 0.
        unsafe impl sealed::Zeroed for $type {}
    )*};
}

zeroed!(u8, u16, u32, u64, usize, i16, i32, f32, f64, LineAddr, PageAddr, Cycles);
zeroed!(AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize);

macro_rules! atomic {
    ($($type:ty),*) => {$(
        // SAFETY: it is one.
        unsafe impl sealed::Atomic for $type {}
    )*};
}

atomic!(AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize);

// SAFETY: an array of zero bytes is an array of values that are zero bytes.
unsafe impl<T: sealed::Zeroed, const N: usize> sealed::Zeroed for [T; N] {}

/// A range of its own, with room for entries of a type.
#[derive(Debug)]
pub(crate) struct Room<T> {
    pub(crate) first: NonNull<T>,
    bytes: usize,
}

// SAFETY: the memory belongs to the value, as that of a `Box<[T]>` does.
unsafe impl<T: Send> Send for Room<T> {}
// SAFETY: a shared room gives shared references to its entries only.
unsafe impl<T: Sync> Sync for Room<T> {}

/// A slice of memory of its own.
#[derive(Debug)]
pub struct Table<T> {
    room: Room<T>,
    length: usize,
}

impl<T> Table<T> {
    /// Entries that are zero. No page is taken before it is used, so that a table may be as large
    /// as the largest case needs.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space left.
    pub fn zeroed(length: usize) -> Result<Self, OsError>
    where
        T: Zeroed,
    {
        Ok(Self { room: Room::new(length)?, length })
    }

    /// Entries that `entry` makes, in order.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space left.
    pub fn made(length: usize, mut entry: impl FnMut(usize) -> T) -> Result<Self, OsError> {
        let mut stack = Stack::new(length)?;
        for index in 0..length {
            stack.push(entry(index));
        }
        Ok(Self { room: stack.room, length })
    }
}

impl<T: sealed::Atomic> Table<T> {
    /// Gives the memory back to the system, while others may use the table: every entry is zero from
    /// now on, and takes memory again when it is written. Nothing happens where that is refused.
    pub fn give_back(&self) {
        let Room { first, bytes } = self.room;
        // SAFETY: the range is this value's, private and anonymous, and holds atomics.
        unsafe { release(first.as_ptr().cast(), bytes) };
    }
}

/// Gives memory back to the system, where that is not refused: it reads as zeros afterwards.
///
/// # Safety
/// The range is the caller's, mapped privately and of no file, and holds atomics that may be zero: of these there are
/// no other than shared references to be surprised.
pub(crate) unsafe fn release(first: *mut u8, bytes: usize) {
    // SAFETY: the caller vouches for it.
    let _ = unsafe { rustix::mm::madvise(first.cast(), bytes, rustix::mm::Advice::LinuxDontNeed) };
}

impl<T: Zeroed> Table<T> {
    /// Makes it longer, perhaps elsewhere, with entries of zero behind those that there are. Nothing is copied.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space left; then nothing has changed.
    pub fn lengthen(&mut self, length: usize) -> Result<(), OsError> {
        if length > self.length {
            self.room.lengthen(length)?;
            self.length = length;
        }
        Ok(())
    }
}

impl<T> Room<T> {
    /// Bytes of room for `length` entries: whole pages.
    fn bytes_for(length: usize) -> Result<usize, OsError> {
        const { assert!(align_of::<T>() <= PAGE_BYTES && size_of::<T>() > 0) };
        const TOO_LARGE: OsError =
            OsError::invalid("cannot make so large a table", "ask for fewer entries");
        let bytes = length.max(1).checked_mul(size_of::<T>()).ok_or(TOO_LARGE)?;
        bytes.checked_next_multiple_of(PAGE_BYTES).ok_or(TOO_LARGE)
    }

    /// Makes room for more entries, whose bytes are zero as far as nobody wrote behind the last.
    fn lengthen(&mut self, length: usize) -> Result<(), OsError> {
        let bytes = Self::bytes_for(length)?;
        if bytes > self.bytes {
            let flags = rustix::mm::MremapFlags::MAYMOVE;
            let first = self.first.as_ptr().cast();
            // SAFETY: the range is this value's, which is borrowed mutably: nobody knows where it is. What is added is
            // zero, as it is private and anonymous.
            let moved = unsafe { rustix::mm::mremap(first, self.bytes, bytes, flags) };
            let moved = moved.map_err(|errno| OsError::of("cannot map a table", errno, NO_ROOM))?;
            let moved = NonNull::new(moved.cast::<T>());
            self.first = moved.ok_or(OsError::new("cannot map a table", libc::ENOMEM, NO_ROOM))?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Maps room for `length` entries, all bytes zero.
    pub(crate) fn new(length: usize) -> Result<Self, OsError> {
        let bytes = Self::bytes_for(length)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new range wherever the kernel finds room disturbs nobody.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, flags) };
        let start = start.map_err(|errno| OsError::of("cannot map a table", errno, NO_ROOM))?;
        let first = NonNull::new(start.cast::<T>());
        let first = first.ok_or(OsError::new("cannot map a table", libc::ENOMEM, NO_ROOM))?;
        Ok(Self { first, bytes })
    }
}

/// Entries that are pushed one by one, up to a capacity.
#[derive(Debug)]
pub struct Stack<T> {
    room: Room<T>,
    length: usize,
    capacity: usize,
}

impl<T> Stack<T> {
    /// An empty one; memory is taken as it fills.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space left.
    pub fn new(capacity: usize) -> Result<Self, OsError> {
        const { assert!(!core::mem::needs_drop::<T>(), "a stack drops none of its entries") };
        Ok(Self { room: Room::new(capacity)?, length: 0, capacity })
    }

    /// Appends an entry; false, and nothing is appended, if it is full.
    pub fn push(&mut self, entry: T) -> bool {
        if self.length == self.capacity {
            return false;
        }
        let slot = self.room.first.as_ptr().wrapping_add(self.length);
        // SAFETY: the length is below the capacity, so the slot lies in the range of this value,
        // which is aligned for `T` and borrowed mutably.
        unsafe { slot.write(entry) };
        self.length += 1;
        true
    }

    /// Forgets all entries beyond the first `length`.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Whether no entry fits any more.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.length == self.capacity
    }
}

impl<T> Deref for Stack<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `length` entries from `first` were written and are mapped while `self` lives.
        unsafe { core::slice::from_raw_parts(self.room.first.as_ptr(), self.length) }
    }
}

impl<T> DerefMut for Stack<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the stack is borrowed mutably, and nobody else has the memory.
        unsafe { core::slice::from_raw_parts_mut(self.room.first.as_ptr(), self.length) }
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `length` entries from `first` are mapped for as long as `self` lives, aligned,
        // and were zeroed (a value of `T`: see `zeroed`) or written (see `made`).
        unsafe { core::slice::from_raw_parts(self.room.first.as_ptr(), self.length) }
    }
}

impl<T> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the table is borrowed mutably, and nobody else has the memory.
        unsafe { core::slice::from_raw_parts_mut(self.room.first.as_ptr(), self.length) }
    }
}

impl<T> Drop for Room<T> {
    fn drop(&mut self) {
        // SAFETY: the range is this value's, and nothing borrows from it any more.
        let result = unsafe { rustix::mm::munmap(self.first.as_ptr().cast(), self.bytes) };
        debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    #[test]
    fn zeros_are_there_and_what_is_written_stays() {
        let mut table = Table::<u32>::zeroed(10_000).expect("40 kB");
        assert_eq!((table.len(), table.iter().sum::<u32>()), (10_000, 0));
        for (slot, value) in table.iter_mut().zip(0_u32..) {
            *slot = value;
        }
        assert!(table.iter().copied().eq(0..10_000));
        let none = Table::<u64>::zeroed(0).expect("an empty one is still a table");
        assert!(none.is_empty());
    }

    #[test]
    fn atomics_are_shared_between_threads() {
        let table = Table::<AtomicU64>::zeroed(64).expect("a page");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| table.iter().for_each(|w| _ = w.fetch_add(1, Ordering::Relaxed)));
            }
        });
        assert!(table.iter().all(|word| word.load(Ordering::Relaxed) == 4));
    }

    #[test]
    fn what_was_given_back_is_zero_and_can_be_written_again() {
        let table = Table::<AtomicU32>::zeroed(10_000).expect("40 kB");
        table.iter().for_each(|word| word.store(7, Ordering::Relaxed));
        table.give_back();
        assert!(table.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        table[9_999].store(8, Ordering::Relaxed);
        assert_eq!(table[9_999].load(Ordering::Relaxed), 8);
    }

    #[test]
    fn a_longer_table_has_what_it_had_and_zeros_behind() {
        let mut table = Table::<u32>::zeroed(10).expect("a page");
        table.iter_mut().for_each(|entry| *entry = 7);
        for length in [5, 20, 1 << 20, 1 << 22] {
            table.lengthen(length).expect("16 MB");
            assert_eq!(table.len(), length.max(10));
            assert!(table[..10].iter().all(|entry| *entry == 7));
            assert!(table[10..].iter().all(|entry| *entry == 0));
        }
        assert!(table.lengthen(usize::MAX / 4).is_err());
        assert_eq!((table.len(), table[9]), (1 << 22, 7));
    }

    #[test]
    fn made_entries_are_what_they_were_made_of() {
        let table = Table::made(1000, |index| (index, [index; 3])).expect("32 kB");
        assert!(table.iter().enumerate().all(|(i, entry)| *entry == (i, [i; 3])));
    }

    #[test]
    fn a_stack_holds_what_was_pushed_and_no_more_than_fits() {
        let mut stack = Stack::new(3).expect("a page");
        assert!((0..3_u64).all(|value| stack.push(value)) && !stack.push(9));
        assert!(stack.is_full());
        stack.swap(0, 2);
        assert_eq!(&*stack, [2, 1, 0]);
        stack.truncate(1);
        stack.truncate(5);
        assert_eq!((&*stack, stack.is_full()), (&[2][..], false));
    }

    #[test]
    fn a_table_larger_than_any_address_space_is_refused() {
        assert!(Table::<u64>::zeroed(usize::MAX / 8).is_err());
        assert!(Table::<u64>::zeroed(usize::MAX / 4).is_err());
    }

    #[test]
    fn a_large_table_takes_no_memory_before_it_is_used() {
        // 64 GiB: more than most machines that run this have.
        let mut table = Table::<u64>::zeroed(8 << 30).expect("address space");
        let last = table.len() - 1;
        table[last] = 7;
        assert_eq!((table[last], table[last - 1]), (7, 0));
    }
}
