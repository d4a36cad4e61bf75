//! Children of `fork` place as any process does, and disturb neither their parent nor each other.

use std::process::Stdio;

use isochrone_malloc::Report;

use crate::support::{Rig, program, share_since_start};

/// Runs the program of children, which checks itself. The parent's report, and those of the others.
fn children(rig: &Rig, arguments: &[&str]) -> (Report, Vec<Report>) {
    let mut command = rig.command(program("children"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().expect("it runs");
    let parent = u64::from(running.id());
    let output = running.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {text} {complaint}", output.status);
    assert!(text.starts_with("ok, open: 0 1 2"), "{text}");
    let (mut parents, children): (Vec<_>, Vec<_>) =
        rig.reports().into_iter().partition(|report| report.process() == parent);
    assert_eq!(parents.len(), 1);
    (parents.remove(0), children)
}

/// What every process of the run must have done.
fn placed_nearly_all(report: &Report) {
    assert!(report.has_ended());
    assert!(share_since_start(report) > 0.9, "{report:?}");
}

#[test]
fn children_of_a_process_with_threads_place_what_they_make() {
    let (parent, children) = children(&Rig::new(), &["threads", "7", "40000"]);
    placed_nearly_all(&parent);
    assert_eq!(parent.inherited_bytes(), 0);
    // One may come before its parent places, where a thread is about to begin with that.
    assert!(children.iter().filter(|child| child.inherited_bytes() > 0).count() > 6);
    // Three of the seven have a child, and these one more.
    assert_eq!(children.len(), 7 + 3 + 3);
    for child in &children {
        placed_nearly_all(child);
        // Four times 40,000 objects of 103 bytes on average.
        assert!(child.placed().bytes > 12 << 20, "{:?}", child.placed());
        assert!(child.arena_bytes() > child.inherited_bytes(), "it took pages of its own");
        assert_eq!(child.threads(), 4);
    }
}

#[test]
fn no_descriptor_of_the_library_stays_open() {
    let output = Rig::new().same(program("children"), |command| {
        command.args(["threads", "1", "20000"]);
    });
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("ok, open: 0 1 2"));
}

#[test]
fn a_child_learns_its_own_pages_once_it_has_placed_enough() {
    // Every page of a flat atlas is known at once, and it is worth it from 1 KiB on.
    let begun = |config: &mut isochrone_malloc::Config| config.policy.l2_bytes = 2048;
    let (parent, all) = children(&Rig::new().with(begun), &["threads", "1", "40000"]);
    assert!(parent.classified_pages() > 0);
    assert!(all.iter().all(|child| child.classified_pages() > 0), "{all:?}");
    // Less than it takes to begin anew.
    let late = Rig::new().with(begun).with(|config| config.start_bytes = 8 << 20);
    let (parent, all) = children(&late, &["threads", "1", "500000"]);
    assert!(parent.classified_pages() > 0);
    assert!(all.iter().all(|child| child.classified_pages() > 0), "{all:?}");
}

#[test]
fn a_checking_child_finds_nothing_wrong_with_a_right_program() {
    let rig = Rig::new().with(|config| config.policy.checked = true);
    let (parent, all) = children(&rig, &["threads", "3", "10000"]);
    placed_nearly_all(&parent);
    assert!(!all.is_empty());
}

#[test]
fn children_share_what_is_left_of_a_small_arena() {
    let rig = Rig::new().with(|config| config.arena_bytes_max = 4 << 20);
    let (_, all) = children(&rig, &["threads", "3", "20000"]);
    assert!(all.iter().all(|child| child.arena_bytes() <= 4 << 20));
}

#[test]
fn a_handler_may_fork_in_the_middle_of_a_call() {
    let (parent, all) = children(&Rig::new(), &["signals", "24", "30000"]);
    assert!(parent.has_ended());
    assert_eq!(all.len(), 24);
    for child in &all {
        placed_nearly_all(child);
    }
}
