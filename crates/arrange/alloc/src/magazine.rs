//! Magazines: the slots that one thread has at hand, so that most allocations touch nothing that
//! another thread touches.
//!
//! They belong to one thread and to the core on which it was last seen, its home. They hold what
//! a refill for that core would give, and nothing farther: what was taken elsewhere and is too far
//! is gathered, and goes home by batches. A thread that moves keeps what is near on the other core
//! too. What is live is told from what went in and out, so the fast path counts nothing.

use crate::check::Misuse;
use crate::class::SizeClass;
use crate::distance::DistanceSum;
use crate::heap::Heap;
use crate::open::OpenPage;
use crate::page::PageWord;
use crate::slot::Slot;
use crate::sync::Ordering::Relaxed;

/// Places of one magazine; a power of two, so that an index needs no check.
const PLACES: u32 = 1024;
/// Times that the capacity of a magazine doubles, at most: up to 64 KiB of slots, and all places.
const GROWTH: u8 = 4;
/// Slots that are drawn or given back at a time, at most.
const BATCH: u32 = 64;
/// Slots that are gathered before they go home.
const AWAY: usize = 64;
/// The reach of a core that keeps every slot, whatever its rank.
const KEEPS_ALL: u8 = u8::MAX;

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
    /// Freed slots that are too far to keep, on their way home.
    away: [u32; AWAY],
    away_length: u32,
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
        away: [0; AWAY],
        away_length: 0,
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

    /// Sends home what was gathered.
    fn send_home(&mut self, heap: &Heap<'_>, core: u16, class: SizeClass) {
        let length = core::mem::take(&mut self.away_length) as usize;
        let away = self.away.get_mut(..length).unwrap_or(&mut []);
        heap.give_home(core, class, away);
    }

    /// Gives the slots that are too far for `core` to the depot of another.
    fn leave_behind(&mut self, heap: &Heap<'_>, core: u16, class: SizeClass, other: u16) -> usize {
        let (mut stays, mut left, mut far) = (0, 0, [0; AWAY]);
        for place in 0..self.length as usize {
            let slot = Slot(self.slots[place]);
            let word = heap.word(slot.page());
            if heap.bin_rank(core, class, word, slot) <= self.reach {
                self.slots[stays] = slot.0;
                stays += 1;
                continue;
            }
            far[left % AWAY] = slot.0;
            left += 1;
            if left.is_multiple_of(AWAY) {
                heap.give_to(other, class, &far);
            }
        }
        heap.give_to(other, class, &far[..left % AWAY]);
        self.length = u32::try_from(stays).unwrap_or(0);
        left
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
    match class.bytes() {
        ..=64 => 64,
        65..=128 => 32,
        _ => 16,
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

    /// Keeps a freed slot at hand where every slot is kept, for a caller who knows what that of
    /// [`Self::put_at_home`] knows, and that the slot was handed out as one of this class and is not free. False where
    /// there is more to do, and then nothing was done.
    #[inline(always)]
    pub fn put_any_at_home(&mut self, class: SizeClass, slot: Slot) -> bool {
        let magazine = &mut self.stock[class.index()];
        let kept = magazine.reach == KEEPS_ALL && magazine.length < magazine.capacity;
        if kept {
            magazine.push(slot);
        }
        kept
    }

    /// Keeps a freed slot at hand, for a caller who knows that the thread runs on `core`, that of
    /// its last [`Self::take`] or [`Self::put`], and that nothing is checked. False where there is
    /// more to do, and then nothing was done. It calls nothing.
    #[inline(always)]
    pub fn put_at_home(&mut self, heap: &Heap<'_>, core: u16, slot: Slot) -> bool {
        let word = heap.word(slot.page());
        let rank = |class| heap.pattern_rank(core, class, word, slot);
        !heap.policy.mode.is_oracle() && self.keep(word, slot, rank).is_some()
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
            && (magazine.reach == KEEPS_ALL || rank(class) <= magazine.reach);
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
            let home = self.home_core();
            let magazine = &mut self.stock[class.index()];
            magazine.send_home(heap, home, class);
            heap.close(class, &mut magazine.open);
        }
        self.tell(heap);
    }

    /// The same, and they have no home any more: another thread may use them.
    pub fn leave(&mut self, heap: &Heap<'_>) {
        self.flush(heap);
        self.home = 0;
    }

    /// Looks again how far slots are worth keeping, where every one was: the core may have an order
    /// by now.
    pub fn renew(&mut self, heap: &Heap<'_>) {
        for class in SizeClass::ALL {
            let core = self.home_core();
            let magazine = &mut self.stock[class.index()];
            if magazine.reach == KEEPS_ALL {
                magazine.reach = heap.near_reach(core, class);
            }
        }
    }

    /// The home; one that no heap has before the first use.
    fn home_core(&self) -> u16 {
        u16::try_from(self.home).unwrap_or(u16::MAX).wrapping_sub(1)
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

    /// Fills an empty magazine to a half and takes one slot out of it: what threads of this core
    /// gave back last, or else the nearest there is.
    fn refill(&mut self, heap: &Heap<'_>, core: u16, class: SizeClass) -> Option<Slot> {
        self.tell(heap);
        let magazine = &mut self.stock[class.index()];
        let half = (magazine.capacity / 2).min(BATCH) as usize;
        magazine.refilled = true;
        let mut slots = heap.take_kept(core, class, &mut magazine.slots[..half]);
        if slots == 0 {
            slots = self.draw(heap, core, class, half);
        }
        let magazine = &mut self.stock[class.index()];
        magazine.length = u32::try_from(slots).unwrap_or(0);
        self.outside_bytes += bytes(class, slots);
        magazine.pop()
    }

    /// Draws up to `half` slots from bins or pages; how many.
    fn draw(&mut self, heap: &Heap<'_>, core: u16, class: SizeClass, half: usize) -> usize {
        let magazine = &mut self.stock[class.index()];
        let mut drawn =
            heap.refill_paged(core, class, &mut magazine.slots[..half], &mut magazine.open);
        if drawn.slots == 0 && magazine.away_length > 0 {
            // What this thread itself has gathered is the last that there is.
            magazine.send_home(heap, core, class);
            drawn = heap.refill_paged(core, class, &mut magazine.slots[..half], &mut magazine.open);
        }
        magazine.reach = drawn.reach;
        for &slot in &magazine.slots[..drawn.slots] {
            self.counts.drawn.add(heap.distance(Slot(slot), core));
        }
        // The nearest ones were drawn first, or the first of a page, and are to be taken first.
        magazine.slots[..drawn.slots].reverse();
        self.counts.drawn_slots += drawn.slots as u64;
        self.counts.near_slots += drawn.near as u64;
        drawn.slots
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
        if magazine.reach == KEEPS_ALL || heap.bin_rank(core, class, word, slot) <= magazine.reach {
            let capacity = magazine.capacity;
            if magazine.length >= capacity && !magazine.grow() {
                self.shed(heap, class, (capacity / 2).min(BATCH));
                self.tell(heap);
            }
            self.stock[class.index()].push(slot);
            return Ok(class);
        }
        magazine.away[magazine.away_length as usize % AWAY] = slot.0;
        magazine.away_length += 1;
        let is_full = magazine.away_length as usize >= AWAY;
        if is_full {
            magazine.send_home(heap, core, class);
        }
        self.outside_bytes -= bytes(class, 1);
        self.counts.foreign_frees += 1;
        self.untold_frees += 1;
        if is_full {
            self.tell(heap);
        }
        Ok(class)
    }

    /// Gives up to `count` slots of a class to the other threads of this core, those first that
    /// were at hand for longest.
    fn shed(&mut self, heap: &Heap<'_>, class: SizeClass, count: u32) {
        let home = self.home_core();
        let magazine = &mut self.stock[class.index()];
        let length = magazine.length as usize;
        let count = (count as usize).min(length);
        heap.give_to(home, class, &magazine.slots[..count]);
        magazine.slots.copy_within(count..length, 0);
        magazine.length = u32::try_from(length - count).unwrap_or(0);
        self.outside_bytes -= bytes(class, count);
    }

    /// Makes `core` the home; what is far from it is left behind.
    fn settle(&mut self, heap: &Heap<'_>, core: u16) {
        let home = u32::from(core) + 1;
        if self.home == home {
            return;
        }
        let before = (self.home != 0).then(|| self.home_core());
        if before.is_some() {
            self.counts.home_changes += 1;
            heap.sums().home_changes.fetch_add(1, Relaxed);
        }
        self.home = home;
        for class in SizeClass::ALL {
            let magazine = &mut self.stock[class.index()];
            magazine.reach = heap.near_reach(core, class);
            magazine.capacity = magazine.capacity.max(first_capacity(class));
            if let Some(before) = before.filter(|_| magazine.reach != KEEPS_ALL) {
                heap.close(class, &mut magazine.open);
                let left = magazine.leave_behind(heap, core, class, before);
                self.outside_bytes -= bytes(class, left);
            }
        }
        if before.is_some() {
            self.tell(heap);
        }
    }

    /// Tells the heap by how much this thread changed what is live.
    fn tell(&mut self, heap: &Heap<'_>) {
        let at_hand = SizeClass::ALL.map(|class| bytes(class, self.at_hand(class)));
        let live = self.outside_bytes - at_hand.iter().sum::<i64>();
        if live != self.told_bytes {
            heap.sums().live_bytes.fetch_add(live - self.told_bytes, Relaxed);
            self.told_bytes = live;
        }
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
