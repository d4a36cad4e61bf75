//! A pool of records of one type, placed for the core that makes them: for Rust programs that
//! build linked structures and want their nodes near.
//!
//! A pool is an allocator of its own, with a mode of its own, so that pools in different modes can
//! be compared in one process. A record is reached by a [`Handle`], which any number of others may
//! hold. Nothing that a program does with handles breaks memory safety: a handle of another pool
//! is refused, and one of a record that was freed shows whatever record is there now.

use crate::beforehand::Measured;
use crate::instance::Instance;
use crate::settings::{InstanceError, Settings};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use isochrone_alloc::{Distance, Magazines, SizeClass, Slot, Survey};
use isochrone_units::CoreId;

/// A record of a pool. As large as a pointer, and so is an `Option` of it.
pub struct Handle<T> {
    slot: Slot,
    pool: NonZeroU32,
    record: PhantomData<fn() -> T>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.slot, self.pool) == (other.slot, other.pool)
    }
}

impl<T> Eq for Handle<T> {}

impl<T> core::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "slot {} of pool {}", self.slot.0, self.pool)
    }
}

/// Pools are numbered, so that a handle knows its own.
static POOLS: AtomicU32 = AtomicU32::new(1);

/// Records of one type, near the cores that made them.
///
/// Several threads may read records of one pool. Only one at a time makes and frees them; threads
/// that all do so have a pool each.
#[derive(Debug)]
pub struct Pool<'a, T> {
    instance: Instance<'a>,
    magazines: Magazines,
    number: NonZeroU32,
    live: usize,
    records: PhantomData<T>,
}

impl<'a, T> Pool<'a, T> {
    /// The size class of the records, which must be no larger than 256 bytes and have nothing to
    /// drop: a handle may outlive its record.
    const CLASS: SizeClass = {
        assert!(!core::mem::needs_drop::<T>(), "records of a pool are never dropped");
        match SizeClass::of(size_of::<T>(), align_of::<T>()) {
            Some(class) => class,
            None => panic!("a record of a pool has 256 bytes at most"),
        }
    };

