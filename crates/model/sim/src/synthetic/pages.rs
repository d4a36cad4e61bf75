//! Which physical frame each page of the arena has.
//!
//! Frames are drawn at random, as a system that has run for a while hands them out: 4 KiB frames
//! one by one, or 2 MiB frames of 512 pages. Regions own consecutive ranges of frames and equal,
//! consecutive shares of the arena. Nothing here knows what a frame's latency is.

use std::collections::HashSet;

use isochrone_units::{LINES_PER_PAGE, PageAddr, RegionId};

use crate::number::{index, narrow, wide};
use crate::random::{Random, Stream};

/// Base pages in a huge page.
const PAGES_PER_HUGE: u64 = 512;

/// The memory that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Base pages in the arena.
    pub pages: u64,
    /// Whether 512 consecutive pages share one huge frame.
    pub huge: bool,
    /// Frames of each region; a power of two, at least 1024.
    pub frames_per_region: u64,
    /// Whether the measuring program can learn frame numbers.
    pub frames_readable: bool,
}

/// The page table.
#[derive(Clone, Debug)]
pub(crate) struct PageTable {
    frames: Vec<u64>,
    taken: HashSet<u64>,
    frames_per_region: u64,
    random: Random,
}

impl Arena {
    /// What is wrong with the arena, in words.
    pub(crate) fn defect(&self, regions: usize) -> Option<String> {
        if self.pages == 0 {
            return Some("give the arena at least one page".to_owned());
        }
        if !self.frames_per_region.is_power_of_two() || self.frames_per_region < 1024 {
            return Some("make frames_per_region a power of two, 1024 or more".to_owned());
        }
        // At half full, drawing a free frame takes two tries on average.
        let room = self.frames_per_region / 2;
        let share = self.share(regions);
        (share > room).then(|| {
            format!("{share} pages a region need {} frames; it has half of that", share * 2)
        })
    }

    /// Pages of the arena in each region but the last, which has the rest.
    fn share(&self, regions: usize) -> u64 {
        let share = self.pages.div_ceil(wide(regions));
        if self.huge { share.next_multiple_of(PAGES_PER_HUGE) } else { share }
    }
}

impl PageTable {
    pub(crate) fn new(arena: &Arena, regions: usize, seed: u64) -> Self {
        let mut table = Self {
            frames: Vec::with_capacity(index(arena.pages)),
            taken: HashSet::new(),
            frames_per_region: arena.frames_per_region,
            random: Random::new(seed, Stream::Frames),
        };
        let share = arena.share(regions);
        let step = if arena.huge { PAGES_PER_HUGE } else { 1 };
        let mut page = 0;
        while page < arena.pages {
            let first = table.draw(page / share, step);
            let length = step.min(arena.pages - page);
            table.frames.extend(first..first + length);
            page += length;
        }
        table
    }

    /// A free, aligned run of `step` frames in a region.
    fn draw(&mut self, region: u64, step: u64) -> u64 {
        loop {
            let run = self.random.below(self.frames_per_region / step);
            let first = region * self.frames_per_region + run * step;
            if (first..first + step).all(|frame| !self.taken.contains(&frame)) {
                self.taken.extend(first..first + step);
                return first;
            }
        }
    }

    pub(crate) fn frame(&self, page: PageAddr) -> Option<u64> {
        self.frames.get(index(page.0)).copied()
    }

    pub(crate) fn region_of_frame(&self, frame: u64) -> RegionId {
        RegionId(narrow(frame / self.frames_per_region))
    }

    /// First line of a region's physical memory.
    pub(crate) fn first_line(&self, region: RegionId) -> u64 {
        u64::from(region.0) * self.frames_per_region * wide(LINES_PER_PAGE)
    }

    /// Gives a page another frame of its region; false if there is no such page.
    pub(crate) fn migrate(&mut self, page: PageAddr) -> bool {
        let Some(old) = self.frame(page) else { return false };
        let new = self.draw(u64::from(self.region_of_frame(old).0), 1);
        self.taken.remove(&old);
        self.frames[index(page.0)] = new;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(pages: u64, huge: bool) -> Arena {
        Arena { pages, huge, frames_per_region: 1 << 14, frames_readable: true }
    }

    #[test]
    fn no_two_pages_share_a_frame_and_regions_hold_equal_shares() {
        for huge in [false, true] {
            let table = PageTable::new(&arena(4096, huge), 4, 1);
            let distinct: HashSet<u64> = table.frames.iter().copied().collect();
            assert_eq!(distinct.len(), 4096);
            for page in 0..4096 {
                let frame = table.frame(PageAddr(page)).unwrap();
                assert_eq!(u64::from(table.region_of_frame(frame).0), page / 1024);
            }
        }
    }

    #[test]
    fn huge_pages_are_contiguous_and_aligned() {
        let table = PageTable::new(&arena(1300, true), 1, 1);
        for (page, frame) in table.frames.iter().enumerate() {
            assert_eq!(frame % 512, wide(page) % 512);
        }
        assert_ne!(table.frames[512], table.frames[511] + 1, "random from one to the next");
    }

    #[test]
    fn migration_replaces_one_frame_by_a_free_one() {
        let mut table = PageTable::new(&arena(1024, true), 1, 1);
        let before = table.frames.clone();
        assert!(table.migrate(PageAddr(7)));
        assert!(!table.migrate(PageAddr(1024)));
        let changed: Vec<usize> = (0..1024).filter(|i| table.frames[*i] != before[*i]).collect();
        assert_eq!(changed, [7]);
        assert!(!before.contains(&table.frames[7]));
    }

    #[test]
    fn an_arena_that_does_not_fit_is_refused() {
        assert!(arena(1 << 13, false).defect(1).is_none());
        assert!(arena((1 << 13) + 1, false).defect(1).is_some());
        assert!(arena(0, false).defect(1).is_some());
    }
}
