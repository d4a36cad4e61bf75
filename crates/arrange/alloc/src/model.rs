//! What a set of bins costs, by a stated model, and which set costs least.
//!
//! Near lines lie in few slices of the last-level cache, so a core that takes nothing else has
//! few slices' capacity, and a miss costs many times what nearness gains. The model: a slice, or
//! a group of lines alike to every core, holds its share of the cache; what is live is used
//! evenly; bins of a set are used in proportion to their units. A group then hits with
//! `min(1, capacity / bytes)`, and a set costs its hits at cache latency and its misses at memory
//! latency. What stays in the second-level cache reaches neither (`nearer`), and what lies in more
//! pages than a core holds the translations of waits for page walks on top (`translations`). All live bytes are
//! taken to lie as one core would have them: exact where cores agree,
//! cautious where they do not. It chooses sets and predicts gains; it holds no line.

mod nearer;
mod participants;
mod translations;

use crate::bins::{Bins, MAX_BINS, UnitBins};
use crate::class::UnitLines;
use crate::groups::{Classes, Groups, INDICES, MAX_GROUPS, RESIDUES, low_byte, unit_cycles};
use crate::policy::Mode;
use crate::wish::{CurrentBases, Wish};
use nearer::Nearer;
use translations::{Translations, WALK_CYCLES};

/// Latencies in cycles by group; after the last known group that of what is not known, the mean.
type GroupCycles = [f32; MAX_GROUPS + 1];

/// Memory over cache where one of them is not known: between what machines have, 4 to 10. It
/// serves to choose, never to predict.
const MISS_OVER_HIT: f32 = 8.0;
/// What the lesser level counts at least, so that it decides between what is equal at the other.
const LITTLE: f32 = 0.001;
/// A set that falls short of the share asked for by less than this has it: shares are counted.
pub(crate) const SHARE_TOLERANCE: f32 = 1.0 / 256.0;
/// A set is cheaper than a smaller one only by more than this share.
const SAME_COST: f64 = 1e-9;

/// What the near lines of a core are expected to gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The share of units that counts as near: what was asked for, or more.
    pub near_share: f32,
    /// The share of accesses that hit the last-level cache or a nearer one, with all live bytes on
    /// such units.
    pub llc_hit_share: f32,
    /// The mean latency of their accesses, cycles.
    pub cycles: f32,
    /// The same with all live bytes on units taken without regard to distance.
    pub oblivious_cycles: f32,
}

impl Prediction {
    /// How many times the oblivious latency is that of near lines.
    #[must_use]
    pub const fn gain(&self) -> f32 {
        self.oblivious_cycles / self.cycles
    }
}

/// What a core with these current bases gains by what a wish makes near. `None` where a level that any
/// access reaches is not known.
#[must_use]
pub fn predict(
    bins: &Bins,
    unit: UnitLines,
    current: &CurrentBases,
    wish: &Wish,
    population: Option<&[u32; MAX_BINS]>,
) -> Option<Prediction> {
    predict_among(bins, unit, current, core::iter::empty(), wish, population)
}

/// The same for a core that shares the lines with others, as [`crate::Order::among`] has it.
pub(crate) fn predict_among(
    bins: &Bins,
    unit: UnitLines,
    current: &CurrentBases,
    others: impl Iterator<Item = CurrentBases>,
    wish: &Wish,
    population: Option<&[u32; MAX_BINS]>,
) -> Option<Prediction> {
    let model = Model::new(bins, unit, current, wish)?;
    let shares = shares(bins, unit, population);
    let choice = model.choose_among(bins, others, &shares, wish);
    let everything = model.cost_of(&choice.bins[..model.known()], &shares);
    let chosen = if wish.mode == Mode::Oblivious { everything } else { choice.cost };
    let hits = chosen.hit_share.max(everything.hit_share);
    let misses = 1.0 - chosen.hit_share.min(everything.hit_share);
    if hits > 0.0 && current.llc.is_none() || misses > 0.0 && current.dram.is_none() {
        return None;
    }
    Some(Prediction {
        near_share: choice.near_share,
        llc_hit_share: single(chosen.hit_share),
        cycles: single(chosen.cycles),
        oblivious_cycles: single(everything.cycles),
    })
}