    /// An empty pool. It learns its memory while it grows: see [`Self::prepare`].
    ///
    /// # Errors
    /// [`InstanceError`] where the atlas does not serve, or there is no memory.
    pub fn new(settings: &Settings<'a>) -> Result<Self, InstanceError> {
        let number = POOLS.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            instance: Instance::new(settings)?,
            magazines: Magazines::new(),
            number: NonZeroU32::new(number).ok_or(InstanceError::TooManyPools)?,
            live: 0,
            records: PhantomData,
        })
    }

    /// Learns the memory for at least `records` of them beforehand, as seen from the cores of the
    /// pool, so that no later call has to. In the oracle mode this measures every line. It takes
    /// `within` at most, if that is given; the share that it has learnt by then.
    ///
    /// # Errors
    /// [`InstanceError`] where the memory cannot be had or timed.
    pub fn prepare(
        &mut self,
        records: usize,
        within: Option<Duration>,
    ) -> Result<f32, InstanceError> {
        self.instance.prepare(records.saturating_mul(Self::CLASS.bytes()), within)
    }

    /// Puts a record near the core that runs this. `None` where the pool is full: it has no more
    /// memory than it was allowed.
    pub fn alloc(&mut self, record: T) -> Option<Handle<T>> {
        let core = self.instance.current_core();
        let slot = match self.magazines.take(self.instance.heap(), core, Self::CLASS) {
            Some(slot) => slot,
            None => self.alloc_slowly(core)?,
        };
        Some(self.write(slot, record))
    }

    #[cold]
    fn alloc_slowly(&mut self, core: u16) -> Option<Slot> {
        loop {
            let grown = self.instance.grow_now();
            let found = self.magazines.take(self.instance.heap(), core, Self::CLASS);
            if found.is_some() || !grown {
                return found;
            }
        }
    }

    fn write(&mut self, slot: Slot, record: T) -> Handle<T> {
        let place = self.instance.address(slot).cast::<T>();
        // SAFETY: the heap has just handed out the slot, which is memory of the arena, as large and
        // as aligned as the class says; nobody refers to it, since references borrow the pool.
        unsafe { place.write(record) };
        self.live += 1;
        Handle { slot, pool: self.number, record: PhantomData }
    }

    /// Where a record is.
    #[inline]
    fn place(&self, handle: Handle<T>) -> NonNull<T> {
        assert!(handle.pool == self.number, "a handle of another pool");
        let place = self.instance.address(handle.slot).cast::<T>();
        // SAFETY: the arena does not begin at 0.
        unsafe { NonNull::new_unchecked(place) }
    }

    /// A record.
    ///
    /// # Panics
    /// For a handle of another pool.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle<T>) -> &T {
        // SAFETY: handles of this pool come from `write` alone, so a `T` was written there, and all
        // that ever is written to a slot of this pool is a `T`. Whoever would change it borrows the
        // pool mutably.
        unsafe { self.place(handle).as_ref() }
    }

    /// A record, to change it.
    ///
    /// # Panics
    /// For a handle of another pool.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, handle: Handle<T>) -> &mut T {
        // SAFETY: as in `get`, and the pool is borrowed mutably.
        unsafe { self.place(handle).as_mut() }
    }

    /// A record's address, which stays the same until it is freed. Following it is the caller's to
    /// justify.
    ///
    /// # Panics
    /// For a handle of another pool.
    #[must_use]
    pub fn address(&self, handle: Handle<T>) -> NonNull<T> {
        self.place(handle)
    }

    /// Gives a record's line back. A record that was freed already stays so; telling is the
    /// business of a checked policy.
    ///
    /// # Panics
    /// For a handle of another pool, and, where the policy is checked, for one freed already.
    pub fn free(&mut self, handle: Handle<T>) {
        assert!(handle.pool == self.number, "a handle of another pool");
        let core = self.instance.current_core();
        let freed = self.magazines.put(self.instance.heap(), core, handle.slot);
        match freed {
            Ok(_) => self.live = self.live.saturating_sub(1),
            Err(misuse) => assert!(!self.instance.is_checked(), "{misuse}"),
        }
    }

    /// Moves a record to a line near another core, which is about to use it: copies it there and
    /// frees the line it had. The old handle is void. `None`, and nothing moved, where the pool is
    /// full.
    ///
    /// # Panics
    /// For a handle of another pool.
    pub fn hand_over(&mut self, handle: Handle<T>, to: CoreId) -> Option<Handle<T>>
    where
        // The old place keeps its bits, which a stale handle still shows: they must be a copy.
        T: Copy,
    {
        let record = *self.get(handle);
        let slot = self.instance.heap().take_for(self.instance.dense(to), Self::CLASS)?;
        let new = self.write(slot, record);
        self.free(handle);
        Some(new)
    }

    /// Records that were made and not freed.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether there is no record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// How far a record is from a core, as far as it is known.
    #[must_use]
    pub fn distance(&self, handle: Handle<T>, core: CoreId) -> Distance {
        self.instance.heap().distance(handle.slot, self.instance.dense(core))
    }

    /// The share of the pool's lines that are nearer to a core than a record's, `0.0..1.0`.
    #[must_use]
    pub fn rank(&self, handle: Handle<T>, core: CoreId) -> Option<f32> {
        self.instance.heap().rank(handle.slot, self.instance.dense(core))
    }

    /// The mean distance from a core of all that was taken for it, beside that of the whole pool.
    #[must_use]
    pub fn survey(&self, core: CoreId) -> Survey {
        self.instance.heap().survey(self.instance.dense(core))
    }

    /// Times lines of the pool from a core, to see how far those are that were taken for it. Takes
    /// some tenths of a second. `None` where nothing was taken.
    ///
    /// # Errors
    /// [`InstanceError`] where the core cannot be had or timed.
    pub fn measure(&self, core: CoreId) -> Result<Option<Measured>, InstanceError> {
        self.instance.measured(core)
    }

    /// The allocator behind the pool.
    #[must_use]
    pub const fn instance(&self) -> &Instance<'a> {
        &self.instance
    }
}
