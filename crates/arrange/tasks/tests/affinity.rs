//! The thread that starts runs has its cores again when no run holds it, in whatever order runs end.

#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]
#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_os::affinity::{CoreSet, pin, restore};
use isochrone_tasks::live::{Config, Runtime, fitting_workers};
use isochrone_tasks::{Regime, Topology};
use isochrone_units::CoreId;

fn cores() -> CoreSet {
    CoreSet::of_this_thread().expect("the kernel says")
}

fn first(of: &CoreSet) -> CoreId {
    of.iter().next().expect("one core at least")
}

fn last(of: &CoreSet) -> CoreId {
    of.iter().last().expect("one core at least")
}

/// A pinned run of one worker on this core.
fn run_on(core: CoreId) -> Runtime {
    let mut config = Config::new(Regime::Dft, 1, Topology::flat(8192));
    config.cores = Some(vec![core]);
    Runtime::start(config).expect("it starts")
}

/// A thread of its own for each test, so that none leaves another pinned; the core set is the one before.
fn apart(test: impl FnOnce(CoreSet) + Send + 'static) {
    std::thread::spawn(|| test(cores())).join().expect("no assertion failed");
}

#[test]
fn runs_that_end_in_any_order_leave_the_caller_as_it_was() {
    // By the place of each run in the order of starts.
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        apart(move |before| {
            let on = [first(&before), last(&before), first(&before)];
            let mut runs = on.map(|core| Some(run_on(core)));
            assert_eq!(cores(), CoreSet::only(on[2]));
            for (ended, run) in order.into_iter().enumerate() {
                runs[run] = None;
                let left = (0..3).rev().find(|run| runs[*run].is_some());
                let wanted = left.map_or(before.clone(), |run| CoreSet::only(on[run]));
                assert_eq!(cores(), wanted, "{order:?} after {ended}");
            }
        });
    }
}

#[test]
fn an_affinity_that_the_caller_sets_in_between_stands() {
    apart(|before| {
        if before.len() < 2 {
            assert!(option_env!("CI") != Some("true"), "one core; the caller sets another one");
            return eprintln!("skipped: one core, and the caller sets another one");
        }
        let (one, other) = (first(&before), last(&before));
        let both = [run_on(one), run_on(one)];
        pin(other).expect("allowed");
        for run in both {
            drop(run);
            assert_eq!(cores(), CoreSet::only(other), "the caller's");
        }
        restore(&before).expect("allowed before");

        // A run that comes after it gives it back, while the one before is still there.
        let long = run_on(one);
        pin(other).expect("allowed");
        let short = run_on(one);
        assert_eq!(cores(), CoreSet::only(one));
        drop(short);
        assert_eq!(cores(), CoreSet::only(other));
        drop(long);
        assert_eq!(cores(), CoreSet::only(other));
    });
}

#[test]
fn a_run_that_another_thread_ends_gives_back_its_own_thread() {
    apart(|before| {
        let run = run_on(first(&before));
        let others = std::thread::spawn(move || {
            drop(run);
            cores()
        });
        // A new thread has its maker's cores.
        assert_eq!(others.join().expect("it ends"), CoreSet::only(first(&before)));
        assert_eq!(cores(), before);
    });
    // Its thread may be gone, and its number somebody else's.
    apart(|before| {
        let core = first(&before);
        let run = std::thread::spawn(move || run_on(core)).join().expect("it ends");
        drop(run);
        assert_eq!(cores(), before);
    });
}

#[test]
fn a_run_beside_another_may_use_all_cores_of_the_caller() {
    apart(|before| {
        let workers = before.len();
        let fitting = fitting_workers();
        let one = run_on(last(&before));
        assert!(fitting_workers() >= fitting);
        let beside = Config::new(Regime::Dft, workers, Topology::flat(8192));
        let beside = Runtime::start(beside).expect("it starts");
        let on: Vec<CoreId> = beside.places().iter().map(|place| place.0).collect();
        assert_eq!(on, before.iter().collect::<Vec<_>>());
        drop(one);
        drop(beside);
        assert_eq!(cores(), before);
    });
}

#[test]
fn a_run_that_does_not_start_leaves_the_caller_as_it_was() {
    apart(|before| {
        let mut config = Config::new(Regime::Dft, 1, Topology::flat(8192));
        // No machine of Linux has so many.
        config.cores = Some(vec![CoreId(8191)]);
        Runtime::start(config).expect_err("such a core is not there");
        assert_eq!(cores(), before);
    });
}
