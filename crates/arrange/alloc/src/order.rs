//! The order in which one core takes bins, and how many of them are near.
//!
//! An order is all that changes when a core is moved, when what is live outgrows the cache, or
//! when somebody asks for another mode. It is plain data and holds no line.

use crate::bins::{Bins, KINDS, KINDS_EACH, MAX_BINS, UNKNOWN_KIND, UnitBins, oracle_ranks};
use crate::class::UnitLines;
use crate::groups::{CLASS_KINDS, Classes, INDICES, kinds_by_group, low_byte};
use crate::model::{Model, counted, cut, shares, sorted};
use crate::wish::{CurrentBases, Wish};

/// Bins of one unit size, in the order in which one core takes them.
#[derive(Clone, Debug)]
pub struct Order {
    pub(crate) unit: UnitLines,
    pub(crate) bins: [u8; MAX_BINS],
    pub(crate) count: u16,
    pub(crate) near: u16,
    pub(crate) near_share: f32,
    /// Kinds of pages, best first.
    pub(crate) kinds: [u8; KINDS],
    /// Bit by kind: its pages have near units.
    pub(crate) near_kinds: u32,
}

impl Order {
    /// Nearest bins first, or farthest ones in the adversarial mode; bins of which nothing is
    /// known always last. As many are near as cost least with so many live bytes, and at least
    /// the share asked for. Shares of units come from `population` (units by bin), or from the
    /// atlas while too few units are there. Without any knowledge there is no order.
    #[must_use]
    pub fn new(
        bins: &Bins,
        unit: UnitLines,
        current: &CurrentBases,
        wish: &Wish,
        population: Option<&[u32; MAX_BINS]>,
    ) -> Self {
        Self::among(bins, unit, current, core::iter::empty(), wish, population)
    }

    /// The same for a core that shares the lines with others, whose current bases these are: they count in
    /// [`Mode::NearestParticipant`](crate::Mode::NearestParticipant), where a core's own lines are near, and then the
    /// nearest of the others follow.
    /// One of whom less is known than of this core takes no part.
    #[must_use]
    pub fn among(
        bins: &Bins,
        unit: UnitLines,
        current: &CurrentBases,
        others: impl Iterator<Item = CurrentBases>,
        wish: &Wish,
        population: Option<&[u32; MAX_BINS]>,
    ) -> Self {
        let Some(model) = Model::new(bins, unit, current, wish) else { return Self::none(unit) };
        let choice = model.choose_among(bins, others, &shares(bins, unit, population), wish);
        Self {
            unit,
            bins: choice.bins,
            count: u16::try_from(model.known() + 1).unwrap_or(0),
            near: choice.near,
            near_share: choice.near_share,
            kinds: kinds_by_cost(bins, current, choice.weights),
            near_kinds: near_kinds(
                bins,
                &bins.units[unit as usize],
                &choice.bins[..usize::from(choice.near)],
            ),
        }
    }

    /// No order: every bin is as good as another, and none is preferred.
    #[must_use]
    pub fn none(unit: UnitLines) -> Self {
        Self {
            unit,
            bins: [0; MAX_BINS],
            count: 0,
            near: 0,
            near_share: 0.0,
            kinds: core::array::from_fn(low_byte),
            near_kinds: 0,
        }
    }

    /// The order of an oracle, by the ranks that were measured for its first (`side` 0) or second
    /// core. Measured ranks say nothing of slices: how much is near is told, and a heap tells it
    /// as it would an aware core ([`crate::Heap::set_bases`]), so that the two may be compared.
    #[must_use]
    pub fn oracle(
        unit: UnitLines,
        side: usize,
        near: f32,
        population: Option<&[u32; MAX_BINS]>,
    ) -> Self {
        let mut costs = [f32::INFINITY; MAX_BINS];
        for (bin, cost) in (0..u8::MAX).zip(&mut costs) {
            *cost = f32::from(oracle_ranks(bin)[side.min(1)]);
        }
        let mut order = Self::none(unit);
        order.bins = sorted(&costs, MAX_BINS - 1);
        order.count = u16::try_from(MAX_BINS).unwrap_or(0);
        (order.near, order.near_share) = oracle_cut(&order.bins, near, population);
        order.near_kinds = (1 << UNKNOWN_KIND) | 1;
        order
    }

