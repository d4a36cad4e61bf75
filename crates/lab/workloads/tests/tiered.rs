//! Programs at twice the fast tier, with threads and with processes, bit for bit those of plain memory.

#![allow(clippy::print_stdout, reason = "a test harness reports on standard output")]

#[path = "../../../arrange/tier/tests/live/harness.rs"]
mod harness;

use harness::{Case, case};
use isochrone_tier::Actor;
use isochrone_tier::live::far::Memory;
use isochrone_tier::live::{Config, Ended, Tables, Team, Timed, Trap};
use isochrone_tier::pages::Event;
use isochrone_tier::policy::PolicyKind;
use isochrone_workloads::tiered::cholesky::Cholesky;
use isochrone_workloads::tiered::spmv::Spmv;
use isochrone_workloads::tiered::stencil::Stencil;
use isochrone_workloads::tiered::{Outcome, Tiered};

const CASES: &[Case] = &[
    case("a_stencil_in_processes_has_the_bits_of_plain_memory", || stencil(Tables::Separated, 0)),
    case("a_stencil_in_threads_has_the_bits_of_plain_memory", || stencil(Tables::Shared, 0)),
    case("a_stencil_with_movers_has_the_bits_of_plain_memory", || stencil(Tables::Separated, 2)),
    case("synchronous_faults_are_those_of_the_formula", formula),
    case("a_serpentine_sweep_fetches_about_half", serpentine),
    case("a_tile_cholesky_by_tasks_in_processes_has_the_bits_of_plain_memory", || {
        cholesky(Tables::Separated);
    }),
    case("a_tile_cholesky_by_tasks_in_threads_has_the_bits_of_plain_memory", || {
        cholesky(Tables::Shared);
    }),
    case("a_worker_that_dies_among_tasks_is_told_and_nobody_waits_for_ever", killed),
    case("a_sparse_product_has_the_bits_of_plain_memory", spmv),
];

fn main() {
    harness::run(&[CASES]);
}

/// A grid of 512 pages, twice.
const STENCIL: Stencil =
    Stencil { rows: 512, columns: 512, radius: 1, iterations: 25, serpentine: false };

fn run(program: Tiered, workers: u16, change: impl FnOnce(&mut Config)) -> Outcome {
    let bytes = program.bytes(4096);
    let mut config = Config::new(bytes, bytes / 2, workers);
    config.policy = PolicyKind::Fifo;
    config.spins = 20;
    // Faults are counted: each brings one page, as in the paper.
    config.follow = false;
    change(&mut config);
    let far = Memory::new(bytes, None).expect("addresses");
    let ready = program.ready(&config).expect("what its workers share");
    let team = Team::new(config, Box::new(far)).expect("a team");
    let report = team.run(|worker| ready.run(worker)).expect("a run");
    Outcome::of(&report).expect("all workers end well")
}

fn stencil(tables: Tables, movers: u16) {
    for (workers, radius, policy) in
        [(1, 1, PolicyKind::Fifo), (3, 2, PolicyKind::CoreFifo), (4, 1, PolicyKind::Cmcp)]
    {
        let stencil = Stencil { radius, iterations: 8, ..STENCIL };
        let program = Tiered::Stencil(stencil);
        let outcome = run(program, workers, |config| {
            (config.tables, config.movers, config.policy) = (tables, movers, policy);
        });
        assert_eq!(outcome.digest, program.reference(), "{workers} workers, {policy:?}");
    }
}

/// With groups of one page, the paper's order and no movers, a cyclic sweep under FIFO misses every page
/// once in an iteration: 25 P / N for each of N workers. One here: which of two is first in a sweep depends on who
/// runs when, and the queue of all with it.
fn formula() {
    for tables in [Tables::Separated, Tables::Shared] {
        let outcome = run(Tiered::Stencil(STENCIL), 1, |config| {
            config.tables = tables;
            config.plan.batch = 1;
        });
        let expected = 25.0 * 1024.0;
        let seen = outcome.events(Event::Missing) as f64;
        assert!((seen / expected - 1.0).abs() < 0.02, "{tables:?}: {seen} and not {expected}");
    }
}

fn serpentine() {
    let missing = |serpentine| {
        // One worker: the order of two depends on who runs when.
        let outcome = run(Tiered::Stencil(Stencil { serpentine, ..STENCIL }), 1, |config| {
            config.plan.batch = 4;
        });
        outcome.events(Event::Missing) as f64
    };
    let share = missing(true) / missing(false);
    assert!(share < 0.62, "{share}: a simulation says 0.52");
}

/// A matrix of 1.1 MiB, twice the fast tier, factored by tasks in the pager's workers.
fn cholesky(tables: Tables) {
    let cholesky = Cholesky { tiles: 8, width: 64, seed: 11 };
    let program = Tiered::Cholesky(cholesky);
    let reference = program.reference();
    for (workers, policy) in [(1, PolicyKind::Fifo), (3, PolicyKind::CoreFifo)] {
        let outcome = run(program, workers, |config| {
            (config.tables, config.policy) = (tables, policy);
            config.plan.batch = 8;
        });
        assert_eq!(outcome.digest, reference, "{workers} workers, {tables:?}, {policy:?}");
        assert!(outcome.events(Event::Missing) > 500);
    }
}

/// Worker 1 dies, or worker 0, which is the program of the tasks, while it needs a page.
fn killed() {
    let program = Tiered::Cholesky(Cholesky { tiles: 8, width: 64, seed: 11 });
    let bytes = program.bytes(4096);
    let ended = |actor| {
        let mut config = Config::new(bytes, bytes / 2, 2);
        config.follow = false;
        let (step, signal) = (Timed::Fill, 9);
        config.trap = Some(Trap { actor: Actor(actor), step, after: false, times: 40, signal });
        let ready = program.ready(&config).expect("what its workers share");
        let far = Memory::new(bytes, None).expect("addresses");
        let team = Team::new(config, Box::new(far)).expect("a team");
        team.run(|worker| ready.run(worker)).expect("a run").workers
    };
    // A worker that has had no task yet dies later or not at all: the program may have done them all.
    match &ended(1)[..] {
        [Ended::Failed(words), Ended::Killed(9)] => {
            assert!(words.contains("process 1 ended"), "{words}")
        }
        [Ended::Value(_), Ended::Value(0)] => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(ended(0), [Ended::Killed(9), Ended::Value(0)]);
}

fn spmv() {
    let spmv = Spmv { rows: 40_000, entries: 16, iterations: 4, seed: 3 };
    let program = Tiered::Spmv(spmv);
    let reference = program.reference();
    for (tables, policy) in [
        (Tables::Separated, PolicyKind::Cmcp),
        (Tables::Separated, PolicyKind::Sieve),
        (Tables::Shared, PolicyKind::CoreFifo),
    ] {
        let outcome = run(program, 3, |config| {
            (config.tables, config.policy, config.plan.clean) = (tables, policy, true);
        });
        assert_eq!(outcome.digest, reference, "{tables:?}, {policy:?}");
        assert!(outcome.events(Event::Missing) > 100);
    }
}
