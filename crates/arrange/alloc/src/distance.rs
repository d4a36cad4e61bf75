//! How far a slot is: from what its page's codes say and the current bases of a core, in cycles.
//!
//! Distances are true in every mode: the oblivious heap chooses as if it did not know them, and
//! reports them as they are. What is not known is `None`.

use crate::class::{SizeClass, bits, slot_of_bit};
use crate::groups::INDICES;
use crate::heap::{Heap, PAGE_LINES};
use crate::page::PageCodes;
use crate::slot::Slot;
use crate::sync::Ordering::Relaxed;
use crate::tables::CoreTable;
use crate::tables::{FREE, owner_tag};
use crate::wish::CurrentBases;
use isochrone_atlas::Code;
use isochrone_units::Level;

/// Latency of a slot from a core, cycles: the mean over the lines that it touches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distance {
    /// With its lines in the last-level cache.
    pub llc: Option<f32>,
    /// With its lines in memory.
    pub dram: Option<f32>,
}

/// Distances summed, with a weight each; a level that is not known of a slot is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DistanceSum {
    sums: [f64; 2],
    weights: [f64; 2],
}

impl DistanceSum {
    pub(crate) const NONE: Self = Self { sums: [0.0; 2], weights: [0.0; 2] };

    /// Adds one slot.
    pub fn add(&mut self, distance: Distance) {
        self.add_weighted(distance, 1.0);
    }

    fn add_weighted(&mut self, distance: Distance, weight: f64) {
        for (place, cycles) in [distance.llc, distance.dram].into_iter().enumerate() {
            if let Some(cycles) = cycles {
                self.sums[place] += weight * f64::from(cycles);
                self.weights[place] += weight;
            }
        }
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: &Self) {
        for place in 0..2 {
            self.sums[place] += other.sums[place];
            self.weights[place] += other.weights[place];
        }
    }

    /// The mean at a level, cycles; `None` where nothing was known.
    #[must_use]
    pub fn mean(&self, level: Level) -> Option<f64> {
        let place = usize::from(level == Level::Dram);
        (self.weights[place] > 0.0).then(|| self.sums[place] / self.weights[place])
    }

    /// What was summed at a level: slots, or bytes where they are the weights.
    #[must_use]
    pub fn weight(&self, level: Level) -> f64 {
        self.weights[usize::from(level == Level::Dram)]
    }
}

/// What lies where, as one core sees it. Weights are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Bytes of slots outside bins that were taken for the core: live ones, and what the
    /// magazines of its threads hold.
    pub taken_bytes: u64,
    /// Their distances: the mean distance of live bytes.
    pub taken: DistanceSum,
    /// Distances of all bytes of pages that have a class: what lines taken at random would have.
    pub pool: DistanceSum,
}

