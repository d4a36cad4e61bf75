//! Memory for programs that ask for it by name: objects of up to 256 bytes near the core that asks, or near one that is
//! named, for any number of threads.
//!
//! It is an [`Instance`] like the process's, with an address range of its own. Each core has its magazines; who finds
//! them in use, by a thread that was taken off the core in between, goes to the bins. What it cannot place it does not
//! hand out: its caller has an allocator for the rest. It learns in slices, as the process's does, on a stack of its
//! own. It hands nothing out before a base of the atlas is recognised, and ends for good where none is.
//!
//! A child of `fork` has what was placed before, and places nothing: frames change as either side writes.

use crate::growth::slices::Need;
use crate::instance::Instance;
use crate::room::Room;
use crate::settings::{InstanceError, Settings};
use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use isochrone_alloc::{Distance, GRANULE_BYTES, Magazines, SizeClass, Slot};
use isochrone_atlas::Atlas;
use isochrone_atlas::format::FormTag;
use isochrone_os::boxed::Boxed;
use isochrone_os::clock;
use isochrone_os::process::{count_forks, forks};
use isochrone_os::table::Table;
use isochrone_units::{CoreId, Level};

/// Time for pages of which nothing is known to join together; an object waits for one.
const JOIN_NS: u64 = 20_000;
/// Objects of one core between two looks whether there is something to learn.
const LOOK_OBJECTS: u32 = 64;

/// Marks of granules; zero where no object ever began.
mod mark {
    pub(super) const HELD: u8 = 1;
    pub(super) const FREED: u8 = 2;
}

/// Why nothing more is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Over {
    /// No page was found to look as any base of the atlas says.
    UnknownBase = 1,
    /// This is a child of `fork`, and its parent made it.
    Forked = 2,
}

/// What was wrong with a pointer that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// No object ever began there.
    Pointer,
    /// The object there is free.
    Freed,
}

/// What was placed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Objects that were placed, given back or not.
    pub objects: u64,
    /// Objects that were given back.
    pub freed: u64,
    /// Bytes of the objects that were placed, as they were asked for.
    pub bytes: u64,
    /// Slots that were drawn from the pool for a core.
    pub drawn_slots: u64,
    /// Of these, slots that were near for the core.
    pub near_slots: u64,
    /// Bytes of memory for lines.
    pub arena_bytes: u64,
}

/// What one core has; alone on its lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    taken: AtomicBool,
    /// Objects until the next look.
    until_look: AtomicU32,
    objects: AtomicU64,
    bytes: AtomicU64,
    freed: AtomicU64,
    /// Made when the core first needs them, and dropped with the placer.
    magazines: UnsafeCell<ManuallyDrop<Option<Boxed<Magazines>>>>,
}

// SAFETY: `magazines` is reached through `Shard::with` only, which has it for one thread at a time.
unsafe impl Sync for Shard {}

impl Shard {
    /// Works on the magazines, if nobody else does and there is memory for them.
    #[inline]
    fn with<T>(&self, work: impl FnOnce(&mut Magazines) -> T) -> Option<T> {
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: `taken` was false and is true until the end of this function, so this is the only reference.
        let magazines = unsafe { &mut *self.magazines.get() };
        if magazines.is_none() {
            **magazines = Boxed::new(Magazines::new()).ok();
        }
        let done = magazines.as_mut().map(|magazines| work(magazines));
        self.taken.store(false, Ordering::Release);
        done
    }

    /// Counts for whoever works on the magazines: nobody else changes these.
    #[inline]
    fn count(of: &AtomicU64, more: u64) {
        of.store(of.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Whether it is time for a look.
    #[inline]
    fn is_look_due(&self) -> bool {
        let left = self.until_look.load(Ordering::Relaxed);
        self.until_look.store(left.checked_sub(1).unwrap_or(LOOK_OBJECTS), Ordering::Relaxed);
        left == 0
    }
}

/// Places objects for the threads of a program.
#[derive(Debug)]
pub struct Placer<'a> {
    instance: Instance<'a>,
    /// By the places of cores in the atlas; the last is that of cores which it does not have.
    shards: Table<Shard>,
    /// What was done without magazines.
    direct: Shard,
    room: Room,
    /// Forks before it was made.
    forks: u32,
    /// Why it is over: an [`Over`], or 0.
    over: AtomicU8,
    /// Nothing has to be recognised, or it was.
    recognised: AtomicBool,
}

impl<'a> Placer<'a> {
    /// A placer without memory; it has some when it is first asked, or from [`Self::prepare`].
    ///
    /// # Errors
    /// [`InstanceError`] where the atlas does not serve, or there is no memory.
    pub fn new(settings: &Settings<'a>) -> Result<Self, InstanceError> {
        let forks = count_forks()?;
        let instance = Instance::marked(settings)?;
        let shards = instance.atlas().cores().len() + 1;
        let learns =
            Level::ALL.iter().any(|level| form(instance.atlas(), *level) == Some(FormTag::Pattern));
        Ok(Self {
            shards: Table::made(shards, |_| Shard::default())?,
            direct: Shard::default(),
            room: Room::new(),
            forks,
            over: AtomicU8::new(0),
            recognised: AtomicBool::new(!learns),
            instance,
        })
    }