/// Cost of a set: its share of hits, and its mean latency in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    pub(crate) hit_share: f64,
    pub(crate) cycles: f64,
}

/// A sequence of bins, and how many of them are near.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) bins: [u8; MAX_BINS],
    pub(crate) near: u16,
    pub(crate) near_share: f32,
    pub(crate) cost: Cost,
    /// How much each level counted for the sequence; negative for the farthest first.
    pub(crate) weights: [f32; 2],
}

/// The machine as one core sees it, for units of one size and so many live bytes.
pub(crate) struct Model<'b> {
    of_unit: &'b UnitBins,
    unit: UnitLines,
    /// The levels of which the core's bases are known.
    knows: [bool; 2],
    /// Groups of single lines at the cache: what has a capacity.
    lines: &'b Groups,
    /// Latency of each of them, and its share of the cache.
    line_cycles: GroupCycles,
    capacities: GroupCycles,
    members: Members,
    /// Latencies of units by their groups.
    llc: GroupCycles,
    dram: GroupCycles,
    /// The second-level cache, and whether groups of the last-level one say what lies where.
    nearer: Nearer,
    by_llc: bool,
    translations: Translations,
    /// Sequences to choose from, as weights of cache and memory.
    sequences: [[f32; 2]; 3],
    /// The cache over the live bytes.
    room: f64,
}

impl<'b> Model<'b> {
    /// `None` if nothing is known of any level.
    pub(crate) fn new(
        bins: &'b Bins,
        unit: UnitLines,
        current: &CurrentBases,
        wish: &Wish,
    ) -> Option<Self> {
        let of_unit = &bins.units[unit as usize];
        let lines = &bins.units[UnitLines::One as usize].llc;
        let mean = |table, classes| table_mean(table, classes);
        let (llc_mean, dram_mean) = match (&current.llc, &current.dram) {
            (None, None) => return None,
            (Some(llc), None) => {
                let llc = mean(llc, &bins.llc);
                (llc, llc * MISS_OVER_HIT)
            }
            (None, Some(dram)) => {
                let dram = mean(dram, &bins.dram);
                (dram / MISS_OVER_HIT, dram)
            }
            (Some(llc), Some(dram)) => (mean(llc, &bins.llc), mean(dram, &bins.dram)),
        };
        let llc_of =
            |groups, unit| group_cycles(groups, current.llc.as_ref(), unit, &bins.llc, llc_mean);
        let (room, nearer_room) = (ratio(wish.llc_bytes, wish), ratio(wish.l2_bytes, wish));
        let tlb_bytes = if wish.tlb_bytes == 0 { u64::MAX } else { wish.tlb_bytes };
        let misses = single((1.0 - room).max(0.0));
        let by_llc = current.llc.is_some();
        let nearer = match by_llc {
            true => Nearer::new(&of_unit.llc, &bins.llc, nearer_room, llc_mean),
            false => Nearer::new(&of_unit.dram, &bins.dram, nearer_room, llc_mean),
        };
        Some(Self {
            of_unit,
            unit,
            knows: [current.llc.is_some(), current.dram.is_some()],
            lines,
            line_cycles: llc_of(lines, UnitLines::One),
            capacities: capacities(lines, &bins.llc),
            members: Members::of(&of_unit.llc, &bins.llc),
            llc: llc_of(&of_unit.llc, unit),
            dram: group_cycles(&of_unit.dram, current.dram.as_ref(), unit, &bins.dram, dram_mean),
            nearer,
            by_llc,
            translations: Translations::new(of_unit, bins, ratio(tlb_bytes, wish)),
            sequences: sequences(current, misses),
            room,
        })
    }

    /// Bins of which something is known.
    pub(crate) fn known(&self) -> usize {
        self.of_unit.count() - 1
    }

    /// The cheapest set that has the share asked for, of those that begin one of the sequences;
    /// in the adversarial mode, the farthest set of the same share.
    pub(crate) fn choose(&self, shares: &[f32; MAX_BINS], wish: &Wish) -> Choice {
        let [first, others @ ..] = self.sequences;
        let mut best = self.cheapest(first, shares, wish.near);
        for weights in others {
            let other = self.cheapest(weights, shares, wish.near);
            if other.cost.cycles < best.cost.cycles * (1.0 - SAME_COST) {
                best = other;
            }
        }
        if wish.mode.is_adversarial() { self.mirrored(best, shares) } else { best }
    }

