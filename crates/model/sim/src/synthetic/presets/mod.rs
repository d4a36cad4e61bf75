//! Ready-made specs: machines of the papers and machines that were measured, as rings, meshes
//! and patterns.
//!
//! A preset reproduces the shape of what is known (how many cores, how latencies spread, which
//! noise) and not a die: hop costs and places that no source states are assumed, and said to be
//! where they stand. All have "like" behaviour under a seed: two seeds are two specimens.

mod clusters;
mod granite;
mod meshes;
mod patterns;
mod rings;

pub use patterns::Patterns;

use crate::number::{narrow, wide};
use crate::synthetic::{
    AddressHash, Arena, Costs, InteractionCosts, MultiLine, Noise, RegionUnits, SyntheticMachine,
    SyntheticSpec, TermCosts, Timer, TransferCosts,
};

/// Bits of a physical line number that hashes look at: 2^22 frames of 64 lines in 4 regions.
const LINE_BITS: u32 = 30;

/// The presets by name, for command lines and tables.
pub const NAMES: [&str; 10] = [
    "emerald_rapids_like",
    "emerald_rapids_wide",
    "genoa_like",
    "granite_rapids_like",
    "ring_knc",
    "ring_e5_2660",
    "mesh_knm_snc4",
    "mesh_xeon",
    "irregular",
    "flat",
];

impl SyntheticSpec {
    /// The preset of that name, or `None`.
    #[must_use]
    pub fn by_name(name: &str, seed: u64) -> Option<Self> {
        Some(match name {
            "emerald_rapids_like" => Self::emerald_rapids_like(seed),
            "emerald_rapids_wide" => Self::emerald_rapids_wide(seed),
            "genoa_like" => Self::genoa_like(seed),
            "granite_rapids_like" => Self::granite_rapids_like(seed),
            "ring_knc" => Self::ring_knc(seed),
            "ring_e5_2660" => Self::ring_e5_2660(seed),
            "mesh_knm_snc4" => Self::mesh_knm_snc4(seed),
            "mesh_xeon" => Self::mesh_xeon(seed),
            "irregular" => Self::irregular(seed),
            "flat" => Self::flat(seed),
            _ => return None,
        })
    }

    /// A spec for any machine, one region, logical core `i` on physical core `i`. Slices and
    /// controllers are base sequences permuted by one key, so the form holds with a period of 64
    /// lines (256 where there are more than 64 slices). Costs and noise are middling.
    #[must_use]
    pub fn from_machine(name: &str, seed: u64, machine: SyntheticMachine) -> Self {
        let (slices, controllers) = (machine.slices(), machine.controllers());
        let period_lines = if slices.max(controllers) > 64 { 256 } else { 64 };
        let masks = AddressHash::random_key_masks(u16::ilog2(period_lines), LINE_BITS, seed);
        let all = |count: usize| (0..narrow(wide(count))).collect();
        Self {
            name: name.to_owned(),
            seed,
            wears: all(machine.cores()),
            regions: vec![RegionUnits {
                slices: all(slices),
                controllers: all(controllers),
                gb_per_s: None,
            }],
            slice_hash: AddressHash::Permuted { masks: masks.clone(), salt: seed },
            controller_hash: AddressHash::Permuted { masks, salt: !seed },
            period_lines,
            arena: Arena {
                pages: 8192,
                huge: true,
                frames_per_region: 1 << 22,
                frames_readable: true,
            },
            timer: Timer { hz: 2e9, tick_cycles: 1, overhead_cycles: 30.0, random_phase: true },
            noise: middling_noise(),
            costs: Costs {
                batch_cycles: 200.0,
                sample_cycles: 60.0,
                llc_prepare_cycles: 350.0,
                dram_prepare_cycles: 150.0,
            },
            transfers: middling_transfers(),
            neighbours: Vec::new(),
            schedule: Vec::new(),
            machine,
        }
    }
}

fn middling_noise() -> Noise {
    Noise {
        llc_sd_cycles: 4.0,
        dram_sd_cycles: 8.0,
        outlier_probability: 0.005,
        outlier_cycles: 100.0,
        ..Noise::none()
    }
}

fn middling_transfers() -> TransferCosts {
    TransferCosts {
        base_cycles: 60.0,
        modified_cycles: 8.0,
        exclusive_cycles: 4.0,
        parallel_cycles: 0.0,
        sd_cycles: 5.0,
        multi_line: MultiLine { q_cycles: 140.0, o_cycles: 25.0, c_cycles: 2.0 },
        interactions: InteractionCosts {
            alone_cycles: 90.0,
            contention_cycles: 3.0,
            congestion_cycles: 6.0,
            reader_cycles: 45.0,
            writer_cycles: 80.0,
            rfo_cycles: 90.0,
        },
        terms: TermCosts::default(),
        core_gb_per_s: 8.0,
        region_gb_per_s: 60.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_preset_is_sound_and_of_its_name() {
        for name in NAMES {
            let spec = SyntheticSpec::by_name(name, 5).expect(name);
            assert_eq!(spec.name, name);
            spec.validate().unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_ne!(SyntheticSpec::by_name(name, 6).as_ref(), Some(&spec), "seeds differ");
        }
        assert_eq!(SyntheticSpec::by_name("none such", 5), None);
    }
}