    /// Learns the memory for objects of so many bytes in all beforehand, as seen from the cores that it was made
    /// for, so that no later call has to: the share that it has learnt. It binds this thread to these cores in turn
    /// and sets its cores back, and takes `within` at most, if that is given.
    ///
    /// # Errors
    /// [`InstanceError`] where the memory cannot be had or timed.
    pub fn prepare(&self, bytes: usize, within: Option<Duration>) -> Result<f32, InstanceError> {
        if self.over().is_some() {
            return Ok(0.0);
        }
        let learnt = self.instance.prepare(bytes, within);
        self.judge();
        learnt
    }

    /// Why nothing more is placed, if so.
    #[inline]
    #[must_use]
    pub fn over(&self) -> Option<Over> {
        if self.forks != forks() {
            return Some(Over::Forked);
        }
        let over = self.over.load(Ordering::Relaxed);
        (over == Over::UnknownBase as u8).then_some(Over::UnknownBase)
    }

    /// Memory for an object of a class, of which `bytes` are asked for, near the core that runs this, or near `core`.
    /// Null where nothing is placed, or not yet, or no memory is left.
    #[inline]
    pub fn take(&self, core: Option<CoreId>, class: SizeClass, bytes: usize) -> *mut u8 {
        if self.over().is_some() {
            return ptr::null_mut();
        }
        if !self.recognised.load(Ordering::Relaxed) {
            return self.look();
        }
        let place = match core {
            Some(core) => self.instance.dense(core),
            None => self.instance.current_core(),
        };
        let shard = self.shard(place);
        let mut look = false;
        let heap = self.instance.heap();
        let found = shard.with(|magazines| {
            let slot = magazines.take(heap, place, class);
            if slot.is_some() {
                Shard::count(&shard.objects, 1);
                Shard::count(&shard.bytes, bytes as u64);
            }
            look = shard.is_look_due();
            slot
        });
        if look {
            self.learn(Need::Soon);
        }
        match found.flatten() {
            Some(slot) => self.hand_out(slot),
            None => self.take_slowly(place, class, bytes),
        }
    }

