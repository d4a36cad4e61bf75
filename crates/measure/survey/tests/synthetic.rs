//! A small synthetic machine is mapped whole in virtual time, twice alike, and its truth is found.

#![allow(clippy::tests_outside_test_module, reason = "this whole binary is tests")]

use std::time::Duration;

use isochrone_probe::watch::Silent;
use isochrone_sim::synthetic::SyntheticSpec;
use isochrone_survey::synthetic::{Order, Surveyed, Truth, survey};
use isochrone_survey::{Schedule, Wishes};
use isochrone_units::{CoreId, Experiment, RegionId};

const CORES: u16 = 8;
const REGIONS: u16 = 2;

/// A quick map with so many virtual seconds.
fn order(seconds: u64, only: &[Experiment]) -> Order {
    Order {
        spec: SyntheticSpec::clusters(CORES, REGIONS, 3),
        wishes: Wishes { quick: true, memory: Some(16 << 20), buffer: 8 << 20 },
        schedule: Schedule::of(only, Some(Duration::from_secs(seconds)), true),
        seed: 3,
        cpu_s: || 0.0,
    }
}

fn surveyed(seconds: u64, only: &[Experiment]) -> Surveyed {
    survey(order(seconds, only), &mut Silent).expect("the machine is sound")
}

#[test]
fn a_small_machine_is_mapped_whole_and_its_truth_is_found() {
    let found = surveyed(200, &[]);
    let contents = &found.contents;
    assert!(contents.complete && found.seconds < 200.0, "{}", found.seconds);
    let parts: Vec<Experiment> = found.parts.iter().map(|part| part.experiment).collect();
    assert_eq!(parts, Schedule::of(&[], None, true).experiments, "in the order of the schedule");
    let truth = Truth::new(&order(200, &[]).spec).expect("it is sound");
    assert_eq!(contents.transfers.len(), 4);
    for map in &contents.transfers {
        for (at, cell) in (0_u16..).zip(&map.latency_ns.cells) {
            let [owner, asker] = [at / CORES, at % CORES].map(CoreId);
            let Some(cell) = cell else {
                assert_eq!(owner, asker, "{}", map.state);
                continue;
            };
            let ns = truth.transfer_ns(&map.state, owner, asker).expect("it is there");
            assert!((cell.median / ns - 1.0).abs() < 0.05, "{} {at}: {cell:?} {ns}", map.state);
        }
    }
    assert_eq!(contents.regions.len(), 3);
    for (at, cell) in (0_u16..).zip(&contents.regions[0].latency_ns.cells) {
        let (core, region) = (CoreId(at / REGIONS), RegionId(at % REGIONS));
        let (cell, ns) = (cell.expect("a number"), truth.region_ns(core, region).expect("a truth"));
        assert!((cell.median / ns - 1.0).abs() < 0.02, "{at}: {cell:?} {ns}");
    }
    assert!(!contents.bandwidth.is_empty() && contents.levels.len() == 2);
    let again = surveyed(200, &[]);
    assert_eq!((&again.contents, again.seconds), (contents, found.seconds), "one seed, one map");
    isochrone_atlas_store::encode(contents).expect("it can be written");
}

#[test]
fn a_budget_is_kept_in_virtual_time_and_what_is_left_out_is_said() {
    let found = surveyed(1, &[Experiment::Region, Experiment::Bandwidth]);
    assert!(found.seconds < 1.5, "{}", found.seconds);
    let missing = &found.contents.provenance.missing;
    assert!(missing.iter().any(|line| line.contains("left out")), "{missing:?}");
}

#[test]
fn a_full_map_of_hundreds_of_cores_has_the_bandwidth_of_its_groups() {
    for (cores, regions) in [(128, 2), (384, 16)] {
        let order = Order {
            spec: SyntheticSpec::clusters(cores, regions, 3),
            wishes: Wishes { quick: false, memory: Some(16 << 20), buffer: 8 << 20 },
            schedule: Schedule::of(&[Experiment::Bandwidth], None, false),
            seed: 3,
            cpu_s: || 0.0,
        };
        let truth = Truth::new(&order.spec).expect("it is sound");
        let found = survey(order, &mut Silent).expect("the machine is sound");
        // Single cores of each cache, the cores of each region, and all: on each region.
        let singles = (64 / regions).max(regions);
        let groups = f64::from((singles + regions + 1) * regions);
        let bandwidth = &found.contents.bandwidth;
        let share = bandwidth.len() as f64 / groups;
        assert!(share > 0.9, "{share} of {groups}: {:?}", found.contents.provenance.missing);
        let covered = bandwidth.iter().filter(|one| {
            let cores: Vec<CoreId> = one.cores.iter().copied().map(CoreId).collect();
            let truth = truth.gb_per_s(&cores, RegionId(one.region)).expect("a truth");
            (one.gb_per_s.lo..=one.gb_per_s.hi).contains(&truth)
        });
        let covered = covered.count() as f64 / bandwidth.len() as f64;
        assert!(covered > 0.9, "{covered} of intervals");
    }
}
