//! The library over other allocators than glibc's, which are preloaded behind it: what is not placed is theirs.

use std::process::Command;

use crate::support::{Rig, installed, program, shared_library};

/// Allocators by the names of their libraries.
const BELOW: [&str; 3] = ["libmimalloc.so.2", "libjemalloc.so.2", "libtcmalloc_minimal.so.4"];
/// One whose locks a child may find taken, by threads that it does not have. Of 75 runs of the test on an emulated
/// AArch64 two hung; the one that was looked at had no library of ours and waited for a lock of gperftools 2.10.
const NOT_FOR_CHILDREN_OF_THREADS: &str = "libtcmalloc_minimal.so.4";

#[test]
fn what_is_not_placed_is_the_next_allocators() {
    let plain = Command::new(program("below")).output().expect("it runs");
    let glibcs = String::from_utf8_lossy(&plain.stdout).into_owned();
    for name in BELOW {
        let Some(below) = shared_library(name) else { continue };
        let rig = Rig::new();
        // Both print how long large objects are, which each allocator decides in its own way.
        let output = rig.same_over(Some(&below), program("below"), |_| ());
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_ne!(printed, glibcs, "{name} was not used");
        // Beside other work a process begins to place later, and is over before it has placed most.
        let report = rig.largest();
        assert!(report.placed().objects > 1000, "{name}: {report:?}");
    }
}

#[test]
fn programs_do_over_other_allocators_what_they_do_without() {
    for name in BELOW {
        let Some(below) = shared_library(name) else { continue };
        if name != NOT_FOR_CHILDREN_OF_THREADS {
            Rig::new().same_over(Some(&below), program("children"), |command| {
                command.args(["threads", "3", "40000"]);
            });
        }
        let Some(perl) = installed("perl") else { continue };
        let rig = Rig::new();
        rig.same_over(Some(&below), perl, |command| {
            let script =
                "my %h; $h{$_ * 7919 % 10007} .= qq(x$_) for 1..60000; print scalar(%h), qq(\\n)";
            command.args(["-e", script]);
        });
        assert!(rig.largest().placed().objects > 1000, "{name}");
    }
}

#[test]
fn without_a_record_everything_is_the_next_allocators() {
    let Some(below) = shared_library(BELOW[0]) else { return };
    let alone = Command::new(program("below")).env("LD_PRELOAD", &below).output().expect("it runs");
    let rig = Rig::new();
    let both = format!("{}:{}", crate::support::library().display(), below.display());
    let transparent =
        Command::new(program("below")).env("LD_PRELOAD", both).output().expect("it runs");
    assert_eq!(alone.stdout, transparent.stdout);
    assert!(transparent.status.success() && rig.reports().is_empty());
}
