//! The simulated processor under the pager: what must hold whatever the costs.

use isochrone_sim::paging::{HandOff, InOrderCore, Spec};

use super::*;
use crate::pager::{Habit, Plan};
use crate::policy::PolicyKind;
use crate::prefetch::Prefetch;

fn case(workers: u16, separated: bool) -> Case {
    let spec = Spec {
        core: InOrderCore::new([1.0, 1.4, 1.3, 1.2]).expect("within the slots"),
        siblings: true,
        polls: true,
        send: 600.0,
        deliver: 1000.0,
        service: 2000.0,
        engines: 2,
        each_way: false,
        line: 0.0,
        hand_off: HandOff::Owners,
        setup: 0.0,
        transfer: 3000.0,
        latency: 1000.0,
        translations: 64,
    };
    let costs = Costs {
        trap: 10_000.0,
        list: 4000.0,
        held: 1000.0,
        entry: 6000.0,
        wake: 500.0,
        compute: 100_000.0,
        spread: 0.1,
    };
    Case {
        spec,
        costs,
        workers,
        movers: 0,
        places: (0..usize::from(workers)).collect(),
        separated,
        rows: 256,
        width: 1,
        frames: 256,
        sweeps: 2,
        policy: PolicyKind::Fifo,
        plan: Plan { batch: 1, mover_batch: 1, ..Plan::default() },
        habit: Habit {
            prefetch: Prefetch::Next,
            window: 16,
            markers: false,
            reserve: 8,
            write_back: false,
        },
        seed: 3,
    }
}

fn with_movers(workers: u16) -> Case {
    let case = case(workers, true);
    let places = (0..usize::from(workers)).chain(0..usize::from(workers)).collect();
    Case { movers: workers, places, rows: 1024, frames: 1024, ..case }
}

#[test]
fn a_sweep_fetches_every_page_once_and_nobody_uses_what_is_gone() {
    for separated in [false, true] {
        for workers in [1, 4] {
            let outcome = run(&case(workers, separated)).unwrap();
            let pages = 512.0 / f64::from(workers);
            assert!((outcome.faults / pages - 1.0).abs() < 0.02, "{workers}: {}", outcome.faults);
            assert_eq!(outcome.stale, 0);
        }
    }
}

#[test]
fn in_memory_nothing_is_fetched() {
    let outcome = run(&Case { frames: 512, ..case(2, true) }).unwrap();
    assert_eq!((outcome.faults, outcome.interrupts), (0.0, 0.0));
    let alone = 256.0 * 100_000.0;
    assert!((outcome.sweep / alone - 1.0).abs() < 0.03, "{}", outcome.sweep);
}

#[test]
fn one_set_of_tables_interrupts_all_and_separate_ones_only_sharers() {
    let shared = run(&case(8, false)).unwrap();
    assert!((shared.interrupts - 7.0).abs() < 1e-9, "{}", shared.interrupts);
    let separated = run(&case(8, true)).unwrap();
    // One queue for all offers pages of others, which one core each has to hear of.
    assert!(separated.interrupts < 1.1, "{}", separated.interrupts);
    let own = run(&Case { policy: PolicyKind::CoreFifo, ..case(8, true) }).unwrap();
    assert!(own.interrupts < 0.1, "{}", own.interrupts);
    assert!(separated.fault() < shared.fault());
}

#[test]
fn movers_take_most_faults_away_and_share_slots_with_who_computes() {
    let alone = run(&Case { movers: 0, places: (0..4).collect(), ..with_movers(4) }).unwrap();
    let moved = run(&with_movers(4)).unwrap();
    assert!(moved.faults * 8.0 < alone.faults, "{} {}", moved.faults, alone.faults);
    assert!(moved.sweep < alone.sweep);
    let mut apart = with_movers(4);
    apart.spec.siblings = false;
    assert!(run(&apart).unwrap().sweep < moved.sweep, "slots of their own");
}

#[test]
fn engines_bound_what_many_cores_can_move() {
    let mut slow = case(8, true);
    slow.spec.transfer = 40_000.0;
    let bound = run(&slow).unwrap();
    assert!(bound.engines_busy > 0.95, "{}", bound.engines_busy);
    slow.spec.engines = 0;
    assert!(run(&slow).unwrap().sweep < 0.9 * bound.sweep);
}

#[test]
fn a_lock_that_many_wait_for_costs_them_the_moving_of_its_line() {
    let mut busy = case(8, true);
    busy.costs.held = 20_000.0;
    let free = run(&busy).unwrap();
    busy.spec.line = 250.0;
    let moved = run(&busy).unwrap();
    let lists = |outcome: &Outcome| outcome.parts[Part::Lists as usize];
    assert!(lists(&moved) > lists(&free) + 250.0, "{} {}", lists(&moved), lists(&free));
    // One worker alone waits for nobody.
    let mut alone = case(1, true);
    let before = run(&alone).unwrap();
    alone.spec.line = 250.0;
    assert_eq!(run(&alone).unwrap(), before);
}

#[test]
fn an_engine_for_each_direction_halves_what_each_has_to_do() {
    let mut slow = case(8, true);
    slow.spec.transfer = 40_000.0;
    slow.spec.engines = 1;
    let both = run(&slow).unwrap();
    slow.spec.each_way = true;
    let each = run(&slow).unwrap();
    assert!(each.sweep < 0.6 * both.sweep, "{} {}", each.sweep, both.sweep);
    assert!(each.engines_busy <= 1.0, "{}", each.engines_busy);
}

#[test]
fn one_seed_is_one_run() {
    let of = |seed| run(&Case { seed, ..with_movers(2) }).unwrap();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}
