//! What pages there are and what was found of them: from the arena and the atlas on one side, to
//! whoever hands memory out on the other.
//!
//! It only keeps book: nothing is timed here, and nothing is decided but whether a page has news.

use super::answers::{Event, Stats};
use super::notes::{Notes, Queue};
use super::number::index;
use isochrone_os::OsError;
use isochrone_units::{Level, PageAddr};

/// In an entry of the events: the page was given another frame.
const REPLACED: u32 = 1;

/// Notes on pages, what is still to be told of them, and how many there were.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) notes: Notes,
    events: Queue,
    pub(super) stats: Stats,
}

impl Ledger {
    pub(super) fn new(pages_max: usize) -> Result<Self, OsError> {
        Ok(Self {
            notes: Notes::new(pages_max)?,
            events: Queue::new(2 * pages_max)?,
            stats: Stats::default(),
        })
    }

    /// Whether there is an event to be taken.
    pub(super) const fn has_events(&self) -> bool {
        self.events.len() > 0
    }

    /// The next page that is ready, or was given another frame.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        let entry = self.events.pop()?;
        let (of, kind) = (entry / 2, entry % 2);
        let address = PageAddr(u64::from(of));
        Some(match kind {
            REPLACED => Event::Replaced(address),
            _ => {
                self.notes.set_told(of, true);
                Event::Ready(address, self.notes.confirmed(of))
            }
        })
    }

    /// A page's code at a level was confirmed, or that it has none.
    pub(super) fn confirm(&mut self, level: Level, of: u32) {
        let decoded = self.notes.is_known(level, of);
        self.notes.confirm(level, of);
        self.stats.confirmed += u64::from(decoded);
        self.stats.undecodable += u64::from(!decoded);
        self.yield_page(of);
    }

    /// Tells that a page was given another frame.
    pub(super) fn replaced(&mut self, of: u32) {
        if self.notes.is_yielded(of) {
            self.notes.set_yielded(of, false);
            // What is told of it from here on comes after this.
            self.notes.set_told(of, true);
            self.events.push(of * 2 + REPLACED);
            self.stats.replaced += 1;
        }
    }

    /// Tells what is known of a page, unless somebody is about to hear it anyway.
    pub(super) fn yield_page(&mut self, of: u32) {
        self.stats.ready += u64::from(!self.notes.is_yielded(of));
        self.notes.set_yielded(of, true);
        if self.notes.is_told(of) {
            self.notes.set_told(of, false);
            self.events.push(of * 2);
        }
    }

    /// Pages that may be asked for.
    pub(super) fn holds(&self, of: u32) -> bool {
        index(of) < self.notes.pages()
    }
}
