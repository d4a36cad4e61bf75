//! Where nothing can be gained the library leaves everything to glibc for good, and says so in what
//! the process leaves.

use isochrone_atlas_store::contents::{Base, Form, LevelMap};
use isochrone_malloc::{Reason, Report};

use crate::atlas::{atlas, level};
use crate::support::{Rig, program};

/// An atlas of no machine that there is: in the last-level cache one line of eight is a hundred times
/// farther than the others. No core ever has its base.
fn strange_atlas() -> Vec<u8> {
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

/// Runs the program that watches who gives it memory. What it printed, and what it left.
fn watched(rig: &Rig, arguments: &[&str]) -> (String, Report) {
    let output = rig.command(program("vain")).args(arguments).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {text} {said}", output.status);
    assert_eq!(said, "", "the library says nothing in another's process");
    (text, rig.largest())
}

/// A rig with an atlas whose bases no core has; it is worth learning from a few KiB on.
fn strange() -> Rig {
    Rig::of_atlas(&strange_atlas()).with(|config| config.policy.l2_bytes = 1 << 20)
}

#[test]
fn without_a_base_placing_ends_for_good() {
    for threads in ["0", "3"] {
        // It ends with processor time, not with that of the wall: others may have the cores meanwhile.
        let (text, report) = watched(&strange(), &["240", threads]);
        assert_eq!(text, "glibc, 1 task\n", "{report:?}");
        assert_eq!(report.placed_no_more(), Some(Reason::UnknownBase));
        assert!(report.delegated(Reason::UnknownBase).objects > 1000, "{report:?}");
        // A byte for 16 of the arena, and eight for a page; links, masks and owners are gone.
        assert!(report.table_bytes() < (1 << 30) / 10, "{}", report.table_bytes());
    }
}

#[test]
fn who_forces_it_places_without_a_base() {
    let (text, report) = watched(&strange().with(|config| config.force = true), &["4", "0"]);
    assert!(text.starts_with("placed"), "{text}");
    assert_eq!(report.placed_no_more(), None);
}

#[test]
fn where_all_lines_are_alike_there_is_nothing_to_recognise() {
    let rig = Rig::new().with(|config| config.policy.l2_bytes = 1 << 20);
    let (text, report) = watched(&rig, &["4", "0"]);
    assert!(text.starts_with("placed"), "{text}");
    assert_eq!(report.placed_no_more(), None);
}

#[test]
fn what_was_placed_before_it_ended_is_freed_once() {
    let output = strange().command(program("vain")).args(["240", "0", "twice"]).output();
    let output = output.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "free(): double free detected\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "it is lost with the process");
}
