//! Ring machines: the Xeon Phi 5110P of the Euro-Par paper and one socket of the CLa paper's
//! Xeon E5-2660.
//!
//! Counts and published costs carry their source; the order of the stops and the cost of a hop
//! are not published and are assumed.

use super::LINE_BITS;
use crate::synthetic::{
    AddressHash, Geometry, InteractionCosts, MultiLine, Ring, SyntheticMachine, SyntheticSpec,
};

/// Directories between two neighbouring controllers: 64 of them, 8 controllers.
const KNC_DIRECTORIES_PER_CONTROLLER: u16 = 8;

impl SyntheticSpec {
    /// Xeon Phi 5110P: 60 cores, 64 tag directories and 8 controllers on one bidirectional ring
    /// (Euro-Par paper, section 2), no cache that cores share. Latencies of one block differ by
    /// up to 60 % between cores (Figure 2), which fixes the assumed hop cost against the assumed
    /// base. Directories and controllers by linear XOR.
    #[must_use]
    pub fn ring_knc(seed: u64) -> Self {
        let mut spec = Self::from_machine("ring_knc", seed, knc());
        let slices = AddressHash::random_xor_masks(6, LINE_BITS, seed);
        // A controller follows from the directory, so one key of 6 bits serves both.
        let controllers = (0..3).map(|bit| slices[bit] ^ slices[bit + 3]).collect();
        spec.slice_hash = AddressHash::Xor { masks: slices };
        spec.controller_hash = AddressHash::Xor { masks: controllers };
        spec.timer.hz = 1.053e9; // Intel ARK, Xeon Phi 5110P: 1.053 GHz.
        spec.transfers.base_cycles = 180.0;
        spec
    }

    /// One socket of the Xeon E5-2660 of the CLa paper's section 2: 8 cores and 8 LLC slices on a
    /// ring, 2.2 GHz; 35 ns a transfer between cores, 70 ns from local memory, no contention, an
    /// RFO of a line shared by n costs n transfers; many lines as between sockets (Table 1).
    #[must_use]
    pub fn ring_e5_2660(seed: u64) -> Self {
        const CYCLES_PER_NS: f64 = 2.2;
        let machine = SyntheticMachine {
            geometry: Geometry::Ring(Ring {
                stops: 10,
                cores: (1..9).collect(),
                slices: (1..9).collect(),
                controllers: vec![0],
                hop_cycles: 2.0,
            }),
            llc_base_cycles: Some(26.0),
            // With its hops, of which a route has 8 on average, 70 ns.
            dram_base_cycles: 70.0 * CYCLES_PER_NS - 8.0 * 2.0,
        };
        let mut spec = Self::from_machine("ring_e5_2660", seed, machine);
        spec.slice_hash =
            AddressHash::Xor { masks: AddressHash::random_xor_masks(3, LINE_BITS, seed) };
        spec.controller_hash = AddressHash::Interleave;
        spec.timer.hz = CYCLES_PER_NS * 1e9;
        let transfer = 35.0 * CYCLES_PER_NS;
        // A route has 7.5 hops on average; modified and exclusive lines cost nearly the same.
        spec.transfers.base_cycles = transfer - 7.5 * 2.0;
        spec.transfers.modified_cycles = 1.0;
        spec.transfers.exclusive_cycles = 0.0;
        spec.transfers.multi_line = MultiLine {
            q_cycles: 180.65 * CYCLES_PER_NS,
            o_cycles: 7.5 * CYCLES_PER_NS,
            c_cycles: 3.0 * CYCLES_PER_NS,
        };
        spec.transfers.interactions = InteractionCosts {
            alone_cycles: transfer,
            contention_cycles: 0.0,
            congestion_cycles: 0.0,
            // Stealing is not quantified in the paper; assumed.
            reader_cycles: 0.5 * transfer,
            writer_cycles: transfer,
            rfo_cycles: transfer,
        };
        spec
    }
}

/// Eight groups of eight directories, each group closed by a controller; a core sits at every
/// directory but the 16th, 32nd, 48th and 64th (assumed: the chip has spare cores).
fn knc() -> SyntheticMachine {
    let group = KNC_DIRECTORIES_PER_CONTROLLER;
    let stop = |directory: u16| directory + directory / group;
    SyntheticMachine {
        geometry: Geometry::Ring(Ring {
            stops: 72,
            cores: (0..64).filter(|d| d % 16 != 15).map(stop).collect(),
            slices: (0..64).map(stop).collect(),
            controllers: (0..8).map(|c| c * (group + 1) + group).collect(),
            hop_cycles: 2.0,
        }),
        llc_base_cycles: None,
        dram_base_cycles: 230.0,
    }
}

#[cfg(test)]
mod tests {
    use isochrone_units::{CoreId, Level, LineAddr, LineState};

    use super::*;
    use crate::number::float;
    use crate::synthetic::SyntheticMemory;

    #[test]
    fn knc_has_its_parts_and_its_60_percent() {
        let memory = SyntheticMemory::new(SyntheticSpec::ring_knc(1).with_pages(16)).unwrap();
        let machine = &memory.spec().machine;
        assert_eq!((machine.cores(), machine.slices(), machine.controllers()), (60, 64, 8));
        let mut largest: f64 = 1.0;
        for line in (0..1024).map(LineAddr) {
            let of = |core| memory.truth_latency(CoreId(core), Level::Dram, line).unwrap();
            let nearest = (0..60).map(of).fold(f64::INFINITY, f64::min);
            let farthest = (0..60).map(of).fold(0.0, f64::max);
            largest = largest.max(farthest / nearest);
        }
        assert!((1.5..1.65).contains(&largest), "Figure 2 has up to 1.6: {largest}");
    }

    #[test]
    fn e5_2660_has_the_published_transfer_and_memory_costs() {
        let memory = SyntheticMemory::new(SyntheticSpec::ring_e5_2660(1).with_pages(16)).unwrap();
        let lines: Vec<LineAddr> = (0..512).map(LineAddr).collect();
        let mut medians = Vec::new();
        for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let (a, b) = (CoreId(a), CoreId(b));
            medians.push(
                memory.truth_transfer_median(a, b, LineState::Exclusive, &lines).unwrap() / 2.2,
            );
        }
        let mean_ns = medians.iter().sum::<f64>() / float(medians.len());
        assert!((mean_ns - 35.0).abs() < 2.0, "R_R is 35 ns: {mean_ns}");
        let of = |core| {
            memory.truth_region_latency(CoreId(core), isochrone_units::RegionId(0)).unwrap() / 2.2
        };
        let mean_ns = (0..8).map(of).sum::<f64>() / 8.0;
        assert!((mean_ns - 70.0).abs() < 2.0, "R_I is 70 ns: {mean_ns}");
    }
}
