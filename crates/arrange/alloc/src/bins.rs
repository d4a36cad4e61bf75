//! Bins: units that are equally far from every core, whatever its current base.
//!
//! Bins are made once, from all bases of an atlas. A core that is moved then needs another order
//! over the bins, and no list is touched. A bin is a group of the last-level cache and a group of
//! memory; each level has one more group for what is not known, so that the last bin is that of
//! units of which nothing is known.

use crate::class::UnitLines;
use crate::groups::{CLASS_KINDS, Classes, Groups, INDICES, Ladder, low_byte};
use crate::page::PageCodes;
use isochrone_atlas::{Atlas, Code, PatternTable};
use isochrone_units::Level;

/// Bins of one unit size, at most. A model that is checked on every interleaving has fewer: each
/// head is an atomic that it follows.
pub const MAX_BINS: usize = if cfg!(all(loom, test)) { 8 } else { 256 };
/// Kinds of pages: four kinds of classes at each level, and one for what is not known.
pub(crate) const KINDS: usize = (CLASS_KINDS + 1) * (CLASS_KINDS + 1);
/// Kinds at one level.
pub(crate) const KINDS_EACH: u8 = low_byte(CLASS_KINDS) + 1;
/// The kind of a page of which nothing is known.
pub(crate) const UNKNOWN_KIND: u8 = low_byte(KINDS - 1);
/// Groups that the cache has before memory has its second, at most.
const SLICES: usize = 16;
/// Ranks that an oracle knows for each of its two cores.
const ORACLE_RANKS: u8 = 16;

/// Bins of units of one size.
#[derive(Clone, Debug)]
pub(crate) struct UnitBins {
    pub(crate) llc: Groups,
    pub(crate) dram: Groups,
    /// First bin of the cache's group, by canonical index.
    llc_first: [u8; INDICES],
}

impl UnitBins {
    fn new<L, D>(llc: &L, dram: &D, unit: UnitLines) -> Self
    where
        L: Iterator<Item = PatternTable> + Clone,
        D: Iterator<Item = PatternTable> + Clone,
    {
        let ladders = (Ladder::climb(llc, unit), Ladder::climb(dram, unit));
        let (llc_count, dram_count) = split(&ladders.0, &ladders.1);
        let llc = Groups::of_ladder(llc, unit, &ladders.0, llc_count);
        let dram = Groups::of_ladder(dram, unit, &ladders.1, dram_count);
        let stride = dram.count + 1;
        let llc_first = llc.of.map(|group| group * stride);
        Self { llc, dram, llc_first }
    }

    /// Bins, that of unknown units included.
    pub(crate) fn count(&self) -> usize {
        (usize::from(self.llc.count) + 1) * (usize::from(self.dram.count) + 1)
    }

    /// The groups of a bin.
    pub(crate) fn groups_of(&self, bin: u8) -> (u8, u8) {
        let stride = self.dram.count + 1;
        (bin / stride, bin % stride)
    }

    fn bin(&self, codes: PageCodes, line: u8) -> u8 {
        self.bin_of(u32::from(codes.llc.0), u32::from(codes.dram.0), line)
    }

    /// A code that is not known lies beyond all indices.
    #[inline(always)]
    pub(crate) fn bin_of(&self, llc: u32, dram: u32, line: u8) -> u8 {
        let index = |code: u32| (code ^ u32::from(line)) as usize;
        let llc = match self.llc_first.get(index(llc)) {
            Some(first) => *first,
            None => self.llc.count * (self.dram.count + 1),
        };
        let dram = match self.dram.of.get(index(dram)) {
            Some(group) => *group,
            None => self.dram.count,
        };
        llc.wrapping_add(dram)
    }
}

/// How many groups each level gets: the numbers whose widest groups together span the fewest
/// cycles. A cycle counts the same at either level, but the cache has a group for each of its
/// slices first, as far as they can be told apart: a slice that is loaded unseen costs misses.
fn split(llc: &Ladder, dram: &Ladder) -> (usize, usize) {
    let mut best = (f32::INFINITY, 0, 0);
    let (least_dram, least_llc) = (dram.rungs().min(1), llc.rungs().min(SLICES));
    for dram_count in least_dram..=dram.rungs() {
        let room = MAX_BINS / (dram_count + 1) - 1;
        let llc_count = llc.rungs().min(room);
        if llc_count < least_llc && dram_count > least_dram {
            break;
        }
        let width = llc.width(llc_count) + dram.width(dram_count);
        if width < best.0 {
            best = (width, llc_count, dram_count);
        }
    }
    (best.1, best.2)
}

