//! Machines known by their patterns: what was measured on two virtual machines, and the flat one.
//!
//! Each preset states the measured facts that it keeps: ranges, modes, shares, correlations.
//! Which line is how far is drawn from the seed so that these hold. Nothing here
//! claims a floor plan.

use core::f64::consts::TAU;

use super::LINE_BITS;
use crate::number::{float, index, narrow, wide};
use crate::random::{Random, Stream};
use crate::synthetic::{
    AddressHash, Disturbance, FrequencyDrift, Geometry, Noise, SyntheticMachine, SyntheticSpec,
    Tables,
};

/// Physical cores in the pattern presets; two of them are worn at the start.
const PHYSICAL_CORES: u16 = 8;

/// Patterns given one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Patterns {
    /// LLC latencies, cycles: `[physical core][line]`. The number of lines is a power of two up
    /// to 256; a pattern of fewer than 64 lines repeats within the page.
    pub llc_cycles: Vec<Vec<f64>>,
    /// DRAM latencies, cycles: `[physical core][page class][line]`.
    pub dram_cycles: Vec<Vec<Vec<f64>>>,
    /// How often pages are of each class; empty where there is one.
    pub class_weights: Vec<u32>,
}

impl SyntheticSpec {
    /// A machine with exactly these patterns. The key of a page is linear in its frame's bits,
    /// its class random.
    #[must_use]
    pub fn from_patterns(name: &str, seed: u64, patterns: Patterns) -> Self {
        let lines = patterns.llc_cycles.first().map_or(0, Vec::len);
        let bits = lines.checked_ilog2().unwrap_or(0);
        let machine = SyntheticMachine {
            geometry: Geometry::Tables(Tables {
                home_cycles: vec![0.0; lines],
                llc_cycles: patterns.llc_cycles,
                dram_cycles: patterns.dram_cycles,
            }),
            llc_base_cycles: Some(0.0),
            dram_base_cycles: 0.0,
        };
        let mut spec = Self::from_machine(name, seed, machine);
        spec.period_lines = narrow(wide(lines)).max(64);
        spec.slice_hash = AddressHash::Xor { masks: key_masks(bits, seed) };
        spec.controller_hash = if patterns.class_weights.is_empty() {
            AddressHash::Interleave
        } else {
            AddressHash::PerPage { weights: patterns.class_weights, seed }
        };
        spec
    }

    /// Two logical cores of an Emerald Rapids Xeon as measured: LLC 86 to 156 cycles, DRAM 258 to
    /// 312 in modes near 264, 284 and 304 with four-line groups, 64 keys, opposed cores (r near
    /// -0.94), LLC and DRAM alike (r near 0.83), lines of one page timed together disturb.
    #[must_use]
    pub fn emerald_rapids_like(seed: u64) -> Self {
        emerald("emerald_rapids_like", 64, seed)
    }

    /// The same where the pattern repeats after 256 lines only, hence 256 keys.
    #[must_use]
    pub fn emerald_rapids_wide(seed: u64) -> Self {
        emerald("emerald_rapids_wide", 256, seed)
    }

    /// Two logical cores of an EPYC Genoa as measured: eight slices by the three lowest bits of
    /// the line, LLC 44 cycles with 12 between nearest and farthest; DRAM the same for all lines
    /// of a page, in three classes of pages (25, 25 and 50 %); a clock that steps by 26 cycles; a
    /// third of the LLC samples miss.
    #[must_use]
    pub fn genoa_like(seed: u64) -> Self {
        const SLICES: u64 = 8;
        let mut random = Random::new(seed, Stream::Pattern);
        let mut places: Vec<u64> = (0..SLICES).collect();
        random.shuffle(&mut places);
        let llc = |core: u16| {
            // A cosine between -6 and 6: 12 peak to peak, deviation 6 / sqrt 2 = 4.2.
            let at = |place: &u64| 44.0 - 6.0 * facing(turn(*place, SLICES) - core_turn(core));
            places.iter().map(at).collect()
        };
        // Measured with overhead: 411, 427, 441; the empty region takes 60 on average.
        let dram = |_| [351.0, 367.0, 381.0].map(|cycles| vec![cycles; places.len()]).to_vec();
        let patterns = Patterns {
            llc_cycles: (0..PHYSICAL_CORES).map(llc).collect(),
            dram_cycles: (0..PHYSICAL_CORES).map(dram).collect(),
            class_weights: vec![1, 1, 2],
        };
        let mut spec = Self::from_patterns("genoa_like", seed, patterns);
        spec.wears = vec![0, PHYSICAL_CORES / 2];
        spec.timer.hz = 2.596e9;
        spec.timer.tick_cycles = 26;
        spec.timer.overhead_cycles = 60.0;
        spec.noise = Noise {
            llc_sd_cycles: 6.0,
            dram_sd_cycles: 45.0,
            outlier_probability: 0.01,
            outlier_cycles: 200.0,
            llc_miss_probability: 0.3,
            disturbance: None,
            frequency: Some(FrequencyDrift { amplitude: 0.005, period_s: 20.0 }),
            slower_by: 0.0,
        };
        // No demotion there: each sample bears its share of an eviction.
        spec.costs.llc_prepare_cycles = 500.0;
        spec
    }

