//! Programs of C and Fortran, built with the MPIs that are installed and run unmodified under the
//! library: every byte is compared by the programs themselves, and what was done in lines by the reports.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_mpi::{CONFIG_VARIABLE, Config, Counts, LeftCalls, Refusal, Report};
use std::path::Path;
use std::process::Command;
use support::{NAMES, Program, at_once, calls, finished, left, library, refused, there};

/// Those that ranks may have different counts in.
const UNEVEN: [&str; 5] = ["scatter", "gather", "allgather", "alltoall", "reduce_scatter_block"];

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
                    let details = &report.details[name];
                    let sized: u64 = details.sizes.iter().map(|sized| sized.calls).sum();
                    let left: u64 = details.by_the_mpi.iter().map(|left| left.calls).sum();
                    assert_eq!((sized, left), (lines, mpi), "{name}: {report:?}");
                    assert!(details.saved_ns > 0, "{name}: {report:?}");
                    // The program's first four calls.
                    let first = match name {
                        "bcast" | "scatter" => 1,
                        "reduce" => 2,
                        _ => 0,
                    };
                    assert!(lines > 40 && across == 0, "{name}: {report:?}");
                    assert_eq!(mpi, first, "{name}: {report:?}");
                }
            }
        }
    }
}

#[test]
fn every_named_type_and_operations_of_the_programs_own() {
    for program in Program::each("types.c") {
        for &ranks in program.crowds(&[2, 3], &[2, 3, 5]) {
            for report in program.done(ranks, at_once()) {
                for name in ["reduce", "allreduce"] {
                    // The program's first four calls.
                    let Counts { lines, mpi, .. } = calls(&report, name);
                    assert!(lines > 1000 && mpi <= 4, "{name}: {report:?}");
                }
            }
        }
        let config = Config { ranks_per_node: Some(2), ..at_once() };
        for report in program.done(3, config) {
            let Counts { across, mpi, .. } = calls(&report, "allreduce");
            assert!(across > 500 && mpi > 200, "over nodes the MPI combines them: {report:?}");
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
fn several_leaders_of_a_node_share_long_messages() {
    for program in Program::each("all.c") {
        // The last node has fewer ranks than leaders: one of them is several.
        for &(ranks, node) in program.crowds(&[(3, 2)], &[(3, 2), (4, 2), (5, 3)]) {
            let config = Config { leaders: 3, ranks_per_node: Some(node), ..at_once() };
            for report in program.done(ranks, config) {
                for name in ["bcast", "reduce", "allreduce"] {
                    let Counts { lines, across, .. } = calls(&report, name);
                    let in_parts = report.details[name].in_parts;
                    assert!(lines == 0 && across > 40, "{name}: {report:?}");
                    // One of eight sizes is long.
                    assert!(0 < in_parts && in_parts < across / 4, "{name}: {report:?}");
                }
                assert_eq!(report.details["barrier"].in_parts, 0, "{report:?}");
            }
        }
        let config = Config { ranks_per_node: Some(2), ..at_once() };
        for report in program.done(3, config) {
            assert!(report.details.values().all(|details| details.in_parts == 0), "{report:?}");
        }
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
fn functions_with_large_counts_are_in_lines() {
    // Open MPI 4 has none: there the library asks the functions with small counts.
    for program in Program::each("large.c") {
        for report in program.done(2, at_once()) {
            for name in NAMES.into_iter().filter(|name| *name != "barrier") {
                let Counts { lines, across, mpi } = calls(&report, name);
                // Of each five calls one of more bytes, and at most the first four. Twice as many where there is a
                // function for unequal counts.
                let times = if UNEVEN.contains(&name) { 2 } else { 1 };
                assert!(
                    (20 * times - 4..=20 * times).contains(&lines) && across == 0,
                    "{name}: {report:?}"
                );
                assert_eq!(lines + mpi, 25 * times, "{name}: {report:?}");
            }
        }
    }
}

#[test]
fn threads_are_in_lines_each_on_a_communicator_of_its_own() {
    for program in Program::each("threads.c") {
        for ranks in [2, 3] {
            for report in program.done(ranks, at_once()) {
                // Two that stay and 16 that go.
                assert_eq!(
                    (report.communicators, &report.refusals[..]),
                    (18, &[][..]),
                    "{report:?}"
                );
                assert!(calls(&report, "allreduce").lines > 790, "{report:?}");
                assert_eq!(calls(&report, "barrier").lines, 16 * 16, "{report:?}");
            }
        }
        // Where one rank lets one thread alone in, nothing else changes.
        for report in program.done_with(2, at_once(), &["fewer"]) {
            assert_eq!(report.communicators, 9, "{report:?}");
        }
    }
}

/// What the ranks say, in an order of its own, and whether they all came to their end.
fn said(output: &std::process::Output) -> (Vec<String>, bool) {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<_> = text.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect();
    lines.sort();
    let done = lines.iter().filter(|line| line.starts_with("done")).count();
    (lines, done == 2)
}

#[test]
fn wrong_calls_are_the_errors_that_they_are_without_the_library() {
    for program in Program::each("errors.c") {
        let mut cases = vec!["refused", "handler"];
        // Open MPI looks for none of it, and MPICH may not come back from the other.
        cases.push(if program.mpi == "mpich" { "looked for" } else { "unlike" });
        for case in cases {
            let plain = finished(&mut program.started(2, &[], &[case]));
            let (with, without) = (said(&program.run(2, at_once(), &[case])), said(&plain));
            assert_eq!(with, without, "{} {case}", program.mpi);
            assert!(with.1, "{} {case}: {with:?}", program.mpi);
        }
    }
}

#[test]
fn ranks_that_give_different_bytes_are_told_and_nobody_hangs() {
    for program in Program::each("errors.c") {
        let short = if program.mpi == "mpich" { "other" } else { "none" };
        let (lines, done) = said(&program.run(2, at_once(), &["told"]));
        assert!(done, "{lines:?}");
        let times = |line: &str| lines.iter().filter(|said| *said == line).count();
        for rank in [0, 1] {
            for call in ["allreduce", "allgather", "alltoall", "reduce and scatter"] {
                assert_eq!(times(&format!("{rank} {call}: truncate")), 4, "{lines:?}");
            }
        }
        // Rank 0 asks nobody in a scan, as long as it does it in lines.
        for call in ["scan", "exscan"] {
            assert_eq!(times(&format!("1 {call}: truncate")), 4, "{lines:?}");
        }
        // The lines of both say how long a block is; who sends more hears of nothing.
        assert_eq!(times("0 allgather in parts: truncate"), 4, "{lines:?}");
        assert_eq!(times("0 fewer than fit: none"), 4, "{lines:?}");
        // In the last two rank 1 would have left it to the MPI, or given room for what it cannot tell.
        assert!(times(&format!("1 fewer than fit: {short}")) >= 3, "{lines:?}");
        let (lines, done) = said(&program.run(2, at_once(), &["unlike"]));
        assert!(done, "{lines:?}");
        let times = |line: &str| lines.iter().filter(|said| *said == line).count();
        for (call, told) in [
            ("more than fits", 1),
            ("more to scatter", 1),
            ("more to gather", 0),
            ("more to gather in parts", 0),
            ("more to scatter in parts", 1),
            ("more to reduce", 0),
        ] {
            assert_eq!(times(&format!("{told} {call}: truncate")), 3, "{lines:?}");
        }
    }
}

#[test]
fn a_wrong_call_is_told_where_it_is_by_the_mpi_and_calls_after_it_are_right() {
    for program in Program::each("errors.c") {
        for ranks in [2, 3] {
            let (lines, _) = said(&program.run(ranks, at_once(), &["then right"]));
            let times = |line: &str| lines.iter().filter(|said| *said == line).count();
            for (call, at_root, at_others) in [
                ("root takes fewer", "truncate", "none"),
                ("root takes more", "none", "none"),
                ("root gives itself more", "truncate", "none"),
                ("root gives itself fewer", "none", "none"),
                ("root takes fewer, spaced", "truncate", "none"),
                ("root takes more, spaced", "none", "none"),
                ("root takes more in parts, spaced", "none", "none"),
                ("ranks take more, spaced", "none", "none"),
                ("givers differ", "truncate", "none"),
                ("givers of a reduction differ", "truncate", "none"),
                ("root keeps fewer", "truncate", "none"),
                ("root has room for more", "none", "none"),
                ("a rank gives itself more", "truncate", "none"),
                ("reduced to fewer", "truncate", "none"),
                ("a rank of other bytes", "truncate", "truncate"),
                ("a rank beyond all lines", "truncate", "truncate"),
            ] {
                for rank in 0..ranks {
                    let told = if rank == 0 { at_root } else { at_others };
                    let line = format!("{rank} {call}: {told}, then right");
                    assert_eq!(times(&line), 3, "{} {ranks} {line}: {lines:?}", program.mpi);
                }
            }
        }
    }
}

/// Debian's MPICH leaves one rank in such a call, if the MPI does it, until another makes the next.
#[test]
fn different_bytes_in_the_call_that_takes_a_communicator_over_are_told() {
    for program in Program::each("errors.c") {
        let config = Config { calls_before: 0, ..at_once() };
        let (lines, done) = said(&program.run(2, config, &["first"]));
        assert!(done, "{}: {lines:?}", program.mpi);
        for rank in [0, 1] {
            let times = |words: &str| {
                let line = format!("{rank} {words}");
                lines.iter().filter(|said| **said == line).count()
            };
            let found = (times("call 0: truncate"), times("call 1: none"));
            assert_eq!(found, (3, 3), "{}: {lines:?}", program.mpi);
        }
    }
}

#[test]
fn two_jobs_of_one_user_at_once_share_nothing() {
    for (one, other) in Program::each("all.c").into_iter().zip(Program::each("all.c")) {
        let folders = [&one, &other].map(|program| program.folder.path().display().to_string());
        // Each rank leaves a file and waits for those of both ranks of the other job.
        let waits = "touch $1/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; \
                     until [ -e $2/0 ] && [ -e $2/1 ]; do sleep 0.01; done; shift 2; exec \"$@\"";
        let job = |mine: usize| {
            let program = [&one, &other][mine];
            let before = ["sh", "-c", waits, "sh", &folders[mine], &folders[1 - mine]];
            let mut job = program.started(2, &before, &[]);
            job.env("LD_PRELOAD", library()).env(CONFIG_VARIABLE, program.told(at_once()));
            program.ended(2, &finished(&mut job))
        };
        let reports = std::thread::scope(|scope| {
            let second = scope.spawn(|| job(1));
            [job(0), second.join().expect("it ended well")]
        });
        for report in reports.iter().flatten() {
            assert_eq!((report.communicators, &report.refusals[..]), (1, &[][..]), "{report:?}");
            assert!(calls(report, "allreduce").lines > 40, "{report:?}");
        }
        // As much memory as one job has, and what they share is not another's.
        assert_eq!(reports[0][0].shared_bytes, reports[1][0].shared_bytes, "{reports:?}");
        assert_eq!(reports[0][0].calls, reports[1][0].calls, "{reports:?}");
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
fn a_user_says_which_collectives_and_how_many_bytes() {
    for program in Program::each("all.c") {
        // MPICH 4.0.2 itself ends by a signal in some reductions of this program.
        let only = ["barrier", "bcast", "reduce"].map(str::to_owned).to_vec();
        for report in program.done(2, Config { only, ..at_once() }) {
            assert_eq!(calls(&report, "barrier").mpi, 0, "{report:?}");
            assert!(calls(&report, "barrier").lines > 40, "{report:?}");
            assert_eq!(calls(&report, "allreduce").lines, 0, "{report:?}");
        }
    }
    for program in Program::each("derived.c") {
        for report in program.done(2, Config { bytes_max: 16, ..at_once() }) {
            assert!(calls(&report, "bcast").mpi > 10, "{report:?}");
            let why = |left: &LeftCalls| left.why.contains("more bytes") && left.calls > 5;
            assert!(report.details["bcast"].by_the_mpi.iter().any(why), "{report:?}");
        }
    }
    for program in Program::each("derived.c") {
        let mut job = program.started(2, &[], &[]);
        job.env("LD_PRELOAD", library()).env("ISOCHRONE_MPI_MAX_BYTES", "many");
        let wrong = finished(&mut job);
        let (words, said) =
            (String::from_utf8_lossy(&wrong.stderr), String::from_utf8_lossy(&wrong.stdout));
        // How a launcher ends then is its own affair.
        assert!(words.contains("isochrone: ISOCHRONE_MPI_MAX_BYTES=many is no size"), "{words}");
        assert!(!said.contains("done"), "{said}");
    }
}

#[test]
fn reductions_in_the_order_of_ranks_give_the_same_bits_by_lines_by_the_mpi_and_over_nodes() {
    for program in Program::each("order.c") {
        let ordered = Config { reproducible: true, ..at_once() };
        let most = program.crowds(&[3], &[4])[0];
        let reports = program.done(most, ordered.clone());
        for name in ["reduce", "allreduce", "scan", "exscan", "reduce_scatter_block"] {
            let (calls, details) = (calls(&reports[0], name), &reports[0].details[name]);
            assert!(calls.lines > 0 && details.in_order > 0, "{name}: {reports:?}");
            assert!(details.in_order <= calls.mpi, "{name}: {reports:?}");
        }
        // All of it is the MPI's.
        for (ranks, config) in [
            (3, Config { costs_before: u32::MAX, ..ordered.clone() }),
            (most, Config { ranks_per_node: Some(2), ..ordered }),
        ] {
            let reports = program.done(ranks, config);
            assert!(reports[0].details["allreduce"].in_order > 10, "{reports:?}");
        }
    }
}

#[test]
fn where_a_job_has_more_ranks_than_cores_the_mpi_works() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks = u32::try_from(cores + 1).expect("few");
    // MPICH's ranks never give a core away.
    for program in Program::each("loops.c").iter().filter(|program| program.mpi == "openmpi") {
        for report in program.done_with(ranks, Config::default(), &["one that lives"]) {
            assert!(refused(&report, ranks, "more ranks on a node than cores"), "{report:?}");
        }
    }
}

#[test]
fn where_all_ranks_are_bound_to_one_core_the_mpi_works() {
    for program in Program::each("loops.c").iter().filter(|program| program.mpi == "openmpi") {
        let reports = program.folder.path().join("reports");
        std::fs::create_dir(&reports).expect("a folder");
        let mut job =
            program.started(2, &["taskset", "-c", "0"], &["one that lives", "0", "60000"]);
        job.env("LD_PRELOAD", library())
            .env("ISOCHRONE_MPI_REPORTS", &reports)
            .env("OMPI_MCA_mpi_yield_when_idle", "1");
        let output = finished(&mut job);
        for report in program.ended(2, &output) {
            assert!(refused(&report, 2, "more ranks on a node than cores"), "{report:?}");
        }
    }
}

#[test]
fn ranks_that_were_told_differently_leave_it_to_the_mpi() {
    let reports = tempfile::tempdir().expect("a folder");
    for program in Program::each("loops.c") {
        let path = reports.path().join(program.mpi);
        std::fs::create_dir(&path).expect("a folder");
        let told = "[ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 ] && export ISOCHRONE_MPI_MAX_BYTES=1K; exec \"$@\"";
        let mut job = program.started(2, &["sh", "-c", told, "sh"], &["one that lives"]);
        job.env("LD_PRELOAD", library()).env("ISOCHRONE_MPI_REPORTS", &path);
        let output = finished(&mut job);
        assert!(output.status.success(), "{output:?}");
        let left = left(&path);
        assert_eq!(left.len(), 2);
        for report in left {
            assert!(refused(&report, 2, "told differently"), "{report:?}");
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
        // None of them comes to MPI_Finalize.
        let reports = left(&program.folder.path().join("reports"));
        assert_eq!(reports.iter().map(|report| report.rank).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((reports[2].broken.as_ref(), reports[2].ended), (None, false));
        for report in &reports[..2] {
            assert_eq!(
                report.broken.as_ref().map(|why| format!("isochrone: {why}")),
                Some(wanted.to_owned())
            );
            assert!((90..100).contains(&calls(report, "barrier").lines), "{report:?}");
        }
    }
}

#[test]
fn a_report_is_left_whatever_ends_a_process() {
    for program in Program::each("ends.c") {
        for how in ["", "killed", "aborted", "exit"] {
            let output = program.run(2, at_once(), &[how]);
            let reports = left(&program.folder.path().join("reports"));
            let ranks: Vec<_> = reports.iter().map(|report| report.rank).collect();
            assert_eq!(ranks, [0, 1], "{} {how}: {output:?}", program.mpi);
            for report in &reports {
                // Of one that ends by itself all calls, else more than half.
                let least = if report.ended { 300 } else { 256 };
                let Counts { lines, mpi, .. } = calls(report, "allreduce");
                assert!(lines + mpi >= least && report.communicators == 1, "{how}: {report:?}");
                assert!(report.ended || !how.is_empty(), "{report:?}");
                // A launcher may end the other before it exits.
                let killed = report.rank == 1 && how == "killed";
                assert!(!(report.ended && killed), "{report:?}");
            }
        }
    }
}

#[test]
fn a_tool_before_the_library_counts_all_calls_and_one_behind_it_those_that_the_mpi_does() {
    for program in Program::each("ends.c") {
        let (tool, reports) =
            (program.beside("tool.c", "tool.so"), program.folder.path().join("reports"));
        let run = |preloaded: [&Path; 2], off: &str| {
            let _older = std::fs::remove_dir_all(&reports);
            std::fs::create_dir(&reports).expect("a folder");
            let config = Config { reports: Some(reports.clone()), ..at_once() };
            let told = program.folder.path().join("told");
            std::fs::write(&told, serde_json::to_string(&config).expect("plain")).expect("room");
            let preloaded = preloaded.map(|path| path.display().to_string()).join(":");
            let mut job = program.started(2, &[], &["", "20"]);
            job.env("LD_PRELOAD", preloaded).env(CONFIG_VARIABLE, told);
            let output = finished(job.env("ISOCHRONE_MPI_OFF", off));
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            (said, program.ended(2, &output))
        };
        let library = library();
        let all = |said: &str, rank: u32| said.contains(&format!("tool of {rank}: 20 21\n"));
        let (said, reports) = run([&tool, &library], "0");
        for report in reports {
            assert!(all(&said, report.rank), "{said}");
            assert!(refused(&report, 0, "no call of MPI came to this library"), "{report:?}");
        }
        let (said, reports) = run([&library, &tool], "0");
        for report in reports {
            let of = |name: &str| calls(&report, name).mpi;
            let words = format!("tool of {}: {} {}\n", report.rank, of("allreduce"), of("barrier"));
            assert!(said.contains(&words) && of("allreduce") < 20, "{said}: {report:?}");
        }
        let (said, reports) = run([&library, &tool], "1");
        assert!(reports.iter().all(|report| all(&said, report.rank)), "{said}");
    }
}

#[test]
fn communicators_whose_calls_save_less_than_they_cost_are_left_to_the_mpi() {
    for program in Program::each("loops.c") {
        for report in program.done(2, Config::default()) {
            assert_eq!((report.communicators, calls(&report, "allreduce").lines), (0, 0));
            let [refusal] = &report.refusals[..] else { panic!("{report:?}") };
            assert_eq!((refusal.ranks, refusal.communicators), (2, 20));
            assert!(refusal.why.contains("not have saved"), "{report:?}");
            assert_eq!((report.set_up_us, report.shared_bytes), (0, 0), "nothing was done");
        }
        // Agreed on once, and what memory costs is more than so many calls save.
        for report in program.done_with(2, Config::default(), &["one that lives"]) {
            assert_eq!((report.communicators, report.shared_bytes), (0, 0), "{report:?}");
            let many = |refusal: &Refusal| refusal.communicators == 21;
            assert!(report.refusals.iter().any(many), "{report:?}");
        }
        let long = ["one that lives", "0", "400000"];
        let reports = program.done_with(2, Config::default(), &long);
        for report in &reports {
            let Counts { lines, mpi, .. } = calls(report, "allreduce");
            assert!(report.communicators == 1 && lines > 0 && mpi > 40_000, "{report:?}");
            assert_eq!(report.calls, reports[0].calls, "all ranks decide at the same call");
        }
        let config = Config { costs_before: u32::MAX, ..at_once() };
        for report in program.done_with(2, config, &["one that lives"]) {
            assert_eq!(report.communicators, 0, "{report:?}");
        }
    }
}

#[test]
fn communicators_come_and_go_in_the_same_memory() {
    for program in Program::each("loops.c") {
        let shared = |rounds: &str| {
            let reports = program.done_with(2, at_once(), &["", rounds, "0"]);
            let each = |report: &Report| {
                assert_eq!(report.communicators.to_string(), rounds, "{report:?}");
                assert_eq!(calls(report, "allreduce").lines, u64::from(report.communicators) * 5);
                report.shared_bytes
            };
            reports.iter().map(each).max()
        };
        // What they share for itself, and a piece for the communicator that there is; a rank that is late with giving
        // its own back is waited for by nobody.
        let few = shared("30").expect("two ranks");
        assert!((2..=4).contains(&(few >> 16)) && few.is_multiple_of(1 << 16), "{few}");
        assert!(shared("3000").expect("two ranks") <= 4 << 16);
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
    let (folder, output) = stranger(words, None)?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "done after 20\n", "{}", String::from_utf8_lossy(&output.stderr));
    left(&folder.path().join("reports")).pop()
}

/// The same with what a user says of bytes: what the program says, and the folder of its reports.
fn stranger(
    words: &[&str],
    bytes: Option<&str>,
) -> Option<(tempfile::TempDir, std::process::Output)> {
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
    let mut program = Command::new(folder.path().join("program"));
    program.env("LD_PRELOAD", library()).env(CONFIG_VARIABLE, told).env("PMI_RANK", "3");
    program.envs(bytes.map(|bytes| ("ISOCHRONE_MPI_MAX_BYTES", bytes)));
    let output = program.output().expect("it was built");
    Some((folder, output))
}

#[test]
fn an_mpi_of_an_early_standard_abi_or_an_unknown_one_is_left_alone() {
    let Some(report) = strange(&["-DVERSION=\"MPICH Version: 5.0.2\"", "-DABI=0"]) else { return };
    assert!(refused(&report, 0, "before its first version"), "{report:?}");
    assert_eq!((report.mpi.as_str(), report.rank), ("MPICH Version: 5.0.2", 3));
    let report = strange(&["-DVERSION=\"Another MPI 1.0\""]).expect("as before");
    assert!(refused(&report, 0, "an MPI that is not known: Another MPI 1.0"), "{report:?}");
    // Without the ABI's handles it is asked no more than whether it has them.
    let report = strange(&["-DVERSION=\"Another MPI 2.0\"", "-DABI=-1"]).expect("as before");
    assert!(refused(&report, 0, "an MPI that is not known: Another MPI 2.0"), "{report:?}");
    // What cannot be read is an error there, too.
    let told = stranger(&["-DVERSION=\"Another MPI 3.0\""], Some("many"));
    let (_folder, output) = told.expect("as before");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("ISOCHRONE_MPI_MAX_BYTES=many is no size"), "{words}");
}
