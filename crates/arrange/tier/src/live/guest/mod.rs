//! The pager inside of a program that knows nothing of it: a window of private memory of its process, from which its
//! large mappings are cut, and handlers that bring and take its pages.
//!
//! ```text
//!  a thread of the program                      a handler (isochrone-fault)
//!  touches a page that is not there ----------> is told of it, fetches the page, and others leave for it
//!  maps, unmaps, advises, protects, forks       does what changes pages (Discard, Cool, Hold, ...)
//!     changes the book, then rings the bell --> and lets the bell's page come
//! ```
//!
//! The program's system calls may touch absent pages: the kernel tells us of its own faults, or [`Guest::start`]
//! refuses. Handlers are threads of which the C library knows nothing, with descriptors of their own.

mod actor;
mod book;
mod calls;
mod extents;
mod fork;
mod ground;
mod handler;
mod orders;
pub mod record;
pub mod told;

use super::operations::errno;
pub use calls::{Ask, Whose};
pub use fork::Forking;

use core::sync::atomic::AtomicBool;
use std::sync::Mutex;

use isochrone_os::OsError;
use isochrone_os::area::{Origin, Window};
use isochrone_os::userfault::Userfault;
use isochrone_units::{PAGE_BYTES, RegionId};

use actor::Hand;
use book::Marks;
use extents::Extents;
use ground::Ground;
use record::{State, Tally};

/// Least fast memory: what handlers and neighbours of a fault take at once.
pub const FAST_BYTES_MIN: usize = 1 << 20;

/// Where pages are that are not in fast memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarKind {
    /// Compressed, in memory.
    Lz4,
    /// In a region of memory.
    Region(RegionId),
}

/// What a process is to have.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of its large mappings that may be in fast memory: [`FAST_BYTES_MIN`] or more.
    pub fast_bytes: usize,
    /// Addresses for large mappings, where there are so many; twice the fast memory at least.
    pub window_bytes: usize,
    /// Where the rest is.
    pub far: FarKind,
    /// Threads that resolve faults: 2 or more.
    pub handlers: u16,
}

/// Whether this process may be tiered, as it is now: the same that [`Guest::start`] asks for.
///
/// # Errors
/// [`OsError`] where not; its advice mends it.
pub fn may_be_tiered() -> Result<(), OsError> {
    Userfault::open_served(ground::FEATURES).map(drop)
}

/// The pager of this process. It lives as long as the process.
#[derive(Debug)]
pub struct Guest {
    ground: &'static Ground,
    calls: Mutex<Extents>,
    /// One fork at a time.
    forks: Mutex<()>,
    /// Somebody forks: new mappings go to the child, too.
    forking: AtomicBool,
    /// The process that is tiered: in a child all pages are the kernel's.
    origin: Origin,
}

impl Guest {
    /// Begins, and starts its handlers.
    ///
    /// # Errors
    /// [`OsError`] where the kernel lacks something or does not allow it; nothing has changed then.
    pub fn start(settings: &Settings, tally: Tally) -> Result<&'static Self, OsError> {
        let handlers = settings.handlers.max(2);
        let settings = Settings { handlers, ..*settings };
        let ground: &'static Ground = Box::leak(Box::new(Ground::new(&settings, tally)?));
        let hands = (0..handlers).map(|number| Hand::new(ground, number));
        let hands: Vec<Hand> = hands.collect::<Result<_, _>>()?;
        let origin = Origin::new()?;
        let started = Vec::leak(hands).iter().try_for_each(handler::start);
        handler::decide(started.is_ok().then_some(u32::from(handlers)));
        // Handlers have descriptors of their own now; the program never sees this one.
        ground.table.close_here();
        started?;
        tally.come(State::Tiered);
        let calls = Mutex::new(Extents::new(ground.pages()));
        let (forks, forking) = (Mutex::new(()), AtomicBool::new(false));
        Ok(Box::leak(Box::new(Self { ground, calls, forks, forking, origin })))
    }

    /// Whether an address lies in the window.
    #[inline]
    #[must_use]
    pub fn holds(&self, address: usize) -> bool {
        address.wrapping_sub(self.ground.base()) < self.ground.pages() * PAGE_BYTES
    }

    /// The part of a range that lies in the window, as addresses; empty where none does.
    #[must_use]
    pub fn part(&self, address: usize, bytes: usize) -> std::ops::Range<usize> {
        let (base, end) =
            (self.ground.base(), self.ground.base() + self.ground.pages() * PAGE_BYTES);
        let first = address.clamp(base, end);
        first..address.saturating_add(bytes).clamp(first, end)
    }

    /// Whether this is a child whose pages are the kernel's.
    #[inline]
    #[must_use]
    pub fn is_alone(&self) -> bool {
        !self.origin.is_here()
    }

    /// Whether the program mapped something else at an address of the window.
    #[must_use]
    pub fn is_foreign(&self, address: usize) -> bool {
        self.ground.book.of((address - self.ground.base()) / PAGE_BYTES).has(Marks::FOREIGN)
    }

    fn window(&self) -> &'static Window {
        &self.ground.window
    }
}
