//! One allocator: an arena, the heap over it, and what learns its pages. The process has one, and
//! every pool has its own; they share nothing.

use crate::counters::Counters;
use crate::growth::Growth;
use crate::process::{ARENA, PROCESS};
use crate::report::{LIVE_CORES, Lines, Word};
use crate::settings::{InstanceError, Settings};
use crate::tables::{Kept, Owned};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use isochrone_alloc::live::Arena;
use isochrone_alloc::{DistanceSum, Heap, Slot, Stats, Survey};
use isochrone_atlas::Atlas;
use isochrone_os::OsError;
use isochrone_os::boxed::Boxed;
use isochrone_os::reserve::{Step, Stride};
use isochrone_os::rseq::CoreWord;
use isochrone_os::steps::Plot;
use isochrone_os::table::Table;
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, PAGE_BYTES};

pub(crate) mod process;

/// Numbers of cores that Linux can have (arch/x86/Kconfig, `NR_CPUS_RANGE_END`).
const CORE_NUMBERS: usize = 8192;
/// Slots are numbered in 32 bits, 16 bytes each.
const ARENA_BYTES_LARGEST: u64 = 64 << 30;
/// Whom an allocator serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// All of the process, by pointers.
    Process,
    /// Who has pointers of it.
    Pointers,
    /// Who has handles of it: these say what is live.
    Handles,
}

/// An allocator.
///
/// Parts borrow from parts below them, which do not move and are dropped later; none of these
/// references leaves the value.
#[derive(Debug)]
pub struct Instance<'a> {
    /// Borrows the arena, and the atlas's bytes.
    pub(crate) growth: Growth,
    core_word: CoreWord,
    /// Each core's place in the atlas, plus one; 0 for cores that it does not have.
    places: Table<u16>,
    pub(crate) arena: Boxed<Arena>,
    /// With the heap.
    tables: Owned,
    atlas: Atlas<'a>,
    /// Cores that it was made for.
    cores: Table<CoreId>,
    /// Whether it is the process's: then it counts.
    is_process: bool,
    /// Draws lines of the pool.
    draws: AtomicU64,
}

impl<'a> Instance<'a> {
    /// An allocator without memory.
    ///
    /// # Errors
    /// [`InstanceError`] where the atlas does not serve, or there is no address space.
    pub fn new(settings: &Settings<'a>) -> Result<Self, InstanceError> {
        Self::open(settings, Served::Handles)
    }

    /// The same with marks of what the program has, by granule: [`Self::marks`].
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn marked(settings: &Settings<'a>) -> Result<Self, InstanceError> {
        Self::open(settings, Served::Pointers)
    }

    fn open(settings: &Settings<'a>, served: Served) -> Result<Self, InstanceError> {
        // With its sum: who named the file has checked it, but it may have been changed since.
        let atlas = Atlas::open(settings.atlas)?;
        if atlas.cores().len() == 0 {
            return Err(InstanceError::Empty);
        }
        let bytes = settings.arena_bytes_max.min(ARENA_BYTES_LARGEST);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let kept =
            Kept { ranks: settings.policy.mode.is_oracle(), marks: served != Served::Handles };
        let plot_bytes = Owned::plot_bytes(bytes.div_ceil(PAGE_BYTES), kept);
        let mut plot = Plot::new(Plot::rounded(bytes).saturating_add(plot_bytes));
        let arena = Boxed::new(Arena::within(&mut plot, bytes, settings.huge_pages)?)?;
        let tables = Owned::new(&mut plot, &atlas, arena.pages_max(), kept, settings.policy)?;
        let mut places = Table::zeroed(CORE_NUMBERS)?;
        for (place, core) in (1_u16..).zip(atlas.cores()) {
            if let Some(entry) = places.get_mut(usize::from(core.0)) {
                *entry = place;
            }
        }
        // SAFETY: both become fields of one value, the growth before the arena, in its box.
        let lasting_arena = unsafe { arena.lasting() };
        // SAFETY: the growth becomes part of a value that does not outlive 'a.
        let lasting_atlas: Atlas<'static> =
            unsafe { core::mem::transmute::<Atlas<'a>, Atlas<'static>>(atlas) };
        let growth =
            Growth::new(lasting_atlas, lasting_arena, settings, served == Served::Process)?;
        Ok(Self {
            growth,
            core_word: CoreWord::find(),
            places,
            arena,
            tables,
            atlas,
            cores: Table::made(settings.cores.len(), |place| settings.cores[place])?,
            is_process: served == Served::Process,
            draws: AtomicU64::new(0),
        })
    }

    /// This is a child of `fork`: what the arena has is from the parent.
    pub(crate) fn forked(&self, counters: &Counters, start_bytes: u64) {
        self.heap().inherit(self.arena.pages());
        self.growth.forked(start_bytes);
        counters.set(Word::TableBytes, self.tables.bytes());
        counters.set(Word::ClockHz, whole(self.atlas.clock_hz()));
        counters.set(Word::ArenaBytes, self.arena_bytes() as u64);
        counters.set(Word::InheritedBytes, self.arena_bytes() as u64);
        counters.set(Word::AssignedBytes, self.heap().stats().assigned_bytes);
    }

    /// Nothing is placed any more: the tables that this takes are given back. What the program has
    /// of the arena stays its own.
    pub(crate) fn give_tables_back(&self) {
        self.tables.give_back();
        self.counters().inspect(|counters| {
            counters.set(Word::TableBytes, self.tables.kept_bytes());
        });
    }

