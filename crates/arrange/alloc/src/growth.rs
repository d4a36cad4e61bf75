//! How a heap grows: classified pages join it, wait by kind, and are cut into slots of a class
//! when memory may be spent, or must be.
//!
//! Memory is spent for two reasons that are never mixed. For a nearer line: only while what is
//! assigned stays within the waste allowed. For any line: when no slot of the class is free. A
//! page never leaves its class again, though its memory may go back to the system (`leave`).

use crate::bins::{KINDS, UNKNOWN_KIND};
use crate::class::{SizeClass, UnitLines, bits};
use crate::heap::{Heap, PAGE_LINES};
use crate::open::OpenPage;
use crate::page::{PageCodes, PageState, PageWord};
use crate::policy::scaled;
use crate::slot::GRANULES_PER_PAGE;
use crate::stack::Stack;
use crate::sync::Ordering::{AcqRel, Relaxed};
use crate::tables::{FREE, OrderTable};
use isochrone_units::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
/// Pages that wait for a class, at least, at most, and as a share of those assigned.
const READY_PAGES: (u64, u64, u64) = (16, 256, 16);

impl<'a> Heap<'a> {
    /// A page joins the heap. False if it is beyond the arena or part of the heap already. A page
    /// of which nothing is known may join, and is used last.
    pub fn page_ready(&self, page: u32, codes: PageCodes) -> bool {
        let Some(word) = self.tables.pages.get(page as usize) else { return false };
        let end = (page as usize + 1) * PAGE_LINES as usize;
        let numbered = page < u32::MAX / GRANULES_PER_PAGE;
        if !numbered || end > self.tables.next.len() || end > self.tables.masks.len() {
            return false;
        }
        let ready = self.page_word(page, PageState::Ready, codes);
        // Release: what the caller did with the page comes before anybody is given a slot of it.
        if word.compare_exchange(0, ready.0, AcqRel, Relaxed).is_err() {
            return false;
        }
        self.count_units(page, ready, 1);
        self.sums().pages.fetch_add(1, Relaxed);
        self.sums().ready_pages.fetch_add(1, Relaxed);
        self.ready_stack(self.kind(ready.seen())).push_all(&[page * PAGE_LINES]);
        true
    }

    /// The same for a page of which every line was measured: [`crate::oracle_rank`] by line.
    pub fn page_measured(&self, page: u32, codes: PageCodes, ranks: &[u8; 64]) -> bool {
        let first = page as usize * PAGE_LINES as usize;
        let Some(lines) = self.tables.ranks.get(first..first + ranks.len()) else { return false };
        if self.state(page) != PageState::Absent {
            return false;
        }
        for (line, &rank) in lines.iter().zip(ranks) {
            line.store(rank, Relaxed);
        }
        self.page_ready(page, codes)
    }

    /// Says anew what is known of a page. Its free units find their bins when they are next
    /// drawn; its slots in use are near or far at once. False if the page is not of the heap, or on its way to leave.
    pub fn recode(&self, page: u32, codes: PageCodes) -> bool {
        let Some(word) = self.tables.pages.get(page as usize) else { return false };
        let recoded = |before: u64| self.page_word(page, PageWord(before).state(), codes);
        let is_there = |before: u64| before != 0 && before & PageWord::WAY == 0;
        let known = |before: u64| is_there(before).then(|| recoded(before).0);
        let Ok(before) = word.fetch_update(AcqRel, Relaxed, known) else { return false };
        self.count_units(page, PageWord(before), u32::MAX);
        self.count_units(page, recoded(before), 1);
        self.move_used(page, PageWord(before), recoded(before));
        true
    }

    /// Takes back what was known of a page, whose frame is another now: it counts as far as any.
    pub fn demote(&self, page: u32) -> bool {
        let demoted = self.recode(page, PageCodes::UNKNOWN);
        if demoted {
            let first = page as usize * PAGE_LINES as usize;
            let measured = self.tables.ranks.get(first..first + PAGE_LINES as usize);
            measured.unwrap_or(&[]).iter().for_each(|rank| rank.store(u8::MAX, Relaxed));
            self.sums().demoted_pages.fetch_add(1, Relaxed);
        }
        demoted
    }

