//! A large server of any number of cores and regions: clusters of eight cores around a cache, regions of clusters, up
//! to four regions in a socket.
//!
//! No such machine is described: costs are assumed, of the size that servers with 64 to 192 cores a socket are known
//! for, and whole cycles.

use super::LINE_BITS;
use crate::number::{narrow, wide};
use crate::synthetic::{
    AddressHash, Clusters, Geometry, RegionUnits, Seat, SyntheticMachine, SyntheticSpec, TermCosts,
};

/// Cores of a cluster.
const CLUSTER: u16 = 8;
/// Slices of a region's homes, and of a cluster's ring.
const SLICES: u16 = 8;
/// Memory controllers of a region.
const CONTROLLERS: u16 = 4;
/// Frames of a region for each of its cores, at least: 4 GiB.
const FRAMES_PER_CORE: u64 = 1 << 20;
/// Regions of a socket where there are more than two.
const SOCKET: u16 = 4;

impl SyntheticSpec {
    /// A server of `cores` cores in `regions` regions of nearly equal size. At 2 GHz a load takes 20 ns from the
    /// cluster's cache, 90 ns from the nearest memory, 15 ns more for each hop (1 or 2 within a socket, 3 to each
    /// further one); a line from another core 34 ns within the cluster.
    ///
    /// # Panics
    /// For no region, or fewer cores than regions.
    #[must_use]
    pub fn clusters(cores: u16, regions: u16, seed: u64) -> Self {
        assert!(regions > 0 && cores >= regions, "a region needs a core");
        let first = |region: u16| u32::from(cores) * u32::from(region) / u32::from(regions);
        let (mut cluster_of, mut region_of) = (Vec::new(), Vec::new());
        for region in 0..regions {
            for at in 0..first(region + 1) - first(region) {
                if at % u32::from(CLUSTER) == 0 {
                    region_of.push(region);
                }
                cluster_of.push(narrow(wide(region_of.len() - 1)));
            }
        }
        let of = |count: u16, each: u16| {
            Seat::all(&(0..count).map(|unit| unit / each).collect::<Vec<u16>>())
        };
        let in_socket = if regions > 2 { SOCKET } else { 1 };
        let machine = SyntheticMachine {
            geometry: Geometry::Clusters(Clusters {
                cores: Seat::all(&cluster_of),
                clusters: Seat::all(&region_of),
                regions: of(regions, in_socket),
                slices: of(regions * SLICES, SLICES),
                controllers: of(regions * CONTROLLERS, CONTROLLERS),
                stops: SLICES,
                step_cycles: 2.0,
                cluster_cycles: 8.0,
                hop_cycles: 30.0,
            }),
            llc_base_cycles: Some(32.0),
            dram_base_cycles: 166.0,
        };
        let mut spec = Self::from_machine("clusters", seed, machine);
        // Every region spreads its lines alike.
        let units = |region: u16, each: u16| (region * each..(region + 1) * each).collect();
        spec.regions = (0..regions)
            .map(|region| RegionUnits {
                slices: units(region, SLICES),
                controllers: units(region, CONTROLLERS),
                gb_per_s: None,
            })
            .collect();
        spec.period_lines = 64;
        let masks = AddressHash::random_key_masks(6, LINE_BITS, seed);
        spec.slice_hash = AddressHash::Permuted { masks: masks.clone(), salt: seed };
        spec.controller_hash = AddressHash::Permuted { masks, salt: !seed };
        let each = u64::from(cores.div_ceil(regions)) * FRAMES_PER_CORE;
        spec.arena.frames_per_region = each.next_power_of_two();
        spec.transfers.terms = TermCosts {
            local_cycles: 4.0,
            adjacent_cycles: 6.0,
            left_shared_cycles: 40.0,
            left_read_cycles: 10.0,
            overlapped_cycles: 14.0,
            ..TermCosts::default()
        };
        spec.transfers.core_gb_per_s = 12.0;
        spec.transfers.region_gb_per_s = 100.0;
        spec
    }
}

#[cfg(test)]
mod tests {
    use isochrone_units::{CoreId, Level, LineAddr, LineState, RegionId};

    use super::*;
    use crate::synthetic::{SyntheticMemory, Transfer};

    #[test]
    fn servers_of_many_sizes_are_sound_and_keep_to_their_form() {
        for (cores, regions) in [(2, 1), (8, 2), (50, 3), (128, 2), (384, 16), (576, 16)] {
            let spec = SyntheticSpec::clusters(cores, regions, 3).with_pages(64).with_small_pages();
            let memory = SyntheticMemory::new(spec).unwrap_or_else(|why| panic!("{cores}: {why}"));
            assert_eq!(memory.cores(), usize::from(cores));
            assert!(
                (0..64).all(|page| memory.truth_key(isochrone_units::PageAddr(page)).is_some())
            );
        }
    }

    #[test]
    fn farther_regions_and_clusters_cost_more() {
        let spec = SyntheticSpec::clusters(384, 16, 3).with_pages(1024).with_small_pages();
        let memory = SyntheticMemory::new(spec).expect("a sound preset");
        let of = |region| memory.truth_region_latency(CoreId(0), RegionId(region)).expect("pages");
        assert!(of(0) < of(1) && of(1) < of(3) && of(3) < of(4), "{} {} {}", of(0), of(1), of(4));
        let transfer = |asker| Transfer {
            owner: CoreId(0),
            asker: CoreId(asker),
            line: LineAddr(9),
            state: LineState::Modified,
        };
        let cost = |asker| memory.truth_transfer(transfer(asker)).expect("they exist");
        assert!(cost(1) < cost(8) && cost(8) < cost(24) && cost(24) < cost(383));
        let llc = memory.truth_base(CoreId(0), Level::Llc).expect("it has a cache");
        assert_eq!(llc, memory.truth_base(CoreId(8), Level::Llc).expect("alike"), "every cluster");
    }
}