    /// Bins nearest first.
    #[must_use]
    pub fn bins(&self) -> &[u8] {
        &self.bins[..usize::from(self.count)]
    }

    /// The bins that count as near.
    #[must_use]
    pub fn near_bins(&self) -> &[u8] {
        &self.bins[..usize::from(self.near)]
    }

    /// The share of units that lie in near bins.
    #[must_use]
    pub const fn near_share(&self) -> f32 {
        self.near_share
    }
}

/// How many of an oracle's bins are near, and which share of its units that is.
pub(crate) fn oracle_cut(
    bins: &[u8; MAX_BINS],
    near: f32,
    population: Option<&[u32; MAX_BINS]>,
) -> (u16, f32) {
    let shares = counted(population, MAX_BINS - 1).unwrap_or([1.0 / 255.0; MAX_BINS]);
    cut(&bins[..MAX_BINS - 1], &shares, near)
}

/// Bit by kind of page: it has units of one of these bins.
fn near_kinds(bins: &Bins, of_unit: &UnitBins, near: &[u8]) -> u32 {
    let llc = kinds_by_group(&of_unit.llc, &bins.llc);
    let dram = kinds_by_group(&of_unit.dram, &bins.dram);
    let each = usize::from(KINDS_EACH);
    let mut kinds = 0;
    for &bin in near {
        let (l, d) = of_unit.groups_of(bin);
        for kind in 0..KINDS {
            let (of_llc, of_dram) = (kind / each, kind % each);
            let has = llc[usize::from(l)] >> of_llc & dram[usize::from(d)] >> of_dram & 1;
            kinds |= has << kind;
        }
    }
    kinds
}

/// How far the pages of each kind are at one level, beyond the mean of all; 0 where that is not
/// known.
fn mean_by_kind(table: Option<&[f32; INDICES]>, classes: &Classes) -> [f32; CLASS_KINDS + 1] {
    let mut sums = [(0.0_f32, 0.0_f32); CLASS_KINDS + 1];
    let Some(table) = table else { return [0.0; CLASS_KINDS + 1] };
    let lines = classes.period.lines();
    for ((class, lines_of), share) in (0..).zip(table.chunks_exact(lines)).zip(classes.shares) {
        let sum: f32 = lines_of.iter().sum();
        let mean = sum / if lines == 64 { 64.0 } else { 256.0 };
        if share > 0.0 && mean.is_finite() {
            let of_kind = &mut sums[usize::from(classes.kind(class))];
            *of_kind = (of_kind.0 + share * mean, of_kind.1 + share);
        }
    }
    let all = sums.iter().map(|(sum, _)| sum).sum::<f32>();
    sums.map(|(sum, share)| if share > 0.0 { sum / share - all } else { 0.0 })
}

/// Kinds of pages by the mean cost of their lines, those of which nothing is known last.
fn kinds_by_cost(bins: &Bins, current: &CurrentBases, weights: [f32; 2]) -> [u8; KINDS] {
    let llc = mean_by_kind(current.llc.as_ref(), &bins.llc);
    let dram = mean_by_kind(current.dram.as_ref(), &bins.dram);
    let cost = |kind: u8| {
        let (of_llc, of_dram) = (kind / KINDS_EACH, kind % KINDS_EACH);
        weights[0] * llc[usize::from(of_llc)] + weights[1] * dram[usize::from(of_dram)]
    };
    let mut kinds: [u8; KINDS] = core::array::from_fn(low_byte);
    let key = |kind: u8| (kind == UNKNOWN_KIND, cost(kind));
    kinds.sort_unstable_by(|&a, &b| {
        let (a, b) = ((key(a), a), (key(b), b));
        a.0.0.cmp(&b.0.0).then(a.0.1.total_cmp(&b.0.1)).then(a.1.cmp(&b.1))
    });
    kinds
}
