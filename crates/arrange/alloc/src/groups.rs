//! Which canonical indices (`code ^ line`) of one level are alike to every core under every base,
//! so that their units may lie in one bin.
//!
//! Groups are found from the farthest index inwards: each new centre is the index that is least
//! like any centre so far. The centres are therefore nested, one ladder answers for every number
//! of groups, and what it states is the widest group, not the mean. A core or base is never named.

use crate::class::UnitLines;
use isochrone_atlas::{Code, PatternTable, Period, TABLE_ENTRIES};

/// Canonical indices of a level.
pub(crate) const INDICES: usize = TABLE_ENTRIES;
/// Classes of pages at one level, at most.
const MAX_CLASSES: usize = INDICES / 64;
/// Kinds that a level's classes are told apart by when pages are chosen; the next one is for pages
/// of which nothing is known.
pub(crate) const CLASS_KINDS: usize = 4;
/// Most groups of one level.
pub(crate) const MAX_GROUPS: usize = 64;
/// Residues of a line's index that are told apart where keys are counted.
pub(crate) const RESIDUES: usize = 8;
/// Indices that differ less than this are one group: finer than any base is measured, cycles.
pub(crate) const SAME_CYCLES: f32 = 0.5;
/// Groups narrower than this share of the widest difference gain nothing.
const SAME_SHARE: f32 = 1.0 / 12.0;

/// The latency of a unit by canonical index: the mean over its lines. The lines of an aligned unit
/// have the indices that differ from `index` in the lowest bits only, whatever the code.
pub(crate) fn unit_cycles(table: &[f32; INDICES], unit: UnitLines, index: usize) -> f32 {
    let count = usize::from(unit.count());
    let first = index / count * count;
    let lines = table.get(first..first + count).unwrap_or(&[]);
    lines.iter().sum::<f32>() / f32::from(unit.count())
}

/// Centres in the order in which they were found, and how wide the widest group is with each
/// number of them.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    centres: [u16; MAX_GROUPS],
    /// `widths[n]`: root-mean-square difference in cycles, over the bases, between the worst index
    /// and its centre, with `n + 1` centres.
    widths: [f32; MAX_GROUPS],
    rungs: usize,
}

impl Ladder {
    /// Climbs until groups are narrow enough. No rung without a base.
    pub(crate) fn climb<B>(bases: &B, unit: UnitLines) -> Self
    where
        B: Iterator<Item = PatternTable> + Clone,
    {
        let mut ladder = Self { centres: [0; MAX_GROUPS], widths: [0.0; MAX_GROUPS], rungs: 0 };
        let Some(first) = bases.clone().next() else { return ladder };
        let known = first.codes();
        let mut nearest = [f32::INFINITY; INDICES];
        let mut centre = 0;
        while ladder.rungs < MAX_GROUPS {
            let apart = squares_from(bases, unit, centre, known);
            let mut farthest = (0.0, 0);
            for (index, (least, apart)) in nearest.iter_mut().zip(apart).enumerate().take(known) {
                *least = least.min(apart);
                if *least > farthest.0 {
                    farthest = (*least, index);
                }
            }
            ladder.centres[ladder.rungs] = u16::try_from(centre).unwrap_or(0);
            ladder.widths[ladder.rungs] = libm::sqrtf(farthest.0);
            ladder.rungs += 1;
            centre = farthest.1;
            if ladder.is_narrow() {
                break;
            }
        }
        ladder
    }

    fn is_narrow(&self) -> bool {
        let width = self.widths[self.rungs.saturating_sub(1)];
        width <= SAME_CYCLES.max(self.widths[0] * SAME_SHARE)
    }

    /// Numbers of groups to choose from: `0..=rungs`.
    pub(crate) const fn rungs(&self) -> usize {
        self.rungs
    }

    /// How wide the widest of this many groups is, cycles; nothing where there is no group.
    pub(crate) fn width(&self, groups: usize) -> f32 {
        groups.checked_sub(1).and_then(|rung| self.widths.get(rung)).copied().unwrap_or(0.0)
    }
}

