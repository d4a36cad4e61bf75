//! Magazines: the slots that one thread has at hand, so that most allocations touch nothing that
//! another thread touches.
//!
//! They belong to one thread and to the core on which it was last seen, its home. They hold what
//! a refill for that core would give, and nothing farther: a slot freed elsewhere goes straight
//! to its bin. What is live is told from what went in and out, so the fast path counts nothing.

use crate::check::Misuse;
use crate::class::SizeClass;
use crate::distance::DistanceSum;
use crate::heap::Heap;
use crate::open::OpenPage;
use crate::page::PageWord;
use crate::policy::Mode;
use crate::slot::Slot;
use crate::sync::Ordering::Relaxed;

/// Places of one magazine; a power of two, so that an index needs no check.
const PLACES: u32 = 1024;
/// Times that the capacity of a magazine doubles, at most: up to 64 KiB of slots, and all places.
const GROWTH: u8 = 4;
/// Slots that are drawn or given back at a time, at most.
const BATCH: u32 = 64;
/// Frees that went straight to bins before their bytes are told to the heap.
const UNTOLD_FREES: u32 = 64;

/// Slots at hand of one class.
#[derive(Clone, Debug)]
struct Magazine {
    length: u32,
    /// The rank of the farthest bin that is worth keeping.
    reach: u8,
    /// Slots at hand at most; 0 before its first home.
    capacity: u32,
    /// Times that its capacity doubled.
    grown: u8,
    /// It was refilled since it was full last.
    refilled: bool,
    slots: [u32; PLACES as usize],
    /// What is used up next.
    open: OpenPage,
}

impl Magazine {
    const EMPTY: Self = Self {
        length: 0,
        reach: 0,
        capacity: 0,
        grown: 0,
        refilled: false,
        slots: [0; PLACES as usize],
        open: OpenPage::NONE,
    };

    #[inline(always)]
    fn pop(&mut self) -> Option<Slot> {
        self.length = self.length.checked_sub(1)?;
        Some(Slot(self.slots[(self.length % PLACES) as usize]))
    }

    #[inline(always)]
    fn push(&mut self, slot: Slot) {
        self.slots[(self.length % PLACES) as usize] = slot.0;
        self.length += 1;
    }

    fn slots(&self) -> &[u32] {
        self.slots.get(..self.length as usize).unwrap_or(&[])
    }

    /// Room for more, where a thread gives back what it draws again: so much it has in use by turns.
    /// One that only frees what others took keeps little.
    fn grow(&mut self) -> bool {
        let grows = self.refilled && self.grown < GROWTH;
        self.grown += u8::from(grows);
        self.capacity <<= u32::from(grows);
        self.refilled = false;
        grows
    }
}

/// Slots at hand at most to begin with: fewer of the larger ones.
const fn first_capacity(class: SizeClass) -> u32 {
    match class {
        SizeClass::B16 | SizeClass::B32 | SizeClass::B64 => 64,
        SizeClass::B128 => 32,
        SizeClass::B256 => 16,
    }
}

/// What one thread has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadCounts {
    /// Slots drawn from bins.
    pub drawn_slots: u64,
    /// How many of them were near for the home of the time.
    pub near_slots: u64,
    /// Slots that were too far to keep.
    pub foreign_frees: u64,
    /// Times that the thread was found on another core.
    pub home_changes: u64,
    /// Distances of the slots drawn, from the home of the time.
    pub drawn: DistanceSum,
}

/// The magazines of one thread, for all classes. Zeroed memory is a correct value.
#[derive(Clone, Debug)]
pub struct Magazines {
    /// The core that the slots are near for, plus one; 0 before the first use.
    home: u32,
    stock: [Magazine; SizeClass::COUNT],
    /// Bytes drawn from bins less bytes given back.
    outside_bytes: i64,
    /// Live bytes as the heap was last told.
    told_bytes: i64,
    untold_frees: u32,
    counts: ThreadCounts,
}

impl Default for Magazines {
    fn default() -> Self {
        Self::new()
    }
}