    /// Puts up to `units` free units of a class, of which nothing was known when they were freed,
    /// where they belong by now; how many were moved. For after pages were decoded again.
    pub fn rebin_unknown(&self, class: SizeClass, units: usize) -> usize {
        let last = self.bins_count(class) - 1;
        let bin = crate::groups::low_byte(last);
        let (mut moved, mut seen) = (0, 0);
        // What stays is set aside until the end, so that it is not drawn again.
        let mut stays = [0; 64];
        while seen < units.min(stays.len()) {
            let mut line = [0];
            if self.stack(class, bin).pop_many(&mut line) == 0 {
                break;
            }
            let home = self.unit_bin(class, line[0]);
            if home == bin {
                stays[seen - moved] = line[0];
            } else {
                self.stack(class, home).push_all(&line);
                moved += 1;
            }
            seen += 1;
        }
        self.stack(class, bin).push_all(&stays[..seen - moved]);
        moved
    }

    /// Pages that should join the heap now.
    #[must_use]
    pub fn wants_pages(&self) -> u32 {
        let (least, most, share) = READY_PAGES;
        let assigned = self.sums().assigned_bytes.load(Relaxed) / PAGE;
        let target = (assigned / share).clamp(least, most);
        let ready = u64::from(self.sums().ready_pages.load(Relaxed));
        u32::try_from(target.saturating_sub(ready)).unwrap_or(0)
    }

    /// Bytes that may be assigned for the sake of nearer lines.
    #[must_use]
    pub fn preference_limit_bytes(&self) -> u64 {
        self.limit_for_bytes(self.live_bytes())
    }

    /// The same with so many live bytes.
    pub(crate) fn limit_for_bytes(&self, live: u64) -> u64 {
        let waste = scaled(live, self.policy.waste);
        live.saturating_add(waste).saturating_add(self.policy.slack_bytes)
    }

    /// The bin in which a unit of a class belongs now.
    pub(crate) fn unit_bin(&self, class: SizeClass, line: u32) -> u8 {
        self.class_bin(class, self.word(line / PAGE_LINES), line)
    }

    /// Assigns a page that has units near for the core, if that stays within the waste allowed.
    pub(crate) fn grow_near(
        &self,
        class: SizeClass,
        order: &OrderTable,
        open: Option<&mut OpenPage>,
    ) -> bool {
        let limit = self.preference_limit_bytes();
        let sums = self.sums();
        let reserve = |bytes: u64| bytes.checked_add(PAGE).filter(|&bytes| bytes <= limit);
        if sums.assigned_bytes.fetch_update(Relaxed, Relaxed, reserve).is_err() {
            return false;
        }
        let near = order.near_kinds.load(Relaxed);
        let kinds = order.kinds.iter().map(|kind| kind.load(Relaxed));
        let Some(page) = self.take_page(kinds.filter(|kind| near >> kind & 1 == 1)) else {
            sums.assigned_bytes.fetch_sub(PAGE, Relaxed);
            return false;
        };
        self.cut(class, page, Some(order), open);
        true
    }

    /// Assigns any page, the best kind for the core first.
    pub(crate) fn grow_any(
        &self,
        class: SizeClass,
        order: Option<&OrderTable>,
        open: Option<&mut OpenPage>,
    ) -> bool {
        let sums = self.sums();
        let limit = self.preference_limit_bytes();
        let ordered = order.filter(|order| order.count.load(Relaxed) > 0);
        let kinds = ordered.into_iter().flat_map(|order| &order.kinds);
        let kinds = kinds.map(|kind| kind.load(Relaxed));
        // All kinds once more: an order may be there half, or not at all.
        let every = 0..=UNKNOWN_KIND;
        let Some(page) = self.take_page(kinds.chain(every)) else { return false };
        self.cut(class, page, ordered, open);
        if sums.assigned_bytes.fetch_add(PAGE, Relaxed) + PAGE > limit {
            sums.forced_pages.fetch_add(1, Relaxed);
        }
        true
    }

    /// Takes a ready page of the first of these kinds that has one.
    fn take_page(&self, kinds: impl Iterator<Item = u8> + Clone) -> Option<u32> {
        loop {
            let mut moved = false;
            for kind in kinds.clone() {
                if let Some(page) = self.take_ready(kind, &mut moved) {
                    return Some(page);
                }
            }
            // A page may have moved to a kind that was looked at before.
            if !moved {
                return None;
            }
        }
    }

    /// Takes a ready page of a kind; `moved` if one was found that is of another by now.
    fn take_ready(&self, kind: u8, moved: &mut bool) -> Option<u32> {
        loop {
            let mut line = [0];
            if self.ready_stack(kind).pop_many(&mut line) == 0 {
                return None;
            }
            let page = line[0] / PAGE_LINES;
            let home = self.kind(self.word(page).seen());
            if home == kind {
                // A child of `fork` begins at none, maybe just before a page that was counted.
                let less = |pages: u32| pages.checked_sub(1);
                let _ = self.sums().ready_pages.fetch_update(Relaxed, Relaxed, less);
                return Some(page);
            }
            *moved = true;
            self.ready_stack(home).push_all(&line);
        }
    }