/// Mean square difference in cycles between each unit and the centre's, over the bases.
fn squares_from<B>(bases: &B, unit: UnitLines, centre: usize, known: usize) -> [f32; INDICES]
where
    B: Iterator<Item = PatternTable> + Clone,
{
    let mut squares = [0.0; INDICES];
    let mut count = 0.0;
    for base in bases.clone() {
        let at_centre = unit_cycles(base.values(), unit, centre);
        for (index, square) in squares.iter_mut().enumerate().take(known) {
            let apart = unit_cycles(base.values(), unit, index) - at_centre;
            *square += apart * apart;
        }
        count += 1.0;
    }
    squares.map(|square| square / count)
}

/// Groups of one level for units of one size. Group `count` holds what is not known.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// Group by canonical index.
    pub(crate) of: [u8; INDICES],
    /// Groups of known units.
    pub(crate) count: u8,
}

impl Groups {
    /// The first centres of a ladder, with every index at its nearest.
    pub(crate) fn of_ladder<B>(bases: &B, unit: UnitLines, ladder: &Ladder, count: usize) -> Self
    where
        B: Iterator<Item = PatternTable> + Clone,
    {
        let centres = ladder.centres.get(..count.min(ladder.rungs)).unwrap_or(&[]);
        let mut groups =
            Self { of: [low_byte(centres.len()); INDICES], count: low_byte(centres.len()) };
        let known = bases.clone().next().map_or(0, |base| base.codes());
        let mut nearest = [f32::INFINITY; INDICES];
        for (group, &centre) in (0_u8..).zip(centres) {
            let apart = squares_from(bases, unit, usize::from(centre), known);
            for (index, apart) in apart.into_iter().enumerate().take(known) {
                if apart < nearest[index] {
                    nearest[index] = apart;
                    groups.of[index] = group;
                }
            }
        }
        groups
    }
}

/// How often each class of page and each key occurs at one level, and how classes are read from
/// codes.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    pub(crate) shares: [f32; MAX_CLASSES],
    /// Classes whose pages are about equally far are one kind.
    kinds: [u8; MAX_CLASSES],
    pub(crate) period: Period,
    /// Shares of pages by the lowest bits of their keys.
    pub(crate) keys: [f32; RESIDUES],
}

impl Classes {
    /// Equal shares for the classes of the first base.
    pub(crate) fn of(first: Option<&PatternTable>) -> Self {
        let period = first.map_or(Period::Lines64, PatternTable::period);
        let count = usize::from(first.map_or(1, |table| table.classes())).clamp(1, MAX_CLASSES);
        let mut shares = [0.0; MAX_CLASSES];
        shares[..count].fill(1.0 / f32::from(low_byte(count)));
        let mut means = [0.0; MAX_CLASSES];
        if let Some(table) = first {
            for (mean, lines) in means.iter_mut().zip(table.values().chunks_exact(period.lines())) {
                *mean = lines.iter().sum::<f32>() / f32::from(u16::from(period.mask()) + 1);
            }
        }
        Self { shares, kinds: kinds_of(&means[..count]), period, keys: [0.125; RESIDUES] }
    }

    /// The kind of pages of a class.
    pub(crate) fn kind(&self, class: u8) -> u8 {
        self.kinds.get(usize::from(class)).copied().unwrap_or(low_byte(CLASS_KINDS) - 1)
    }

    /// Shares by code, as an atlas has them, summed by class; unchanged if they are not shares.
    pub(crate) fn with_shares(mut self, by_code: &[f32; INDICES]) -> Self {
        let (mut shares, mut keys) = ([0.0; MAX_CLASSES], [0.0; RESIDUES]);
        for (code, share) in (0_u16..).zip(by_code) {
            shares[usize::from(Code(code).class(self.period))] += share;
            keys[usize::from(code) % RESIDUES] += share;
        }
        let sum: f32 = shares.iter().sum();
        let known = |(new, old): (&f32, &f32)| *new >= 0.0 && (*old > 0.0 || *new == 0.0);
        if sum > 0.0 && sum.is_finite() && shares.iter().zip(&self.shares).all(known) {
            self.shares = shares.map(|share| share / sum);
            self.keys = keys.map(|share| share / sum);
        }
        self
    }

