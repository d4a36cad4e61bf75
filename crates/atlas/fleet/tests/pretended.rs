//! Pretended fleets behave as real ones should: what is well is left alone, and what is gross is found. Noise is that
//! of recorded maps.

#![allow(clippy::tests_outside_test_module, reason = "this whole binary is tests")]

#[path = "../examples/pretended/faults.rs"]
mod faults;
#[path = "../examples/pretended/maps.rs"]
mod maps;

use std::path::Path;

use isochrone_atlas_store::Experiment;
use isochrone_fleet::recorded;

use faults::{Drawn, Fault};

/// Fleets of each question.
const FLEETS: u64 = 8;

fn recorded_maps() -> maps::Maps {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/results/maps");
    maps::read(Path::new(folder)).expect("recorded maps are figures of maps")
}

#[test]
fn a_gross_fault_is_found_and_nodes_that_are_well_are_not() {
    let maps = recorded_maps();
    let drawn = Drawn { maps: &maps, nodes: 64, seed: 3 };
    for fault in Fault::ALL {
        assert!(drawn.power(fault, fault.most(), FLEETS) > 0.8, "{}", fault.words());
        let none = if fault.has_size() { drawn.power(fault, 0.0, FLEETS) } else { 0.0 };
        assert!(none < 0.5, "{}: found without it", fault.words());
    }
    assert!(maps.elsewhere > 0, "some were made while the host had the cores elsewhere");
    let alarms = drawn.false_alarms(FLEETS);
    assert!(alarms.iter().sum::<usize>() <= 4, "{alarms:?}");
}

#[test]
fn what_is_found_from_some_size_on_is_not_found_without_it() {
    let maps = recorded_maps();
    let drawn = Drawn { maps: &maps, nodes: 24, seed: 5 };
    let smallest = drawn.smallest(Fault::Latency, 0.5, FLEETS).expect("a gross one is found");
    assert!(smallest > 0.03 && smallest < Fault::Latency.most(), "{smallest}");
    assert!(drawn.power(Fault::Latency, smallest, FLEETS) >= 0.5);
    assert!(drawn.power(Fault::Latency, 0.0, FLEETS) < 0.5);
}

#[test]
fn what_few_nodes_lean_on_is_what_recorded_maps_scatter() {
    let maps = recorded_maps();
    for experiment in maps::COMPARED {
        let found = maps::scatter(&maps, experiment).expect("it was recorded");
        let taken = recorded(experiment);
        assert!(found <= 1.3 * taken && taken <= 2.0 * found, "{experiment:?}: {found}, {taken}");
    }
    assert!(recorded(Experiment::Placement) >= recorded(Experiment::Bandwidth));
}
