//! Whatever the preset and the number of workers, a program leaves in memory what it leaves when its
//! tasks run one after the other.
#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod common;

use common::{WORDS, expected, run};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Capacity, Data, Policy, Regime, Topology};
use isochrone_units::CoreId;
use proptest::prelude::*;

fn bullion_of_four() -> Topology {
    Topology::regular(4, 4, |a, b| match (a == b, a / 2 == b / 2) {
        (true, _) => 10.0,
        (_, true) => 15.0,
        _ => 40.0,
    })
}

fn config(policy: Policy, workers: usize, tight: bool) -> Config {
    let mut config = Config::new(Regime::Dft, workers, bullion_of_four());
    config.setup.policy = policy;
    config.cores = Some((0..16).map(CoreId).collect());
    // The machine of the topology is not this one, so nobody is pinned.
    config.pin = false;
    config.spin_ns = 2_000;
    if tight {
        config.setup.capacity = Capacity { tasks: 20, edges: 64, blocks: 16, data: 4, trace: 10 };
    }
    config
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_as_in_program_order(
        seed: u64,
        preset in 0..Policy::PRESETS.len(),
        workers in 1..=16_usize,
        tasks in 1..400_usize,
        tight: bool,
    ) {
        let config = config(Policy::PRESETS[preset], workers, tight);
        let mut runtime = Runtime::start(config).expect("threads start");
        let data: Data<u64> = runtime.data(WORDS).expect("room");
        for seed in [seed, seed ^ 1] {
            let seen = run(&mut runtime, data, seed, tasks).expect("no task fails");
            prop_assert_eq!(seen, expected(data, seed, tasks));
        }
    }
}