    /// The cheapest beginning of one sequence; the shortest of those that cost the same.
    fn cheapest(&self, weights: [f32; 2], shares: &[f32; MAX_BINS], near: f32) -> Choice {
        let bins = self.sequence(weights);
        let known = &bins[..self.known()];
        let least = least_share(known, shares, near);
        let mut load = self.nothing(shares);
        let mut best = (0_u16, 0.0, Cost { hit_share: 0.0, cycles: f64::INFINITY });
        for (count, &bin) in (1..).zip(known) {
            let share = shares[usize::from(bin)];
            self.put(&mut load, bin, share);
            if share > 0.0 && load.units >= least {
                let cost = self.cost(&load);
                if cost.cycles < best.2.cycles * (1.0 - SAME_COST) {
                    best = (count, load.units, cost);
                }
            }
        }
        let near_share = single(best.1 / load.units.max(f64::MIN_POSITIVE));
        Choice { bins, near: best.0, near_share, cost: best.2, weights }
    }

    /// The same sequence backwards, cut at the same share.
    fn mirrored(&self, choice: Choice, shares: &[f32; MAX_BINS]) -> Choice {
        let mut mirrored = choice;
        let known = &mut mirrored.bins[..self.known()];
        known.reverse();
        let (near, near_share) = cut(known, shares, mirrored.near_share);
        mirrored.cost = self.cost_of(&known[..usize::from(near)], shares);
        (mirrored.near, mirrored.near_share) = (near, near_share);
        mirrored.weights = mirrored.weights.map(|weight| -weight);
        mirrored
    }

    /// All bins by cost, that of which nothing is known last.
    fn sequence(&self, weights: [f32; 2]) -> [u8; MAX_BINS] {
        sorted(&self.costs([&self.llc, &self.dram], weights), self.known())
    }

    /// What each bin costs by the latencies of its groups, those of which nothing is known infinitely much.
    fn costs(&self, [llc, dram]: [&GroupCycles; 2], weights: [f32; 2]) -> [f32; MAX_BINS] {
        let mut costs = [f32::INFINITY; MAX_BINS];
        for (bin, cost) in (0..=u8::MAX).zip(&mut costs).take(self.known()) {
            let (l, d) = self.of_unit.groups_of(bin);
            *cost = weights[0] * llc[usize::from(l)] + weights[1] * dram[usize::from(d)];
        }
        costs
    }

    /// A set without bins, of what there is.
    fn nothing(&self, shares: &[f32; MAX_BINS]) -> Load {
        Load { all: shares[..self.known()].iter().copied().map(f64::from).sum(), ..Load::NONE }
    }

    /// What a set of bins costs.
    pub(crate) fn cost_of(&self, set: &[u8], shares: &[f32; MAX_BINS]) -> Cost {
        let mut load = self.nothing(shares);
        set.iter().for_each(|&bin| self.put(&mut load, bin, shares[usize::from(bin)]));
        self.cost(&load)
    }

    /// Uses one bin more.
    fn put(&self, load: &mut Load, bin: u8, share: f32) {
        let (l, d) = self.of_unit.groups_of(bin);
        let cycles = f64::from(self.dram[usize::from(d)]);
        let mut put = |group: usize, share: f64| {
            load.lines[group] += share;
            load.missed[group] += share * cycles;
        };
        self.nearer.put(&mut load.nearer, if self.by_llc { l } else { d }, share);
        if share > 0.0 {
            load.kinds |= self.translations.kinds(l, d);
        }
        let share = f64::from(share);
        if l < self.of_unit.llc.count {
            for &(index, part) in self.members.of_group(l) {
                put(usize::from(self.lines.of[usize::from(index)]), share * f64::from(part));
            }
        } else {
            // Of lines whose place in the cache is not known, each group has its share.
            for (group, &part) in self.capacities.iter().enumerate() {
                put(group, share * f64::from(part));
            }
        }
        load.units += share;
    }

