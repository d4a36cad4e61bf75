//! Who touches the bytes of a call: they are copied once from rank to rank, or lie in the memory of a device.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_mpi::{CONFIG_VARIABLE, Config, LeftCalls, Report};
use std::process::Command;
use support::{NAMES, Program, at_once, calls, finished, left, library, refused};

/// How many calls of a collective were copied once.
fn once(report: &Report, name: &str) -> u64 {
    report.details.get(name).map_or(0, |details| details.copied_once)
}

/// Those that may be.
const MOVED: [&str; 5] = ["bcast", "scatter", "gather", "allgather", "alltoall"];

/// Calls of 4 KiB and more.
fn from_4_kib() -> Config {
    Config { single_copy: Some(4096), ..at_once() }
}

#[test]
fn calls_of_many_bytes_are_copied_once_and_every_byte_is_right() {
    for program in Program::each("single.c") {
        for &ranks in program.crowds(&[2, 3], &[2, 3, 4]) {
            for report in program.done(ranks, from_4_kib()) {
                assert_eq!(report.reach, Some(true), "{report:?}");
                for name in MOVED {
                    // Of nine calls of each size and root all but those of fewer bytes.
                    assert!(once(&report, name) >= 8, "{name}: {report:?}");
                    let why = &report.details[name].by_the_mpi;
                    let layout = why.iter().any(|left| left.why.contains("do not lie together"));
                    assert!(layout || report.rank > 0, "{name}: {report:?}");
                }
            }
        }
        for report in program.done(2, at_once()) {
            assert_eq!(report.reach, None, "nobody asked for it: {report:?}");
            assert!(MOVED.iter().all(|name| once(&report, name) == 0), "{report:?}");
        }
    }
}

/// What `single.c` leaves with far or near ranks, `auto` or not.
fn between(program: &Program, ranks: u32, far: bool, auto: bool) -> Vec<Report> {
    let (lines_far, single_copy_auto) = (Some(far), auto);
    let reports = program.done(ranks, Config { lines_far, single_copy_auto, ..at_once() });
    assert!(reports.iter().all(|report| report.lines_far == Some(far)), "{reports:?}");
    reports
}

/// Of what `single.c` calls, 65536 bytes are those that near ranks send through lines and far ones do not.
#[test]
fn far_ranks_leave_to_the_mpi_what_it_is_expected_to_move_faster() {
    for program in Program::each("single.c") {
        for &ranks in program.crowds(&[2], &[2, 3]) {
            let reports = [false, true].map(|far| between(&program, ranks, far, false));
            for (near, far) in reports[0].iter().zip(&reports[1]) {
                let left: &[&str] = if program.mpi == "openmpi" {
                    &["scatter", "allgather", "alltoall"]
                } else {
                    &["alltoall"]
                };
                for name in MOVED {
                    let (near, far) = (calls(near, name), calls(far, name));
                    let fewer = far.lines < near.lines && far.mpi > near.mpi;
                    assert_eq!(fewer, left.contains(&name), "{name}: {near:?} {far:?}");
                    assert_eq!(fewer, far != near, "{name}: {near:?} {far:?}");
                }
            }
        }
    }
}

#[test]
fn what_goes_through_no_lines_is_copied_once_where_that_is_left_to_the_library() {
    for program in Program::each("single.c") {
        for &ranks in program.crowds(&[2], &[2, 3]) {
            let reports = [false, true].map(|far| between(&program, ranks, far, true));
            for (near, far) in reports[0].iter().zip(&reports[1]) {
                assert_eq!((near.reach, far.reach), (Some(true), Some(true)));
                for name in MOVED {
                    let [near, far] = [near, far].map(|report| once(report, name));
                    assert!(near > 0 && far >= near, "{name}: {near} {far}");
                    assert_eq!(far > near, name != "bcast", "{name}: {near} {far}");
                }
            }
        }
    }
}

#[test]
fn whether_ranks_are_far_is_measured_and_the_same_on_all_of_them() {
    for program in Program::each("single.c") {
        let reports = program.done(2, Config { lines_far: None, ..at_once() });
        let said: Vec<_> = reports.iter().map(|report| report.lines_far).collect();
        assert!(said == [Some(true); 2] || said == [Some(false); 2], "{said:?}");
    }
}

/// Runs `single.c` where its last rank may not copy from process to process: then the MPI must not try it either.
fn without_rights(program: &Program, ranks: u32, case: &str) -> Vec<Report> {
    let config = program.told(from_4_kib());
    let mut job = program.started(ranks, &[], &[case]);
    job.env("LD_PRELOAD", library())
        .env(CONFIG_VARIABLE, config)
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("UCX_TLS", "^cma");
    let output = finished(&mut job);
    program.ended(ranks, &output)
}

#[test]
fn where_a_rank_may_not_read_the_memory_of_another_nothing_is_copied_once() {
    for program in Program::each("single.c") {
        for report in without_rights(&program, 2, "filtered") {
            assert_eq!(report.reach, Some(false), "{report:?}");
            for name in MOVED {
                assert_eq!(once(&report, name), 0, "{name}: {report:?}");
                assert!(calls(&report, name).lines > 0, "short ones go on: {report:?}");
            }
        }
    }
}

