//! A table of entries that all workers share: on the heap for threads and for simulated machines, or
//! in memory that several processes have mapped.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use std::any::Any;
use std::sync::Arc;

/// What memory of zeroes is a valid value of. Entries of tables are atomics, and start as zeroes.
///
/// # Safety
/// All bytes zero must be a valid value of the type, and it must not need to be dropped.
pub(crate) unsafe trait Zeroed: Default + Sync {}

// SAFETY: zero is a valid number, and numbers are not dropped.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for crate::sync::AtomicU32 {}
// SAFETY: as above.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for crate::sync::AtomicU64 {}
// SAFETY: as above.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for crate::sync::AtomicUsize {}
// SAFETY: never taken from mapped memory under loom, where no memory is mapped.
#[cfg(all(loom, test))]
unsafe impl<T: Default + Sync> Zeroed for T {}

/// Entries, and what keeps them alive.
pub(crate) struct Table<T> {
    entries: NonNull<[T]>,
    /// A box of the entries, or the mapping they lie in.
    _keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a table gives shared references only, to entries that are `Sync`; what keeps them alive may
// be dropped by any thread.
unsafe impl<T: Zeroed> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed> Sync for Table<T> {}

impl<T: Zeroed + Send + 'static> Table<T> {
    /// `count` entries on the heap.
    pub(crate) fn heap(count: usize) -> Self {
        let all: Arc<Box<[T]>> = Arc::new((0..count).map(|_| T::default()).collect());
        Self { entries: NonNull::from(&**all), _keep: all }
    }
}

impl<T: Zeroed + Send + 'static> Table<T> {
    /// `count` entries from `first` on, in memory that `keep` keeps.
    ///
    /// # Safety
    /// The memory holds so many entries, aligned for them; it is zeroes, and nobody else's, and valid while
    /// `keep` lives.
    pub(crate) unsafe fn mapped(
        first: NonNull<T>,
        count: usize,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self { entries: NonNull::slice_from_raw_parts(first, count), _keep: keep }
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the constructors saw to it that the entries are valid while `_keep` lives, which is
        // as long as this value; entries change by atomics and guarded cells only.
        unsafe { self.entries.as_ref() }
    }
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table of {}", self.entries.len())
    }
}