/// Bins of all three unit sizes.
#[derive(Clone, Debug)]
pub struct Bins {
    pub(crate) units: [UnitBins; 3],
    pub(crate) llc: Classes,
    pub(crate) dram: Classes,
}

impl Bins {
    /// From every base that a core may have. A level without a base is not known.
    #[must_use]
    pub fn new<L, D>(llc: L, dram: D) -> Self
    where
        L: Iterator<Item = PatternTable> + Clone,
        D: Iterator<Item = PatternTable> + Clone,
    {
        Self {
            units: UnitLines::ALL.map(|unit| UnitBins::new(&llc, &dram, unit)),
            llc: Classes::of(llc.clone().next().as_ref()),
            dram: Classes::of(dram.clone().next().as_ref()),
        }
    }

    /// From the bases of an atlas, with its shares of page classes.
    #[must_use]
    pub fn from_atlas(atlas: &Atlas<'_>) -> Self {
        let of = |level| {
            let count = atlas.level(level).map_or(0, |info| info.bases);
            (0..count).filter_map(move |base| atlas.base(level, base))
        };
        let shares = |level| atlas.level(level).map(|info| info.shares());
        let mut bins = Self::new(of(Level::Llc), of(Level::Dram));
        if let Some(shares) = shares(Level::Llc) {
            bins.llc = bins.llc.with_shares(&shares);
        }
        if let Some(shares) = shares(Level::Dram) {
            bins.dram = bins.dram.with_shares(&shares);
        }
        bins
    }

    /// The bin of the unit that begins at a line of a page.
    #[inline]
    #[must_use]
    pub fn bin(&self, unit: UnitLines, codes: PageCodes, first_line_in_page: u8) -> u8 {
        self.units[unit as usize].bin(codes, first_line_in_page)
    }

    /// Bins of a unit size; the last is that of units of which nothing is known.
    #[must_use]
    pub fn count(&self, unit: UnitLines) -> usize {
        self.units[unit as usize].count()
    }

    /// Bins that follow one another and share a group of the cache.
    pub(crate) fn bins_per_slice(&self, unit: UnitLines) -> usize {
        usize::from(self.units[unit as usize].dram.count) + 1
    }

    /// The kind of a page: all pages of a kind have the same lines, in another order.
    pub(crate) fn kind(&self, codes: PageCodes) -> u8 {
        let class = |code: Code, classes: &Classes| {
            let unknown = code == Code::UNKNOWN;
            if unknown { KINDS_EACH - 1 } else { classes.kind(code.class(classes.period)) }
        };
        class(codes.llc, &self.llc) * KINDS_EACH + class(codes.dram, &self.dram)
    }
}

/// The bin of a unit whose lines were all measured: its rank for a first and for a second core,
/// each the mean over its lines.
pub(crate) fn oracle_bin(ranks: impl Iterator<Item = u8>) -> u8 {
    let (mut first, mut second, mut count) = (0_u16, 0_u16, 0_u16);
    for rank in ranks {
        first += u16::from(rank / ORACLE_RANKS);
        second += u16::from(rank % ORACLE_RANKS);
        count += 1;
    }
    let mean = |sum: u16| (sum + count / 2).checked_div(count).unwrap_or(15).to_le_bytes()[0];
    (mean(first) * ORACLE_RANKS + mean(second)).min(low_byte(MAX_BINS - 2))
}

/// The two ranks of an oracle's bin.
pub(crate) const fn oracle_ranks(bin: u8) -> [u8; 2] {
    [bin / ORACLE_RANKS, bin % ORACLE_RANKS]
}

