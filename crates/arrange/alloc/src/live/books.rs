//! What decoding needs to know of each core that decodes: a codebook of the base that it wears,
//! and what its loads have in common. Made when a core comes by, and kept for a few of them.
//!
//! All books of a level have the same answers, so what several cores see of a page is joined.

use super::align::Alignment;
use super::level::LevelModel;
use isochrone_atlas::Codebook;
use isochrone_os::OsError;
use isochrone_os::table::Table;
use isochrone_units::CoreId;

/// Cores whose books are kept.
const KEPT: usize = 4;

/// What decoding knows of a core.
#[derive(Debug)]
pub(super) struct Book {
    core: CoreId,
    base: u16,
    pub(super) codes: Codebook,
    pub(super) align: Alignment,
}

/// Books by core.
#[derive(Debug)]
pub(super) struct Books {
    kept: Table<Option<Book>>,
    next: usize,
}

impl Books {
    pub(super) fn new() -> Result<Self, OsError> {
        Ok(Self { kept: Table::made(KEPT, |_| None)?, next: 0 })
    }

    /// Forgets all of them: bases or answers have changed.
    pub(super) fn clear(&mut self) {
        self.kept.iter_mut().for_each(|slot| *slot = None);
    }

    /// The book of a core that wears a base, made now if it is not there.
    pub(super) fn get(&mut self, core: CoreId, base: u16, model: &LevelModel) -> Option<&mut Book> {
        let is = |slot: &Option<Book>| {
            slot.as_ref().is_some_and(|book| (book.core, book.base) == (core, base))
        };
        let place = match self.kept.iter().position(is) {
            Some(place) => place,
            None => {
                let codes = model.book(model.base(base))?;
                let place = self.next;
                self.next = (self.next + 1) % KEPT;
                let align = Alignment::new(model.level, model.offset_loads(model.base(base)));
                self.kept[place] = Some(Book { core, base, codes, align });
                place
            }
        };
        self.kept[place].as_mut()
    }
}