    /// The same as a weight: a class that was never seen still has lines.
    pub(crate) fn weight(&self, index: u16) -> f32 {
        self.share_of_index(index) + 1e-9
    }

    /// The share of all lines that have this canonical index.
    pub(crate) fn share_of_index(&self, index: u16) -> f32 {
        let class = Code(index).class(self.period);
        let lines = if self.period == Period::Lines64 { 64.0 } else { 256.0 };
        self.shares[usize::from(class)] / lines
    }

    /// The class in which a number drawn evenly from `0.0..1.0` falls.
    pub(crate) fn drawn(&self, draw: f32) -> u8 {
        let mut sum = 0.0;
        let mut last = 0;
        for (class, &share) in (0_u8..).zip(&self.shares) {
            sum += share;
            if share > 0.0 {
                last = class;
            }
            if draw < sum && share > 0.0 {
                return class;
            }
        }
        last
    }
}

/// Classes by kind: each for itself if there are few, else cut where neighbours by mean latency
/// are farthest apart.
fn kinds_of(means: &[f32]) -> [u8; MAX_CLASSES] {
    let mut kinds = [0; MAX_CLASSES];
    if means.len() <= CLASS_KINDS {
        return core::array::from_fn(|class| low_byte(class.min(CLASS_KINDS - 1)));
    }
    let mut order: [u8; MAX_CLASSES] = core::array::from_fn(low_byte);
    let order = &mut order[..means.len()];
    let mean = |class: u8| means[usize::from(class)];
    order.sort_unstable_by(|&a, &b| mean(a).total_cmp(&mean(b)));
    let gap = |place: usize| mean(order[place]) - mean(order[place - 1]);
    let range = mean(order[order.len() - 1]) - mean(order[0]);
    let mut kind = 0;
    for place in 0..order.len() {
        let wider = |other: &usize| gap(*other) > gap(place);
        let cut = place > 0
            && gap(place) > range * SAME_SHARE
            && (1..order.len()).filter(wider).count() < CLASS_KINDS - 1;
        kind += u8::from(cut && usize::from(kind) < CLASS_KINDS - 1);
        kinds[usize::from(order[place])] = kind;
    }
    kinds
}

/// An index below 256 as a byte.
pub(crate) const fn low_byte(index: usize) -> u8 {
    index.to_le_bytes()[0]
}

