//! The steps that take longer than a change can wait for: they are run before a piece of work is called done.
//!
//! Tests that are ignored run here, but for those that `LEFT_OUT` names with its reason. Of the emulated machines the
//! usual gate has run one already.

use super::sizes;
use super::steps::Step;

/// Ignored tests that no step runs, and why.
#[cfg(test)]
const LEFT_OUT: &[(&str, &str)] = &[
    ("how_long_choices_take", "prints times, and checks nothing"),
    ("what_is_chosen_on_many_machines", "prints choices, and checks nothing"),
    ("three_ranks", "meets loom's limit of branches; shuttle runs more ranks in the usual gate"),
    ("child_process", "what the children of other tests do"),
    ("chooser", "what the child of another test does"),
    ("held_out_pages_say_it_in_400_runs", "half an hour; four runs are in the usual gate"),
    ("loads_a_page_by_what_is_known_before", "prints figures, and checks nothing"),
    ("what_many_cores_cost", "prints figures, and checks nothing"),
    ("write_corpus", "writes stored files anew, where a format was changed on purpose"),
    ("write_newest_corpus", "writes stored files anew, where a format was changed on purpose"),
];

pub(super) const STEPS: &[Step] = &[
    // Built of the profile that is shipped, and each tried where nothing else is.
    Step {
        name: "packages",
        minutes: 120,
        arguments: &["xtask", "package", "tarball", "deb", "wheel", "static", "--try"],
        then: sizes::hold,
        ..Step::CARGO
    },
    Step {
        name: "longer tests",
        arguments: &[
            "test",
            "--release",
            "--locked",
            "-p",
            "isochrone-sim",
            "-p",
            "isochrone-tasks",
            "-p",
            "isochrone-malloc",
            "--",
            "--ignored",
        ],
        ..Step::CARGO
    },
    Step {
        name: "loom, longer",
        arguments: &[
            "test",
            "-p",
            "isochrone-cla",
            "--lib",
            "--release",
            "--locked",
            "--",
            "--ignored",
            "nobody_who_sleeps_for_two_is_forgotten",
        ],
        // Without a bound it did not end within sixteen minutes of processor time.
        environment: &[
            ("RUSTFLAGS", "--cfg loom"),
            ("CARGO_TARGET_DIR", "target/loom"),
            ("LOOM_MAX_PREEMPTIONS", "3"),
        ],
        ..Step::CARGO
    },
    Step {
        name: "shuttle",
        arguments: &[
            "test",
            "-p",
            "isochrone-tasks",
            "--lib",
            "--release",
            "--locked",
            "--",
            "shuttle_tests",
        ],
        environment: &[("RUSTFLAGS", "--cfg shuttle"), ("CARGO_TARGET_DIR", "target/shuttle")],
        ..Step::CARGO
    },
    Step {
        name: "other cases of property tests",
        arguments: &["test", "--workspace", "--lib", "--locked"],
        environment: &[("PROPTEST_RNG_SEED", "2027"), ("PROPTEST_CASES", "2048")],
        ..Step::CARGO
    },
    Step {
        name: "all emulated machines",
        arguments: &[
            "xtask",
            "vm",
            "--machine",
            "cpuset,memoryless,offline,nosys,regions16,cores64",
        ],
        ..Step::CARGO
    },
    Step {
        name: "aarch64 under qemu-user",
        minutes: 120,
        arguments: &["xtask", "arm", "--full"],
        ..Step::CARGO
    },
    Step {
        name: "emulated machines of aarch64",
        arguments: &["xtask", "vm", "--arch", "aarch64"],
        ..Step::CARGO
    },
    Step {
        name: "emulated machines of aarch64 with pages of 16 KiB",
        arguments: &["xtask", "vm", "--arch", "aarch64-16k", "--machine", "regions2"],
        ..Step::CARGO
    },
    Step { name: "real programs", arguments: &["xtask", "safety"], ..Step::CARGO },
    // Needs `rustup toolchain install nightly`, as what follows does.
    Step {
        name: "allocator under AddressSanitizer",
        arguments: &[
            "+nightly",
            "test",
            "-p",
            "isochrone-malloc",
            "--test",
            "operations",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--target-dir",
            "target/asan",
            "--",
            "--include-ignored",
        ],
        environment: &[("RUSTFLAGS", "-Zsanitizer=address --cfg asan")],
        ..Step::CARGO
    },
    // Processes are forked there, and left out.
    Step {
        name: "tasks under AddressSanitizer",
        arguments: &[
            "+nightly",
            "test",
            "-p",
            "isochrone-tasks",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--target-dir",
            "target/asan",
            "--lib",
            "--test",
            "live",
            "--test",
            "serial",
            "--test=simulated",
        ],
        environment: &[("RUSTFLAGS", "-Zsanitizer=address")],
        ..Step::CARGO
    },
    // Needs `cargo install cargo-fuzz`.
    Step { name: "fuzz", arguments: &["xtask", "fuzz"], ..Step::CARGO },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    /// Sources with ignored tests, each with their names.
    fn ignored(folder: &Path, found: &mut Vec<(PathBuf, Vec<String>)>) {
        for entry in folder.read_dir().expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                ignored(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                let names: Vec<String> = text
                    .split("#[ignore = ")
                    .skip(1)
                    .filter_map(|rest| {
                        rest.split_once("\n")?.1.split_once("fn ")?.1.split_once('(')
                    })
                    .map(|(name, _)| name.to_owned())
                    .collect();
                found.push((path, names));
            }
        }
    }

    /// Whether a step runs the ignored tests of this file, or this one.
    fn runs(file: &Path, test: &str) -> bool {
        let manifest =
            file.ancestors().map(|folder| folder.join("Cargo.toml")).find(|m| m.exists());
        let text = std::fs::read_to_string(manifest.expect("a crate")).expect("a manifest");
        let package = text.lines().find_map(|line| line.strip_prefix("name = ")).expect("a name");
        let of_package = |step: &&Step| {
            step.arguments.iter().any(|word| *word == package.trim_matches('"'))
                && step.arguments.iter().any(|word| word.ends_with("ignored"))
        };
        STEPS.iter().filter(of_package).any(|step| {
            let last = step.arguments.last().copied().unwrap_or_default();
            last.starts_with("--") || test == last
        })
    }

    #[test]
    fn every_ignored_test_is_run_by_a_step_or_left_out_with_a_reason() {
        let mut files = Vec::new();
        ignored(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates"), &mut files);
        let mut seen = Vec::new();
        for (file, names) in &files {
            for name in names {
                let left_out = LEFT_OUT.iter().any(|(test, _)| test == name);
                assert!(left_out != runs(file, name), "{name} of {}", file.display());
                seen.push(name.as_str());
            }
        }
        assert!(LEFT_OUT.iter().all(|(test, _)| seen.contains(test)), "{seen:?}");
        assert!(seen.len() >= 12, "{seen:?}");
    }
}
