//! Tasks inside of tasks that wait for nothing: which worker runs them, and in which order.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Capacity, Failure, Mem, Regime, TaskError, Topology};

fn config(workers: usize) -> Config {
    let mut config = Config::new(Regime::Isochrone, workers, Topology::flat(64));
    config.pin = false;
    config
}

/// Runs `first` as a task of its own.
fn run(config: Config, first: impl FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static) {
    let mut runtime = Runtime::start(config).expect("threads start");
    runtime.spawn_fn(|_| (), first).expect("there is room");
    runtime.wait().expect("nothing fails");
}

/// A task without ranges.
fn child(
    mem: &Mem<'_>,
    run: impl FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static,
) -> Result<(), TaskError> {
    mem.spawn_fn(|_| (), run).map(|_| ())
}

/// A tree of two children a node, each of which waits for its own; where it was is added.
fn tree(mem: &Mem<'_>, depth: u32, leaves: &Arc<AtomicU64>) -> Result<(), Failure> {
    if depth == 0 {
        leaves.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    for _ in 0..2 {
        let leaves = Arc::clone(leaves);
        child(mem, move |mem| tree(mem, depth - 1, &leaves))?;
    }
    Ok(mem.wait()?)
}

#[test]
fn one_worker_goes_depth_first_and_newest_first() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    run(config(1), move |mem| {
        for number in 1..=3 {
            let order = Arc::clone(&order);
            child(mem, move |mem| {
                order.lock().unwrap().push(number);
                for inner in 1..=2 {
                    let order = Arc::clone(&order);
                    child(mem, move |_| {
                        order.lock().unwrap().push(10 * number + inner);
                        Ok(())
                    })?;
                }
                Ok(mem.wait()?)
            })?;
        }
        Ok(mem.wait()?)
    });
    assert_eq!(*seen.lock().unwrap(), [3, 32, 31, 2, 22, 21, 1, 12, 11]);
}

#[test]
fn a_tree_is_no_wider_in_the_arena_than_it_is_deep() {
    // Breadth first, 4096 leaves would need as many places.
    let capacity = Capacity { tasks: 64, ..Capacity::default() };
    for workers in [1, 4] {
        let mut config = config(workers);
        config.setup.capacity = capacity;
        let leaves = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&leaves);
        run(config, move |mem| tree(mem, 12, &leaves));
        assert_eq!(seen.load(Ordering::Relaxed), 1 << 12);
    }
}

#[test]
fn what_a_task_has_registered_is_run_by_others_while_it_goes_on() {
    // More than a nest holds, fewer, and one.
    for children in [1, 10, 500] {
        let ran = Arc::new(AtomicU64::new(0));
        run(config(2), move |mem| {
            for _ in 0..children {
                let ran = Arc::clone(&ran);
                child(mem, move |_| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                })?;
            }
            let begin = Instant::now();
            while ran.load(Ordering::Relaxed) < children {
                assert!(begin.elapsed() < Duration::from_secs(60), "nobody takes them");
                std::thread::yield_now();
            }
            Ok(())
        });
    }
}

#[test]
fn children_of_a_task_that_does_not_wait_are_run() {
    for workers in [1, 3] {
        let ran = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&ran);
        run(config(workers), move |mem| {
            for _ in 0..200 {
                let ran = Arc::clone(&ran);
                child(mem, move |mem| {
                    let ran = Arc::clone(&ran);
                    Ok(child(mem, move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    })?)
                })?;
            }
            Ok(())
        });
        assert_eq!(seen.load(Ordering::Relaxed), 200);
    }
}

/// Each waits inside of the one before; a thread's stack has room for some thousands.
fn dive(mem: &Mem<'_>, depth: u32) -> Result<(), Failure> {
    if depth > 0 {
        child(mem, move |mem| dive(mem, depth - 1))?;
        mem.wait()?;
    }
    Ok(())
}

#[test]
fn a_task_too_deep_for_the_stack_fails_and_the_process_lives() {
    for workers in [1, 2] {
        let mut runtime = Runtime::start(config(workers)).expect("threads start");
        runtime.spawn_fn(|_| (), |mem| dive(mem, 1_000_000)).expect("there is room");
        let told = runtime.wait();
        assert!(matches!(told, Err(TaskError::Failed { .. })), "{told:?}");
        runtime.spawn_fn(|_| (), |mem| dive(mem, 100)).expect("there is room");
        assert_eq!(runtime.wait(), Ok(()));
    }
}
