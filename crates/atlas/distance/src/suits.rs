//! Which region suits which array, where regions differ in latency and in bandwidth (HBM or MCDRAM beside DDR, CXL).
//!
//! By Little's law: `n` lines that are under way at a time through a latency of `L` ns move `64 n / L` bytes a ns,
//! until the memory moves no more. So the region with the shorter latency is faster while few lines are under way, and
//! one that is farther and wider from `B L' / 64` lines on, where `B` is what the near one moves at most and `L'` the
//! latency of the wide one. An array whose pages alternate between two regions has the mean of both latencies, and
//! moves at most twice what the narrower does.

use crate::costs::{Cost, Distances};
use isochrone_units::{CoreId, RegionId};

/// Bytes of a line.
const LINE_BYTES: f64 = 64.0;

/// What a region's memory is to a set of cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// The region.
    pub region: RegionId,
    /// Until a line is here, ns: the mean over the cores.
    pub latency_ns: f64,
    /// What all these cores together move at most, 10^9 bytes a second.
    pub gb_per_s: f64,
}

impl Memory {
    /// What the cores move with so many lines under way in all, 10^9 bytes a second.
    #[must_use]
    pub fn moves(&self, lines: f64) -> f64 {
        (lines * LINE_BYTES / self.latency_ns).min(self.gb_per_s)
    }

    /// Pages of two memories by turns.
    #[must_use]
    pub fn interleaved(self, other: Self) -> Self {
        Self {
            region: self.region,
            latency_ns: f64::midpoint(self.latency_ns, other.latency_ns),
            gb_per_s: 2.0 * self.gb_per_s.min(other.gb_per_s),
        }
    }
}

/// Which of two regions suits what, for some cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suits {
    /// For an array whose accesses wait for one another.
    pub latency_bound: Memory,
    /// For one that keeps many lines under way.
    pub bandwidth_bound: Memory,
    /// Lines under way, of all cores together, from which on the wide region moves more than the near one; `None`
    /// where one region is both.
    pub crossing_lines: Option<f64>,
    /// The same from which on pages of both by turns move more than either alone; `None` where they never do.
    pub interleaved_lines: Option<f64>,
}

/// What a region is to `cores`, as far as it is known: latency from each of them, and what they move together.
/// `None` where either is not known.
pub fn memory<D: Distances + ?Sized>(on: &D, cores: &[CoreId], region: RegionId) -> Option<Memory> {
    let mut sum = 0.0;
    let mut count = 0.0;
    let mut together: Option<Cost> = None;
    for core in cores {
        let costs = on.region(*core, region)?;
        sum += costs.latency_ns.value;
        count += 1.0;
        together = together.or(costs.gb_per_s_together);
    }
    let exact = on.bandwidth(cores, region).or(together)?;
    let known = count > 0.0 && sum > 0.0 && exact.value > 0.0;
    known.then(|| Memory { region, latency_ns: sum / count, gb_per_s: exact.value })
}

/// Which of two memories suits what.
#[must_use]
pub fn suits(one: Memory, other: Memory) -> Suits {
    let (near, far) = if one.latency_ns <= other.latency_ns { (one, other) } else { (other, one) };
    let wide = if far.gb_per_s > near.gb_per_s { far } else { near };
    let crossing =
        (wide.region != near.region).then(|| near.gb_per_s * far.latency_ns / LINE_BYTES);
    let mixed = near.interleaved(far);
    // Beyond the wide one alone, if it saturates first.
    let gains = mixed.gb_per_s > wide.gb_per_s;
    Suits {
        latency_bound: near,
        bandwidth_bound: wide,
        crossing_lines: crossing,
        interleaved_lines: gains.then(|| wide.gb_per_s * mixed.latency_ns / LINE_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(region: u16, latency_ns: f64, gb_per_s: f64) -> Memory {
        Memory { region: RegionId(region), latency_ns, gb_per_s }
    }

    /// The crossing, found by trying.
    fn tried(better: impl Fn(f64) -> bool) -> Option<f64> {
        (1..100_000).map(|tenths| f64::from(tenths) / 10.0).find(|lines| better(*lines))
    }

    #[test]
    fn the_near_region_is_for_latency_and_the_wide_one_from_the_crossing_on() {
        let (ddr, hbm) = (of(0, 147.0, 90.0), of(1, 170.0, 400.0));
        let found = suits(hbm, ddr);
        assert_eq!((found.latency_bound, found.bandwidth_bound), (ddr, hbm));
        let lines = found.crossing_lines.expect("they cross");
        assert!((lines - 90.0 * 170.0 / 64.0).abs() < 1e-9);
        let seen = tried(|n| hbm.moves(n) > ddr.moves(n)).expect("they cross");
        assert!((seen - lines).abs() <= 0.2, "{seen} {lines}");
        // Twice the narrow one is less than the wide one alone.
        assert_eq!(found.interleaved_lines, None);
    }

    #[test]
    fn pages_by_turns_pay_where_neither_is_twice_as_wide() {
        let (near, far) = (of(0, 90.0, 100.0), of(1, 140.0, 90.0));
        let found = suits(near, far);
        assert_eq!((found.bandwidth_bound, found.crossing_lines), (near, None));
        let lines = found.interleaved_lines.expect("both together move more");
        let mixed = near.interleaved(far);
        let better = |n: f64| mixed.moves(n) > near.moves(n).max(far.moves(n));
        let seen = tried(better).expect("they cross");
        assert!((seen - lines).abs() <= 0.2, "{seen} {lines}");
        assert!((mixed.gb_per_s - 180.0).abs() < 1e-9 && (mixed.latency_ns - 115.0).abs() < 1e-9);
    }

    #[test]
    fn little_is_known_and_nothing_is_said() {
        assert_eq!(memory(&crate::Unknown, &[CoreId(0)], RegionId(0)), None);
        assert_eq!(memory(&crate::Unknown, &[], RegionId(0)), None);
    }
}
