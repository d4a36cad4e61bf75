//! Workers that are processes. Processes are made by fork, which a process with several threads cannot do:
//! so these tests run one after the other, without the usual harness.
#![allow(
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "the whole file is tests"
)]

mod common;

use common::{WORDS, expected, run};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{
    Data, Failure, Footprint, Kernel, Mem, Part, Policy, Regime, TaskError, Topology,
};
use isochrone_units::CoreId;

fn main() {
    let tests: [(&str, fn()); 4] = [
        ("memory_is_as_in_program_order", memory_is_as_in_program_order),
        ("tasks_run_in_several_processes", tasks_run_in_several_processes),
        ("a_process_that_dies_is_told", a_process_that_dies_is_told),
        ("closures_stay_in_their_process", closures_stay_in_their_process),
    ];
    let wanted = std::env::args().nth(1).filter(|word| !word.starts_with('-'));
    for (name, test) in tests {
        if wanted.as_ref().is_none_or(|word| name.contains(word.as_str())) {
            test();
            println!("test {name} ... ok");
        }
    }
}

fn config(policy: Policy, workers: usize) -> Config {
    let topology = Topology::regular(4, 4, |a, b| match (a == b, a / 2 == b / 2) {
        (true, _) => 10.0,
        (_, true) => 15.0,
        _ => 40.0,
    });
    let mut config = Config::new(Regime::Dft, workers, topology);
    config.setup.policy = policy;
    config.cores = Some((0..16).map(CoreId).collect());
    config.pin = false;
    config.processes = true;
    config.spin_ns = 2_000;
    config
}

fn memory_is_as_in_program_order() {
    for (preset, policy) in Policy::PRESETS.into_iter().enumerate() {
        for workers in [1, 2, 3, 8] {
            let mut runtime = Runtime::start(config(policy, workers)).expect("processes start");
            let data: Data<u64> = runtime.data(WORDS).expect("room");
            for seed in 0..3 {
                let seed = (preset * 100 + workers) as u64 * 7 + seed;
                let seen = run(&mut runtime, data, seed, 250).expect("no task fails");
                assert_eq!(seen, expected(data, seed, 250), "{}, {workers} workers", policy.name);
            }
        }
    }
}

/// Writes the number of its process.
#[derive(Clone, Copy)]
struct Who {
    to: Part<u64>,
    dies: bool,
}

impl Kernel for Who {
    const NAME: &'static str = "who";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.to);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        if self.dies && mem.worker() > 0 {
            std::process::abort();
        }
        // Long enough that others have a turn on a machine of one core.
        std::thread::sleep(std::time::Duration::from_millis(1));
        mem.write(self.to)?[0] = u64::from(std::process::id());
        Ok(())
    }
}

fn tasks_run_in_several_processes() {
    let mut runtime = Runtime::start(config(Policy::OBLIVIOUS, 3)).expect("processes start");
    let data: Data<u64> = runtime.data(200).expect("room");
    for at in 0..200 {
        runtime.spawn(Who { to: data.part(at, 1), dies: false }).expect("it fits");
    }
    let mut seen = runtime.read(data.all()).expect("no task fails").to_vec();
    seen.sort_unstable();
    seen.dedup();
    assert!((2..=3).contains(&seen.len()), "{seen:?}");
}

fn a_process_that_dies_is_told() {
    let mut runtime = Runtime::start(config(Policy::OBLIVIOUS, 2)).expect("processes start");
    let data: Data<u64> = runtime.data(200).expect("room");
    for at in 0..200 {
        runtime.spawn(Who { to: data.part(at, 1), dies: true }).expect("it fits");
    }
    let error = runtime.wait().expect_err("a worker is gone");
    assert!(
        matches!(&error, TaskError::WorkerDied { worker: 1, kernel, .. } if kernel == "who"),
        "{error}"
    );
    assert!(error.to_string().contains("by signal 6"), "{error}");
}

fn closures_stay_in_their_process() {
    let mut runtime = Runtime::start(config(Policy::PAPER, 2)).expect("processes start");
    let refused = runtime.spawn_fn(|_| (), |_| Ok(())).expect_err("no process can run it");
    assert!(refused.to_string().contains("another process"), "{refused}");
}
