//! Programs of C and Fortran, built with the MPIs that are installed and run unmodified under the
//! library: every byte is compared by the programs themselves, and what was done in lines by the reports.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_mpi::{CONFIG_VARIABLE, Config, Counts, Report};
use std::path::Path;
use std::process::Command;
use support::{Program, at_once, left, library, there};

/// Whether a rank gave such a reason for communicators of so many ranks.
fn refused(report: &Report, ranks: u32, why: &str) -> bool {
    report.refusals.iter().any(|r| r.ranks == ranks && r.why.contains(why))
}

fn calls(report: &Report, name: &str) -> Counts {
    report.calls.get(name).copied().unwrap_or_default()
}

const NAMES: [&str; 7] =
    ["bcast", "barrier", "reduce", "allreduce", "scatter", "gather", "allgather"];

#[test]
fn every_collective_of_c_inside_a_node() {
    for program in Program::each("all.c") {
        for ranks in [2, 3] {
            let reports = program.done(ranks, at_once());
            assert_eq!(reports.len(), ranks as usize);
            for report in &reports {
                assert_eq!(report.communicators, 1, "{report:?}");
                assert_eq!(report.refusals, []);
                assert_eq!(report.calls, reports[0].calls, "all ranks decide alike");
                for name in NAMES {
                    let Counts { lines, across, mpi } = calls(report, name);
                    // Calls of no bytes, to which the first few belong, and elements that lines do not know.
                    let mpis = 6 * match name {
                        "barrier" => 0,
                        "bcast" => ranks,
                        "allgather" => 2,
                        "allreduce" => 2 + 3,
                        _ => 2 * ranks,
                    };
                    assert!(lines > 40 && across == 0, "{name}: {report:?}");
                    assert_eq!(mpi, u64::from(mpis), "{name}: {report:?}");
                }
            }
        }
    }
}

#[test]
fn an_atlas_that_cannot_be_used_is_a_line_of_the_report_and_two_ranks_look_for_none() {
    for program in Program::each("all.c") {
        for (ranks, looks) in [(2, false), (3, true)] {
            let config = Config { atlas: Some("/no/such/file".into()), ..at_once() };
            let reports = program.done(ranks, config);
            let refused = |report: &Report| {
                report.atlas_refused.as_ref().is_some_and(|why| why.contains("/no/such/file"))
            };
            assert_eq!(refused(&reports[0]), looks, "{reports:?}");
            assert!(reports.iter().skip(1).all(|report| report.atlas_refused.is_none()));
            assert!(
                reports.iter().all(|report| report.atlas.is_none() && report.communicators == 1)
            );
        }
    }
}

#[test]
fn across_nodes_the_mpi_works_between_their_first_ranks() {
    for program in Program::each("all.c") {
        let config = Config { ranks_per_node: Some(2), ..at_once() };
        // The last node has one rank.
        for &ranks in program.crowds(&[3], &[4, 5]) {
            let reports = program.done(ranks, config.clone());
            for report in &reports {
                for name in ["bcast", "barrier", "reduce", "allreduce"] {
                    let Counts { lines, across, .. } = calls(report, name);
                    assert!(lines == 0 && across > 40, "{name}: {report:?}");
                }
                assert_eq!(calls(report, "scatter").across, 0);
            }
        }
    }
    for program in Program::each("derived.c") {
        let reports = program.done(2, Config { ranks_per_node: Some(1), ..at_once() });
        assert!(reports.iter().all(|r| refused(r, 2, "no two ranks of it share a node")));
    }
}

#[test]
fn types_that_exist_on_one_rank_only() {
    for program in Program::each("derived.c") {
        for ranks in [2, 3] {
            for report in program.done(ranks, at_once()) {
                assert!(calls(&report, "bcast").lines >= 50, "{report:?}");
            }
        }
        let config = Config { ranks_per_node: Some(2), ..at_once() };
        for report in program.done(program.crowds(&[3], &[4])[0], config) {
            assert!(calls(&report, "bcast").across >= 50, "{report:?}");
        }
    }
}

#[test]
fn communicators_come_and_go_and_messages_move_while_ranks_wait() {
    for program in Program::each("comms.c") {
        let crowds: &[_] = program.crowds(&[(2, None)], &[(2, None), (4, None), (4, Some(2))]);
        for &(ranks, nodes) in crowds {
            let config = Config { ranks_per_node: nodes, ..at_once() };
            for report in program.done(ranks, config) {
                assert!(report.communicators > 12, "{report:?}");
                // Ranks of the other part are the larger half where they are not as many.
                let halves = [ranks / 2, ranks.div_ceil(2)];
                let mine = halves[usize::from(report.rank % 2 == 0)];
                assert!(refused(&report, mine, "it is an intercommunicator"), "{report:?}");
                assert!(refused(&report, 1, "it has one rank"), "{report:?}");
            }
        }
        let config = Config { communicators_max: 0, ..at_once() };
        for report in program.done(2, config) {
            assert!(report.refusals.iter().any(|r| r.why.contains("many")), "{report:?}");
        }
    }
}

#[test]
fn a_rank_with_many_threads_is_agreed_on() {
    for program in Program::each("threads.c") {
        for report in program.done(2, at_once()) {
            assert_eq!(report.communicators, 0);
            // Of the rank that has no threads as well.
            assert!(refused(&report, 2, "runs with MPI_THREAD_MULTIPLE"), "{report:?}");
            assert_eq!(calls(&report, "allreduce"), Counts { mpi: 50, ..Counts::default() });
        }
    }
}

