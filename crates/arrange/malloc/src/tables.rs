//! The tables of one allocator: for as many pages as it has address space for, and longer in steps.
//!
//! A heap over them is a value of slices. When the tables become longer another one is made, and the older ones stay:
//! whoever is at work with one finds less, never anything else. A thread that was handed something of the new part sees
//! a heap that has it, since that was published before.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use isochrone_alloc::{Bins, CoreTable, GRANULE_BYTES, Heap, Policy, Shared, Tables};
use isochrone_atlas::Atlas;
use isochrone_os::OsError;
use isochrone_os::steps::{Plot, Steps};
use isochrone_os::table::Table;
use isochrone_units::{LINES_PER_PAGE, PAGE_BYTES};

/// Granules of a page.
const GRANULES: usize = PAGE_BYTES / GRANULE_BYTES;
/// The least step, pages: address space is given back by whole huge pages.
const STEP_PAGES: usize = 1024;
/// A step is one part of so many of what is there: what a program is left without is little against what it uses.
const STEP_PARTS: usize = 4;
/// Steps from the least to the largest arena (64 GiB), and as many again for those that were made smaller.
const STEPS_MOST: usize = 96;

/// What of a page the tables hold, beside what every allocator has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Ranks of lines, for an oracle.
    pub(crate) ranks: bool,
    /// What the program has, by granule: of pointers nothing else says it.
    pub(crate) marks: bool,
}