    /// Learns now and then, while nothing is recognised: null.
    #[cold]
    #[inline(never)]
    fn look(&self) -> *mut u8 {
        let shard = self.shard(self.instance.current_core());
        if shard.with(|_| shard.is_look_due()) == Some(true) {
            self.learn(Need::Soon);
        }
        ptr::null_mut()
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(&self, place: u16, class: SizeClass, bytes: usize) -> *mut u8 {
        // The heap of now each time: pages that come meanwhile may lie beyond the tables of the one before.
        let take = || self.instance.heap().take_for(place, class);
        let mut found = take();
        if found.is_none() {
            self.learn(Need::Now);
            found = take();
        }
        while found.is_none()
            && self.over().is_none()
            && self.instance.join_unknown(clock::monotonic_ns() + JOIN_NS)
        {
            found = take();
        }
        let Some(slot) = found else { return ptr::null_mut() };
        self.direct.objects.fetch_add(1, Ordering::Relaxed);
        self.direct.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.hand_out(slot)
    }

    fn shard(&self, place: u16) -> &Shard {
        &self.shards[usize::from(place).min(self.shards.len() - 1)]
    }

    #[inline]
    fn hand_out(&self, slot: Slot) -> *mut u8 {
        if let Some(mark) = self.instance.marks().get(slot.offset() / GRANULE_BYTES) {
            mark.store(mark::HELD, Ordering::Relaxed);
        }
        self.instance.address(slot)
    }

    /// Whether an address lies in its range: then it is for [`Self::give`], whether an object begins there or not.
    #[inline]
    #[must_use]
    pub fn has(&self, at: *const u8) -> bool {
        self.instance.arena.memory().offset_of(at).is_some()
    }

    /// Takes back an object, from any thread. The next allocator's business where [`Self::has`] says no.
    ///
    /// # Errors
    /// [`Wrong`] where it has no such object; nothing is freed then. Two threads that give one object back at the very
    /// same time are not told apart.
    #[inline]
    pub fn give(&self, at: *mut u8) -> Result<(), Wrong> {
        let slot = self.held(at)?;
        self.mark_of(slot).ok_or(Wrong::Pointer)?.store(mark::FREED, Ordering::Relaxed);
        if self.over().is_some() {
            // The tables are gone, or a lost thread was at them: the memory is not handed out again.
            self.direct.freed.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let (heap, place) = (self.instance.heap(), self.instance.current_core());
        let shard = self.shard(place);
        let kept = shard.with(|magazines| {
            Shard::count(&shard.freed, 1);
            magazines.put(heap, place, slot).is_ok()
        });
        if kept.is_none() {
            self.direct.freed.fetch_add(1, Ordering::Relaxed);
        }
        match kept.unwrap_or_else(|| heap.put_back(slot).is_ok()) {
            true => Ok(()),
            false => Err(Wrong::Pointer),
        }
    }

    fn mark_of(&self, slot: Slot) -> Option<&AtomicU8> {
        self.instance.marks().get(slot.offset() / GRANULE_BYTES)
    }

    /// The object that begins at an address, while the program has it.
    fn held(&self, at: *const u8) -> Result<Slot, Wrong> {
        let slot = self.instance.arena.slot_at(at).ok_or(Wrong::Pointer)?;
        match self.mark_of(slot).map(|mark| mark.load(Ordering::Relaxed)) {
            Some(mark::HELD) => Ok(slot),
            Some(mark::FREED) => Err(Wrong::Freed),
            _ => Err(Wrong::Pointer),
        }
    }

    /// How far an object that the program has is from a core, by the atlas, in cycles of its clock; `None` for any
    /// other address, and where nothing is placed any more, since frames may be others by now.
    #[must_use]
    pub fn distance(&self, at: *const u8, core: CoreId) -> Option<Distance> {
        let slot = self.held(at).ok().filter(|_| self.over().is_none())?;
        let found = self.instance.heap().distance(slot, self.instance.dense(core));
        let flat = |level| flat_cycles(self.instance.atlas(), core, level);
        Some(Distance {
            llc: found.llc.or_else(|| flat(Level::Llc)),
            dram: found.dram.or_else(|| flat(Level::Dram)),
        })
    }

    /// What was placed so far.
    #[must_use]
    pub fn placed(&self) -> Placed {
        let heap = self.instance.stats();
        let mut placed = Placed {
            drawn_slots: heap.near_slots + heap.spilled_slots,
            near_slots: heap.near_slots,
            arena_bytes: self.instance.arena_bytes() as u64,
            ..Placed::default()
        };
        for shard in self.shards.iter().chain([&self.direct]) {
            placed.objects += shard.objects.load(Ordering::Relaxed);
            placed.bytes += shard.bytes.load(Ordering::Relaxed);
            placed.freed += shard.freed.load(Ordering::Relaxed);
        }
        placed
    }

    /// Learns for a slice, if it is time for one and nobody else is at it.
    #[cold]
    #[inline(never)]
    fn learn(&self, need: Need) {
        let Some(mut inside) = self.room.enter() else { return };
        self.instance.grow(&mut inside, need);
        if !self.recognised.load(Ordering::Relaxed) {
            inside.run(|| self.judge());
        }
    }

    /// Finds out whether a base was recognised, or never will be: then it is over.
    fn judge(&self) {
        if self.recognised.load(Ordering::Relaxed) {
            return;
        }
        let over = || self.over.store(Over::UnknownBase as u8, Ordering::Relaxed);
        if self.instance.judge(over) {
            self.recognised.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Placer<'_> {
    fn drop(&mut self) {
        for shard in self.shards.iter_mut() {
            // SAFETY: nobody has a reference, since the placer is borrowed mutably, and nothing sees it after this.
            unsafe { ManuallyDrop::drop(shard.magazines.get_mut()) };
        }
    }
}

/// The form of a level's latencies, where the atlas has it.
fn form(atlas: &Atlas<'_>, level: Level) -> Option<FormTag> {
    atlas.level(level).map(|info| info.form)
}

/// What every line of a level costs a core, where all cost the same.
fn flat_cycles(atlas: &Atlas<'_>, core: CoreId, level: Level) -> Option<f32> {
    if form(atlas, level) != Some(FormTag::Flat) {
        return None;
    }
    let base = atlas.base(level, atlas.core_base(core, level)?)?;
    base.values().first().copied()
}

#[cfg(test)]
mod tests;
