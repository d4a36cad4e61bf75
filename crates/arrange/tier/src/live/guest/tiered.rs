//! The pager of a process: how it begins, and whose an address is.

use core::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use isochrone_os::OsError;
use isochrone_os::area::{Origin, Window};
use isochrone_os::thread::close_here;
use isochrone_os::userfault::Userfault;
use isochrone_units::PAGE_BYTES;

use super::actor::Hand;
use super::book::Marks;
use super::ground::{FEATURES, Ground};
use super::handler;
use super::record::{State, Tally};
use super::settings::Settings;
use crate::live::extents::Extents;

/// Whether this process may be tiered, as it is now: the same that [`Guest::start`] asks for.
///
/// # Errors
/// [`OsError`] where not; its advice mends it.
pub fn may_be_tiered() -> Result<(), OsError> {
    Userfault::open_served(FEATURES).map(drop)
}

/// The pager of this process. It lives as long as the process.
#[derive(Debug)]
pub struct Guest {
    pub(super) ground: Arc<Ground>,
    pub(super) calls: Mutex<Extents>,
    /// One fork at a time.
    pub(super) forks: Mutex<()>,
    /// Somebody forks: new mappings go to the child, too.
    pub(super) forking: AtomicBool,
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
        let settings = Settings { handlers, ..settings.clone() };
        let ground = Arc::new(Ground::new(&settings, tally)?);
        let hands = (0..handlers).map(|number| Hand::new(&ground, number));
        let hands: Vec<Hand> = hands.collect::<Result<_, _>>()?;
        let origin = Origin::new()?;
        let started = Vec::leak(hands).iter().try_for_each(handler::start);
        handler::decide(started.is_ok().then_some(u32::from(handlers)));
        // Handlers have descriptors of their own now; the program never sees these.
        ground.table.close_here();
        if let Some(number) = ground.far.descriptor() {
            close_here(number);
        }
        started?;
        tally.come(State::Tiered);
        Ok(Box::leak(Box::new(Self::over(ground, origin))))
    }

    /// Over a ground that handlers serve.
    pub(super) fn over(ground: Arc<Ground>, origin: Origin) -> Self {
        let calls = Mutex::new(Extents::new(ground.pages()));
        let (forks, forking) = (Mutex::new(()), AtomicBool::new(false));
        Self { ground, calls, forks, forking, origin }
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

    pub(super) fn window(&self) -> &Window {
        &self.ground.window
    }
}