    /// A machine on which every line is equally far.
    #[must_use]
    pub fn flat(seed: u64) -> Self {
        let patterns = Patterns {
            llc_cycles: vec![vec![70.0]; 2],
            dram_cycles: vec![vec![vec![300.0]]; 2],
            class_weights: vec![],
        };
        Self::from_patterns("flat", seed, patterns)
    }
}

fn key_masks(bits: u32, seed: u64) -> Vec<u64> {
    // Only the upper bits are random: line `i` of a page with key 0 is line `i` of the pattern.
    let low = (1_u64 << bits) - 1;
    let masks = AddressHash::random_xor_masks(bits, LINE_BITS, seed);
    (0..).zip(masks).map(|(bit, mask)| (mask & !low) | (1_u64 << bit)).collect()
}

fn turn(step: u64, steps: u64) -> f64 {
    TAU * float(index(step)) / float(index(steps))
}

fn core_turn(core: u16) -> f64 {
    turn(u64::from(core), u64::from(PHYSICAL_CORES))
}

/// 1 where two places on a circle coincide, -1 where they are opposed.
fn facing(angle: f64) -> f64 {
    libm::cos(angle)
}

/// Four-line groups around a circle, cores around the same circle: a line is as far as its place
/// is from the core, so opposed cores see opposed patterns.
fn emerald(name: &str, lines: u64, seed: u64) -> SyntheticSpec {
    let mut random = Random::new(seed, Stream::Pattern);
    let groups = lines / 4;
    let mut places: Vec<u64> = (0..groups).collect();
    random.shuffle(&mut places);
    let mut channels: Vec<u64> = (0..groups).collect();
    random.shuffle(&mut channels);
    // Within a group the place varies by 0.29 radians: neighbours correlate at about 0.87.
    let place: Vec<f64> = (0..lines)
        .map(|line| turn(places[index(line / 4)], groups) + 0.29 * random.normal())
        .collect();
    let channel: Vec<f64> =
        (0..lines).map(|line| turn(channels[index(line / 4)], groups)).collect();
    let cores: Vec<(Vec<f64>, Vec<f64>)> = (0..PHYSICAL_CORES)
        .map(|core| {
            let far = |places: &[f64]| -> Vec<f64> {
                places.iter().map(|p| -facing(p - core_turn(core))).collect()
            };
            let llc = emerald_llc(&far(&place), &mut random);
            (llc, emerald_dram(&far(&place), &far(&channel), &mut random))
        })
        .collect();
    let (llc_cycles, dram): (Vec<Vec<f64>>, Vec<Vec<f64>>) = cores.into_iter().unzip();
    let dram_cycles = dram.into_iter().map(|pattern| vec![pattern]).collect();
    let patterns = Patterns { llc_cycles, dram_cycles, class_weights: vec![] };
    let mut spec = SyntheticSpec::from_patterns(name, seed, patterns);
    emerald_costs(&mut spec, &mut random);
    spec
}

/// Distances (-1 to 1) and a little that no place explains, stretched to 86..156 cycles.
fn emerald_llc(far: &[f64], random: &mut Random) -> Vec<f64> {
    let raw: Vec<f64> = far.iter().map(|f| f + 0.17 * random.normal()).collect();
    let least = raw.iter().copied().fold(f64::INFINITY, f64::min);
    let most = raw.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    raw.iter().map(|r| 86.0 + 70.0 * (r - least) / (most - least)).collect()
}

/// Groups ranked by slice (mostly) and channel, a third of them in each mode.
fn emerald_dram(slice: &[f64], channel: &[f64], random: &mut Random) -> Vec<f64> {
    let groups = slice.len() / 4;
    let mean = |values: &[f64], group: usize| values[4 * group..][..4].iter().sum::<f64>() / 4.0;
    let score: Vec<f64> =
        (0..groups).map(|g| 0.92 * mean(slice, g) + 0.39 * mean(channel, g)).collect();
    let mut pattern = Vec::with_capacity(slice.len());
    for group in 0..groups {
        let nearer = score.iter().filter(|s| **s < score[group]).count();
        let mode = [264.0, 284.0, 304.0][(3 * nearer / groups).min(2)];
        let own = mode + 1.2 * random.normal();
        pattern.extend((0..4).map(|_| (own + 1.2 * random.normal()).clamp(258.0, 312.0)));
    }
    pattern
}