impl Magazines {
    /// Empty ones.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            home: 0,
            stock: [Magazine::EMPTY; SizeClass::COUNT],
            outside_bytes: 0,
            told_bytes: 0,
            untold_frees: 0,
            counts: ThreadCounts::NONE,
        }
    }

    /// Takes a slot that is near for `core`, on which the thread runs now. `None` only if the
    /// heap has nothing left.
    #[inline]
    pub fn take(&mut self, heap: &Heap<'_>, core: u16, class: SizeClass) -> Option<Slot> {
        if self.home == u32::from(core) + 1
            && !heap.policy.checked
            && let Some(slot) = self.take_at_home(class)
        {
            return Some(slot);
        }
        self.take_slowly(heap, core, class)
    }

    /// Takes a slot that is at hand, for a caller who knows that the thread runs on the core of its
    /// last [`Self::take`] or [`Self::put`], and that nothing is checked.
    #[inline(always)]
    pub fn take_at_home(&mut self, class: SizeClass) -> Option<Slot> {
        self.stock[class.index()].pop()
    }

    /// Frees a slot, whoever took it.
    ///
    /// # Errors
    /// [`Misuse`] if it is no slot, or not live where that is checked; nothing was freed then.
    #[inline]
    pub fn put(&mut self, heap: &Heap<'_>, core: u16, slot: Slot) -> Result<SizeClass, Misuse> {
        if self.home == u32::from(core) + 1 && !heap.policy.checked {
            let word = heap.word(slot.page());
            let rank = |class| heap.bin_rank(core, class, word, slot);
            if let Some(class) = self.keep(word, slot, rank) {
                return Ok(class);
            }
        }
        self.put_slowly(heap, core, slot)
    }

    /// Keeps a freed slot at hand, for a caller who knows that the thread runs on `core`, that of
    /// its last [`Self::take`] or [`Self::put`], and that nothing is checked. False where there is
    /// more to do, and then nothing was done. It calls nothing.
    #[inline(always)]
    pub fn put_at_home(&mut self, heap: &Heap<'_>, core: u16, slot: Slot) -> bool {
        let word = heap.word(slot.page());
        let rank = |class| heap.pattern_rank(core, class, word, slot);
        heap.policy.mode != Mode::Oracle && self.keep(word, slot, rank).is_some()
    }

    #[inline(always)]
    fn keep(
        &mut self,
        word: PageWord,
        slot: Slot,
        rank: impl FnOnce(SizeClass) -> u8,
    ) -> Option<SizeClass> {
        let class = word.class()?;
        let magazine = &mut self.stock[class.index()];
        let kept = class.begins_at(slot)
            && magazine.length < magazine.capacity
            && rank(class) <= magazine.reach;
        if kept {
            magazine.push(slot);
        }
        kept.then_some(class)
    }

    /// Gives everything at hand back to the bins, and tells the heap what is live: at the end of
    /// a thread, or before somebody else must be able to take what this thread holds.
    pub fn flush(&mut self, heap: &Heap<'_>) {
        for class in SizeClass::ALL {
            self.shed(heap, class, u32::MAX);
            heap.close(class, &mut self.stock[class.index()].open);
        }
        self.tell(heap);
    }

    /// What this thread has done.
    #[must_use]
    pub const fn counts(&self) -> &ThreadCounts {
        &self.counts
    }

    /// Slots at hand of a class.
    #[must_use]
    pub const fn at_hand(&self, class: SizeClass) -> usize {
        self.stock[class.index()].length as usize
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(&mut self, heap: &Heap<'_>, core: u16, class: SizeClass) -> Option<Slot> {
        self.settle(heap, core);
        loop {
            let slot = match self.stock[class.index()].pop() {
                Some(slot) => slot,
                None => self.refill(heap, core, class)?,
            };
            if !heap.policy.checked || heap.mark_live(class, slot) {
                return Some(slot);
            }
            // It is in use already: it stays with who has it, and nobody is given it twice.
            heap.note_misuse(Misuse::Overlap, slot);
        }
    }

    /// Fills an empty magazine to a half and takes one slot out of it.
    fn refill(&mut self, heap: &Heap<'_>, core: u16, class: SizeClass) -> Option<Slot> {
        self.tell(heap);
        let magazine = &mut self.stock[class.index()];
        let half = (magazine.capacity / 2).min(BATCH) as usize;
        magazine.refilled = true;
        let drawn = heap.refill_paged(core, class, &mut magazine.slots[..half], &mut magazine.open);
        magazine.length = u32::try_from(drawn.slots).unwrap_or(0);
        magazine.reach = drawn.reach;
        for &slot in magazine.slots() {
            self.counts.drawn.add(heap.distance(Slot(slot), core));
        }
        // The nearest ones were drawn first, or the first of a page, and are to be taken first.
        magazine.slots[..drawn.slots].reverse();
        self.outside_bytes += bytes(class, drawn.slots);
        self.counts.drawn_slots += drawn.slots as u64;
        self.counts.near_slots += drawn.near as u64;
        magazine.pop()
    }

    #[cold]
    #[inline(never)]
    fn put_slowly(&mut self, heap: &Heap<'_>, core: u16, slot: Slot) -> Result<SizeClass, Misuse> {
        let word = heap.word(slot.page());
        let Some(class) = word.class() else {
            return Err(heap.note_misuse(Misuse::Foreign, slot));
        };
        if !class.begins_at(slot) {
            return Err(heap.note_misuse(Misuse::Inside, slot));
        }
        self.settle(heap, core);
        if heap.policy.checked && !heap.mark_dead(class, slot) {
            return Err(heap.note_misuse(Misuse::DoubleFree, slot));
        }
        let magazine = &mut self.stock[class.index()];
        if heap.bin_rank(core, class, word, slot) <= magazine.reach {
            let capacity = magazine.capacity;
            if magazine.length >= capacity && !magazine.grow() {
                self.shed(heap, class, (capacity / 2).min(BATCH));
                self.tell(heap);
            }
            self.stock[class.index()].push(slot);
            return Ok(class);
        }
        let given = heap.give_back(class, &[slot.0]);
        self.outside_bytes -= bytes(class, given);
        self.counts.foreign_frees += 1;
        self.untold_frees += 1;
        if self.untold_frees >= UNTOLD_FREES {
            self.tell(heap);
        }
        if given == 1 { Ok(class) } else { Err(Misuse::DoubleFree) }
    }

    /// Gives back up to `count` slots of a class, those first that were at hand for longest.
    fn shed(&mut self, heap: &Heap<'_>, class: SizeClass, count: u32) {
        let magazine = &mut self.stock[class.index()];
        let length = magazine.length as usize;
        let count = (count as usize).min(length);
        let given = heap.give_back(class, &magazine.slots[..count]);
        magazine.slots.copy_within(count..length, 0);
        magazine.length = u32::try_from(length - count).unwrap_or(0);
        // What was refused is not in a bin, but neither does anybody hold it.
        debug_assert!(given <= count);
        self.outside_bytes -= bytes(class, count);
    }

    /// Makes `core` the home; what was near for another is given back.
    fn settle(&mut self, heap: &Heap<'_>, core: u16) {
        let home = u32::from(core) + 1;
        if self.home == home {
            return;
        }
        if self.home != 0 {
            self.flush(heap);
            self.counts.home_changes += 1;
            heap.sums().home_changes.fetch_add(1, Relaxed);
        }
        self.home = home;
        for class in SizeClass::ALL {
            let magazine = &mut self.stock[class.index()];
            magazine.reach = heap.near_reach(core, class);
            magazine.capacity = magazine.capacity.max(first_capacity(class));
        }
    }

    /// Tells the heap by how much this thread changed what is live.
    fn tell(&mut self, heap: &Heap<'_>) {
        let at_hand = SizeClass::ALL.map(|class| bytes(class, self.at_hand(class)));
        let live = self.outside_bytes - at_hand.iter().sum::<i64>();
        heap.sums().live_bytes.fetch_add(live - self.told_bytes, Relaxed);
        self.told_bytes = live;
        if self.untold_frees > 0 {
            heap.sums().foreign_frees.fetch_add(u64::from(self.untold_frees), Relaxed);
            self.untold_frees = 0;
        }
    }
}

