//! Tasks that are left out because somebody asked for it: from the program, from another thread, and below tasks that
//! run on; and what is said to whom.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Data, Failure, Footprint, Mem, Regime, TaskError, Topology};

fn runtime() -> Runtime {
    let mut config = Config::new(Regime::Isochrone, 2, Topology::flat(64));
    config.pin = false;
    Runtime::start(config).expect("threads start")
}

/// What tasks count.
#[derive(Clone, Debug, Default)]
struct Seen {
    begun: Arc<AtomicU32>,
    counted: Arc<AtomicU32>,
}

impl Seen {
    fn count(&self) -> impl FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static {
        let counted = Arc::clone(&self.counted);
        move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    fn wait_for_begin(&self) {
        while self.begun.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
    }
}

/// One task that runs until it is in vain, and ten that wait for it. Then the first goes on: with `then`.
fn chain(
    run: &mut Runtime,
    seen: &Seen,
    word: Data<u64>,
    then: impl FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static,
) {
    let begun = Arc::clone(&seen.begun);
    let first = move |mem: &Mem<'_>| {
        begun.store(1, Ordering::Release);
        while !mem.is_in_vain() {
            std::thread::yield_now();
        }
        then(mem)
    };
    let uses = move |uses: &mut Footprint| {
        uses.inout(word.all());
    };
    run.spawn_fn(uses, first).expect("room");
    for _ in 0..10 {
        let count = seen.count();
        run.spawn_fn(uses, count).expect("room");
    }
}

#[test]
fn what_has_not_begun_does_not_begin_whatever_is_waited_for_first() {
    for by_range in [false, true] {
        let (mut run, seen) = (runtime(), Seen::default());
        let word = run.data::<u64>(1).expect("room");
        chain(&mut run, &seen, word, |_| Ok(()));
        seen.wait_for_begin();
        let beside = run.spawn_fn(|_| (), |_| Ok(())).expect("room");
        run.cancel();
        let told = if by_range { run.wait_on(word.all()) } else { run.wait_task(beside) };
        assert_eq!(told, Err(TaskError::Cancelled));
        assert_eq!(run.wait(), Ok(()), "it is said once");
        assert_eq!(seen.counted.load(Ordering::Relaxed), 0);
        // With nothing to cancel, later tasks are as before.
        run.cancel();
        run.spawn_fn(|_| (), seen.count()).expect("room");
        assert_eq!(run.wait(), Ok(()));
        assert_eq!(seen.counted.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn another_thread_may_cancel_and_tasks_below_those_that_run_are_left_out() {
    let (mut run, seen, told) = (runtime(), Seen::default(), Arc::new(AtomicU32::new(0)));
    let word = run.data::<u64>(1).expect("room");
    let (below, hears) = (seen.clone(), Arc::clone(&told));
    chain(&mut run, &seen, word, move |mem| {
        for _ in 0..3 {
            mem.spawn_fn(|_| (), below.count())?;
            let child = mem.spawn_fn(|_| (), below.count())?;
            if mem.wait_task(child) == Err(TaskError::Cancelled) {
                hears.fetch_add(1, Ordering::Relaxed);
            }
        }
        Err(Failure::new("it gave up"))
    });
    let canceller = run.canceller();
    let (beside, begun) = (canceller.clone(), seen.clone());
    let asks = std::thread::spawn(move || {
        begun.wait_for_begin();
        beside.cancel();
    });
    assert_eq!(run.wait(), Err(TaskError::Cancelled), "and not that it gave up");
    asks.join().expect("it ends");
    assert_eq!(seen.counted.load(Ordering::Relaxed), 0);
    assert_eq!(told.load(Ordering::Relaxed), 3);
    drop(run);
    canceller.cancel();
}

#[test]
fn a_failure_before_is_said_rather_than_that_the_rest_was_cancelled() {
    let mut run = runtime();
    let failing = run.spawn_fn(|_| (), |_| Err(Failure::new("no more oil"))).expect("room");
    while run.report().tasks == 0 {
        std::thread::yield_now();
    }
    run.cancel();
    let told = run.wait_task(failing);
    assert!(
        matches!(&told, Err(TaskError::Failed { text, .. }) if text == "no more oil"),
        "{told:?}"
    );
}

#[test]
fn who_waits_for_one_of_its_own_tasks_is_told_that_it_failed() {
    let mut run = runtime();
    let outcome = run.spawn_fn(
        |_| (),
        |mem| {
            let child = mem.spawn_fn(|_| (), |_| Err(Failure::new("no more oil")))?;
            match mem.wait_task(child) {
                Err(TaskError::Failed { .. }) => Ok(()),
                told => Err(Failure::new(format!("{told:?}"))),
            }
        },
    );
    outcome.expect("room");
    assert_eq!(run.wait(), Ok(()), "it was told, and did without");
}
