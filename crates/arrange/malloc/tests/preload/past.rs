//! From when nothing is placed any more, calls of a program go past the library: the words through which it calls lead
//! to the next allocator, where the dynamic linker has not made them read-only.

use std::ffi::OsStr;

use isochrone_malloc::Reason;

use crate::support::{Rig, program, program_bound_at_start, shared_library};
use crate::vain::strange;

/// Lines that the program prints.
fn lines(rig: &Rig, program: impl AsRef<OsStr>, words: &[&str]) -> Vec<String> {
    let output = rig.command(program).args(words).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{} {said}", output.status);
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

const OURS: &str =
    "malloc libisochrone_malloc.so, free libisochrone_malloc.so, realloc libisochrone_malloc.so";
const THEIRS: &str = "malloc libc.so.6, free libc.so.6, realloc libc.so.6";

/// What is asked for until a program of which so little is in use is left alone, and a fifth of it.
const ENOUGH: &str = "20000000";
const LITTLE: &str = "4000000";

#[test]
fn who_has_little_in_use_is_left_alone_and_its_child_is_not_until_it_has_asked_for_as_much() {
    let rig = strange();
    let counted = lines(&rig, program("past"), &[LITTLE]);
    assert_eq!(counted, [format!("it: {OURS}")], "so much may still grow");
    assert_eq!(rig.largest().placed_no_more(), None);
    let told = lines(&rig, program("past"), &[ENOUGH, ENOUGH]);
    let wanted = [
        format!("it: {THEIRS}"),
        format!("child at first: {OURS}"),
        format!("child: {THEIRS}"),
        format!("it again: {THEIRS}"),
    ];
    assert_eq!(told, wanted);
    let ends: Vec<_> = rig.reports().iter().map(isochrone_malloc::Report::placed_no_more).collect();
    assert_eq!(ends, [Some(Reason::StaysSmall); 2]);
}

#[test]
fn a_child_places_though_its_parent_was_left_alone() {
    let rig = strange().with(|config| config.policy.l2_bytes = 1 << 20);
    // The parent has next to nothing, and so learns nothing; the child is asked again by what it has itself.
    let told = lines(&rig, program("past"), &[ENOUGH, LITTLE]);
    assert_eq!(told[2], format!("child: {OURS}"), "{told:?}");
}

#[test]
fn words_that_may_not_be_written_stay() {
    let rig = strange();
    let told = lines(&rig, program_bound_at_start("past"), &[ENOUGH]);
    assert_eq!(told, [format!("it: {OURS}")]);
    assert_eq!(rig.largest().placed_no_more(), Some(Reason::StaysSmall));
}

#[test]
fn what_lies_between_is_passed_and_not_what_lies_below() {
    let Some(below) = shared_library("libmimalloc.so.2") else { return };
    let rig = strange();
    let output = rig.command_over(Some(&below), program("past")).arg(ENOUGH).output();
    let output = output.expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(told.matches("libmimalloc").count(), 3, "{told}");
}

#[test]
fn who_places_is_called_as_before() {
    let rig = Rig::new().with(|config| config.force = true);
    let told = lines(&rig, program("past"), &[ENOUGH, "0", "1"]);
    assert_eq!(told, [format!("it: {OURS}")]);
    assert!(rig.largest().placed().objects > 100_000);
}