/// Bytes of so many slots.
fn bytes(class: SizeClass, slots: usize) -> i64 {
    i64::try_from(class.bytes() * slots).unwrap_or(i64::MAX)
}

impl Heap<'_> {
    /// Takes one slot for a core, without magazines: for a thread that has none, or for another
    /// core than the caller's.
    pub fn take_for(&self, core: u16, class: SizeClass) -> Option<Slot> {
        loop {
            let mut slot = [0];
            if self.refill(core, class, &mut slot).slots == 0 {
                return None;
            }
            let slot = Slot(slot[0]);
            if !self.policy.checked || self.mark_live(class, slot) {
                self.sums().live_bytes.fetch_add(bytes(class, 1), Relaxed);
                return Some(slot);
            }
            self.note_misuse(Misuse::Overlap, slot);
        }
    }

    /// Frees a slot straight to its bin, without magazines.
    ///
    /// # Errors
    /// [`Misuse`] if it is no slot, or not live; nothing was freed then.
    pub fn put_back(&self, slot: Slot) -> Result<SizeClass, Misuse> {
        let class = self.class_of(slot).ok_or_else(|| self.note_misuse(Misuse::Foreign, slot))?;
        if !class.begins_at(slot) {
            return Err(self.note_misuse(Misuse::Inside, slot));
        }
        if self.policy.checked && !self.mark_dead(class, slot) {
            return Err(self.note_misuse(Misuse::DoubleFree, slot));
        }
        if self.give_back(class, &[slot.0]) == 0 {
            return Err(Misuse::DoubleFree);
        }
        self.sums().live_bytes.fetch_sub(bytes(class, 1), Relaxed);
        self.sums().foreign_frees.fetch_add(1, Relaxed);
        Ok(class)
    }
}

impl ThreadCounts {
    const NONE: Self = Self {
        drawn_slots: 0,
        near_slots: 0,
        foreign_frees: 0,
        home_changes: 0,
        drawn: DistanceSum::NONE,
    };
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
