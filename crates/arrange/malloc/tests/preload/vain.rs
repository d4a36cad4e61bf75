//! Where nothing can be gained the library places nothing, leaves everything to glibc for good, and says so in what
//! the process leaves.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use isochrone_atlas_store::contents::{Base, Form, LevelMap};
use isochrone_malloc::{Reason, Report};

use crate::atlas::{atlas, level};
use crate::support::{Rig, program};

/// An atlas of no machine that there is: in the last-level cache one line of eight is a hundred times
/// farther than the others. No core ever has its base.
pub(crate) fn strange_atlas() -> Vec<u8> {
    let pattern = (0..64).map(|line| if line % 8 == 0 { 4000.0 } else { 40.0 }).collect();
    atlas(LevelMap {
        form: Form::Pattern,
        canonical_key: (0..64).map(|key| key % 8).collect(),
        bases: vec![Base { core: 0, patterns: vec![pattern], rounds: 1 }],
        probe_lines: (0..8).collect(),
        code_share: (0..64).map(|key| if key < 8 { 0.125 } else { 0.0 }).collect(),
        ..level("llc", 40.0)
    })
}

/// Runs the program that watches who gives it memory, until its time is over or placing has ended for good.
///
/// It is told of that end by its closed input: memory comes from glibc before, too.
fn run(rig: &Rig, arguments: &[&str]) -> Output {
    run_until_over(rig, "vain", arguments)
}

