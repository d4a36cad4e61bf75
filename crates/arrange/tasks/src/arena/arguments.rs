//! A task's arguments: plain bytes in its slot, which only the functions of its kernel read.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// Bytes that a task's arguments may have.
pub const ARGUMENT_BYTES: usize = 64;

/// Arguments as they lie in a slot.
pub(crate) type Words = [MaybeUninit<u64>; ARGUMENT_BYTES / 8];

/// Arguments that were written for a kernel: only [`Arguments::held`] makes one.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    words: &'a Words,
}

/// The arguments' place in a slot.
#[repr(C, align(64))]
pub(crate) struct Arguments(UnsafeCell<Words>);

// SAFETY: the words are written by the worker that owns the free slot and read by the one that runs the
// task; the queue's lock, or the release of the last predecessor, is between them.
unsafe impl Sync for Arguments {}
// SAFETY: as above.
unsafe impl Send for Arguments {}

impl Default for Arguments {
    fn default() -> Self {
        Self(UnsafeCell::new([const { MaybeUninit::uninit() }; 8]))
    }
}

impl core::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("arguments")
    }
}

impl Arguments {
    /// Puts arguments of at most 64 bytes here.
    ///
    /// # Safety
    /// The caller owns the slot: no task is in it.
    #[inline]
    pub(crate) unsafe fn put<K: Copy + 'static>(&self, kernel: K) {
        const { assert!(size_of::<K>() <= size_of::<Words>() && align_of::<K>() <= 64) };
        // SAFETY: the words hold at least `size_of::<K>()` bytes at 64 bytes' alignment, as was just
        // checked; nobody else looks at them, as the caller vouches.
        unsafe { self.0.get().cast::<K>().write(kernel) }
    }

    /// The arguments, for the functions of the table that they were written for.
    ///
    /// # Safety
    /// [`Self::put`] wrote arguments of that table's kernel, and nobody writes while the result lives.
    #[inline]
    pub(crate) unsafe fn held(&self) -> Held<'_> {
        // SAFETY: nobody writes meanwhile, as the caller vouches.
        Held { words: unsafe { &*self.0.get() } }
    }
}

impl Held<'_> {
    /// The arguments as what they were. Only the functions of the table that they were written for call it.
    #[inline]
    pub(crate) fn copied<K: Copy + 'static>(&self) -> K {
        // SAFETY: a `Held` is made of arguments that were written for its table, and this is called by
        // the functions of that table, whose type of arguments is `K`.
        unsafe { self.words.as_ptr().cast::<K>().read() }
    }
}