    /// Cuts a page that the caller owns into units: those worth keeping for who keeps a page, the
    /// others free.
    fn cut(
        &self,
        class: SizeClass,
        page: u32,
        order: Option<&OrderTable>,
        open: Option<&mut OpenPage>,
    ) {
        let assign = |word: u64| Some(PageWord(word).assigned(class).0);
        if let Some(word) = self.tables.pages.get(page as usize) {
            // It always succeeds: the closure refuses nothing.
            let _ = word.fetch_update(AcqRel, Relaxed, assign);
        }
        let word = self.word(page);
        let line_of = |place: u8| page * PAGE_LINES + u32::from(place);
        // By line; those in which no slot begins have none.
        let mut bins = [0; PAGE_LINES as usize];
        for place in bits(class.units()) {
            bins[usize::from(place)] = self.class_bin(class, word, line_of(place));
        }
        let mut keeps = 0;
        if let Some(open) = open {
            keeps = kept(class.units(), &bins, order);
            *open = OpenPage::new(page, keeps);
        }
        for place in bits(class.units()) {
            let is_kept = keeps >> place & 1 == 1;
            if let Some(mask) = self.tables.masks.get(line_of(place) as usize) {
                mask.store(if is_kept { 0 } else { class.full_mask(place) }, Relaxed);
            }
            if is_kept {
                self.tally(class.unit(), bins[usize::from(place)], 1);
            }
        }
        let mut left = class.units() & !keeps;
        while let Some(first) = bits(left).next() {
            let bin = bins[usize::from(first)];
            let (mut chain, mut length) = ([0; PAGE_LINES as usize], 0);
            for place in bits(left).filter(|place| bins[usize::from(*place)] == bin) {
                chain[length] = line_of(place);
                length += 1;
                left &= !(1 << place);
            }
            self.stack(class, bin).push_all(&chain[..length]);
        }
    }

    fn ready_stack(&self, kind: u8) -> Stack<'a> {
        let kind = usize::from(kind).min(KINDS - 1);
        Stack::new(&self.tables.shared.ready[kind], self.tables.next)
    }

    /// Units in use of a page that was coded anew are in use of other bins. Those that threads
    /// take or free meanwhile may be counted wrong: it is a tally, and nothing hangs on one unit.
    fn move_used(&self, page: u32, before: PageWord, after: PageWord) {
        let Some(class) = before.class() else { return };
        for place in bits(class.units()) {
            let line = page * PAGE_LINES + u32::from(place);
            let mask = self.tables.masks.get(line as usize).map_or(FREE, |mask| mask.load(Relaxed));
            if mask & FREE == 0 {
                self.tally(class.unit(), self.class_bin(class, before, line), -1);
                self.tally(class.unit(), self.class_bin(class, after, line), 1);
            }
        }
    }

    /// Counts units that left a bin to be used, or came back.
    pub(crate) fn tally(&self, unit: UnitLines, bin: u8, units: i32) {
        self.tables.shared.used[unit as usize][usize::from(bin)].fetch_add(units, Relaxed);
    }

    /// Adds `sign` (1, or -1 as it wraps) to the population of the bins of a page's units.
    pub(crate) fn count_units(&self, page: u32, word: PageWord, sign: u32) {
        for unit in UnitLines::ALL {
            let mut units = [0_u8; crate::bins::MAX_BINS];
            for place in 0..u32::from(unit.per_page()) {
                let line = page * PAGE_LINES + (place << unit as u8);
                units[usize::from(self.bin(unit, word.seen(), line))] += 1;
            }
            let population = &self.tables.shared.population[unit as usize];
            for (count, &units) in population.iter().zip(&units).filter(|(_, units)| **units > 0) {
                count.fetch_add(u32::from(units).wrapping_mul(sign), Relaxed);
            }
        }
        debug_assert!(!self.policy.mode.is_oracle() || !self.tables.ranks.is_empty());
    }
}

/// Of these units, by line, those of the bins that an order keeps; all where it keeps none of them.
fn kept(all: u64, bins: &[u8; PAGE_LINES as usize], order: Option<&OrderTable>) -> u64 {
    let mut units = 0;
    if let Some(order) = order {
        let keep = order.keep.load(Relaxed).max(order.near.load(Relaxed));
        for place in bits(all) {
            let rank = order.ranks[usize::from(bins[usize::from(place)])].load(Relaxed);
            units |= u64::from(u16::from(rank) < keep) << place;
        }
    }
    if units == 0 { all } else { units }
}
