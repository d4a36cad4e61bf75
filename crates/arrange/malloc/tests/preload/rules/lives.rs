//! Rule 8: threads and libraries that come and go, ends of threads and of processes, other roots, other rights.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use super::{held, succeeds};
use crate::support::{rule, rule_library, static_rule};

/// Stands for any user but the one who runs the tests.
const NOBODY: u32 = 65_534;

#[test]
fn rule_8_a_thousand_threads_are_there_at_once() {
    succeeds("lives", &["threads", "1000"], 500_000);
}

#[test]
fn rule_8_libraries_come_and_go() {
    let library = rule_library("comes-and-goes", &[]);
    succeeds("lives", &["library", library.to_str().expect("text")], 100_000);
}

#[test]
fn rule_8_ends_of_threads_and_of_the_process_allocate_and_free() {
    succeeds("lives", &["destructors"], 100_000);
}

#[test]
#[allow(clippy::print_stderr, reason = "a test says why it was skipped")]
fn rule_8_a_process_may_have_another_root() {
    let empty = tempfile::tempdir().expect("a folder");
    let folder = empty.path().to_str().expect("text");
    if chown(empty.path(), Some(NOBODY), None).is_err() {
        return eprintln!("skipped: only root has another root");
    }
    // It places from before on, or there is no atlas for it any more.
    succeeds("lives", &["root", folder, "100000"], 100_000);
    succeeds("lives", &["root", folder, "0"], 0);
}

/// Linux loads no library of a user into a program that has other rights than that user.
#[test]
#[allow(clippy::print_stderr, reason = "a test says why it was skipped")]
fn rule_8_a_program_with_rights_of_its_own_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("lives");
    std::fs::copy(rule("lives"), &copy).expect("writable");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("ours");
    if chown(&copy, Some(NOBODY), None).is_err() {
        return eprintln!("skipped: only root can give a program away");
    }
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o4755)).expect("ours");
    let plain = Command::new(&copy).arg("secure").output().expect("it runs");
    if !plain.stdout.starts_with(b"secure") {
        return eprintln!("skipped: programs have no rights of their own on that file system");
    }
    held(&copy, |command| _ = command.arg("secure"), |_, _, report| assert!(report.is_none()));
}

/// It loads no library, whatever is preloaded, so that all ways are one. (`isochrone run` refuses it in words.)
#[test]
fn rule_8_a_static_program_is_left_alone() {
    let program = static_rule("atlas");
    held(
        &program,
        |_| {},
        |way, [plain, placed], report| {
            assert!(plain.status.success(), "{}: {plain:?}", way.name);
            assert_eq!((placed, report.is_none()), (plain, true), "{}", way.name);
        },
    );
}