#[test]
fn a_copy_that_fails_leaves_its_call_and_those_that_follow_to_the_mpi_on_all_ranks() {
    for program in Program::each("single.c") {
        for report in without_rights(&program, program.crowds(&[2], &[3])[0], "later") {
            assert_eq!(report.reach, Some(false), "{report:?}");
            assert!(once(&report, "bcast") > 0, "before it failed: {report:?}");
            let why = &report.details["bcast"].by_the_mpi;
            let more = |left: &LeftCalls| left.why.contains("more bytes");
            assert!(why.iter().any(more), "after it failed: {report:?}");
        }
    }
}

/// Runs `single.c` with two ranks, of which `rank` is started by these words, which give processes numbers of their
/// own.
fn numbered_apart(program: &Program, rank: u32, words: &str) -> Vec<Report> {
    let config = program.told(from_4_kib());
    let told = format!("[ $OMPI_COMM_WORLD_RANK = {rank} ] && exec {words} \"$@\"; exec \"$@\"");
    let mut job = program.started(2, &["sh", "-c", &told, "sh"], &[]);
    job.env("LD_PRELOAD", library())
        .env(CONFIG_VARIABLE, config)
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    let output = finished(&mut job);
    let done = String::from_utf8_lossy(&output.stdout).matches("done").count();
    assert_eq!(done, 2, "{words}: {output:?}");
    let reports = left(&program.folder.path().join("reports"));
    for report in &reports {
        assert_ne!(report.reach, Some(true), "{words}: {report:?}");
        assert!(MOVED.iter().all(|name| once(report, name) == 0), "{words}: {report:?}");
    }
    reports
}

/// MPICH does not run so, with the library or without.
#[test]
fn ranks_with_process_numbers_of_their_own_copy_nothing_by_number() {
    let (apart, alone) = ("unshare --pid --fork", "unshare --pid --fork --mount-proc");
    if !may(&alone.split(' ').collect::<Vec<_>>()) {
        return;
    }
    for program in Program::each("single.c").iter().filter(|program| program.mpi == "openmpi") {
        // It finds the memory of the first one, by the number that this has where both look.
        let reports = numbered_apart(program, 1, apart);
        assert_eq!(reports.len(), 2, "{reports:?}");
        for report in reports {
            assert_eq!((report.reach, &report.refusals[..]), (Some(false), &[][..]), "{report:?}");
            assert!(calls(&report, "bcast").lines > 0, "{report:?}");
        }
        // Its own number is nobody's to the other, and neither sees the other's where each looks by itself.
        for (rank, words) in [(0, apart), (1, alone), (0, alone)] {
            for report in numbered_apart(program, rank, words) {
                assert!(refused(&report, 2, "cannot have the shared memory"), "{report:?}");
            }
        }
    }
}

/// Whether a command that gives a process something of its own may be run here.
fn may(words: &[&str]) -> bool {
    Command::new(words[0]).args(&words[1..]).arg("true").status().is_ok_and(|s| s.success())
}

#[test]
fn ranks_with_mounts_and_ipc_of_their_own_are_in_lines_and_copy_once() {
    let apart = ["unshare", "--mount", "--ipc"];
    if !may(&apart) {
        return;
    }
    for program in Program::each("single.c") {
        let config = program.told(from_4_kib());
        let mut job = program.started(2, &apart, &[]);
        job.env("LD_PRELOAD", library()).env(CONFIG_VARIABLE, config);
        for report in program.ended(2, &finished(&mut job)) {
            assert_eq!((report.reach, &report.refusals[..]), (Some(true), &[][..]), "{report:?}");
            assert!(once(&report, "bcast") > 0, "{report:?}");
        }
    }
}

/// A library that stands for a device's makes its memory such that every touch but the MPI's own ends the program.
#[test]
fn memory_of_a_device_is_touched_by_the_mpi_alone() {
    for program in Program::each("device.c") {
        let device = program.beside("cuda.c", "libcuda.so.1");
        // MPICH 4.0.2 itself ends by a signal in a reduction among three, of ordinary buffers.
        for &(ranks, nodes) in program.crowds(&[(2, None)], &[(2, None), (3, Some(2))]) {
            let config = program.told(Config { ranks_per_node: nodes, ..from_4_kib() });
            let mut job = program.started(ranks, &[], &[]);
            let libraries = format!("{}:{}", library().display(), device.display());
            job.env("LD_PRELOAD", libraries).env(CONFIG_VARIABLE, config);
            let output = finished(&mut job);
            for report in program.ended(ranks, &output) {
                for name in NAMES.iter().filter(|name| **name != "barrier" && nodes.is_none()) {
                    assert!(calls(&report, name).lines > 5, "{name}: {report:?}");
                }
                let why = &report.details["allgather"].by_the_mpi;
                let layout = why.iter().any(|left| left.why.contains("on a device"));
                assert!(layout || nodes.is_some(), "{report:?}");
            }
        }
    }
}
