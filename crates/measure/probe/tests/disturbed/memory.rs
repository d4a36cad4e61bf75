//! Regions: latency of a chase, and what groups of cores move.

use isochrone_probe::bandwidth::{BandwidthOptions, BandwidthPlan, ModelTriad};
use isochrone_probe::region::{Mode, ModelRegions, RegionOptions, RegionPlan};
use isochrone_probe::{bandwidth, region};
use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
use isochrone_units::{CoreId, RegionId};

use crate::runs::{Found, covers, one};

pub(crate) fn region_latency(spec: SyntheticSpec, seed: u64) -> Found {
    let memory = SyntheticMemory::new(SyntheticSpec { seed, ..spec }).unwrap();
    let (regions, lines): (Vec<_>, Vec<_>) = ModelRegions::lines(&memory).into_iter().unzip();
    let options =
        RegionOptions { rounds_max: 60, ..RegionOptions::new(Mode::OneClass { lines }, seed) };
    let plan = RegionPlan::new(regions.len(), options).unwrap();
    let mut target = ModelRegions::new(memory, &regions, &plan.orders);
    one(region::run(&mut target, &plan, &mut || false).unwrap().map.latency_ns.cells[0])
}

#[test]
fn regions_beside_others_cover_the_quiet_truth() {
    let spec = SyntheticSpec::ring_e5_2660(2).with_pages(64).with_cores(1);
    covers(|taken, seed| region_latency(spec.clone().with_neighbours([CoreId(0)], taken), seed));
}

/// Two cores of which each could have two thirds of what the region can.
fn groups(taken: f64, seed: u64) -> Found {
    let cores = [CoreId(0), CoreId(1)];
    let mut spec = SyntheticSpec::ring_e5_2660(2).with_pages(64).with_cores(2);
    spec.transfers.region_gb_per_s = 12.0;
    let spec = SyntheticSpec { seed, ..spec.with_neighbours(cores, taken) };
    let options = BandwidthOptions { rounds_max: 12, budget_s: 1e9, ..BandwidthOptions::new(seed) };
    let plan = BandwidthPlan::new(&[(RegionId(0), cores.to_vec())], options);
    let mut target = ModelTriad::new(SyntheticMemory::new(spec).unwrap(), 0.02, seed);
    let report = bandwidth::run(&mut target, &plan, &mut || false).unwrap();
    let name = |cores: &[u16]| format!("{cores:?}");
    let of = |group: &Vec<CoreId>| {
        let ids: Vec<u16> = group.iter().map(|core| core.0).collect();
        let found = report.bandwidth.iter().find(|found| found.cores == ids);
        (name(&ids), found.map(|found| found.gb_per_s))
    };
    plan.groups.iter().map(of).collect()
}

#[test]
fn bandwidth_beside_others_covers_the_quiet_truth() {
    covers(groups);
}