fn emerald_costs(spec: &mut SyntheticSpec, random: &mut Random) {
    spec.wears = vec![0, PHYSICAL_CORES / 2];
    // The rate is assumed; the measured figures are cycles.
    spec.timer.hz = 2.1e9;
    spec.timer.tick_cycles = 2;
    spec.noise = Noise {
        llc_sd_cycles: 8.0,
        dram_sd_cycles: 10.0,
        outlier_probability: 0.01,
        outlier_cycles: 150.0,
        llc_miss_probability: 0.005,
        disturbance: Some(Disturbance { window: 8, probability: 0.5, found_at_cycles: 16.0 }),
        frequency: Some(FrequencyDrift { amplitude: 0.003, period_s: 20.0 }),
        slower_by: 0.0,
    };
    // Measured round trips 89 to 144 ns, median 120: 93 to 151 cycles one way, median 126. The
    // route of opposed cores is nearly the same through every home (121 cycles on average), so
    // the spread is the home's own.
    spec.transfers.base_cycles = 0.0;
    spec.transfers.modified_cycles = 5.0;
    spec.transfers.exclusive_cycles = 2.0;
    if let Geometry::Tables(tables) = &mut spec.machine.geometry {
        for home in &mut tables.home_cycles {
            *home = 50.0 * random.uniform() - 25.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::SyntheticMemory;
    use isochrone_units::{CoreId, Level};

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        isochrone_stats::pearson(a, b).expect("two patterns of one length")
    }

    fn base(spec: SyntheticSpec, core: u16, level: Level) -> Vec<Vec<f64>> {
        let memory = SyntheticMemory::new(spec).unwrap();
        memory.truth_base(CoreId(core), level).unwrap()
    }

    fn range(values: &[f64]) -> (f64, f64) {
        values.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)))
    }

    #[test]
    fn emerald_rapids_has_the_measured_ranges_and_correlations() {
        for seed in 0..8 {
            let of =
                |core, level| base(SyntheticSpec::emerald_rapids_like(seed), core, level).remove(0);
            let (llc, other) = (of(0, Level::Llc), of(1, Level::Llc));
            assert_eq!(range(&llc), (86.0, 156.0));
            let opposed = correlation(&llc, &other);
            assert!((-0.99..-0.85).contains(&opposed), "measured -0.94: {opposed}");
            let dram = of(0, Level::Dram);
            let (least, most) = range(&dram);
            assert!(least >= 258.0 && most <= 312.0, "{least} {most}");
            let near = |mode: f64| dram.iter().filter(|d| (**d - mode).abs() < 8.0).count();
            assert!([264.0, 284.0, 304.0].map(near).iter().all(|n| *n >= 16), "three modes");
            let alike = correlation(&llc, &dram);
            assert!((0.70..0.95).contains(&alike), "measured 0.81 to 0.85: {alike}");
            let swapped: Vec<f64> = (0..64_usize).map(|i| llc[i ^ 1]).collect();
            let neighbours = correlation(&llc, &swapped);
            assert!((0.78..0.97).contains(&neighbours), "measured 0.87: {neighbours}");
        }
    }

    #[test]
    fn a_group_of_four_makes_dram_keys_equivalent() {
        let dram = base(SyntheticSpec::emerald_rapids_like(2), 0, Level::Dram).remove(0);
        let under = |key: usize| (0..64).map(|i| dram[i ^ key]).collect::<Vec<f64>>();
        let equivalent = (1..64).filter(|k| correlation(&dram, &under(*k)) >= 0.98).count();
        assert!(equivalent >= 3, "keys 1, 2 and 3 at least: {equivalent}");
    }

    #[test]
    fn genoa_has_the_measured_spread_and_a_move_opposes_it() {
        let of = |core| base(SyntheticSpec::genoa_like(4), core, Level::Llc).remove(0);
        let (least, most) = range(&of(0));
        assert!((most - least - 12.0).abs() < 1e-9, "{least} {most}");
        assert!(correlation(&of(0), &of(1)) < -0.99);
        let dram = base(SyntheticSpec::genoa_like(4), 0, Level::Dram);
        assert_eq!(dram.iter().map(|c| c[0]).collect::<Vec<_>>(), [351.0, 367.0, 381.0]);
    }
}
