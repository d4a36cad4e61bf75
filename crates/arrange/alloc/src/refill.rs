//! How slots leave bins and come back, by batches.
//!
//! The line that slots share is free as a whole or in part. A mask beside it says which of its
//! slots are free. It lies on the stack of its bin exactly while that mask is not empty, or while
//! one thread has it in hand: who frees the first slot of a line pushes it, and who pops it takes
//! every free slot it has. Units of one slot are lines whose mask has one bit.

use crate::bins::MAX_BINS;
use crate::check::Misuse;
use crate::class::{SizeClass, slot_of_bit};
use crate::drawn::Drawn;
use crate::heap::{Heap, PAGE_LINES};
use crate::open::OpenPage;
use crate::slot::Slot;
use crate::sync::Ordering::{AcqRel, Relaxed, SeqCst};
use crate::sync::fence;
use crate::tables::{FREE, OrderTable, near_reach, owner_tag};

/// Bits of a mask from here on say which slots are live.
const LIVE_SHIFT: u32 = 4;
/// Units that are popped or pushed together, at most.
const BATCH: usize = 32;

/// Before anything was found.
const NOTHING: Drawn = Drawn { slots: 0, near: 0, reach: 0 };

impl Heap<'_> {
    /// Takes slots of a class for a core into `out`. Near bins first, and of these the slice of
    /// the cache least in use, so that none is loaded alone; then a page is assigned if that stays
    /// within the waste allowed; then the next nearest bins; then any page. It stops as soon as
    /// one of these gave something, and gives nothing only if the heap has nothing left.
    pub fn refill(&self, core: u16, class: SizeClass, out: &mut [u32]) -> Drawn {
        if out.is_empty() {
            return NOTHING;
        }
        let drawn = self.draw(core, class, out, None);
        self.count_drawn(drawn);
        drawn
    }

    /// The same for a thread that keeps a page for itself: what is left of it comes first, and a
    /// page that is assigned takes its place.
    pub(crate) fn refill_paged(
        &self,
        core: u16,
        class: SizeClass,
        out: &mut [u32],
        open: &mut OpenPage,
    ) -> Drawn {
        let mut drawn = self.take_open(core, class, open, out);
        if drawn.slots == 0 {
            drawn = self.draw(core, class, out, Some(open).filter(|open| open.is_empty()));
        }
        self.count_drawn(drawn);
        drawn
    }

    fn draw(
        &self,
        core: u16,
        class: SizeClass,
        out: &mut [u32],
        mut open: Option<&mut OpenPage>,
    ) -> Drawn {
        let order = self.order(core, class.unit());
        let reach = order.map_or(u8::MAX, near_reach);
        let drawn = Drawn { reach, ..NOTHING };
        let mut draw = Draw { heap: self, core, class, out, drawn, moved: false };
        if let Some(order) = order {
            let near = order.near.load(Relaxed);
            draw.near(order, near);
            while draw.drawn.slots == 0
                && near > 0
                && self.grow_near(class, order, open.as_deref_mut())
            {
                match &mut open {
                    Some(open) => draw.open(open),
                    None => draw.near(order, near),
                }
            }
        }
        draw.nearest(order);
        if draw.drawn.slots == 0 {
            draw.drawn.slots = self.take_any_kept(class, draw.out);
        }
        // Nothing is free. Of a new page the nearest units are taken first.
        while draw.drawn.slots == 0 && self.grow_any(class, order, open.as_deref_mut()) {
            match &mut open {
                Some(open) => draw.open(open),
                None => draw.nearest(order),
            }
        }
        draw.drawn
    }

    /// The rank of the farthest bin whose slots a core keeps before its first refill: every slot
    /// is kept where that is the largest.
    pub(crate) fn near_reach(&self, core: u16, class: SizeClass) -> u8 {
        self.order(core, class.unit()).map_or(u8::MAX, near_reach)
    }

    fn count_drawn(&self, drawn: Drawn) {
        let sums = self.sums();
        let add = |sum: &crate::sync::AtomicU64, slots: usize| {
            if slots > 0 {
                sum.fetch_add(slots as u64, Relaxed);
            }
        };
        add(&sums.near_slots, drawn.near);
        add(&sums.spilled_slots, drawn.slots - drawn.near);
        add(&sums.refused, usize::from(drawn.slots == 0));
    }

    /// Gives slots of a class back to their bins, from any thread. A slot that is free already,
    /// or that cannot be one of this class, is left out and counted as misuse.
    pub fn give_back(&self, class: SizeClass, slots: &[u32]) -> usize {
        let mut run = Run { heap: self, class, bin: 0, lines: [0; BATCH], length: 0 };
        let mut given = 0;
        self.warm(slots.iter().map(|&slot| Slot(slot).line()));
        for &slot in slots {
            let slot = Slot(slot);
            let line = slot.line();
            let mask = self.tables.masks.get(line as usize);
            let (Some(mask), true) = (mask, class.begins_at(slot)) else {
                self.note_misuse(Misuse::Inside, slot);
                continue;
            };
            let bit = class.slot_bit(slot);
            // Release: what the caller did with the slot comes before anybody gets it again.
            let before = mask.fetch_or(bit, AcqRel);
            if before & bit != 0 {
                self.note_misuse(Misuse::DoubleFree, slot);
                continue;
            }
            given += 1;
            if before & FREE == 0 {
                run.add(self.unit_bin(class, line), line);
            }
        }
        run.push();
        given
    }

    /// Reads what is about to be changed for each of these lines. Changes wait for one another,
    /// reads do not, so the caches are missed for all lines at once.
    fn warm(&self, lines: impl Iterator<Item = u32>) {
        for line in lines {
            let line = line as usize;
            let mask = self.tables.masks.get(line).map_or(0, |mask| mask.load(Relaxed));
            let next = self.tables.next.get(line).map_or(0, |next| next.load(Relaxed));
            core::hint::black_box((mask, next));
        }
    }

    /// Marks every free slot of a line that was popped as taken: a bit for each.
    fn mark_taken(&self, line: u32) -> u8 {
        // Acquire: what those did who freed its slots comes before.
        let mask = self.tables.masks.get(line as usize);
        mask.map_or(0, |mask| mask.fetch_and(!FREE, AcqRel) & FREE)
    }

    /// Puts slots back that were marked as taken, and which nobody had: units that are not in use.
    fn put_bits(&self, class: SizeClass, line: u32, free: u8) {
        let Some(mask) = self.tables.masks.get(line as usize) else { return };
        if mask.fetch_or(free, AcqRel) & FREE == 0 {
            self.stack(class, self.unit_bin(class, line)).push_all(&[line]);
        }
    }

    /// Marks a slot live. False if it was.
    pub(crate) fn mark_live(&self, class: SizeClass, slot: Slot) -> bool {
        let bit = class.slot_bit(slot) << LIVE_SHIFT;
        let mask = self.tables.masks.get(slot.line() as usize);
        mask.is_some_and(|mask| mask.fetch_or(bit, Relaxed) & bit == 0)
    }

    /// Marks a slot no longer live. False if it was not.
    pub(crate) fn mark_dead(&self, class: SizeClass, slot: Slot) -> bool {
        let bit = class.slot_bit(slot) << LIVE_SHIFT;
        let mask = self.tables.masks.get(slot.line() as usize);
        mask.is_some_and(|mask| mask.fetch_and(!bit, Relaxed) & bit != 0)
    }
}

