//! The heap: which unit lies in which bin, and what a slot is.
//!
//! A unit's bin follows from its page's word alone, so it is never stored and never wrong for
//! longer than the unit stays free: a unit that is drawn from a bin to which it no longer belongs
//! is put where it does. Locks are nowhere, and the memory behind the slots is never touched.

use crate::bins::{Bins, MAX_BINS, oracle_bin};
use crate::class::{SizeClass, UnitLines};
use crate::groups::Classes;
use crate::model::{Prediction, cut, predict_among, shares};
use crate::order::{Order, oracle_cut};
use crate::page::{Disguise, PageCodes, PageState, PageWord};
use crate::policy::{Mode, Policy, scaled};
use crate::slot::Slot;
use crate::stack::Stack;
use crate::sync::Ordering::Relaxed;
use crate::tables::{CoreTable, OrderTable, Sums, Tables};
use crate::wish::{CurrentBases, Wish};
use isochrone_atlas::{Code, Period};
use isochrone_units::LINES_PER_PAGE;

/// Lines of a page, as line numbers count.
pub(crate) const PAGE_LINES: u32 = 64;
const _: () = assert!(PAGE_LINES as usize == LINES_PER_PAGE);
/// What orders are made for at least, bytes.
const ORDER_BYTES: u64 = 1 << 16;

/// A heap over the caller's tables. Cheap to make and to copy: it has no state of its own.
#[derive(Clone, Copy, Debug)]
pub struct Heap<'a> {
    pub(crate) tables: Tables<'a>,
    pub(crate) bins: &'a Bins,
    pub(crate) policy: Policy,
}

impl<'a> Heap<'a> {
    /// A heap over these tables, empty or not; they are not changed.
    #[must_use]
    pub const fn new(tables: Tables<'a>, bins: &'a Bins, policy: Policy) -> Self {
        Self { tables, bins, policy }
    }

