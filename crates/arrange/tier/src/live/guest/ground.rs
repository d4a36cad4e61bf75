//! What all of a process's handlers go by: the window, who has which page, the far tier, and what is counted. It lives
//! as long as the process, and holds no thread.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use isochrone_os::area::{Access, Told, Window, Words};
use isochrone_os::space::Space;
use isochrone_os::userfault::{Features, Userfault};
use isochrone_os::{OsError, pages};
use isochrone_units::PAGE_BYTES;

use super::book::{Book, Marks};
use super::orders::Mailbox;
use super::patience::Patience;
use super::places::Places;
use super::record::{Tally, Word};
use super::settings::Settings;
use crate::live::far::Far;
use crate::names::Group;
use crate::pager::{BATCH_MOST, Pager, Plan, Shape};
use crate::policy::PolicyKind;
use crate::streams::Streams;

/// Pages of a window at most: what is counted of them has room in its words.
pub(super) const GROUPS_MOST: usize = u32::MAX as usize / 4;
/// Groups that leave at once.
const BATCH: u32 = 32;
/// Pages that a first touch brings where there is much room: zeros, which are dear only as faults.
const FIRST_TOUCH: u32 = 64;
/// There is much room while more than one in so many frames is free.
const ROOMY_PART: u32 = 2;
/// What is asked of the kernel.
pub(super) const FEATURES: Features = Features::MOVE.and(Features::THREAD_ID);
/// The same where mappings are the program's own, of which it may unmap, move and empty some.
pub(super) const FEATURES_TOLD: Features =
    FEATURES.and(Features::EVENT_UNMAP).and(Features::EVENT_REMAP).and(Features::EVENT_REMOVE);

/// The ground of one process.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) window: Window,
    /// The bell, and what handlers work with.
    pub(super) own: Window,
    /// Where pages of ours are freed, if the kernel tells of what is freed elsewhere.
    pub(super) bin: Option<Bin>,
    pub(super) table: Userfault,
    pub(super) places: Places,
    pub(super) book: Book,
    pub(super) far: Box<dyn Far>,
    pub(super) tally: Tally,
    pub(super) mail: Mailbox,
    pub(super) shape: Shape,
    words: Words,
    /// Behind the last page that the program ever had.
    pub(super) top: AtomicUsize,
    /// Frames beyond those of the shape.
    pub(super) lent: AtomicU32,
    /// Of these, those that are to be given back.
    pub(super) debt: AtomicU32,
    /// Whether it is worth trying to make room.
    pub(super) patience: Patience,
    /// Faults are resolved under it; who must know that those which began earlier are over takes it for a moment.
    faults: RwLock<()>,
    /// Content of pages that the kernel does not move is copied under it; permissions change under it.
    access: RwLock<()>,
    streams: Streams,
}