#[test]
fn it_can_be_switched_off() {
    for program in Program::each("derived.c") {
        for report in program.done(2, Config { enabled: false, ..at_once() }) {
            assert_eq!((report.communicators, calls(&report, "bcast").lines), (0, 0));
            assert!(refused(&report, 2, "it was switched off"), "{report:?}");
        }
    }
}

#[test]
fn fortran_by_either_module() {
    for source in ["all.f90", "module.f90"] {
        for program in Program::each(source) {
            for report in program.done(2, at_once()) {
                for name in ["bcast", "barrier", "allreduce"] {
                    assert!(calls(&report, name).lines > 10, "{name}: {report:?}");
                }
            }
        }
    }
}

/// MPICH's launcher ends all ranks itself when one is killed, and nobody is left to see an error.
#[test]
fn a_killed_rank_is_an_error_to_the_others_within_the_stated_time() {
    for program in Program::each("killed.c").iter().filter(|program| program.mpi == "openmpi") {
        let out = program.folder.path().join("words");
        let _killed = program.run(3, at_once(), &[out.to_str().expect("plain")]);
        let text = std::fs::read_to_string(&out).expect("the others go on");
        let (seconds, words) = text.trim().split_once(' ').expect("two words at least");
        let wanted = "isochrone: rank 2 ended in the middle of a collective; \
                      end the others and run the program again";
        assert_eq!(words, wanted);
        let seconds: f64 = seconds.parse().expect("a number");
        assert!(seconds < 5.0, "noticed after {seconds} s");
    }
}

#[test]
fn communicators_that_end_soon_are_left_to_the_mpi() {
    for program in Program::each("loops.c") {
        for report in program.done(2, Config::default()) {
            assert_eq!((report.communicators, calls(&report, "allreduce").lines), (0, 0));
            let [refusal] = &report.refusals[..] else { panic!("{report:?}") };
            assert_eq!((refusal.ranks, refusal.communicators), (2, 20));
            assert!(refusal.why.contains("did not live long enough"), "{report:?}");
        }
        for report in program.done_with(2, Config::default(), &["one that lives"]) {
            assert_eq!(report.communicators, 1, "{report:?}");
            assert_eq!(calls(&report, "allreduce"), Counts { lines: 77, across: 0, mpi: 1203 });
        }
        // Whatever its calls, it does not live for so many times what a take-over costs.
        let config = Config { costs_before: u32::MAX, ..at_once() };
        for report in program.done_with(2, config, &["one that lives"]) {
            assert_eq!(report.communicators, 0, "{report:?}");
        }
    }
}

#[test]
fn one_rank_without_shared_memory_is_a_reason_for_all() {
    for program in Program::each("memory.c") {
        for report in program.done(2, at_once()) {
            assert!(
                refused(&report, 2, "a rank of it cannot have the shared memory"),
                "{report:?}"
            );
            let [refusal] = &report.refusals[..] else { panic!("{report:?}") };
            // Who cannot have it knows more of it.
            assert_eq!(refusal.why.contains("cannot open"), report.rank == 1, "{report:?}");
        }
    }
}

#[test]
fn no_lines_are_chosen_where_the_job_has_more_ranks_than_cores() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for program in Program::each("comms.c") {
        let chosen = |ranks| program.done(ranks, at_once()).iter().any(|report| report.chosen > 0);
        // On a busy machine the time for it may be up before anything was measured.
        assert!(cores < 2 || (0..20).any(|_| chosen(2)), "{}", program.mpi);
        // Halves of it have no more ranks than cores.
        if cores < 4 && program.mpi == "openmpi" {
            assert!(!chosen(4));
        }
    }
}

/// Builds an MPI of the tests' own with these words for the compiler and runs a program with it.
fn strange(words: &[&str]) -> Option<Report> {
    if !there("cc") {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let compile = |words: &[&str], source: &str| {
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-w"]).arg(here.join(source)).args(words);
        let built = compiler.current_dir(folder.path()).output().expect("it was there");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    };
    compile(&[words, &["-shared", "-fPIC", "-o", "libmpi_abi.so"]].concat(), "stranger.c");
    compile(&["-L.", "-lmpi_abi", "-Wl,-rpath,$ORIGIN", "-o", "program"], "strange.c");
    let config = Config { reports: Some(folder.path().join("reports")), ..at_once() };
    std::fs::create_dir(folder.path().join("reports")).expect("a folder");
    let told = folder.path().join("config");
    std::fs::write(&told, serde_json::to_string(&config).expect("plain")).expect("room");
    let output = Command::new(folder.path().join("program"))
        .env("LD_PRELOAD", library())
        .env(CONFIG_VARIABLE, told)
        .env("PMI_RANK", "3")
        .output()
        .expect("it was built");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "done after 20\n", "{}", String::from_utf8_lossy(&output.stderr));
    left(&folder.path().join("reports")).pop()
}

#[test]
fn an_mpi_of_the_standard_abi_or_an_unknown_one_is_left_alone() {
    let Some(report) = strange(&["-DVERSION=\"MPICH Version: 5.0.2\"", "-DABI=1"]) else { return };
    assert!(refused(&report, 0, "programs of the standard ABI"), "{report:?}");
    assert_eq!((report.mpi.as_str(), report.rank), ("MPICH Version: 5.0.2", 3));
    let report = strange(&["-DVERSION=\"Another MPI 1.0\""]).expect("as before");
    assert!(refused(&report, 0, "an MPI that is not known: Another MPI 1.0"), "{report:?}");
    // Without the ABI's handles it is asked no more than whether it has them.
    let report = strange(&["-DVERSION=\"Another MPI 2.0\"", "-DABI=-1"]).expect("as before");
    assert!(refused(&report, 0, "an MPI that is not known: Another MPI 2.0"), "{report:?}");
}