/// Kinds of classes whose pages have units of each group, as bits; what is not known is the last
/// kind. A level without groups does not part pages: their kinds are whatever the codes say.
pub(crate) fn kinds_by_group(groups: &Groups, classes: &Classes) -> [u32; MAX_GROUPS + 1] {
    let mut bits = [0; MAX_GROUPS + 1];
    for (index, group) in (0..).zip(&groups.of) {
        let class = Code(index).class(classes.period);
        bits[usize::from(*group)] |= 1 << classes.kind(class);
    }
    let unknown = 1 << CLASS_KINDS;
    bits[usize::from(groups.count)] = if groups.count == 0 { 2 * unknown - 1 } else { unknown };
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn table(classes: usize, cycles: impl Fn(usize, usize) -> f32) -> PatternTable {
        let patterns: Vec<Vec<f32>> =
            (0..classes).map(|class| (0..64).map(|i| cycles(class, i)).collect()).collect();
        PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice)).unwrap()
    }

    #[test]
    fn eight_distances_are_eight_groups_under_every_base() {
        let eight = [3.0, -4.0, 1.5, 5.0, -4.5, 0.0, -2.0, 7.0_f32];
        let bases = [table(1, |_, i| 40.0 + eight[i % 8]), table(1, |_, i| 38.0 - eight[i % 8])];
        let ladder = Ladder::climb(&bases.iter().cloned(), UnitLines::One);
        // -4 and -4.5 differ by what cannot be told apart.
        assert_eq!(ladder.rungs(), 7);
        let groups = Groups::of_ladder(&bases.iter().cloned(), UnitLines::One, &ladder, 7);
        for index in 0..64 {
            assert_eq!(groups.of[index], groups.of[index % 8]);
        }
        assert_eq!(groups.of[1], groups.of[4]);
        assert_ne!(groups.of[0], groups.of[1]);
        assert_eq!((groups.count, groups.of[64]), (7, 7));
    }

    #[test]
    fn an_index_that_differs_under_one_base_only_is_told_apart() {
        let bases = [table(1, |_, _| 40.0), table(1, |_, i| if i == 9 { 60.0 } else { 40.0 })];
        let ladder = Ladder::climb(&bases.iter().cloned(), UnitLines::One);
        assert_eq!(ladder.rungs(), 2);
        assert!(ladder.width(1) > 10.0 && ladder.width(2) == 0.0);
    }

    #[test]
    fn a_unit_is_the_mean_of_its_lines_for_every_code() {
        let base = table(1, |_, i| 40.0 + if i % 2 == 0 { 4.0 } else { 0.0 });
        assert_eq!(unit_cycles(base.values(), UnitLines::Two, 7), 42.0);
        assert_eq!(unit_cycles(base.values(), UnitLines::One, 7), 40.0);
        let bases = [base];
        assert_eq!(Ladder::climb(&bases.iter().cloned(), UnitLines::Two).rungs(), 1);
    }

    #[test]
    fn without_a_base_there_is_only_what_is_not_known() {
        let none = core::iter::empty::<PatternTable>();
        let ladder = Ladder::climb(&none, UnitLines::One);
        let groups = Groups::of_ladder(&none, UnitLines::One, &ladder, 3);
        assert_eq!((ladder.rungs(), groups.count, groups.of[17]), (0, 0, 0));
    }

    #[test]
    fn classes_are_drawn_by_their_shares() {
        let base = table(3, |class, _| 300.0 + f32::from(low_byte(class)) * 12.0);
        let mut by_code = [0.0; INDICES];
        by_code[0] = 0.5;
        by_code[64] = 0.25;
        by_code[128] = 0.25;
        let classes = Classes::of(Some(&base)).with_shares(&by_code);
        assert_eq!(classes.shares[..4], [0.5, 0.25, 0.25, 0.0]);
        assert_eq!([0, 1, 2].map(|class| classes.kind(class)), [0, 1, 2]);
        assert_eq!([0.0, 0.49, 0.51, 0.8, 0.999].map(|draw| classes.drawn(draw)), [0, 0, 1, 2, 2]);
        assert_eq!(classes.share_of_index(70), 0.25 / 64.0);
        // Shares that name a class which no base has are not believed.
        by_code[192] = 0.1;
        assert_eq!(Classes::of(Some(&base)).with_shares(&by_code).shares[0], 1.0 / 3.0);
    }

    #[test]
    fn many_classes_are_a_few_kinds_by_how_far_they_are() {
        // Eight patterns on a near node and eight on a far one, in turns.
        let base = table(16, |class, i| {
            let far = if class % 2 == 1 { 120.0 } else { 0.0 };
            80.0 + far + f32::from(low_byte(class)) / 8.0 + f32::from(low_byte(i % 9))
        });
        let classes = Classes::of(Some(&base));
        for class in 0..16 {
            assert_eq!(classes.kind(class), class % 2, "class {class}");
        }
        let even = Classes::of(Some(&table(7, |class, _| 80.0 + 10.0 * class as f32)));
        let kinds: Vec<u8> = (0..7).map(|class| even.kind(class)).collect();
        assert!(kinds.is_sorted() && kinds[0] == 0 && kinds[6] < 4, "{kinds:?}");
    }
}
