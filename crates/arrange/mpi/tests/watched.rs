//! Jobs that are only watched: every call is counted with its size, and none is done otherwise than without the
//! library.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_mpi::{Config, Report, SeenCalls};
use support::{Program, calls, left, refused};

fn watched() -> Config {
    Config { watches: true, ..Config::default() }
}

/// Calls by the size up to which they are counted together; nothing for the largest.
fn sizes(report: &Report, name: &str) -> Vec<(Option<u32>, u64)> {
    let seen = report.seen.get(name).unwrap_or_else(|| panic!("no {name}: {report:?}"));
    seen.sizes.iter().map(|size| (size.bytes, size.calls)).collect()
}

#[test]
fn calls_of_a_watched_job_are_counted_exactly_and_all_of_them_are_the_mpis() {
    for program in Program::each("counted.c") {
        for report in program.done(2, watched()) {
            let (small, some, page) = (Some(56), Some(504), Some(4096));
            assert_eq!(sizes(&report, "bcast"), [(small, 100), (page, 7), (Some(1 << 20), 3)]);
            assert_eq!(sizes(&report, "barrier"), [(small, 51_000)]);
            assert_eq!(sizes(&report, "allreduce"), [(small, 22)]);
            assert_eq!(sizes(&report, "allgather"), [(some, 5)]);
            // Who gives knows its own block alone.
            let gathers = sizes(&report, "gather");
            assert_eq!(gathers.iter().map(|(_, calls)| calls).sum::<u64>(), 4);
            assert!(report.rank != 0 || gathers == [(some, 4)], "{gathers:?}");
            assert_eq!(report.seen.len(), 5, "{report:?}");
            for (name, SeenCalls { sizes, .. }) in &report.seen {
                let all: u64 = sizes.iter().map(|size| size.calls).sum();
                let calls = calls(&report, name);
                assert_eq!((calls.lines, calls.across, calls.mpi), (0, 0, all), "{report:?}");
                let why = &report.details[name].by_the_mpi;
                assert!(why.len() == 1 && why[0].why.contains("watched"), "{why:?}");
            }
            let nothing = (report.communicators, report.shared_bytes, report.set_up_us);
            assert_eq!(nothing, (0, 0, 0), "ranks agreed on nothing: {report:?}");
            assert_eq!((report.ranks, report.node_ranks, report.ended), (2, 2, true));
        }
    }
}

#[test]
fn what_lines_would_save_begins_when_they_are_worth_it_and_not_where_ranks_are_many() {
    for program in Program::each("counted.c") {
        let cores = std::thread::available_parallelism().expect("a system").get();
        for report in program.done(2, watched()) {
            if cores < 2 {
                assert!(refused(&report, 2, "more ranks"), "{report:?}");
                continue;
            }
            // Memory is made when 2.5 ms would have been saved, 60 ns by a barrier of two; its twin comes to it at
            // 20 us.
            let barrier = &report.seen["barrier"];
            assert!((9_000..10_200).contains(&barrier.in_lines), "{barrier:?}");
            assert_eq!(barrier.saves_ns, barrier.in_lines * 60);
            assert_eq!(report.would_cost_us, 2_520);
            let few = &report.seen["allreduce"];
            assert_eq!((few.in_lines, few.saves_ns), (22, 22 * 50));
            assert_eq!(report.seen["bcast"].in_lines, 0, "they came before it");
        }
        let ranks = u32::try_from(cores + 1).expect("few");
        if program.mpi == "mpich" || ranks > 5 {
            // Its ranks never give a core away.
            continue;
        }
        for report in program.done_with(ranks, watched(), &["", "1000"]) {
            assert!(refused(&report, ranks, "more ranks on a node than cores"), "{report:?}");
            assert!(report.seen.values().all(|seen| seen.in_lines == 0 && seen.saves_ns == 0));
            assert_eq!(sizes(&report, "barrier"), [(Some(56), 2000)]);
        }
    }
}

#[test]
fn a_rank_of_a_watched_job_that_is_killed_has_left_most_of_its_calls() {
    for program in Program::each("counted.c") {
        let _killed = program.run(2, watched(), &["killed"]);
        let reports = left(&program.folder.path().join("reports"));
        let killed = reports.iter().find(|report| report.rank == 1).expect("it left one");
        assert!(!killed.ended, "{killed:?}");
        let barriers: u64 = killed.seen["barrier"].sizes.iter().map(|size| size.calls).sum();
        // Reports are left when calls have doubled.
        assert!((25_000..=51_000).contains(&barriers), "{killed:?}");
    }
}