/// A heap over the tables as they were at some time.
#[derive(Debug)]
struct View(UnsafeCell<MaybeUninit<Heap<'static>>>);

// SAFETY: it is written once, by who makes tables longer, before anybody is told where it is.
unsafe impl Sync for View {}

/// What the heap borrows, and the heap.
#[derive(Debug)]
pub(crate) struct Owned {
    pages: Steps<AtomicU64>,
    next: Steps<AtomicU32>,
    masks: Steps<AtomicU8>,
    owners: Steps<AtomicU8>,
    ranks: Steps<AtomicU8>,
    marks: Steps<AtomicU8>,
    cores: Table<CoreTable>,
    shared: Table<Shared>,
    bins: Table<Bins>,
    policy: Policy,
    views: Table<View>,
    /// Views that were made.
    made: AtomicUsize,
    newest: AtomicPtr<Heap<'static>>,
}

impl Owned {
    /// Bytes of a plot that tables for an arena of so many pages take.
    pub(crate) fn plot_bytes(pages_max: usize, kept: Kept) -> usize {
        let Most { lines, ranks, granules } = Most::of(pages_max, kept);
        [
            Steps::<AtomicU64>::plot_bytes(pages_max),
            Steps::<AtomicU32>::plot_bytes(lines),
            2 * Steps::<AtomicU8>::plot_bytes(lines),
            Steps::<AtomicU8>::plot_bytes(ranks.max(1)),
            Steps::<AtomicU8>::plot_bytes(granules.max(1)),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// Tables of an arena that has no page yet.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space.
    pub(crate) fn new(
        plot: &mut Plot,
        atlas: &Atlas<'_>,
        pages_max: usize,
        kept: Kept,
        policy: Policy,
    ) -> Result<Self, OsError> {
        let Most { lines, ranks, granules } = Most::of(pages_max, kept);
        let bins = Bins::from_atlas(atlas);
        let tables = Self {
            pages: Steps::new(plot, pages_max)?,
            next: Steps::new(plot, lines)?,
            masks: Steps::new(plot, lines)?,
            owners: Steps::new(plot, lines)?,
            ranks: Steps::new(plot, ranks)?,
            marks: Steps::new(plot, granules)?,
            cores: Table::made(atlas.cores().len(), |_| CoreTable::default())?,
            shared: Table::made(1, |_| Shared::default())?,
            bins: Table::made(1, |_| bins.clone())?,
            policy,
            views: Table::made(STEPS_MOST, |_| View(UnsafeCell::new(MaybeUninit::uninit())))?,
            made: AtomicUsize::new(0),
            newest: AtomicPtr::new(ptr::null_mut()),
        };
        tables.make_view();
        Ok(tables)
    }

    /// The heap over all that is there.
    #[inline]
    pub(crate) fn heap(&self) -> &Heap<'static> {
        // SAFETY: the first was made in `new`; each was written before it was published, and lies in a table of this
        // value that does not move.
        unsafe { &*self.newest.load(Ordering::Acquire) }
    }

    /// What the program has, by granule.
    #[inline]
    pub(crate) fn marks(&self) -> &[AtomicU8] {
        &self.marks
    }

    /// Pages that there are tables for.
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// How many pages there are tables for after the next steps to try: a large one, and the least.
    pub(crate) fn next_steps(&self) -> [usize; 2] {
        let (pages, most) = (self.pages(), self.pages.most());
        let large = (pages / STEP_PARTS).next_multiple_of(STEP_PAGES);
        [large.max(STEP_PAGES), STEP_PAGES].map(|step| pages.saturating_add(step).min(most))
    }

    /// Takes address space for tables of so many pages. One thread at a time.
    ///
    /// # Errors
    /// [`OsError`] where there is none; then it is for the caller to call [`Self::narrow`].
    pub(crate) fn widen(&self, pages: usize) -> Result<(), OsError> {
        let full = OsError {
            what: "cannot take more addresses",
            errno: libc::ENOMEM,
            advice: "start the program anew with a larger ulimit -v",
        };
        if self.made.load(Ordering::Relaxed) == self.views.len() {
            return Err(full);
        }
        let lines = pages * LINES_PER_PAGE;
        self.pages.widen(pages)?;
        self.next.widen(lines)?;
        self.masks.widen(lines)?;
        self.owners.widen(lines)?;
        self.ranks.widen(lines)?;
        self.marks.widen(pages * GRANULES)
    }

    /// Gives back what was taken and not settled. One thread at a time.
    pub(crate) fn narrow(&self) {
        self.pages.narrow();
        self.next.narrow();
        self.masks.narrow();
        self.owners.narrow();
        self.ranks.narrow();
        self.marks.narrow();
    }

    /// There are tables for so many pages from now on, all of which were widened. One thread at a time.
    pub(crate) fn settle(&self, pages: usize) {
        let lines = pages * LINES_PER_PAGE;
        self.next.settle(lines);
        self.masks.settle(lines);
        self.owners.settle(lines);
        self.ranks.settle(lines);
        self.marks.settle(pages * GRANULES);
        self.pages.settle(pages);
        self.make_view();
    }

    /// A heap over the tables as they are now.
    fn make_view(&self) {
        let at = self.made.load(Ordering::Relaxed);
        let Some(view) = self.views.get(at) else { return };
        // SAFETY: the heap ends with this value, in a table of which it lies, and what it borrows are ranges and tables
        // of this value, which stay where they are when it is moved.
        let lasting: &'static Self = unsafe { &*ptr::from_ref(self) };
        let tables = Tables {
            pages: &lasting.pages,
            next: &lasting.next,
            masks: &lasting.masks,
            owners: &lasting.owners,
            ranks: &lasting.ranks,
            cores: &lasting.cores,
            shared: &lasting.shared[0],
        };
        let heap = Heap::new(tables, &lasting.bins[0], self.policy);
        // SAFETY: nobody was told of this view yet, and only one thread makes views at a time.
        let place = unsafe { &mut *view.0.get() };
        let place: *mut Heap<'static> = place.write(heap);
        self.made.store(at + 1, Ordering::Relaxed);
        // Release: whoever finds it finds what is written there, and the longer tables.
        self.newest.store(place, Ordering::Release);
    }

    /// Bytes of address space.
    pub(crate) fn bytes(&self) -> u64 {
        let fixed = size_of_val(&*self.cores)
            + size_of_val(&*self.shared)
            + size_of_val(&*self.bins)
            + size_of_val(&*self.views);
        (fixed + self.pages.bytes() + self.marks.bytes() + self.given_bytes()) as u64
    }

    /// What is left of them after [`Self::give_back`].
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.bytes().saturating_sub(self.given_bytes() as u64)
    }

    fn given_bytes(&self) -> usize {
        let bytes = [&self.masks, &self.owners, &self.ranks].map(Steps::bytes);
        self.next.bytes() + bytes.iter().sum::<usize>()
    }

    /// Gives back what only who places needs, however many threads are at it: links, masks, owners
    /// and ranks of zero are those of lines that nobody finds. Classes of pages stay.
    pub(crate) fn give_back(&self) {
        self.next.give_back();
        self.masks.give_back();
        self.owners.give_back();
        self.ranks.give_back();
    }
}

/// The most entries of tables.
struct Most {
    lines: usize,
    ranks: usize,
    granules: usize,
}

impl Most {
    const fn of(pages_max: usize, kept: Kept) -> Self {
        let lines = pages_max * LINES_PER_PAGE;
        let granules = if kept.marks { pages_max * GRANULES } else { 0 };
        Self { lines, ranks: if kept.ranks { lines } else { 0 }, granules }
    }
}
