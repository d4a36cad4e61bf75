//! The steps of the gate that every change must pass, in their order.

use std::path::Path;

use anyhow::Result;

use crate::schemas;

/// A command, and what is looked at when it has passed.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) program: &'static str,
    pub(super) arguments: &'static [&'static str],
    /// Variables beside those that are there.
    pub(super) environment: &'static [(&'static str, &'static str)],
    pub(super) then: fn(&Path) -> Result<()>,
    /// After so many minutes it is ended, and has failed.
    pub(super) minutes: u64,
    /// What is run once more where it fails.
    pub(super) again: Again,
    /// Steps that compute while this one mostly waits: they run one after another beside it, and what they say is said
    /// when each is over.
    pub(super) beside: &'static [Step],
}

/// What is run once more where a step fails on a machine that others use, too (see [`super::again`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Nothing,
    /// A few tests, alone.
    FewTests,
    /// All of it.
    Whole,
}

impl Step {
    /// A command of cargo's, after which nothing is looked at.
    pub(super) const CARGO: Self = Self {
        name: "",
        program: "cargo",
        arguments: &[],
        environment: &[],
        then: |_| Ok(()),
        minutes: 45,
        again: Again::Nothing,
        beside: &[],
    };

    /// The command as it is typed.
    pub(super) fn words(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| match value.contains(' ') {
            true => format!("{name}=\"{value}\""),
            false => format!("{name}={value}"),
        });
        let words = self.arguments.iter().map(|word| (*word).to_owned());
        let all = variables.chain([self.program.to_owned()]).chain(words);
        all.collect::<Vec<_>>().join(" ")
    }
}

/// The preloaded library is a workspace of its own (see its manifest).
const PRELOAD: &str = "crates/arrange/preload/Cargo.toml";

/// Tests wait for programs and clocks more than they compute. The documentation comes last: while it is built, nothing
/// else can be built in the same folder.
const BESIDE_TESTS: &[Step] = &[
    Step {
        name: "loom",
        arguments: &[
            "test",
            "-p",
            "isochrone-alloc",
            "-p",
            "isochrone-tier",
            "-p",
            "isochrone-tasks",
            "-p",
            "isochrone-cla",
            "--lib",
            "--locked",
            "--",
            "loom_tests",
        ],
        environment: &[("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", "target/loom")],
        ..Step::CARGO
    },
    Step { name: "aarch64", arguments: &["xtask", "arm"], ..Step::CARGO },
    Step {
        name: "preload lints",
        arguments: &[
            "clippy",
            "--release",
            "--manifest-path",
            PRELOAD,
            "--target-dir",
            "target",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        ..Step::CARGO
    },
    Step {
        name: "pager lints",
        arguments: &[
            "clippy",
            "--release",
            "--manifest-path",
            PRELOAD,
            "--package",
            "isochrone-pager",
            "--target-dir",
            "target",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        ..Step::CARGO
    },
    // Whoever fuzzes has a nightly compiler; that the targets fit the crates needs none.
    Step {
        name: "fuzz targets",
        arguments: &[
            "check",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--target-dir",
            "target/fuzz",
            "--locked",
        ],
        ..Step::CARGO
    },
    // Of what the tests have built. Where pip cannot bring what it takes, a line says so.
    Step {
        name: "python",
        arguments: &[
            "xtask",
            "package",
            "wheel",
            "--built",
            "target/debug",
            "--try",
            "--unless-offline",
        ],
        ..Step::CARGO
    },
    // Where pip cannot bring them, a line says so.
    Step {
        name: "MPIs of PyPI",
        arguments: &["xtask", "mpis", "--unless-offline"],
        again: Again::Whole,
        ..Step::CARGO
    },
    Step {
        name: "ReFrame of PyPI",
        arguments: &["xtask", "reframe", "--unless-offline"],
        again: Again::Whole,
        ..Step::CARGO
    },
    Step {
        name: "emulated machine of 16 regions",
        arguments: &["xtask", "vm", "--machine", "checks16"],
        again: Again::Whole,
        ..Step::CARGO
    },
    Step { name: "book", arguments: &["xtask", "book"], minutes: 15, ..Step::CARGO },
    Step {
        name: "docs",
        arguments: &["doc", "--workspace", "--no-deps", "--locked"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        ..Step::CARGO
    },
];

pub(super) const STEPS: &[Step] = &[
    Step { name: "format", arguments: &["fmt", "--all", "--check"], ..Step::CARGO },
    Step {
        name: "lints",
        arguments: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        ..Step::CARGO
    },
    Step { name: "build", arguments: &["build", "--release", "--locked"], ..Step::CARGO },
    Step {
        name: "preload format",
        arguments: &["fmt", "--all", "--manifest-path", PRELOAD, "--check"],
        ..Step::CARGO
    },
    Step { name: "preload", arguments: &["preload", "--locked"], ..Step::CARGO },
    Step {
        name: "pager",
        arguments: &["preload", "--locked", "--package", "isochrone-pager"],
        ..Step::CARGO
    },
    Step {
        name: "build of the tests",
        arguments: &["test", "--workspace", "--locked", "--no-run"],
        ..Step::CARGO
    },
    Step {
        name: "tests",
        arguments: &["test", "--workspace", "--locked", "--no-fail-fast"],
        then: schemas::all_seen,
        again: Again::FewTests,
        beside: BESIDE_TESTS,
        ..Step::CARGO
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_shown_as_it_is_typed() {
        let loom = BESIDE_TESTS.iter().find(|step| step.name == "loom").expect("a step");
        let words = loom.words();
        assert!(
            words.starts_with("RUSTFLAGS=\"--cfg loom\" CARGO_TARGET_DIR=target/loom cargo test")
        );
        assert!(words.ends_with("-- loom_tests"), "{words}");
    }
}
