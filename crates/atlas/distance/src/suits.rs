//! Which region suits which array, where regions differ in latency and in bandwidth (HBM or MCDRAM beside DDR, CXL).
//!
//! By Little's law: `n` lines that are under way at a time through a latency of `L` ns move `64 n / L` bytes a ns,
//! until the memory moves no more, `B`. So the memory with the shortest latency is faster while few lines are under
//! way. Where it moves no more, one that is farther and wider takes over, from `B L' / 64` lines on, where `L'` is the
//! latency of the wider one; and so on up to the widest. An array whose pages lie in two regions by turns has the mean
//! of both latencies, and moves at most twice what the narrower does: as if the cores could move that much, and the two
//! memories had no channel in common.
//!
//! A memory counts as wider where its interval lies above that of the other: what is not told apart is not chosen
//! between. All that is concluded here is predicted, whatever its numbers are.

use core::iter::{once, successors};

use crate::costs::{Cost, Distances};
use isochrone_units::{CoreId, LINE_BYTES, Reading, RegionId};

/// Bytes of a line as they are computed with.
const LINE: f64 = LINE_BYTES as f64;

/// Where the pages of an array lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// All of them in one region.
    In(RegionId),
    /// In two regions by turns.
    Turns(RegionId, RegionId),
}

/// What memory is to a set of cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Where it is.
    pub pages: Pages,
    /// Until a line is here, ns: the mean over the cores.
    pub latency_ns: Cost,
    /// What all these cores together move at most, 10^9 bytes a second.
    pub gb_per_s: Cost,
}

/// A memory, and from when on it moves more than any other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The memory.
    pub memory: Memory,
    /// Lines under way, of all cores together, from which on it does; 0 for the memory with the shortest latency.
    pub from_lines: Cost,
}

impl Memory {
    /// What the cores move with so many lines under way in all, 10^9 bytes a second.
    #[must_use]
    pub fn moves(&self, lines: f64) -> f64 {
        (lines * LINE / self.latency_ns.value).min(self.gb_per_s.value)
    }

    /// Pages of two regions by turns; `None` where this or the other are such pages already.
    #[must_use]
    pub fn by_turns(&self, other: &Self) -> Option<Self> {
        let (Pages::In(one), Pages::In(two)) = (self.pages, other.pages) else { return None };
        let latency_ns = joined(self.latency_ns, other.latency_ns, f64::midpoint);
        let gb_per_s = joined(self.gb_per_s, other.gb_per_s, |a, b| 2.0 * a.min(b));
        let predicted = |cost| Cost { reading: Reading::Predicted, ..cost };
        Some(Self {
            pages: Pages::Turns(one, two),
            latency_ns: predicted(latency_ns),
            gb_per_s: predicted(gb_per_s),
        })
    }
}

/// What a region is to `cores`; `None` where its latency or its bandwidth is not known.
pub fn memory<D: Distances + ?Sized>(on: &D, cores: &[CoreId], region: RegionId) -> Option<Memory> {
    let latency_ns = latency_of(on, cores, region)?;
    let gb_per_s = bandwidth_of(on, cores, region)?;
    Some(Memory { pages: Pages::In(region), latency_ns, gb_per_s })
}

/// A region's latency, ns: the mean over `cores`. `None` where it is not known of one of them.
pub fn latency_of<D: Distances + ?Sized>(
    on: &D,
    cores: &[CoreId],
    region: RegionId,
) -> Option<Cost> {
    let own = |core: &CoreId| on.region(*core, region).map(|costs| costs.latency_ns);
    let sum = sum_over(cores, own)?;
    let mut count = 0.0;
    cores.iter().for_each(|_| count += 1.0);
    let of = |ns: f64| ns / count;
    let mean = Cost { value: of(sum.value), lo: of(sum.lo), hi: of(sum.hi), reading: sum.reading };
    (mean.value > 0.0).then_some(mean)
}