impl Heap<'_> {
    /// How far a slot is from a core.
    #[must_use]
    pub fn distance(&self, slot: Slot, core: u16) -> Distance {
        let word = self.word(slot.page());
        let Some(table) = self.core(core) else { return Distance::default() };
        let lines = word.class().map_or(1, |class| class.lines_of(slot));
        table.distance(word.codes(), slot.line_in_page(), lines)
    }

    /// The share of the heap's units that are nearer to a core than a slot's bin, `0.0..1.0`.
    /// `None` where the core has no order or the slot no class.
    #[must_use]
    pub fn rank(&self, slot: Slot, core: u16) -> Option<f32> {
        let word = self.word(slot.page());
        let class = word.class()?;
        let order = self.order(core, class.unit())?;
        let count = usize::from(order.count.load(Relaxed));
        let rank = usize::from(self.bin_rank(core, class, word, slot));
        let population = self.population(class.unit());
        let units = |bins: &[crate::sync::AtomicU8]| -> u64 {
            let of = |bin: &crate::sync::AtomicU8| population[usize::from(bin.load(Relaxed))];
            bins.iter().map(|bin| u64::from(of(bin))).sum()
        };
        let bins = order.bins.get(..count).filter(|bins| !bins.is_empty())?;
        let all = units(bins);
        (all > 0).then(|| share(units(&bins[..rank.min(count)]), all))
    }

    /// Walks over all pages and sums distances from one core. For reports: it takes as long as
    /// there are lines, and threads may go on meanwhile.
    #[must_use]
    pub fn survey(&self, core: u16) -> Survey {
        let mut survey = Survey::default();
        let pages = u32::try_from(self.tables.pages.len()).unwrap_or(u32::MAX);
        for page in 0..pages {
            self.survey_page(page, core, &mut survey);
        }
        survey
    }

    fn survey_page(&self, page: u32, core: u16, survey: &mut Survey) {
        let word = self.word(page);
        let (Some(class), Some(table)) = (word.class(), self.core(core)) else { return };
        for first in bits(class.units()) {
            let line = (page * PAGE_LINES + u32::from(first)) as usize;
            let distance = table.distance(word.codes(), first, unit_lines(class, first));
            let slots = class.full_mask(first).count_ones();
            let slot_bytes = u32::try_from(class.bytes()).unwrap_or(0);
            survey.pool.add_weighted(distance, f64::from(slots * slot_bytes));
            let owner = self.tables.owners.get(line).map_or(0, |owner| owner.load(Relaxed));
            if owner != owner_tag(core) {
                continue;
            }
            let mask = self.tables.masks.get(line).map_or(FREE, |mask| mask.load(Relaxed));
            let taken = (!mask & class.full_mask(first)).count_ones() * slot_bytes;
            survey.taken_bytes += u64::from(taken);
            survey.taken.add_weighted(distance, f64::from(taken));
        }
    }

    /// What is taken for each core and how far that is from it, in one walk over every `every`th of
    /// the first `pages` pages; what those hold stands for the others too. `out` is by core;
    /// [`Survey::pool`] stays empty.
    pub fn survey_owners(&self, pages: u32, every: u32, out: &mut [Survey]) {
        let every = every.max(1);
        for page in (0..pages).step_by(usize::try_from(every).unwrap_or(1)) {
            let word = self.word(page);
            let Some(class) = word.class() else { continue };
            for first in bits(class.units()) {
                let line = (page * PAGE_LINES + u32::from(first)) as usize;
                let owner = self.tables.owners.get(line).map_or(0, |owner| owner.load(Relaxed));
                let Some(core) = owner.checked_sub(1) else { continue };
                let (core, place) = (u16::from(core), usize::from(core));
                let (Some(survey), Some(table)) = (out.get_mut(place), self.core(core)) else {
                    continue;
                };
                let mask = self.tables.masks.get(line).map_or(FREE, |mask| mask.load(Relaxed));
                let slot_bytes = u32::try_from(class.bytes()).unwrap_or(0);
                let taken = u64::from((!mask & class.full_mask(first)).count_ones() * slot_bytes);
                if taken > 0 {
                    let distance = table.distance(word.codes(), first, unit_lines(class, first));
                    survey.taken_bytes += taken * u64::from(every);
                    survey.taken.add_weighted(distance, whole(taken));
                }
            }
        }
    }

    /// The core for which the unit that holds a line was taken, while any slot of it is.
    #[must_use]
    pub fn taken_for(&self, line: u32) -> Option<u16> {
        let class = self.word(line / PAGE_LINES).class()?;
        // The last unit that begins in this line or before it.
        let before = class.units() & (u64::MAX >> (63 - line % PAGE_LINES));
        let first = u8::try_from(before.checked_ilog2()?).ok()?;
        let place = (line / PAGE_LINES * PAGE_LINES + u32::from(first)) as usize;
        let mask = self.tables.masks.get(place)?.load(Relaxed);
        let owner = self.tables.owners.get(place)?.load(Relaxed).checked_sub(1)?;
        (!mask & class.full_mask(first) != 0).then_some(u16::from(owner))
    }

    pub(crate) fn store_bases(&self, core: u16, current: &CurrentBases) {
        let Some(table) = self.core(core) else { return };
        let mut known = 0;
        for (level, cycles) in [&current.llc, &current.dram].into_iter().enumerate() {
            if let Some(cycles) = cycles {
                for (place, value) in table.current[level].iter().zip(cycles) {
                    place.store(value.to_bits(), Relaxed);
                }
                known |= 1 << level;
            }
        }
        table.known.store(known, Relaxed);
    }
}

impl CoreTable {
    /// The current bases of the core.
    pub(crate) fn current_bases(&self) -> CurrentBases {
        let known = self.known.load(Relaxed);
        let level = |level: usize| {
            let cycles = |index: usize| f32::from_bits(self.current[level][index].load(Relaxed));
            (known >> level & 1 == 1).then(|| core::array::from_fn(cycles))
        };
        CurrentBases { llc: level(0), dram: level(1) }
    }

    /// The mean over so many lines from `first` of a page on, by level.
    fn distance(&self, codes: PageCodes, first: u8, lines: u8) -> Distance {
        let known = self.known.load(Relaxed);
        let mean = |level: usize, code: Code| {
            if code == Code::UNKNOWN || known >> level & 1 == 0 {
                return None;
            }
            let of = |line: u8| {
                let index: usize = usize::from(code.0 ^ u16::from(line)) % INDICES;
                f32::from_bits(self.current[level][index].load(Relaxed))
            };
            let sum: f32 = (first..first.saturating_add(lines)).map(of).sum();
            let mean = sum / f32::from(lines);
            mean.is_finite().then_some(mean)
        };
        Distance { llc: mean(0, codes.llc), dram: mean(1, codes.dram) }
    }
}

/// Lines that the first slot of a unit touches.
fn unit_lines(class: SizeClass, line: u8) -> u8 {
    let bit = class.full_mask(line).trailing_zeros();
    class.lines_of(slot_of_bit(u32::from(line), bit))
}

/// A share of units.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a share")]
fn share(part: u64, whole: u64) -> f32 {
    (part as f64 / whole as f64) as f32
}

/// Bytes of a unit.
#[allow(clippy::cast_precision_loss, reason = "at most 256")]
fn whole(bytes: u64) -> f64 {
    bytes as f64
}
