//! Unit tests for AArch64 under qemu-user, which runs single programs on the kernel that is here.
//!
//! Only crates that time nothing are listed. What the emulator lacks is left out by name, each with its reason, which
//! is printed: nothing is skipped in silence. Memory is ordered as the host orders it, so no test of order means
//! anything here.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::super::ci::say;

/// Crates whose unit tests are run.
const CRATES: &[&str] = &[
    "isochrone-units",
    "isochrone-machine",
    "isochrone-stats",
    "isochrone-atlas",
    "isochrone-distance",
    "isochrone-host",
    "isochrone-places",
    "isochrone-malloc",
    "isochrone-tasks",
    "isochrone-tier",
    "isochrone-alloc",
    "isochrone-atlas-store",
    "isochrone-report",
    "isochrone-view",
    "isochrone-cla",
];

/// Those whose tests are run one after another: the emulator gives a mapping the lowest addresses that are free, and
/// so to one test those that what another one holds would grow into.
const ONE_BY_ONE: &[&str] = &["isochrone-os"];

/// Tests that are left out: their names, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "area::private::tests::a_child_knows_that_it_is_one",
        "advice that a child has zeros (MADV_WIPEONFORK) is swallowed",
    ),
    (
        "area::private::tests::a_part_is_opened_emptied_and_closed",
        "advice to give memory back (MADV_DONTNEED) is swallowed",
    ),
    (
        "thread::tests::a_thread_apart_works_and_leaves_our_descriptors_alone",
        "a thread that shares memory alone (clone without CLONE_FILES) is refused",
    ),
    (
        "frames::tests::pages_have_frames_of_their_own_for_root_and_none_for_others",
        "advice to populate memory (MADV_POPULATE_WRITE) is swallowed",
    ),
    (
        "mapping::tests::memory_is_aligned_zeroed_present_and_as_long_as_asked",
        "advice to populate memory is swallowed",
    ),
    (
        "mapping::tests::what_is_not_wanted_any_more_is_left_out",
        "advice to populate memory is swallowed",
    ),
    (
        "mapping::tests::a_dropped_mapping_is_gone",
        "/proc/self/smaps has the emulator's own mappings too",
    ),
    (
        "mapping::tests::what_is_said_of_huge_pages_is_what_the_kernel_says",
        "/proc/self/smaps says nothing of huge pages",
    ),
    (
        "process::tests::threads_are_counted_and_keep_from_forking",
        "/proc/self/status counts the emulator's threads too",
    ),
    (
        "space::tests::pages_come_when_they_are_touched_and_go_when_released",
        "there is no move_pages",
    ),
    ("space::tests::parts_outside_are_refused", "there is no mbind"),
    ("userfault::tests::an_unknown_feature_is_refused_with_advice", "there is no userfaultfd"),
    (
        "live::sort::tests::collectives_are_right_on_chosen_lines_and_it_is_too_late_after_the_first",
        "round trips are timed, and the emulated counter goes by 16 ns",
    ),
];

/// Runs them all, with crates built once.
pub(super) fn test(root: &Path) -> Result<()> {
    if Command::new("qemu-aarch64-static").arg("--version").output().is_err() {
        say("aarch64: no test was run: install the package qemu-user-static");
        return Ok(());
    }
    for (test, why) in LEFT_OUT {
        say(&format!("aarch64: left out: {test}: {why}"));
    }
    let together = of(root, CRATES, &[]);
    of(root, ONE_BY_ONE, &["--test-threads=1"])?;
    together
}

/// The tests of these crates, all of them even where one fails.
fn of(root: &Path, crates: &[&str], how: &[&str]) -> Result<()> {
    let mut words = vec!["test", "--lib", "--locked", "--no-fail-fast"];
    words.extend(crates.iter().flat_map(|name| ["-p", name]));
    words.extend(["--", "--exact"]);
    words.extend(how);
    words.extend(LEFT_OUT.iter().flat_map(|(test, _)| ["--skip", test]));
    super::cross::cargo(root, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every source of every crate.
    fn sources(folder: &Path, all: &mut String) {
        for entry in folder.read_dir().expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|end| end == "rs") {
                all.push_str(&std::fs::read_to_string(&path).expect("a source"));
            }
        }
    }

    #[test]
    fn what_is_left_out_exists_and_has_a_reason() {
        let mut all = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates"), &mut all);
        for (test, why) in LEFT_OUT {
            let name = test.rsplit("::").next().unwrap_or(test);
            assert!(all.contains(&format!("fn {name}(")), "{test}");
            assert!(why.len() > 10, "{test}");
        }
    }
}
