//! Workers that are more than the cores they have: though few are kept awake, all of them run where tasks block.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isochrone_os::affinity::{CoreSet, pin};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Failure, Mem, Regime, Topology};

/// Nothing takes so long on a machine that does other things, too.
const LONG: Duration = Duration::from_secs(60);
const WORKERS: u32 = 4;

/// Runs of workers on one core, pinned there or free to be nowhere else; in a thread that no run leaves pinned.
fn on_one_core(test: impl Fn(Runtime) + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let cores = CoreSet::of_this_thread().expect("the kernel says");
        pin(cores.iter().next().expect("one core at least")).expect("it may run there");
        for pinned in [true, false] {
            let topology = Topology::flat(8192);
            let mut config = Config::new(Regime::Isochrone, WORKERS as usize, topology);
            config.pin = pinned;
            let run = Runtime::start(config).expect("threads start");
            // Those that begin look for work, and would be awake; they have time to come to rest.
            sleep(Duration::from_millis(50));
            test(run);
        }
    });
    thread.join().expect("no assertion failed");
}

/// Waits for something, asleep.
fn until(what: impl Fn() -> bool) -> Result<(), Failure> {
    let begin = Instant::now();
    while !what() {
        if begin.elapsed() > LONG {
            return Err(Failure::new("it does not come"));
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[test]
fn tasks_that_wait_for_one_another_all_begin() {
    on_one_core(|mut run| {
        let inside = Arc::new(AtomicU32::new(0));
        for _ in 0..WORKERS {
            let inside = Arc::clone(&inside);
            let task = move |_: &Mem<'_>| {
                inside.fetch_add(1, Ordering::Relaxed);
                until(|| inside.load(Ordering::Relaxed) == WORKERS)
            };
            run.spawn_fn(|_| (), task).expect("there is room");
        }
        run.wait().expect("all of them are inside at once");
    });
}

#[test]
fn a_task_is_run_while_the_program_waits_for_it_by_itself() {
    on_one_core(|mut run| {
        let ran = Arc::new(AtomicU32::new(0));
        for sleeps in [true, false] {
            let before = ran.load(Ordering::Relaxed);
            let task = {
                let ran = Arc::clone(&ran);
                move |_: &Mem<'_>| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
            };
            run.spawn_fn(|_| (), task).expect("there is room");
            let begin = Instant::now();
            while ran.load(Ordering::Relaxed) == before {
                assert!(begin.elapsed() < LONG, "nobody runs it");
                if sleeps {
                    sleep(Duration::from_millis(1));
                }
            }
        }
        run.wait().expect("nothing fails");
    });
}

#[test]
fn tasks_that_block_for_a_moment_are_run_side_by_side() {
    on_one_core(|mut run| {
        let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        for _ in 0..300 {
            let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
            let task = move |_: &Mem<'_>| {
                most.fetch_max(inside.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(Duration::from_millis(1));
                inside.fetch_sub(1, Ordering::Relaxed);
                Ok(())
            };
            run.spawn_fn(|_| (), task).expect("there is room");
        }
        run.wait().expect("nothing fails");
        assert!(most.load(Ordering::Relaxed) > 1, "one at a time, on one core");
    });
}
