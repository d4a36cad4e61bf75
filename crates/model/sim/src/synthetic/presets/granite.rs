//! A server whose hash over slices repeats after several pages, and whose memory lies on two nodes.

use core::f64::consts::TAU;

use super::LINE_BITS;
use crate::number::float;
use crate::random::{Random, Stream};
use crate::synthetic::{
    AddressHash, FrequencyDrift, Geometry, Noise, RegionUnits, SyntheticMachine, SyntheticSpec,
    Tables,
};

/// Physical cores; two of them are worn at the start.
const PHYSICAL_CORES: u16 = 8;
/// Lines after which the pattern of the last-level cache repeats up to a key: eight pages.
const SEQUENCE: u16 = 512;
/// Lines after which the pattern of DRAM does.
const CHANNELS: u16 = 16;
/// By how much memory on the other node is farther, cycles.
const FAR_CYCLES: f64 = 122.0;

impl SyntheticSpec {
    /// Two logical cores of a virtual machine on a Granite Rapids server (480 MiB of last-level cache)
    /// as measured: LLC 67 to 109 cycles, noise of one load 6; the base sequence has 512 lines, so that a
    /// page shows one of eight patterns, which correlate at 0.75 to 0.9, under one of 64 keys; the host
    /// backs the memory with small frames, so that neighbouring pages tell nothing of each other. DRAM
    /// has four groups of four lines, the keys of which do not follow from those of the LLC. A part of
    /// the pages (measured a quarter, here half) is 122 cycles farther at both levels.
    #[must_use]
    pub fn granite_rapids_like(seed: u64) -> Self {
        let mut random = Random::new(seed, Stream::Pattern);
        let nodes: Vec<Node> = (0..2).map(|_| Node::draw(&mut random)).collect();
        let far = |node: usize| FAR_CYCLES * float(node);
        let llc = |core: u16| -> Vec<f64> {
            let of = |node: usize| nodes[node].llc(core).into_iter().map(move |v| v + far(node));
            (0..2).flat_map(of).collect()
        };
        // All slices see a channel alike.
        let dram = |core: u16| -> Vec<Vec<f64>> {
            let of = |node: usize| nodes[node].dram(core).into_iter().map(move |v| v + far(node));
            let slices = 2 * usize::from(SEQUENCE);
            (0..2).flat_map(of).map(|cycles| vec![cycles; slices]).collect()
        };
        let machine = SyntheticMachine {
            geometry: Geometry::Tables(Tables {
                home_cycles: vec![0.0; 2 * usize::from(SEQUENCE)],
                llc_cycles: (0..PHYSICAL_CORES).map(llc).collect(),
                dram_cycles: (0..PHYSICAL_CORES).map(dram).collect(),
            }),
            llc_base_cycles: Some(0.0),
            dram_base_cycles: 0.0,
        };
        let mut spec = Self::from_machine("granite_rapids_like", seed, machine);
        spec.period_lines = 64;
        spec.slice_hash = AddressHash::Xor { masks: masks(SEQUENCE, seed) };
        spec.controller_hash = AddressHash::Xor { masks: masks(CHANNELS, !seed) };
        let units = |node: u16, count: u16| (node * count..(node + 1) * count).collect();
        spec.regions = (0..2)
            .map(|node| RegionUnits {
                slices: units(node, SEQUENCE),
                controllers: units(node, CHANNELS),
                gb_per_s: None,
            })
            .collect();
        spec.arena.huge = false;
        spec.wears = vec![0, PHYSICAL_CORES / 2];
        spec.timer.hz = 2.6e9;
        spec.timer.tick_cycles = 2;
        spec.timer.overhead_cycles = 43.0;
        spec.noise = Noise {
            llc_sd_cycles: 6.0,
            dram_sd_cycles: 20.0,
            outlier_probability: 0.02,
            outlier_cycles: 200.0,
            llc_miss_probability: 0.003,
            disturbance: None,
            frequency: Some(FrequencyDrift { amplitude: 0.002, period_s: 20.0 }),
            slower_by: 0.0,
        };
        spec
    }
}

/// Slices and channels of one node, as places around a circle on which cores lie too.
struct Node {
    /// Of each line of the base sequence.
    slices: Vec<f64>,
    channels: Vec<f64>,
}

impl Node {
    fn draw(random: &mut Random) -> Self {
        let mut circle =
            |count: u16| -> Vec<f64> { (0..count).map(|_| TAU * random.uniform()).collect() };
        // The pages of a sequence are alike: most lines of each have the place that they have in all.
        let common = circle(64);
        let mut slices = circle(SEQUENCE);
        for (line, place) in slices.iter_mut().enumerate() {
            if line % 5 < 3 {
                *place = common[line % 64];
            }
        }
        let groups = circle(CHANNELS / 4);
        let channels = (0..usize::from(CHANNELS)).map(|line| groups[line / 4]).collect();
        Self { slices, channels }
    }

    fn llc(&self, core: u16) -> Vec<f64> {
        self.slices.iter().map(|place| 88.0 - 15.0 * facing(place, core)).collect()
    }

    fn dram(&self, core: u16) -> Vec<f64> {
        self.channels.iter().map(|place| 360.0 - 18.0 * facing(place, core)).collect()
    }
}

/// 1 where a place coincides with a core, -1 where they are opposed.
fn facing(place: &f64, core: u16) -> f64 {
    libm::cos(place - TAU * f64::from(core) / f64::from(PHYSICAL_CORES))
}

/// Masks of a sequence whose line `i` is its place `i` under key 0; the keys are random in the bits of
/// the frame.
fn masks(lines: u16, seed: u64) -> Vec<u64> {
    let bits = u32::from(lines).ilog2();
    let page = (1_u64 << bits.max(6)) - 1;
    let random = AddressHash::random_xor_masks(bits, LINE_BITS, seed);
    (0..).zip(random).map(|(bit, mask)| (mask & !page) | (1_u64 << bit)).collect()
}