impl Ground {
    /// A ground with the largest window that can be had, up to the one that is wished.
    pub(super) fn new(settings: &Settings, tally: Tally) -> Result<Self, OsError> {
        if pages::kernel_page_bytes() != PAGE_BYTES {
            return Err(OsError {
                what: "pages of this kernel are longer than 4 KiB",
                errno: super::errno::EINVAL,
                advice: "run a kernel with pages of 4 KiB",
            });
        }
        let table = Userfault::open_served(FEATURES)?;
        let least = settings.fast_bytes.saturating_mul(2);
        let mut bytes = settings.window_bytes.max(least);
        loop {
            let made = Parts::new(settings, bytes);
            match made {
                Ok(parts) => return Self::of_window(table, parts, tally),
                Err(_) if bytes / 2 >= least => bytes /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Over a window of this value's own.
    fn of_window(table: Userfault, parts: Parts, tally: Tally) -> Result<Self, OsError> {
        parts.window.tell(0, parts.window.len(), Told::Small)?;
        // A child that glibc does not know of ends by SIGSEGV where it touches the window, and never reads zeros.
        parts.window.tell(0, parts.window.len(), Told::NoFork)?;
        Self::over(table, parts, tally)
    }

    /// Over parts whose window is not registered yet.
    ///
    /// # Errors
    /// [`OsError`] where the kernel refuses; the window is as it was.
    pub(super) fn over(table: Userfault, parts: Parts, tally: Tally) -> Result<Self, OsError> {
        let Parts { window, own, book, far, words, shape } = parts;
        let tells = table.was_asked(Features::EVENT_REMOVE);
        let bin = tells.then(|| Bin::new(own.len())).transpose()?;
        make_ours(&own, &table)?;
        table.register_missing(window.as_ptr().expose_provenance(), window.len())?;
        tally.set(Word::Limit, u64::from(shape.frames) * PAGE_BYTES as u64);
        let bell = own.as_ptr().expose_provenance();
        let groups = shape.groups as usize;
        let places = Places::new(&table, window.as_ptr().expose_provenance(), groups)?;
        debug_assert!(shape.workers > 1, "one serves while another one is told something");
        let ground = Self {
            window,
            own,
            bin,
            table,
            places,
            book,
            far,
            tally,
            mail: Mailbox::new(bell),
            shape,
            words,
            top: AtomicUsize::new(0),
            lent: AtomicU32::new(0),
            debt: AtomicU32::new(0),
            patience: Patience::default(),
            faults: RwLock::new(()),
            access: RwLock::new(()),
            streams: Streams::default(),
        };
        ground.pager(1).format();
        Ok(ground)
    }

    /// The pager, which fetches so many groups at once.
    pub(super) fn pager(&self, cluster: u32) -> Pager<'_> {
        let plan = Plan { batch: BATCH, mover_batch: BATCH, cluster, ..Plan::default() };
        Pager::new(self.words.as_slice(), self.shape, plan)
    }

    pub(super) fn base(&self) -> usize {
        self.window.as_ptr().addr()
    }

    /// Pages that a program can have.
    pub(super) const fn pages(&self) -> usize {
        self.shape.groups as usize
    }

    pub(super) fn address_of(&self, group: Group) -> usize {
        self.base() + group.index() * PAGE_BYTES
    }

    /// The group at an address of the area.
    pub(super) fn group_at(&self, address: usize) -> Option<Group> {
        let page = address.checked_sub(self.base())? / PAGE_BYTES;
        u32::try_from(page).ok().filter(|page| *page < self.shape.groups).map(Group)
    }

    /// Offset of a handler's own pages, of which it has [`BATCH_MOST`], behind the bell.
    pub(super) const fn bench_of(handler: u16) -> usize {
        (1 + handler as usize * BATCH_MOST as usize) * PAGE_BYTES
    }

    /// A fault is resolved as long as this lives.
    pub(super) fn resolving(&self) -> RwLockReadGuard<'_, ()> {
        self.faults.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until all faults that began before are resolved.
    pub(super) fn quiesce(&self) {
        drop(self.faults.write());
    }

    /// Permissions stay as they are as long as this lives.
    pub(super) fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.access.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Nobody copies what permissions are changed of as long as this lives.
    pub(super) fn changing(&self) -> RwLockWriteGuard<'_, ()> {
        self.access.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// How many groups to fetch for a fault, never beyond what the program has there.
    pub(super) fn cluster_of(&self, group: Group) -> u32 {
        let plain = |marks: Marks| marks;
        let here = |most: u32| {
            u32::try_from(self.book.alike(group.index(), most as usize, plain)).unwrap_or(1)
        };
        let cluster = self.streams.cluster(group, self.shape.groups, self.shape.frames, here);
        let is_new = || !self.pager(1).directory().look(group).flags().stored;
        if self.is_roomy() && is_new() { here(FIRST_TOUCH) } else { cluster }
    }

    /// Whether far more fits than there is.
    fn is_roomy(&self) -> bool {
        let free = self.pager(1).free();
        free > self.shape.frames / ROOMY_PART && self.lent.load(Ordering::Relaxed) == 0
    }

    /// Counts what is in fast memory now.
    pub(super) fn note_peak(&self) {
        let all = self.shape.frames + self.lent.load(Ordering::Relaxed);
        let held = u64::from(all.saturating_sub(self.pager(1).free())) * PAGE_BYTES as u64;
        self.tally.raise(Word::Peak, held);
        let over = held.saturating_sub(u64::from(self.shape.frames) * PAGE_BYTES as u64);
        self.tally.raise(Word::Over, over);
    }

    /// Counts what the far tier takes of its medium now. A medium is asked by a system call: not at every fault, but
    /// where something went there.
    pub(super) fn note_far(&self) {
        if let Some(used) = self.far.used_bytes() {
            self.tally.raise(Word::Far, used);
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Who unmaps what is registered may wait until somebody reads of it, and nobody reads any more.
        let _ = self.table.unregister(self.own.as_ptr().expose_provenance(), self.own.len());
    }
}

/// Registers pages that handlers work with, and lets them be used.
fn make_ours(own: &Window, table: &Userfault) -> Result<(), OsError> {
    own.tell(0, own.len(), Told::Small)?;
    own.tell(0, own.len(), Told::NoFork)?;
    table.register_missing(own.as_ptr().expose_provenance(), own.len())?;
    // SAFETY: nobody has them yet.
    unsafe { own.allow(0, own.len(), Access::BOTH) }.map_err(|errno| OsError {
        what: "cannot use a part of the window",
        errno,
        advice: "ask for less memory, or raise ulimit -v",
    })
}

/// Pages of a table of their own, of which the kernel tells nobody that they are freed. Who frees others waits until a
/// handler hears of it; so a handler that did would wait for the others, and all of them for ever where all do.
#[derive(Debug)]
pub(super) struct Bin {
    pub(super) table: Userfault,
    pub(super) pages: Window,
}

impl Bin {
    fn new(bytes: usize) -> Result<Self, OsError> {
        let (table, pages) = (Userfault::open_served(FEATURES)?, Window::reserve(bytes)?);
        make_ours(&pages, &table)?;
        Ok(Self { table, pages })
    }
}

/// What depends on the size of the window.
pub(super) struct Parts {
    window: Window,
    own: Window,
    book: Book,
    far: Box<dyn Far>,
    words: Words,
    shape: Shape,
}

impl Parts {
    fn new(settings: &Settings, bytes: usize) -> Result<Self, OsError> {
        let area = bytes.min(GROUPS_MOST * PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
        let window = Window::reserve(area)?;
        let far = settings.far.make(area)?;
        let parts = Self::around(window, settings.fast_bytes, far, settings.handlers)?;
        // What the program can have there it must be able to use, under limits of addresses and of data (ulimit).
        drop(Space::new(area, false)?);
        Ok(parts)
    }

    /// What belongs to a window of [`GROUPS_MOST`] pages at most.
    pub(super) fn around(
        window: Window,
        fast_bytes: usize,
        far: Box<dyn Far>,
        handlers: u16,
    ) -> Result<Self, OsError> {
        let pages = (window.len() / PAGE_BYTES).min(GROUPS_MOST);
        let groups = u32::try_from(pages).unwrap_or(u32::MAX);
        let frames = u32::try_from(fast_bytes / PAGE_BYTES).unwrap_or(u32::MAX).min(groups);
        let policy = PolicyKind::Fifo;
        let shape = Shape { groups, frames, spaces: 1, workers: handlers, policy };
        // The bell, and pages for each handler.
        let own = Window::reserve(Ground::bench_of(handlers))?;
        let (book, words) = (Book::new(pages)?, Words::untouched(shape.words())?);
        Ok(Self { window, own, book, far, words, shape })
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;

    use super::*;
    use crate::live::far::{FarKind, Part, Scratch};
    use crate::live::guest::FAST_BYTES_MIN;
    use crate::live::guest::record::WORDS;
    use crate::pages::Trouble;

    /// Counts how often it is asked what it takes.
    #[derive(Debug)]
    struct Asked(&'static AtomicU32);

    impl Far for Asked {
        fn name(&self) -> &'static str {
            "asked"
        }

        fn read(&self, _: &Part, _: &mut [u8], _: &mut Scratch) -> Result<(), Trouble> {
            Ok(())
        }

        fn write(&self, _: &Part, _: &[u8], _: &mut Scratch) -> Result<(), Trouble> {
            Ok(())
        }

        fn used_bytes(&self) -> Option<u64> {
            Some(u64::from(self.0.fetch_add(1, Ordering::Relaxed)))
        }
    }

    /// A small ground, where this process may be tiered.
    fn small(asked: &'static AtomicU32) -> Option<(Ground, Tally)> {
        let settings = Settings {
            fast_bytes: FAST_BYTES_MIN,
            window_bytes: 4 * FAST_BYTES_MIN,
            far: FarKind::Lz4,
            handlers: 2,
        };
        let table = Userfault::open_served(FEATURES).ok()?;
        let mut parts = Parts::new(&settings, settings.window_bytes).unwrap();
        parts.far = Box::new(Asked(asked));
        let words = (0..WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
        let tally = Tally::new(words, 1);
        Some((Ground::over(table, parts, tally).unwrap(), tally))
    }

    #[test]
    fn a_first_touch_brings_many_while_there_is_room_and_never_what_is_not_there() {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        // Where this process may not be tiered there are no faults.
        let Some((mut ground, _)) = small(&ASKED) else { return };
        ground.book.set(0..200, Marks::USED.and(Marks::of_access(3)));
        assert_eq!(ground.cluster_of(Group(5)), FIRST_TOUCH);
        assert_eq!(ground.cluster_of(Group(190)), 10, "behind it is nobody's");
        ground.lent.store(1, Ordering::Relaxed);
        assert_eq!(ground.cluster_of(Group(100)), 1, "there is less than no room");
        ground.lent.store(0, Ordering::Relaxed);
        let all = ground.shape.frames;
        ground.shape.frames = 2 * all;
        assert_eq!(ground.cluster_of(Group(130)), 1, "half of all is taken");
        ground.shape.frames = all;
        // What the far tier has is dear.
        let directory = ground.pager(1).directory();
        let (group, me) = (Group(40), crate::names::Actor(0));
        let seen = directory.look(group);
        directory.claim(group, seen, crate::directory::State::Seeking, me).unwrap();
        let stored = crate::directory::Flags { stored: true, ..Default::default() };
        assert!(!directory.release(group, crate::directory::State::Absent, stored));
        assert_eq!(ground.cluster_of(group), 1);
    }

    #[test]
    fn a_medium_is_not_asked_at_every_fault() {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        // Where this process may not be tiered there are no faults.
        let Some((ground, tally)) = small(&ASKED) else { return };
        (0..9).for_each(|_| ground.note_peak());
        assert_eq!(ASKED.load(Ordering::Relaxed), 0);
        (0..9).for_each(|_| ground.note_far());
        assert_eq!((ASKED.load(Ordering::Relaxed), tally.get(Word::Far)), (9, 8));
    }
}