/// What `cores` together move of a region, 10^9 bytes a second. Where exactly these were not measured together, what
/// all of them do stands in, and no more than the sum of what each core does alone. `None` where nothing of that is
/// known.
pub fn bandwidth_of<D: Distances + ?Sized>(
    on: &D,
    cores: &[CoreId],
    region: RegionId,
) -> Option<Cost> {
    let stands_in = || {
        let of_all = |core: &CoreId| on.region(*core, region)?.gb_per_s_together;
        let most = cores.iter().find_map(of_all)?;
        let alone = sum_over(cores, |core| on.region(*core, region)?.gb_per_s);
        let most = alone.map_or(most, |alone| joined(most, alone, f64::min));
        Some(Cost { reading: Reading::Predicted, ..most })
    };
    on.bandwidth(cores, region).or_else(stands_in).filter(|found| found.value > 0.0)
}

/// The sum of what all cores have; `None` where one has nothing, or there is none.
fn sum_over(cores: &[CoreId], own: impl Fn(&CoreId) -> Option<Cost>) -> Option<Cost> {
    let (first, rest) = cores.split_first()?;
    rest.iter().try_fold(own(first)?, |sum, core| Some(joined(sum, own(core)?, |a, b| a + b)))
}

/// What suits an array with ever more lines under way: first the memory with the shortest latency, then each that moves
/// more than the one before it. The last of them is the widest.
pub fn steps(of: &[Memory]) -> impl Iterator<Item = Step> + '_ {
    frontier(move || of.iter().copied())
}

/// The same where pages may lie in two of the regions by turns as well.
pub fn steps_with_turns(of: &[Memory]) -> impl Iterator<Item = Step> + '_ {
    let pairs = move |(at, one): (usize, &Memory)| {
        let one = *one;
        once(one).chain(of[at + 1..].iter().filter_map(move |other| one.by_turns(other)))
    };
    frontier(move || of.iter().enumerate().flat_map(pairs))
}

fn frontier<I: Iterator<Item = Memory>>(among: impl Fn() -> I) -> impl Iterator<Item = Step> {
    let none_before = Cost::single(0.0, Reading::Predicted);
    let first = nearest(among()).map(|memory| Step { memory, from_lines: none_before });
    successors(first, move |step| {
        let now = step.memory;
        let memory = nearest(among().filter(|one| one.gb_per_s.lo > now.gb_per_s.hi))?;
        let lines = joined(now.gb_per_s, memory.latency_ns, |moved, ns| moved * ns / LINE);
        Some(Step { memory, from_lines: Cost { reading: Reading::Predicted, ..lines } })
    })
}

/// The one with the shortest latency; of several the widest.
fn nearest(among: impl Iterator<Item = Memory>) -> Option<Memory> {
    among.min_by(|a, b| {
        let wider = || b.gb_per_s.value.total_cmp(&a.gb_per_s.value);
        a.latency_ns.value.total_cmp(&b.latency_ns.value).then_with(wider)
    })
}

