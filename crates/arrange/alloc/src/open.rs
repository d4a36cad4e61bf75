//! A page that one thread uses up in the order of its addresses.
//!
//! What is allocated together is used together: neighbouring lines are found by prefetchers, and
//! few pages need few entries of the TLB. So who cuts a new page keeps those of its units that are
//! worth keeping, in no bin, and hands them out from the first to the last. The others go to their
//! bins, where cores that are nearer to them find them.

use crate::class::{SizeClass, bits, slot_of_bit};
use crate::drawn::Drawn;
use crate::heap::{Heap, PAGE_LINES};
use crate::sync::Ordering::Relaxed;
use crate::tables::{near_reach, owner_tag};

/// Units of one page that one thread has and nobody else can reach. Zeroed memory has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenPage {
    page: u32,
    units: u64,
}

impl OpenPage {
    /// None.
    pub(crate) const NONE: Self = Self { page: 0, units: 0 };

    /// These units of a page, by line.
    pub(crate) const fn new(page: u32, units: u64) -> Self {
        Self { page, units }
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.units == 0
    }

    /// The line in which the next unit begins.
    fn next(&mut self) -> Option<u32> {
        let place = bits(self.units).next()?;
        self.units &= self.units - 1;
        Some(self.page * PAGE_LINES + u32::from(place))
    }

    /// The slots of the next unit, into a list that has room for all of them; how many, and its line.
    fn next_slots(&mut self, class: SizeClass, out: &mut [u32]) -> Option<(usize, u32)> {
        let place = bits(self.units).next()?;
        let mask = u64::from(class.full_mask(place));
        let count = mask.count_ones() as usize;
        let out = out.get_mut(..count)?;
        let line = self.next()?;
        for (slot, bit) in out.iter_mut().zip(bits(mask)) {
            *slot = slot_of_bit(line, u32::from(bit)).0;
        }
        Some((count, line))
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
        while let Some((slots, line)) = open.next_slots(class, &mut out[drawn.slots..]) {
            if let Some(owner) = self.tables.owners.get(line as usize) {
                owner.store(owner_tag(core), Relaxed);
            }
            let bin = self.unit_bin(class, line);
            let rank = order.map_or(0, |order| order.ranks[usize::from(bin)].load(Relaxed));
            drawn.reach = drawn.reach.max(rank);
            drawn.near += if u16::from(rank) < near { slots } else { 0 };
            drawn.slots += slots;
        }
        drawn
    }

    /// Gives back what was not used of a page.
    pub(crate) fn close(&self, class: SizeClass, open: &mut OpenPage) {
        while !open.is_empty() {
            let (mut slots, mut length) = ([0; 64], 0);
            while let Some((more, _)) = open.next_slots(class, &mut slots[length..]) {
                length += more;
            }
            self.give_back(class, &slots[..length]);
        }
    }
}