    /// What it was made for.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) const fn sums(&self) -> &'a Sums {
        &self.tables.shared.sums
    }

    /// The stack of free units of a class and bin.
    pub(crate) fn stack(&self, class: SizeClass, bin: u8) -> Stack<'a> {
        let head = &self.tables.shared.heads[class.index()][usize::from(bin)];
        Stack::new(head, self.tables.next)
    }

    /// The order of a core over units of one size, where the core is one of the heap's.
    #[inline]
    pub(crate) fn order(&self, core: u16, unit: UnitLines) -> Option<&'a OrderTable> {
        Some(&self.core(core)?.orders[unit as usize])
    }

    pub(crate) fn core(&self, core: u16) -> Option<&'a CoreTable> {
        self.tables.cores.get(usize::from(core))
    }

    #[inline]
    pub(crate) fn word(&self, page: u32) -> PageWord {
        PageWord(self.tables.pages.get(page as usize).map_or(0, |word| word.load(Relaxed)))
    }

    /// What a page is used for.
    #[must_use]
    pub fn state(&self, page: u32) -> PageState {
        self.word(page).state()
    }

    /// What is known of a page, if it is part of the heap.
    #[must_use]
    pub fn codes(&self, page: u32) -> Option<PageCodes> {
        let word = self.word(page);
        (word.state() != PageState::Absent).then(|| word.codes())
    }

    /// The class of a slot, if its page has one.
    #[inline]
    #[must_use]
    pub fn class_of(&self, slot: Slot) -> Option<SizeClass> {
        self.word(slot.page()).class()
    }

    /// The bin of the unit that begins at `line` of a page whose codes look like this.
    #[inline]
    pub(crate) fn bin(&self, unit: UnitLines, seen: PageCodes, line: u32) -> u8 {
        if self.policy.mode.is_oracle() {
            return self.oracle_bin(unit, line);
        }
        self.bins.bin(unit, seen, line_in_page(line))
    }

    /// The bin of the unit of a class that begins in `line` of a page with this word.
    #[inline]
    pub(crate) fn class_bin(&self, class: SizeClass, word: PageWord, line: u32) -> u8 {
        let middle =
            line - u32::from(line_in_page(line)) + u32::from(class.middle(line_in_page(line)));
        self.bin(class.unit(), word.seen(), middle)
    }

    /// The word of a page, as the mode sees it. An oblivious heap takes each page for one with
    /// another key, and another class by the atlas's shares. Each line then is as likely to pass
    /// for near as any other, a page has as many of them as it would have, and nothing else
    /// differs: not the lists, not the orders, not the time that anything takes.
    pub(crate) fn page_word(&self, page: u32, state: PageState, codes: PageCodes) -> PageWord {
        if self.policy.mode != Mode::Oblivious {
            return PageWord::new(state, codes, Disguise::default());
        }
        let [key, llc, dram, ..] = mixed(self.policy.seed, page).to_le_bytes();
        let high = |code: Code, classes: &Classes, draw: u8| match classes.period {
            Period::Lines64 => code.class(Period::Lines64) ^ classes.drawn(f32::from(draw) / 256.0),
            // There are no classes: these bits are of the key, and shared like the others.
            Period::Lines256 => key >> 6,
        };
        let high = [high(codes.llc, &self.bins.llc, llc), high(codes.dram, &self.bins.dram, dram)];
        PageWord::new(state, codes, Disguise { key, high })
    }

    #[inline(never)]
    fn oracle_bin(&self, unit: UnitLines, line: u32) -> u8 {
        let first = line as usize;
        let lines = self.tables.ranks.get(first..first + usize::from(unit.count()));
        oracle_bin(lines.unwrap_or(&[]).iter().map(|rank| rank.load(Relaxed)))
    }

    /// Bins of a class, used or not.
    pub(crate) fn bins_count(&self, class: SizeClass) -> usize {
        if self.policy.mode.is_oracle() { MAX_BINS } else { self.bins.count(class.unit()) }
    }

    /// Bins that follow one another and share a group of the cache, at least one. Of an oracle's
    /// bins it is not known, so each counts for itself.
    pub(crate) fn bins_per_slice(&self, class: SizeClass) -> usize {
        if self.policy.mode.is_oracle() { 1 } else { self.bins.bins_per_slice(class.unit()) }
    }

    /// The kind of a page whose codes look like this.
    pub(crate) fn kind(&self, seen: PageCodes) -> u8 {
        if self.policy.mode.is_oracle() { 0 } else { self.bins.kind(seen) }
    }

    /// The rank of a slot's bin in the order of a core; 0, the best, where there is no order.
    #[inline]
    pub(crate) fn bin_rank(&self, core: u16, class: SizeClass, word: PageWord, slot: Slot) -> u8 {
        let bin = self.class_bin(class, word, slot.line());
        let order = self.order(core, class.unit());
        order.map_or(0, |order| order.ranks[usize::from(bin)].load(Relaxed))
    }

    /// The same where ranks are not measured line by line, which is for the caller to know.
    #[inline(always)]
    pub(crate) fn pattern_rank(
        &self,
        core: u16,
        class: SizeClass,
        word: PageWord,
        slot: Slot,
    ) -> u8 {
        let (llc, dram) = word.seen_raw();
        let unit = &self.bins.units[class.unit() as usize];
        let bin = unit.bin_of(llc, dram, class.middle(slot.line_in_page()));
        let order = self.order(core, class.unit());
        order.map_or(0, |order| order.ranks[usize::from(bin) % MAX_BINS].load(Relaxed))
    }

    /// Gives a core the orders that follow from its current bases, for all unit sizes, and keeps
    /// these for [`Self::distance`]. An oracle's orders come from [`Self::set_order`];
    /// here it is only told how much is near, which is what would be near by the atlas.
    pub fn set_bases(&self, core: u16, current: &CurrentBases) {
        let for_bytes = self.order_bytes();
        for unit in UnitLines::ALL {
            self.set_bases_for(core, unit, current, for_bytes);
        }
        self.note_orders(for_bytes);
    }

    /// The same for units of one size: for whoever has not the time for all. `for_bytes` comes
    /// from [`Self::order_bytes`], once for all cores and units, and [`Self::note_orders`] is told
    /// when all are done.
    pub fn set_bases_for(
        &self,
        core: u16,
        unit: UnitLines,
        current: &CurrentBases,
        for_bytes: u64,
    ) {
        if unit == UnitLines::One {
            self.store_bases(core, current);
        }
        self.order_unit(core, unit, current, &self.wish(for_bytes));
    }

    /// A core has these bases now, before orders are made: in [`Mode::NearestParticipant`] the order of one core
    /// goes by the bases of all.
    pub fn take_part(&self, core: u16, current: &CurrentBases) {
        self.store_bases(core, current);
    }

    /// The current bases of the other cores that take lines.
    fn participants(&self, core: u16) -> impl Iterator<Item = CurrentBases> + '_ {
        let others = (0..=u16::MAX).zip(self.tables.cores).filter(move |(other, _)| *other != core);
        others.map(|(_, table)| table.current_bases()).filter(|bases| !bases.is_unknown())
    }

    /// All orders are for so many live bytes now.
    pub fn note_orders(&self, for_bytes: u64) {
        let sums = self.sums();
        sums.ordered_bytes.store(for_bytes, Relaxed);
        sums.ordered_pages.store(sums.pages.load(Relaxed), Relaxed);
    }

    #[inline(never)]
    fn order_unit(&self, core: u16, unit: UnitLines, current: &CurrentBases, wish: &Wish) {
        if self.policy.mode.is_oracle() {
            let order = Order::new(self.bins, unit, current, wish, None);
            if let Some(table) = self.order(core, unit) {
                table.near_share.store(order.near_share.to_bits(), Relaxed);
                self.cut_oracle(unit, table);
            }
            return;
        }
        let population = self.population(unit);
        let others = self.participants(core);
        let order = Order::among(self.bins, unit, current, others, wish, Some(&population));
        self.set_order(core, &order);
        if let Some(table) = self.order(core, unit)
            && order.count > 0
        {
            let shares = shares(self.bins, unit, Some(&population));
            let known = &order.bins[..usize::from(order.count) - 1];
            let (keep, _) = cut(known, &shares, self.keep_share(wish.live_bytes));
            table.keep.store(keep.max(order.near), Relaxed);
        }
    }

    /// The share of a page's units that must be used so that with so many live bytes no more
    /// memory is wasted than allowed.
    fn keep_share(&self, live_bytes: u64) -> f32 {
        ratio(live_bytes, self.limit_for_bytes(live_bytes).max(1))
    }

    /// Makes the orders of every core anew from its current bases: when [`Self::order_due`].
    pub fn reorder(&self) {
        for core in 0..=u16::MAX {
            let Some(table) = self.core(core) else { break };
            let current = table.current_bases();
            if !current.is_unknown() {
                self.set_bases(core, &current);
            }
        }
    }

    fn wish(&self, live_bytes: u64) -> Wish {
        let Policy { mode, near, llc_bytes, l2_bytes, tlb_bytes, .. } = self.policy;
        Wish { mode, near, live_bytes, llc_bytes, l2_bytes, tlb_bytes }
    }

    /// What a core gains with so many live bytes, by its current bases and the pages that are here.
    /// `None` where a level that counts is not known.
    #[must_use]
    pub fn predict(&self, core: u16, unit: UnitLines, live_bytes: u64) -> Option<Prediction> {
        let current = self.core(core)?.current_bases();
        // Bins in disguise, or of measured ranks, are not the atlas's.
        let other = self.policy.mode == Mode::Oblivious || self.policy.mode.is_oracle();
        let population = (!other).then(|| self.population(unit));
        let (wish, others) = (self.wish(live_bytes), self.participants(core));
        predict_among(self.bins, unit, &current, others, &wish, population.as_ref())
    }

    /// The share of units that now counts as near for a core: the policy's, or more where the
    /// slices of those would not hold what is live. `None` before a base of the core is known.
    #[must_use]
    pub fn near_share(&self, core: u16, unit: UnitLines) -> Option<f32> {
        let share = f32::from_bits(self.order(core, unit)?.near_share.load(Relaxed));
        (share > 0.0).then_some(share)
    }

    /// Cuts an oracle's order at the share that is near by the atlas, once both are there.
    fn cut_oracle(&self, unit: UnitLines, table: &OrderTable) {
        let share = f32::from_bits(table.near_share.load(Relaxed));
        if share > 0.0 && table.count.load(Relaxed) > 0 {
            let bins = core::array::from_fn(|rank| table.bins[rank].load(Relaxed));
            let population = self.population(unit);
            let (near, _) = oracle_cut(&bins, share, Some(&population));
            let keep = self.keep_share(self.order_bytes()).max(share);
            let (keep, _) = oracle_cut(&bins, keep, Some(&population));
            table.keep.store(keep, Relaxed);
            table.near.store(near, Relaxed);
        }
    }

    /// Gives a core an order for units of one size. Nothing happens for a core without tables.
    pub fn set_order(&self, core: u16, order: &Order) {
        let Some(table) = self.order(core, order.unit) else { return };
        for (rank, &bin) in (0..=u8::MAX).zip(order.bins()) {
            table.bins[usize::from(rank)].store(bin, Relaxed);
            table.ranks[usize::from(bin)].store(rank, Relaxed);
        }
        for (place, &kind) in table.kinds.iter().zip(&order.kinds) {
            place.store(kind, Relaxed);
        }
        if order.count == 0 {
            table.ranks.iter().for_each(|rank| rank.store(0, Relaxed));
        }
        table.near_kinds.store(order.near_kinds, Relaxed);
        table.near.store(order.near, Relaxed);
        table.keep.store(order.near, Relaxed);
        table.count.store(order.count, Relaxed);
        if self.policy.mode.is_oracle() {
            self.cut_oracle(order.unit, table);
        } else {
            table.near_share.store(order.near_share.to_bits(), Relaxed);
        }
    }

    /// The share of accesses that are expected to miss the last-level cache, with all live bytes
    /// equally often in use.
    #[must_use]
    pub fn dram_share(&self) -> f32 {
        let live = self.live_bytes();
        if live <= self.policy.llc_bytes {
            return 0.0;
        }
        1.0 - ratio(self.policy.llc_bytes, live)
    }

    /// How many live bytes orders made now are for: an eighth more than there are, since they
    /// serve until that many are. Up to what the nearer cache holds, all are one.
    #[must_use]
    pub fn order_bytes(&self) -> u64 {
        let live = self.live_bytes();
        live.saturating_add(live / 8).max(self.near_bytes())
    }

    /// Live bytes up to which no order changes: what fits the second-level cache, or the near
    /// lines' part of the last-level one, whichever is less.
    fn near_bytes(&self) -> u64 {
        let Policy { llc_bytes, l2_bytes, near, .. } = self.policy;
        let nearer = if l2_bytes == 0 { u64::MAX } else { l2_bytes };
        scaled(llc_bytes, near).min(nearer).max(ORDER_BYTES)
    }

    /// True if orders should be made again: more is live than they were made for, or less than
    /// half of it, or the pages of the heap doubled. The caller then calls [`Self::set_bases`] for
    /// every core, or [`Self::reorder`].
    #[must_use]
    pub fn order_due(&self) -> bool {
        let sums = self.sums();
        let (live, bytes) = (self.live_bytes(), sums.ordered_bytes.load(Relaxed));
        let (pages, pages_before) = (sums.pages.load(Relaxed), sums.ordered_pages.load(Relaxed));
        let least = self.near_bytes();
        live > bytes.max(least)
            || bytes > least && live < bytes / 2
            || pages / 2 > pages_before
            || pages_before == 0 && pages > 0
    }

    /// Units of one size by bin, over all pages of the heap.
    #[must_use]
    pub fn population(&self, unit: UnitLines) -> [u32; MAX_BINS] {
        let units = &self.tables.shared.population[unit as usize];
        core::array::from_fn(|bin| units[bin].load(Relaxed))
    }
}

/// The place of a line in its page.
#[inline]
pub(crate) const fn line_in_page(line: u32) -> u8 {
    (line % PAGE_LINES).to_le_bytes()[0]
}

/// A number that looks random, the same for the same number and seed (the finaliser of SplitMix64; Steele, Lea and
/// Flood, Fast Splittable Pseudorandom Number Generators, 2014).
#[must_use]
pub fn mixed(seed: u64, number: u32) -> u64 {
    let mut z = seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A ratio of byte counts.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a share")]
fn ratio(part: u64, whole: u64) -> f32 {
    (part as f64 / whole as f64) as f32
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod slice_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