/// A measured line as tables hold it: its rank for a first and a second core, 0 for the nearest
/// sixteenth of all lines to 15 for the farthest. Larger ranks count as 15.
#[must_use]
pub const fn oracle_rank(first: u8, second: u8) -> u8 {
    let most = ORACLE_RANKS - 1;
    let first = if first < most { first } else { most };
    let second = if second < most { second } else { most };
    first * ORACLE_RANKS + second
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas::Period;
    use std::vec::Vec;

    fn table(patterns: &[Vec<f32>]) -> PatternTable {
        PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice)).unwrap()
    }

    /// Eight cache distances by the low bits; memory flat in a page, four classes.
    fn genoa() -> Bins {
        let eight = [32.0, 44.0, 36.0, 40.0, 34.0, 42.0, 38.0, 46.0_f32];
        let llc = [table(&[(0..64).map(|i| eight[i % 8]).collect()])];
        let classes = [337.0, 349.0, 361.0, 373.0_f32];
        let dram = [table(&classes.map(|cycles| std::vec![cycles; 64]))];
        Bins::new(llc.iter().cloned(), dram.iter().cloned())
    }

    #[test]
    fn bins_are_products_of_what_differs() {
        let bins = genoa();
        assert_eq!(bins.count(UnitLines::One), 9 * 5);
        let codes = PageCodes { llc: Code(3), dram: Code(64 + 9) };
        for line in 0..64 {
            let other = PageCodes { llc: Code(11), dram: Code(64) };
            assert_eq!(
                bins.bin(UnitLines::One, codes, line),
                bins.bin(UnitLines::One, other, line)
            );
        }
        let distinct: std::collections::BTreeSet<u8> =
            (0..64).map(|line| bins.bin(UnitLines::One, codes, line)).collect();
        assert_eq!(distinct.len(), 8);
    }

    #[test]
    fn what_is_not_known_has_bins_of_its_own() {
        let bins = genoa();
        let last = low_byte(bins.count(UnitLines::One) - 1);
        assert_eq!(bins.bin(UnitLines::One, PageCodes::UNKNOWN, 5), last);
        let half = PageCodes { llc: Code(3), dram: Code::UNKNOWN };
        let groups = bins.units[0].groups_of(bins.bin(UnitLines::One, half, 5));
        assert_eq!(groups.1, bins.units[0].dram.count);
        assert!(groups.0 < bins.units[0].llc.count);
        assert_eq!(bins.kind(PageCodes::UNKNOWN), UNKNOWN_KIND);
        assert_eq!(bins.kind(PageCodes { llc: Code(3), dram: Code(130) }), 2);
    }

    #[test]
    fn an_atlas_without_levels_has_one_bin() {
        let none = core::iter::empty::<PatternTable>;
        let bins = Bins::new(none(), none());
        for unit in UnitLines::ALL {
            assert_eq!(bins.count(unit), 1);
            assert_eq!(bins.bin(unit, PageCodes { llc: Code(9), dram: Code(3) }, 7), 0);
        }
    }

    #[test]
    fn sixty_four_keys_at_both_levels_fit_a_byte() {
        let pattern = |seed: usize| -> Vec<f32> {
            (0..64).map(|i| 80.0 + f32::from(low_byte((i * 37 + seed) * 29 % 71))).collect()
        };
        let llc: Vec<PatternTable> = (0..4).map(|s| table(&[pattern(s * 7)])).collect();
        let dram: Vec<PatternTable> = (0..4).map(|s| table(&[pattern(s * 5 + 3)])).collect();
        let bins = Bins::new(llc.iter().cloned(), dram.iter().cloned());
        for unit in UnitLines::ALL {
            assert!(bins.count(unit) <= MAX_BINS, "{}", bins.count(unit));
            assert!(bins.count(unit) > 128, "{}", bins.count(unit));
            let codes = PageCodes { llc: Code(40), dram: Code(41) };
            for line in 0..64 {
                assert!(usize::from(bins.bin(unit, codes, line)) < bins.count(unit) - 1);
            }
        }
    }

    #[test]
    fn an_oracles_bin_holds_both_ranks() {
        assert_eq!(oracle_ranks(oracle_bin([oracle_rank(3, 12)].into_iter())), [3, 12]);
        let pair = [oracle_rank(2, 10), oracle_rank(4, 14)];
        assert_eq!(oracle_ranks(oracle_bin(pair.into_iter())), [3, 12]);
        assert_eq!(oracle_bin([oracle_rank(15, 99)].into_iter()), 254);
    }
}
