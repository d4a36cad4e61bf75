//! Where data live: what the kernel says of each page, beside what the runtime believes.

use isochrone_units::{PAGE_BYTES, RegionId};

use super::runtime::Runtime;
use crate::arena::object;
use crate::arena::objects::Home;
use crate::arena::pieces::{piece_shift, pieces};
use crate::error::TaskError;
use crate::range::{Data, DataId, Element, Range};
use crate::sync::Ordering;

/// What the runtime believes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Believed {
    /// Nobody has touched it.
    Untouched,
    /// It lives in this region.
    Region(RegionId),
    /// It is one of those spread over all regions.
    Spread,
}

/// A page of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// What the scheduler goes by.
    pub believed: Believed,
    /// What the kernel says; `None` for a page that nobody has touched.
    pub seen: Option<RegionId>,
}

impl Runtime {
    /// Asks the kernel in which region each page of `data` lives; `None` for one that nobody touched.
    ///
    /// # Errors
    /// [`TaskError`] where the kernel does not say.
    pub fn regions_of<T: Element>(
        &self,
        data: Data<T>,
    ) -> Result<Vec<Option<RegionId>>, TaskError> {
        self.seen(data.id())
    }

    fn seen(&self, data: DataId) -> Result<Vec<Option<RegionId>>, TaskError> {
        let object = &self.shared.scheduler.arena.objects[data.0 as usize];
        let bytes = usize::try_from(object.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        let mut out = vec![None; bytes.div_ceil(PAGE_BYTES)];
        self.shared.memory.regions_of(object.base.load(Ordering::Relaxed), &mut out)?;
        Ok(out)
    }

    /// Every page of all data that are not freed: what the runtime believes, and what the kernel says.
    ///
    /// # Errors
    /// [`TaskError`] if a task failed, which is waited for first, or where the kernel does not say.
    pub fn page_places(&mut self) -> Result<Vec<(DataId, Vec<PagePlace>)>, TaskError> {
        self.wait()?;
        let objects = &self.shared.scheduler.arena.objects;
        let live =
            |data: &u32| objects[*data as usize].state.load(Ordering::Acquire) == object::LIVE;
        (0..self.data)
            .filter(live)
            .map(DataId)
            .map(|data| Ok((data, self.places_of(data)?)))
            .collect()
    }

    fn places_of(&self, data: DataId) -> Result<Vec<PagePlace>, TaskError> {
        let scheduler = &self.shared.scheduler;
        let believed = |page: usize| {
            let start = (page * PAGE_BYTES) as u64;
            let mut believed = Believed::Untouched;
            scheduler.arena.homes_of(Range { data, start, bytes: 1 }, |home, _| {
                believed = match home {
                    Home::Unknown => Believed::Untouched,
                    Home::Spread => Believed::Spread,
                    Home::Region(region) => Believed::Region(scheduler.topology.region_id(region)),
                };
            });
            believed
        };
        let seen = self.seen(data)?.into_iter().enumerate();
        Ok(seen.map(|(page, seen)| PagePlace { believed: believed(page), seen }).collect())
    }

    /// Sets what the runtime knows of where `data` live to what the kernel says.
    ///
    /// # Errors
    /// As [`Self::regions_of`].
    pub fn ask_homes<T: Element>(&mut self, data: Data<T>) -> Result<(), TaskError> {
        let pages = self.regions_of(data)?;
        let scheduler = &self.shared.scheduler;
        let bytes = scheduler.arena.objects[data.id().0 as usize].bytes.load(Ordering::Relaxed);
        let each = 1_usize << (piece_shift(bytes) - 12);
        debug_assert!(pages.len() <= each * pieces(bytes), "pieces cover all pages");
        scheduler.arena.settle(data.id(), |piece| {
            let first = pages.get(piece * each).copied().flatten();
            let region = first.and_then(|id| scheduler.topology.region_index(id));
            region.map_or(Home::Unknown, Home::Region)
        });
        Ok(())
    }
}