/// Two numbers made into one by something that grows with both.
fn joined(a: Cost, b: Cost, with: impl Fn(f64, f64) -> f64) -> Cost {
    let reading = if a.reading == b.reading { a.reading } else { Reading::Predicted };
    Cost { value: with(a.value, b.value), lo: with(a.lo, b.lo), hi: with(a.hi, b.hi), reading }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn of(region: u16, latency_ns: f64, gb_per_s: f64) -> Memory {
        let single = |value| Cost::single(value, Reading::Measured);
        Memory {
            pages: Pages::In(RegionId(region)),
            latency_ns: single(latency_ns),
            gb_per_s: single(gb_per_s),
        }
    }

    /// Which of them moves most with so many lines, found by trying all: where two do, the one that did with fewer.
    fn tried(of: &[Memory]) -> Vec<(f64, Pages)> {
        let mut found: Vec<(f64, Memory)> = Vec::new();
        for tenths in 1..100_000 {
            let lines = f64::from(tenths) / 10.0;
            let most = of.iter().max_by(|a, b| a.moves(lines).total_cmp(&b.moves(lines)));
            let most = most.expect("there are some");
            let more = |last: &Memory| most.moves(lines) > last.moves(lines) * (1.0 + 1e-12);
            if found.last().is_none_or(|(_, last)| more(last)) {
                found.push((lines, *most));
            }
        }
        found.into_iter().map(|(lines, memory)| (lines, memory.pages)).collect()
    }

    fn assert_as_tried(steps: impl Iterator<Item = Step>, all: &[Memory]) {
        let (steps, tried): (Vec<Step>, _) = (steps.collect(), tried(all));
        assert_eq!(steps.len(), tried.len(), "{steps:?}\n{tried:?}");
        for (step, (lines, pages)) in steps.iter().zip(tried) {
            assert_eq!(step.memory.pages, pages);
            assert!((step.from_lines.value - lines).abs() <= 0.2, "{step:?} {lines}");
        }
    }

    fn with_pairs(of: &[Memory]) -> Vec<Memory> {
        let pairs = |at: usize| of[at + 1..].iter().filter_map(move |other| of[at].by_turns(other));
        of.iter().copied().chain((0..of.len()).flat_map(pairs)).collect()
    }

    #[test]
    fn the_near_region_is_for_latency_and_the_wide_one_from_the_crossing_on() {
        let (ddr, hbm) = (of(0, 147.0, 90.0), of(1, 170.0, 400.0));
        let all = [hbm, ddr];
        let found: Vec<Step> = steps(&all).collect();
        assert_eq!([found[0].memory, found[1].memory], [ddr, hbm]);
        assert!((found[1].from_lines.value - 90.0 * 170.0 / 64.0).abs() < 1e-9);
        assert_as_tried(steps(&all), &all);
        // Twice the narrow one is less than the wide one alone, and more than the near one: it comes between.
        let turns: Vec<Step> = steps_with_turns(&all).collect();
        assert_eq!(turns[1].memory.pages, Pages::Turns(RegionId(1), RegionId(0)));
        assert_eq!((turns.len(), turns[2].memory), (3, hbm));
        assert_as_tried(steps_with_turns(&all), &with_pairs(&all));
    }

    #[test]
    fn pages_by_turns_pay_where_neither_is_twice_as_wide() {
        for far_gb_per_s in [90.0, 110.0] {
            let all = [of(0, 90.0, 100.0), of(1, 140.0, far_gb_per_s)];
            let mixed = all[0].by_turns(&all[1]).expect("two regions");
            assert!((mixed.gb_per_s.value - 2.0 * far_gb_per_s.min(100.0)).abs() < 1e-9);
            assert!((mixed.latency_ns.value - 115.0).abs() < 1e-9);
            assert_eq!(mixed.latency_ns.reading, Reading::Predicted);
            assert_eq!(mixed.by_turns(&all[0]), None);
            let found: Vec<Step> = steps_with_turns(&all).collect();
            assert_eq!((found.len(), found[1].memory), (2, mixed), "the far one alone never");
            assert_as_tried(steps_with_turns(&all), &with_pairs(&all));
        }
    }

    #[test]
    fn of_many_regions_those_in_between_have_their_turn() {
        let all =
            [of(0, 200.0, 300.0), of(1, 100.0, 50.0), of(2, 120.0, 100.0), of(3, 130.0, 90.0)];
        assert_as_tried(steps(&all), &all);
        let found: Vec<Pages> = steps(&all).map(|step| step.memory.pages).collect();
        assert_eq!(found, [1, 2, 0].map(|region| Pages::In(RegionId(region))));
        assert_as_tried(steps_with_turns(&all), &with_pairs(&all));
        assert_eq!(steps(&[]).count(), 0);
    }

    #[test]
    fn a_crossing_lies_between_what_its_numbers_say_and_what_is_not_told_apart_is_not_chosen() {
        let within = |memory: Memory, lo, hi| {
            let gb_per_s = Cost { lo, hi, ..memory.gb_per_s };
            Memory { gb_per_s, ..memory }
        };
        let ddr = within(of(0, 147.0, 90.0), 70.0, 120.0);
        let hbm = within(of(1, 170.0, 400.0), 300.0, 500.0);
        let crossing = steps(&[ddr, hbm]).nth(1).expect("they cross").from_lines;
        assert!((crossing.lo - 70.0 * 170.0 / 64.0).abs() < 1e-9, "{crossing:?}");
        assert!((crossing.hi - 120.0 * 170.0 / 64.0).abs() < 1e-9, "{crossing:?}");
        assert_eq!(crossing.reading, Reading::Predicted);
        let hardly = within(of(1, 170.0, 121.0), 119.0, 123.0);
        assert_eq!(steps(&[ddr, hardly]).count(), 1);
    }

    #[test]
    fn little_is_known_and_nothing_is_said() {
        assert_eq!(memory(&crate::Unknown, &[CoreId(0)], RegionId(0)), None);
        assert_eq!(memory(&crate::Unknown, &[], RegionId(0)), None);
    }
}