/// Lines on their way to one bin.
struct Run<'h, 'a> {
    heap: &'h Heap<'a>,
    class: SizeClass,
    bin: u8,
    lines: [u32; BATCH],
    length: usize,
}

impl Run<'_, '_> {
    fn add(&mut self, bin: u8, line: u32) {
        if self.length == BATCH || self.bin != bin {
            self.push();
        }
        self.bin = bin;
        self.lines[self.length] = line;
        self.length += 1;
    }

    fn push(&mut self) {
        if let Ok(units @ 1..) = i32::try_from(self.length) {
            self.heap.stack(self.class, self.bin).push_all(&self.lines[..self.length]);
            self.heap.tally(self.class.unit(), self.bin, -units);
        }
        self.length = 0;
    }
}

/// A refill on its way.
struct Draw<'h, 'a, 'o> {
    heap: &'h Heap<'a>,
    core: u16,
    class: SizeClass,
    out: &'o mut [u32],
    drawn: Drawn,
    /// A unit was found in a bin to which it no longer belongs.
    moved: bool,
}

impl Draw<'_, '_, '_> {
    /// From the page that the caller keeps.
    fn open(&mut self, open: &mut OpenPage) {
        self.drawn = self.heap.take_open(self.core, self.class, open, self.out);
    }

    /// Unless there are slots already: from near bins, or the next nearest, or any.
    fn nearest(&mut self, order: Option<&OrderTable>) {
        loop {
            self.moved = false;
            if let Some(order) = order {
                self.by_order(order);
            }
            if self.drawn.slots == 0 && !self.moved {
                self.all_bins(order);
            }
            // A unit may have moved to a bin that was looked at before.
            if self.drawn.slots > 0 || !self.moved {
                break;
            }
        }
    }

    fn by_order(&mut self, order: &OrderTable) {
        let near = order.near.load(Relaxed);
        if self.drawn.slots == 0 {
            self.near(order, near);
        }
        if self.drawn.slots == 0 {
            self.ordered(order, near, order.count.load(Relaxed));
        }
    }

    /// From near bins, beginning where least is in use.
    fn near(&mut self, order: &OrderTable, near: u16) {
        let first = self.least_used(order, near);
        self.ordered(order, first, near);
        if self.drawn.slots < self.out.len() {
            self.ordered(order, 0, first);
        }
        self.drawn.near = self.drawn.slots;
    }

    /// The rank of the near bin that has free units, in the slice of which the least share is in
    /// use, the nearest of several. Out of line, so that its list is not on the stack of what follows.
    #[inline(never)]
    fn least_used(&self, order: &OrderTable, near: u16) -> u16 {
        if near <= 1 {
            return 0;
        }
        let bins_per_slice = self.heap.bins_per_slice(self.class);
        let shares = self.shares(bins_per_slice);
        let mut least = (0, None);
        for (rank, bin) in (0..near).zip(&order.bins) {
            let bin = bin.load(Relaxed);
            if self.heap.stack(self.class, bin).looks_empty() {
                continue;
            }
            let share = shares[usize::from(bin) / bins_per_slice];
            if least.1.is_none_or(|least| share < least) {
                least = (rank, Some(share));
            }
        }
        least.0
    }

    /// The share of its units that is in use, by slice of the cache, in 65,535ths: short, since this
    /// lies on the stack of whoever allocates.
    fn shares(&self, bins_per_slice: usize) -> [u16; MAX_BINS] {
        let unit = self.class.unit() as usize;
        let shared = self.heap.tables.shared;
        let count = self.heap.bins_count(self.class);
        let used = shared.used[unit].iter().take(count);
        let mut bins = used.zip(&shared.population[unit]);
        let mut shares = [0; MAX_BINS];
        // Without a division for each bin: this is done at every refill.
        for share in shares.iter_mut().take(count.div_ceil(bins_per_slice)) {
            let (mut in_use, mut all) = (0, 1);
            for (used, units) in bins.by_ref().take(bins_per_slice) {
                in_use += u64::from(used.load(Relaxed).max(0).unsigned_abs());
                all += u64::from(units.load(Relaxed));
            }
            *share = part_of(in_use, all);
        }
        shares
    }

    /// From the bins of ranks `from..to`, until the list is full.
    fn ordered(&mut self, order: &OrderTable, from: u16, to: u16) {
        for rank in (0..=u8::MAX).take(usize::from(to)).skip(usize::from(from)) {
            let bin = order.bins[usize::from(rank)].load(Relaxed);
            if self.bin(bin) {
                self.drawn.reach = self.drawn.reach.max(rank);
            }
            if self.drawn.slots == self.out.len() {
                break;
            }
        }
    }

    /// From every bin, whatever the order says: first from that of which nothing is known, where
    /// all units are as long as nothing is.
    fn all_bins(&mut self, order: Option<&OrderTable>) {
        for bin in (0..=u8::MAX).take(self.heap.bins_count(self.class)).rev() {
            if self.bin(bin) {
                let rank = order.map_or(0, |order| order.ranks[usize::from(bin)].load(Relaxed));
                self.drawn.reach = self.drawn.reach.max(rank);
            }
            if self.drawn.slots == self.out.len() {
                break;
            }
        }
    }

    /// From one bin; true if it gave a slot.
    fn bin(&mut self, bin: u8) -> bool {
        let stack = self.heap.stack(self.class, bin);
        let before = self.drawn.slots;
        while self.drawn.slots < self.out.len() && !stack.looks_empty() {
            let room = self.out.len() - self.drawn.slots;
            let units = (room / self.class.slots_per_unit()).clamp(1, BATCH);
            let mut lines = [0; BATCH];
            let count = stack.pop_many(&mut lines[..units]);
            self.heap.warm(lines[..count].iter().copied());
            let mut masks = [0; BATCH];
            for (mask, &line) in masks.iter_mut().zip(&lines[..count]) {
                let home = self.heap.unit_bin(self.class, line);
                if home == bin {
                    *mask = self.heap.mark_taken(line);
                } else {
                    // Its page was coded anew while it was free.
                    self.heap.stack(self.class, home).push_all(&[line]);
                    self.moved = true;
                }
            }
            // Between the marks and the looks at pages: see `crate::leave`.
            fence(SeqCst);
            let (mut taken, mut leaves) = (0, false);
            for (&mask, &line) in masks.iter().zip(&lines[..count]).filter(|(mask, _)| **mask != 0)
            {
                if self.heap.comes(line / PAGE_LINES) {
                    self.take(line, mask);
                    taken += 1;
                } else {
                    self.heap.put_bits(self.class, line, mask);
                    leaves = true;
                }
            }
            if taken > 0 {
                self.heap.tally(self.class.unit(), bin, taken);
            }
            // What leaves lies on top again: others of the bin are found when it has left.
            if count == 0 || leaves {
                break;
            }
        }
        self.drawn.slots > before
    }

    /// Takes these slots of a line, which were marked as taken; those beyond the list go back.
    fn take(&mut self, line: u32, free: u8) {
        if let Some(owner) = self.heap.tables.owners.get(line as usize) {
            owner.store(owner_tag(self.core), Relaxed);
        }
        for bit in (0..4).filter(|bit| free >> bit & 1 == 1) {
            let slot = slot_of_bit(line, bit);
            match self.out.get_mut(self.drawn.slots) {
                Some(place) => {
                    *place = slot.0;
                    self.drawn.slots += 1;
                }
                None => {
                    self.heap.give_back(self.class, &[slot.0]);
                }
            }
        }
    }
}

/// A share in 65,535ths.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "casts saturate, and six digits are enough"
)]
fn part_of(part: u64, all: u64) -> u16 {
    (part as f32 / all as f32 * 65_535.0) as u16
}
