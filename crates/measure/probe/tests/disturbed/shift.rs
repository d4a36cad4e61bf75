//! What slows everything down all the time is in every number, and no interval can tell.

use isochrone_sim::synthetic::SyntheticSpec;

use crate::memory::region_latency;

#[test]
fn a_constant_shift_is_measured_as_if_the_machine_were_slower() {
    let spec = || SyntheticSpec::ring_e5_2660(2).with_pages(64).with_cores(1);
    let cell = |spec, seed| region_latency(spec, seed)[""].expect("a number");
    let truth = cell(spec(), 1).median;
    for share in [0.1, 0.3, 1.0] {
        let found = cell(spec().slower_by(share), 2);
        assert!((found.median / truth / (1.0 + share) - 1.0).abs() < 0.02, "{share}: {found:?}");
        assert!(found.lo > truth, "the interval is as narrow as ever: {found:?} for {truth}");
    }
}