    fn cost(&self, load: &Load) -> Cost {
        let mut cost = Cost::default();
        if load.units <= 0.0 {
            return cost;
        }
        // Lines of the second-level cache take no room in the last-level one.
        let nearer = self.nearer.hit_share(&load.nearer, load.units);
        let rest = 1.0 - nearer;
        let groups = usize::from(self.lines.count) + 1;
        for group in 0..groups {
            let lines = load.lines[group] * rest;
            if lines <= 0.0 {
                continue;
            }
            let holds = f64::from(self.capacities[group]) * load.units * self.room;
            let hits = (holds / lines).min(1.0);
            cost.hit_share += hits * lines;
            cost.cycles += hits * lines * f64::from(self.line_cycles[group]);
            cost.cycles += (1.0 - hits) * load.missed[group] * rest;
        }
        cost.hit_share = (cost.hit_share / load.units + nearer).min(1.0);
        cost.cycles = cost.cycles / load.units + nearer * self.nearer.cycles();
        let walks = self.translations.miss_share(load.kinds, load.units / load.all);
        cost.cycles += walks * WALK_CYCLES;
        cost
    }
}

/// A set of bins in use: its units, its lines by the cache's group, and the memory latency of
/// these, all weighted by shares; the kinds of pages that it lies in, and all units there are.
struct Load {
    all: f64,
    units: f64,
    kinds: u32,
    lines: [f64; MAX_GROUPS + 1],
    missed: [f64; MAX_GROUPS + 1],
    nearer: nearer::Load,
}

impl Load {
    const NONE: Self = Self {
        all: 0.0,
        units: 0.0,
        kinds: 0,
        lines: [0.0; MAX_GROUPS + 1],
        missed: [0.0; MAX_GROUPS + 1],
        nearer: [0.0; RESIDUES],
    };
}

/// Canonical indices by their group, each with its share of the group's lines.
struct Members {
    sorted: [(u16, f32); INDICES],
    ends: [u16; MAX_GROUPS + 1],
}

impl Members {
    fn of(groups: &Groups, classes: &Classes) -> Self {
        let mut members = Self { sorted: [(0, 0.0); INDICES], ends: [0; MAX_GROUPS + 1] };
        let mut end = 0;
        for group in 0..groups.count {
            let first = end;
            let mut sum = 0.0;
            for (index, _) in (0..).zip(&groups.of).filter(|(_, of)| **of == group) {
                let weight = classes.weight(index);
                members.sorted[end] = (index, weight);
                sum += weight;
                end += 1;
            }
            members.sorted[first..end].iter_mut().for_each(|member| member.1 /= sum);
            members.ends[usize::from(group)] = u16::try_from(end).unwrap_or(0);
        }
        members
    }

    fn of_group(&self, group: u8) -> &[(u16, f32)] {
        let end = |group: u8| usize::from(self.ends[usize::from(group)]);
        let first = group.checked_sub(1).map_or(0, end);
        self.sorted.get(first..end(group)).unwrap_or(&[])
    }
}

/// Weights of cache and memory by which bins may be sorted: as accesses reach them, and by each
/// alone. One that is not known counts nothing; one that is known always counts a little.
fn sequences(current: &CurrentBases, misses: f32) -> [[f32; 2]; 3] {
    match (&current.llc, &current.dram) {
        (Some(_), Some(_)) => [misses, 1.0, 0.0].map(|dram: f32| {
            let dram = dram.clamp(LITTLE, 1.0 - LITTLE);
            [1.0 - dram, dram]
        }),
        (Some(_), None) => [[1.0, 0.0]; 3],
        (None, _) => [[0.0, 1.0]; 3],
    }
}

/// The mean latency of a level.
fn table_mean(table: &[f32; INDICES], classes: &Classes) -> f32 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (index, &cycles) in (0..).zip(table).filter(|(_, cycles)| cycles.is_finite()) {
        sum += classes.weight(index) * cycles;
        weights += classes.weight(index);
    }
    sum / weights
}

/// Mean latency of each group; the level's mean for what is not known.
fn group_cycles(
    groups: &Groups,
    table: Option<&[f32; INDICES]>,
    unit: UnitLines,
    classes: &Classes,
    mean: f32,
) -> GroupCycles {
    let mut sums = [(0.0, 0.0); MAX_GROUPS + 1];
    if let Some(table) = table {
        for (index, &group) in (0..).zip(&groups.of) {
            let cycles = unit_cycles(table, unit, usize::from(index));
            if group < groups.count && cycles.is_finite() {
                let sum = &mut sums[usize::from(group)];
                *sum = (sum.0 + classes.weight(index) * cycles, sum.1 + classes.weight(index));
            }
        }
    }
    sums.map(|(sum, weight)| if weight > 0.0 { sum / weight } else { mean })
}

