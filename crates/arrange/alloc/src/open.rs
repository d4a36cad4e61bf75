//! A page that one thread uses up in the order of its addresses.
//!
//! What is allocated together is used together: neighbouring lines are found by prefetchers, and
//! few pages need few entries of the TLB. So who cuts a new page keeps those of its units that are
//! worth keeping, in no bin, and hands them out from the first to the last. The others go to their
//! bins, where cores that are nearer to them find them.

use crate::class::SizeClass;
use crate::heap::{Heap, PAGE_LINES};
use crate::refill::{Drawn, near_reach, owner_tag};
use crate::sync::Ordering::Relaxed;

/// Units of one page that one thread has and nobody else can reach. Zeroed memory has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenPage {
    page: u32,
    units: u64,
}

impl OpenPage {
    /// None.
    pub(crate) const NONE: Self = Self { page: 0, units: 0 };

    /// These units of a page, by place.
    pub(crate) const fn new(page: u32, units: u64) -> Self {
        Self { page, units }
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.units == 0
    }

    /// The line at which the next unit begins.
    fn next(&mut self, class: SizeClass) -> Option<u32> {
        if self.units == 0 {
            return None;
        }
        let place = self.units.trailing_zeros();
        self.units &= self.units - 1;
        Some(self.page * PAGE_LINES + (place << class.unit() as u8))
    }
}

impl Heap<'_> {
    /// Takes the next units into `out`, as many as have room there with all their slots.
    pub(crate) fn take_open(
        &self,
        core: u16,
        class: SizeClass,
        open: &mut OpenPage,
        out: &mut [u32],
    ) -> Drawn {
        let order = self.order(core, class.unit());
        let near = order.map_or(0, |order| order.near.load(Relaxed));
        let reach = order.map_or(u8::MAX, near_reach);
        let mut drawn = Drawn { slots: 0, near: 0, reach };
        for places in out.chunks_exact_mut(class.slots_per_unit()) {
            let Some(line) = open.next(class) else { break };
            if let Some(owner) = self.tables.owners.get(line as usize) {
                owner.store(owner_tag(core), Relaxed);
            }
            let bin = self.unit_bin(class, line);
            let rank = order.map_or(0, |order| order.ranks[usize::from(bin)].load(Relaxed));
            drawn.reach = drawn.reach.max(rank);
            drawn.near += if u16::from(rank) < near { places.len() } else { 0 };
            drawn.slots += places.len();
            for (bit, place) in (0..).zip(places) {
                *place = class.slot_of_bit(line, bit).0;
            }
        }
        drawn
    }

    /// Gives back what was not used of a page.
    pub(crate) fn close(&self, class: SizeClass, open: &mut OpenPage) {
        while !open.is_empty() {
            let (mut slots, mut length) = ([0; 64], 0);
            for places in slots.chunks_exact_mut(class.slots_per_unit()) {
                let Some(line) = open.next(class) else { break };
                for (bit, place) in (0..).zip(places) {
                    *place = class.slot_of_bit(line, bit).0;
                    length += 1;
                }
            }
            self.give_back(class, &slots[..length]);
        }
    }
}
