//! The library is a guest in processes that have little stack, that end in another order than most,
//! and that may not call the system as they like: they go on as without it.

use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use isochrone_malloc::{Pin, Reason};

use crate::support::{Rig, program, share_since_start};

/// A process that does not end is ended by the test, after so long.
const HANGS: Duration = Duration::from_secs(120);

/// A rig that learns from the first pages on, and binds threads.
fn learning() -> Rig {
    Rig::new().with(|config| {
        config.policy.l2_bytes = 2048;
        config.pin = Pin::Compact;
    })
}

/// A rig in which nothing is placed, since there is no atlas.
fn placing_nothing() -> Rig {
    Rig::new().with(|config| {
        config.atlas = isochrone_malloc::PathBytes::new(b"/nonexistent").expect("short");
    })
}

/// Waits for a process to end; `None` where it hung and was killed.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < HANGS {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it was killed");
    None
}

#[test]
fn small_stacks_are_enough_wherever_they_are_for_glibc() {
    // PTHREAD_STACK_MIN, below which there is no thread, is 128 KiB on AArch64 and 16 on x86-64.
    let threads = if cfg!(target_arch = "aarch64") { &[128][..] } else { &[16, 32, 64] };
    for (kind, sizes) in
        [("thread", threads), ("coroutine", [4, 8, 16, 32].as_slice()), ("signal", [8].as_slice())]
    {
        for size in sizes {
            let (places, leaves) = (learning(), placing_nothing());
            for rig in [&places, &leaves] {
                rig.same(program("stacks"), |command| {
                    command.args([kind, &size.to_string()]);
                });
            }
            let report = places.largest();
            assert!(share_since_start(&report) > 0.9, "{kind} {size}: {report:?}");
            assert!(report.slices().0 > 0, "{kind} {size}: something was learnt there");
            assert_eq!(leaves.largest().placed().objects, 0);
        }
    }
}

/// Starts the program whose main thread ends first; it has printed how many threads it has.
fn outlived(mut command: Command, threads: &str, waits: &str) -> (Child, String) {
    let mut child = command.args([threads, waits]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let out = child.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("text");
    (child, line)
}

#[test]
fn a_process_ends_with_its_last_thread_and_has_no_more_of_them() {
    for threads in ["0", "1", "4"] {
        let rig = learning();
        let seen = [Command::new(program("ends")), rig.command(program("ends"))].map(|command| {
            let (mut child, line) = outlived(command, threads, "0");
            (ended(&mut child).expect("the process hangs"), line)
        });
        assert!(seen[0].0.success());
        assert_eq!(seen[0], seen[1]);
        assert!(seen[0].1.starts_with("Threads:"), "{}", seen[0].1);
        let report = rig.largest();
        assert!(share_since_start(&report) > 0.9, "{threads}: {report:?}");
    }
}

#[test]
fn a_process_whose_main_thread_has_ended_is_ended_by_a_signal() {
    let rig = learning();
    for command in [Command::new(program("ends")), rig.command(program("ends"))] {
        let (mut child, _) = outlived(command, "2", "1");
        let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(kill.expect("it runs").success());
        let status = ended(&mut child).expect("the process hangs");
        assert_eq!(status.signal(), Some(15));
    }
}

/// Runs the sandbox as told, with the library and without, and gives the report of it, if it left one.
fn sandboxed(rig: &Rig, what: &str) -> Option<isochrone_malloc::Report> {
    rig.same(program("sandbox"), |command| {
        command.arg(what);
    });
    rig.reports().into_iter().max_by_key(|report| report.placeable().bytes)
}

#[test]
fn a_process_under_a_filter_asks_for_nothing_that_glibc_does_not_ask_for() {
    // Before anything was placed, and where the process was only counted.
    let report = sandboxed(&learning(), "filter").expect("it was made at load");
    assert_eq!(report.placed().objects, 0);
    assert_eq!(report.placed_no_more(), Some(Reason::Filtered));
    // Amid placing: what is placed stays, and is handed out again.
    let report = sandboxed(&learning(), "late").expect("it was made at load");
    assert!(report.placed().objects > 20_000);
    assert!(report.delegated(Reason::Filtered).objects > 0);
}

#[test]
fn a_filter_for_all_threads_meets_none_that_learns() {
    for _ in 0..5 {
        let report = sandboxed(&learning(), "synced").expect("it was made at load");
        assert!(report.placed().objects > 20_000, "{report:?}");
    }
}

#[test]
fn a_process_that_was_made_under_a_filter_places_nothing() {
    let rig = learning();
    let left = sandboxed(&rig, "inherited");
    // That of the process before `exec`, which had nothing to place.
    assert!(left.is_none_or(|report| report.placed().objects == 0));
}

#[test]
fn a_process_that_was_made_under_filters_of_its_own_runner_places() {
    // What tells processes what to do says so of itself.
    let rig = learning().with(|config| config.filters += 1);
    assert!(sandboxed(&rig, "plain").is_none(), "it runs under another filter");
    let rig = learning();
    assert!(sandboxed(&rig, "plain").expect("it places").placed().objects > 20_000);
}

#[test]
fn a_process_without_a_clock_goes_on() {
    let report = sandboxed(&learning(), "clock").expect("it was made at load");
    assert!(report.placed().objects > 20_000);
    assert!(report.delegated(Reason::Filtered).objects > 0);
}

#[test]
fn a_process_in_strict_mode_goes_on() {
    let report = sandboxed(&learning(), "strict").expect("it was made at load");
    assert!(report.placed().objects > 50_000);
}

#[test]
fn a_process_whose_address_space_is_limited_has_it_for_itself() {
    let rig = learning();
    rig.same(program("limits"), |command| _ = command.args(["space", "2000000000"]));
    assert!(rig.largest().placed().objects > 20_000);
}

#[test]
fn a_process_that_wants_all_memory_present_has_no_tables_present_that_it_does_not_use() {
    let rig = learning();
    let output = rig.same(program("limits"), |command| _ = command.args(["lock", ""]));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(["little\n", "refused\n"].contains(&&*text), "{text}");
}

#[test]
fn an_atlas_that_is_cut_short_while_a_process_places_does_no_harm() {
    let rig = learning();
    let atlas = rig.config.atlas;
    let atlas = std::ffi::OsStr::from_bytes(atlas.as_bytes());
    let output = rig.command(program("limits")).arg("cut").arg(atlas).output().expect("it runs");
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(output.stdout, b"ok\n");
    assert!(rig.largest().placed().objects > 20_000);
}