    /// Takes the address space for more pages, and for their tables. All of it is given back where some is refused, and
    /// less is tried. One thread at a time.
    ///
    /// # Errors
    /// [`OsError`] where there is none.
    fn take_step(&self) -> Result<(), OsError> {
        let [large, least] = self.tables.next_steps();
        let widen = |pages: usize| {
            let widened = self.tables.widen(pages);
            let widened = widened.and_then(|()| self.arena.memory().widen(pages * PAGE_BYTES));
            if widened.is_err() {
                self.tables.narrow();
                self.arena.memory().narrow();
            }
            widened.map(|()| pages)
        };
        self.tables.settle(widen(large).or_else(|_| widen(least))?);
        self.counters().inspect(|counters| counters.set(Word::TableBytes, self.tables.bytes()));
        if self.is_process && PROCESS.has_placed() {
            self.show();
        }
        Ok(())
    }

    /// Pointers of what there are tables for are known; one thread at a time.
    fn show(&self) {
        // SAFETY: the process's instance is never dropped, and nobody else's is shown.
        let marks: &'static [AtomicU8] = unsafe { &*core::ptr::from_ref(self.marks()) };
        ARENA.publish(self.arena.memory().as_ptr(), marks);
    }

    /// Lets the arena grow; one thread at a time. `None` where it is as large as it may be.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory or address space; then nothing has changed.
    pub(crate) fn grow_arena(&self, stride: Stride) -> Result<Option<Step>, OsError> {
        if self.arena.pages() >= self.tables.pages() && self.arena.pages() < self.arena.pages_max()
        {
            self.take_step()?;
        }
        self.arena.grow(stride)
    }

    /// What the program has, by granule; nothing for a pool, whose handles say it.
    #[inline]
    pub(crate) fn marks(&self) -> &[AtomicU8] {
        self.tables.marks()
    }

    /// Where it counts; nowhere for a pool's.
    pub(crate) fn counters(&self) -> Option<&'static Counters> {
        self.is_process.then(|| PROCESS.counters())
    }

    pub(crate) const fn is_process(&self) -> bool {
        self.is_process
    }

    pub(crate) const fn atlas(&self) -> &Atlas<'a> {
        &self.atlas
    }

    /// The cores that it was made for, or else those of the atlas.
    pub(crate) fn users(&self) -> impl Iterator<Item = CoreId> + '_ {
        let all = self.atlas.cores().filter(|_| self.cores.is_empty());
        self.cores.iter().copied().chain(all)
    }

    /// The heap: who has which slot.
    #[inline]
    pub(crate) fn heap(&self) -> &Heap<'static> {
        self.tables.heap()
    }

    /// Whether it also looks that no slot is free and in use at once.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.heap().policy().checked
    }

    /// Where the kernel says on which core a thread runs.
    pub(crate) const fn core_word(&self) -> CoreWord {
        self.core_word
    }

    /// The place in the atlas of the core that runs this thread.
    #[inline]
    pub(crate) fn current_core(&self) -> u16 {
        self.dense(self.core_word.core())
    }

    /// A core's place in the atlas; one that no table has for a core that the atlas does not have.
    #[inline]
    pub(crate) fn dense(&self, core: CoreId) -> u16 {
        let place = self.places.get(usize::from(core.0)).copied().unwrap_or(0);
        place.wrapping_sub(1)
    }

    /// Where a slot begins.
    #[inline]
    pub(crate) fn address(&self, slot: Slot) -> *mut u8 {
        self.arena.address_of(slot)
    }

    /// What its heap has done.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.heap().stats()
    }

    /// Bytes of lines that are memory now.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena.pages() * PAGE_BYTES
    }

    /// Says what is live for which core. Of a large arena some pages stand for all: the walk is to
    /// take some milliseconds at most.
    pub(crate) fn note_live(&self, counters: &Counters) {
        const PAGES: usize = 1 << 14;
        let pages = u32::try_from(self.arena.pages()).unwrap_or(u32::MAX);
        let every = u32::try_from(self.arena.pages() / PAGES + 1).unwrap_or(u32::MAX);
        let mut surveys = [Survey::default(); LIVE_CORES];
        self.heap().survey_owners(pages, every, &mut surveys);
        let found = self.atlas().cores().zip(&surveys).filter(|(_, survey)| survey.taken_bytes > 0);
        for (place, (core, survey)) in found.enumerate() {
            counters.live(place, core, survey);
        }
    }

    /// Adds a line drawn evenly from the pages in use, so that a report can say what lines have
    /// that nobody chose.
    pub(crate) fn sample_pool(&self, core: u16, counters: &Counters) {
        let pages = self.arena.pages() as u64;
        if pages == 0 {
            return;
        }
        // The fractional parts of multiples of the golden ratio spread evenly (Weyl, 1916).
        let draw = self.draws.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let line = (u128::from(draw) * u128::from(pages * LINES_PER_PAGE as u64)) >> 64;
        let Ok(line) = u32::try_from(line) else { return };
        let slot = Slot(line * 4);
        let Some(class) = self.heap().class_of(slot) else { return };
        let slot = class.slot_over(slot);
        let mut sum = DistanceSum::default();
        sum.add(self.heap().distance(slot, core));
        for level in Level::ALL {
            counters.distances(Lines::Pool, level, &sum, &DistanceSum::default());
        }
    }
}

/// A rate in whole cycles.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
fn whole(hz: f64) -> u64 {
    hz as u64
}