/// Each group's share of all lines, and so of the cache.
fn capacities(lines: &Groups, classes: &Classes) -> GroupCycles {
    let mut shares = [0.0; MAX_GROUPS + 1];
    if lines.count == 0 {
        shares[0] = 1.0;
        return shares;
    }
    for (index, &group) in (0..).zip(&lines.of) {
        if group < lines.count {
            shares[usize::from(group)] += classes.weight(index);
        }
    }
    let sum: f32 = shares.iter().sum();
    shares.map(|share| share / sum)
}

/// The first `known` bins by cost, and those behind them as they are.
pub(crate) fn sorted(costs: &[f32; MAX_BINS], known: usize) -> [u8; MAX_BINS] {
    let mut bins = core::array::from_fn(low_byte);
    let cost = |bin: u8| costs[usize::from(bin)];
    bins[..known].sort_unstable_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(a.cmp(&b)));
    bins
}

/// The weight that a set must have to be the share asked for.
fn least_share(bins: &[u8], shares: &[f32; MAX_BINS], near: f32) -> f64 {
    let all: f64 = bins.iter().map(|&bin| f64::from(shares[usize::from(bin)])).sum();
    // Asked for more than there is, or for no number: all of it.
    let near = if near <= 1.0 { f64::from(near - SHARE_TOLERANCE) } else { 1.0 };
    all * near.min(1.0 - 1e-6)
}

/// How many bins of a sequence have a share, and which share that is.
pub(crate) fn cut(bins: &[u8], shares: &[f32; MAX_BINS], near: f32) -> (u16, f32) {
    let least = least_share(bins, shares, near);
    let (mut units, mut cut) = (0.0, None);
    for (count, &bin) in (1..).zip(bins) {
        let share = f64::from(shares[usize::from(bin)]);
        units += share;
        if cut.is_none() && share > 0.0 && units >= least {
            cut = Some((count, units));
        }
    }
    cut.map_or((0, 0.0), |(count, part)| (count, single(part / units)))
}

/// Shares of units by bin as counted, over the first `known` bins; `None` below a few pages.
pub(crate) fn counted(
    population: Option<&[u32; MAX_BINS]>,
    known: usize,
) -> Option<[f32; MAX_BINS]> {
    const FEW_UNITS: u64 = 256;
    let population = population?;
    let sum: u64 = population[..known].iter().map(|&units| u64::from(units)).sum();
    (sum >= FEW_UNITS).then(|| population.map(units_f32))
}

/// Shares of units by bin: as counted, or expected from the atlas as if levels were independent.
pub(crate) fn shares(
    bins: &Bins,
    unit: UnitLines,
    population: Option<&[u32; MAX_BINS]>,
) -> [f32; MAX_BINS] {
    let of_unit = &bins.units[unit as usize];
    if let Some(counted) = counted(population, of_unit.count() - 1) {
        return counted;
    }
    let llc = capacities(&of_unit.llc, &bins.llc);
    let dram = capacities(&of_unit.dram, &bins.dram);
    let mut shares = [0.0; MAX_BINS];
    for (bin, share) in (0..=u8::MAX).zip(&mut shares).take(of_unit.count()) {
        let (l, d) = of_unit.groups_of(bin);
        *share = llc[usize::from(l)] * dram[usize::from(d)];
    }
    shares
}

/// A count of units as a weight.
#[allow(clippy::cast_precision_loss, reason = "a weight needs no more than 24 bits")]
const fn units_f32(units: u32) -> f32 {
    units as f32
}

/// A cache over the live bytes.
#[allow(clippy::cast_precision_loss, reason = "a ratio")]
const fn ratio(cache_bytes: u64, wish: &Wish) -> f64 {
    if wish.live_bytes == 0 { f64::MAX } else { cache_bytes as f64 / wish.live_bytes as f64 }
}

#[allow(clippy::cast_possible_truncation, reason = "a share or a latency")]
const fn single(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