/// The same for another program.
fn run_until_over(rig: &Rig, name: &'static str, arguments: &[&str]) -> Output {
    let mut command = rig.command(program(name));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let input = child.stdin.take();
    let has_ended = || rig.seen().iter().any(|report| report.placed_no_more().is_some());
    while child.try_wait().expect("a child").is_none() && !has_ended() {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(input);
    child.wait_with_output().expect("it ends")
}

/// What the program printed, and what it left.
fn watched(rig: &Rig, arguments: &[&str]) -> (String, Report) {
    let output = run(rig, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {text} {said}", output.status);
    assert_eq!(said, "", "the library says nothing in another's process");
    (text, rig.largest())
}

/// No base was recognised, nothing was placed, and nothing is kept of what was learnt from.
fn recognised_nothing(report: &Report) {
    match report.placed_no_more() {
        Some(Reason::UnknownBase) => {}
        // What a restless machine may say: few pages could be decided at all, and some have a code by chance.
        Some(Reason::TooSparse) => assert!(report.classified_pages() < 64, "{report:?}"),
        _ => panic!("{report:?}"),
    }
    assert_eq!((report.placed().objects, report.arena_bytes()), (0, 0), "{report:?}");
    assert!(report.delegated(Reason::Learning).objects > 0, "{report:?}");
    assert!(report.slices().0 > 0, "{report:?}");
}

/// A rig with an atlas whose bases no core has.
pub(crate) fn strange() -> Rig {
    judged(Rig::of_atlas(&strange_atlas()))
}

/// It is worth learning from a few KiB on, and placing ends where nothing is gained.
fn judged(rig: Rig) -> Rig {
    rig.with(|config| (config.policy.l2_bytes, config.force) = (1 << 20, false))
}

#[test]
fn without_a_base_placing_ends_for_good() {
    for threads in ["0", "3"] {
        // It ends with processor time, not with that of the wall: others may have the cores meanwhile.
        let (text, report) = watched(&strange(), &["240", threads]);
        assert_eq!(text, "glibc, 1 task\n", "{report:?}");
        recognised_nothing(&report);
        // A byte for 16 of the arena, and eight for a page; links, masks and owners are gone.
        assert!(report.table_bytes() < (1 << 30) / 10, "{}", report.table_bytes());
    }
}

#[test]
fn who_uses_little_memory_again_and_again_learns_nothing() {
    let rig = strange();
    let output = rig.command(program("again")).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    let report = rig.largest();
    // It asks for some 100 MB, and is left alone after 16.
    assert_eq!(report.placed_no_more(), Some(Reason::StaysSmall));
    let counted = report.delegated(Reason::BeforeStart).objects;
    assert!((300_000..600_000).contains(&counted), "{report:?}");
    assert_eq!((report.slices().0, report.arena_bytes(), report.table_bytes()), (0, 0, 0));
}

#[test]
fn who_forces_it_places_without_a_base() {
    let (text, report) = watched(&strange().with(|config| config.force = true), &["4", "0"]);
    assert!(text.starts_with("placed"), "{text}");
    assert_eq!(report.placed_no_more(), None);
}

#[test]
fn where_all_lines_are_alike_placing_ends_at_once() {
    let (text, report) = watched(&judged(Rig::new()), &["240", "2"]);
    assert_eq!(text, "glibc, 1 task\n", "{report:?}");
    assert_eq!(report.placed_no_more(), Some(Reason::NoGain));
    assert_eq!((report.placed().objects, report.slices().0), (0, 0), "there is nothing to learn");
}

#[test]
fn who_forces_it_places_where_all_lines_are_alike() {
    let rig = judged(Rig::new()).with(|config| config.force = true);
    let (text, report) = watched(&rig, &["4", "0"]);
    assert!(text.starts_with("placed"), "{text}");
    assert_eq!(report.placed_no_more(), None);
}

#[test]
fn a_child_of_a_process_that_learns_ends_as_that_would() {
    let rig = strange();
    let output = run(&rig, &["240", "0", "child"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "glibc, 1 task\n");
    let reports = rig.reports();
    assert!(reports.iter().all(|report| report.placed().objects == 0), "{reports:?}");
    reports.iter().filter(|report| report.inherited_bytes() > 0).for_each(recognised_nothing);
    assert_eq!(reports.len(), 2, "{reports:?}");
}

/// The number that a program printed.
fn kib(output: &Output) -> u64 {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

#[test]
fn a_process_that_places_no_more_has_as_much_memory_as_without_the_library() {
    let mut plain = Command::new(program("memory"));
    let plain = kib(&plain.stdin(Stdio::null()).output().expect("it runs"));
    let rig = judged(Rig::new());
    let aside = kib(&run_until_over(&rig, "memory", &[]));
    assert_eq!(rig.largest().placed_no_more(), Some(Reason::NoGain));
    assert!(plain > 200 << 10, "{plain}");
    assert!(aside * 50 <= plain * 51, "{aside} KiB, {plain} without the library");
}

/// Learning ends though no small object is asked for any more, and leaves little of what it had present: not its stack,
/// tables or pages, nor the library's own code.
#[test]
fn who_only_changes_a_large_object_steps_aside_too_and_keeps_little_of_what_was_learnt_with() {
    // Tables of the atlas's 64 cores are 1200 of them, and stay. Where nothing more is given back it is 2000 and more.
    const MORE_KIB: u64 = 1800;
    let mut plain = Command::new(program("settles"));
    let plain = kib(&plain.stdin(Stdio::null()).output().expect("it runs"));
    let rig = strange();
    let aside = kib(&run_until_over(&rig, "settles", &[]));
    recognised_nothing(&rig.largest());
    assert!(aside <= plain + MORE_KIB, "{aside} KiB, {plain} without the library");
}

/// Its own code goes back at load, at the beginning and at the end of learning, but not what a debugger has written.
// Emulated processes of the other architecture are not traced.
#[cfg(target_arch = "x86_64")]
#[test]
fn breakpoints_in_the_library_stay_where_it_is_loaded_under_a_debugger() {
    let rig = strange();
    let settles = program("settles");
    let output = run_until_over(&rig, "traced", &[settles.to_str().expect("text")]);
    assert!(output.status.success(), "{output:?}");
    recognised_nothing(&rig.largest());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pages = text.lines().last().and_then(|line| line.split_once(" of "));
    let (left, written) = pages.unwrap_or_else(|| panic!("{text}"));
    assert!(left == written && written != "0", "{text}");
}

/// What lies in more than one second-level cache and less than two may gain, as it did on a processor whose atlas
/// promised so. Where nothing is promised, learning would have more present than the program.
#[test]
fn memory_of_less_than_two_caches_is_learnt_where_a_gain_is_promised() {
    for promised in [true, false] {
        let rig = strange().with(|config| {
            (config.policy.l2_bytes, config.promised) = (2 << 20, promised);
        });
        // 60,000 objects of 48 bytes.
        let output = rig.command(program("settles")).stdin(Stdio::null()).output();
        assert!(output.expect("it runs").status.success());
        let report = rig.largest();
        assert_eq!(report.slices().0 > 0, promised, "{report:?}");
    }
}
