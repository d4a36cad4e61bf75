//! Many increments while pages come and go: none may be lost. And the negative control: with the wrong
//! order some are.

use core::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isochrone_tier::live::far::Memory;
use isochrone_tier::live::{Config, Mode, Report, Tables, Team};
use isochrone_tier::pages::Event;
use isochrone_tier::policy::PolicyKind;

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("one_worker_loses_nothing", || lossless(Tables::Separated, 1, 0)),
    case("workers_in_processes_lose_nothing", || lossless(Tables::Separated, 4, 0)),
    case("workers_in_threads_lose_nothing", || lossless(Tables::Shared, 4, 0)),
    case("processes_with_movers_lose_nothing", || lossless(Tables::Separated, 3, 2)),
    case("threads_with_movers_lose_nothing", || lossless(Tables::Shared, 3, 2)),
    case("sixteen_workers_and_four_movers_lose_nothing", many),
    case("the_wrong_order_is_seen_to_lose", wrong_order),
    case("groups_of_all_sizes_lose_nothing", group_sizes),
    case("clean_pages_lose_nothing", clean_pages),
    case("the_blocking_mode_loses_nothing", blocking),
    case("the_parent_may_be_a_worker", parent_works),
    Case {
        name: "a_million_evictions_lose_nothing",
        run: || long(1_000_000),
        ignored: Some("takes some minutes; run once and recorded"),
    },
    Case {
        name: "half_an_hour_of_churn_loses_nothing",
        run: churn,
        ignored: Some("takes half an hour; run once and recorded"),
    },
];

/// Words of a page.
const PAGE_WORDS: usize = 512;

/// A team over 256 pages of which 64 fit.
pub(super) fn config(tables: Tables, workers: u16, movers: u16) -> Config {
    Config { tables, movers, ..Config::new(256 << 12, 64 << 12, workers) }
}

/// Every worker increments words of random pages; returns how many increments are missing in the end.
pub(super) fn increments(config: Config, times: u64) -> (i64, Report) {
    let pages = config.area_bytes / 4096;
    let far = Memory::new(config.area_bytes, None).expect("addresses");
    let team = Team::new(config, Box::new(far)).expect("a team");
    let report = team
        .run(|worker| {
            let words = worker.words();
            let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(worker.index()) + 1);
            for _ in 0..times {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let page = usize::try_from(random >> 20).expect("64 bits") % pages;
                let word = usize::try_from(random >> 50).expect("64 bits") % PAGE_WORDS;
                words[page * PAGE_WORDS + word].fetch_add(1, Ordering::Relaxed);
            }
            worker.barrier().map_err(|gone| gone.to_string())?;
            if worker.index() > 0 {
                return Ok(0);
            }
            Ok(words.iter().map(|word| word.load(Ordering::Relaxed)).sum())
        })
        .expect("a run");
    let values = report.values().expect("every worker ends well");
    let expected = times * values.len() as u64;
    (expected.cast_signed() - values[0].cast_signed(), report)
}

fn evictions(report: &Report) -> u64 {
    report.of_workers().and(&report.of_movers()).events(Event::Evicted)
}

fn lossless(tables: Tables, workers: u16, movers: u16) {
    for policy in PolicyKind::ALL {
        let (lost, report) = increments(Config { policy, ..config(tables, workers, movers) }, 5000);
        assert_eq!(lost, 0, "{policy:?}");
        assert!(evictions(&report) > 1000, "{policy:?}");
        if movers > 0 {
            let fetched = report.of_movers().events(Event::Prefetched);
            assert!(fetched > 0, "{policy:?}: no mover fetched anything");
        }
    }
}

fn many() {
    for tables in [Tables::Separated, Tables::Shared] {
        let config = Config { files: 3, ..config(tables, 16, 4) };
        let (lost, report) = increments(config, 2000);
        assert_eq!(lost, 0, "{tables:?}");
        assert!(evictions(&report) > 10_000);
    }
}

/// Without write protection an increment between copy and punch is lost. The memory that a worker has
/// mapped is written while another one evicts it.
fn wrong_order() {
    for tables in [Tables::Separated, Tables::Shared] {
        let run = |protect| {
            let mut config = config(tables, 4, 0);
            config.plan.protect = protect;
            increments(config, 30_000)
        };
        let (lost, report) = run(false);
        assert!(lost > 0, "{tables:?}: nothing lost in {} evictions", evictions(&report));
        assert_eq!(run(true).0, 0, "{tables:?}");
    }
}

fn group_sizes() {
    for group_pages in [2, 4, 16] {
        let config =
            Config { group_pages, fast_bytes: 128 << 12, ..config(Tables::Separated, 3, 1) };
        assert_eq!(increments(config, 4000).0, 0, "{group_pages} pages");
    }
}

/// Pages that are mapped without permission to write, and written back early: each write is noticed.
fn clean_pages() {
    for tables in [Tables::Separated, Tables::Shared] {
        let mut config = config(tables, 3, 1);
        config.plan.clean = true;
        config.habit.write_back = true;
        let (lost, report) = increments(config, 8000);
        assert_eq!(lost, 0, "{tables:?}");
        let all = report.of_workers().and(&report.of_movers());
        assert!(all.events(Event::Granted) > 0, "no write to a clean page was noticed");
        assert!(all.events(Event::WrittenEarly) > 0, "nothing was written back early");
    }
}

fn blocking() {
    for tables in [Tables::Separated, Tables::Shared] {
        let config = Config { mode: Some(Mode::Blocking), ..config(tables, 2, 1) };
        let (lost, report) = increments(config, 3000);
        assert_eq!((lost, report.mode), (0, Mode::Blocking), "{tables:?}");
        assert!(evictions(&report) > 1000);
    }
}

fn parent_works() {
    for tables in [Tables::Separated, Tables::Shared] {
        let config = Config { parent_works: true, ..config(tables, 3, 1) };
        assert_eq!(increments(config, 4000).0, 0, "{tables:?}");
    }
}

fn long(least: u64) {
    for (tables, workers) in [
        (Tables::Separated, 1),
        (Tables::Separated, 4),
        (Tables::Separated, 16),
        (Tables::Shared, 4),
    ] {
        let mut config = config(tables, workers, 2);
        config.spins = 20;
        let (lost, report) = increments(config, 2 * least / u64::from(workers));
        let evicted = evictions(&report);
        println!(
            "{tables:?}, {workers} workers: {evicted} evictions in {:?}, {lost} lost",
            report.wall
        );
        assert_eq!(lost, 0);
        assert!(evicted > least, "{evicted} evictions");
    }
}

fn churn() {
    let begin = Instant::now();
    let (mut rounds, mut evicted) = (0_u64, 0);
    while begin.elapsed() < Duration::from_secs(30 * 60) {
        let tables = if rounds.is_multiple_of(2) { Tables::Separated } else { Tables::Shared };
        let kinds = PolicyKind::ALL;
        let mut config =
            config(tables, [1, 2, 5, 16][usize::try_from(rounds % 4).expect("small")], 2);
        config.policy = kinds[usize::try_from(rounds / 4 % 4).expect("small")];
        config.plan.clean = rounds / 16 % 2 == 1;
        config.habit.write_back = rounds / 32 % 2 == 1;
        config.spins = 20;
        let (lost, report) = increments(config, 100_000);
        assert_eq!(lost, 0, "in round {rounds}");
        evicted += evictions(&report);
        rounds += 1;
    }
    println!("{rounds} rounds, {evicted} evictions, nothing lost");
}
