//! The gate, step by step; each step is a command that a developer can run alone.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Name, program, arguments, extra environment.
type Step =
    (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// The preloaded library is a workspace of its own (see its manifest).
const PRELOAD: &str = "crates/arrange/preload/Cargo.toml";

const STEPS: &[Step] = &[
    ("format", "cargo", &["fmt", "--all", "--check"], &[]),
    (
        "lints",
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        &[],
    ),
    ("build", "cargo", &["build", "--release", "--locked"], &[]),
    ("preload format", "cargo", &["fmt", "--manifest-path", PRELOAD, "--check"], &[]),
    (
        "preload lints",
        "cargo",
        &[
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
        &[],
    ),
    ("preload", "cargo", &["preload", "--locked"], &[]),
    // Whoever fuzzes has a nightly compiler; that the targets fit the crates needs none.
    (
        "fuzz targets",
        "cargo",
        &["check", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target/fuzz", "--locked"],
        &[],
    ),
    ("tests", "cargo", &["test", "--workspace", "--locked"], &[]),
    (
        "loom",
        "cargo",
        &[
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
            "--release",
            "--locked",
            "--",
            "loom_tests",
        ],
        &[("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", "target/loom")],
    ),
    ("machine of 16 regions", "cargo", &["xtask", "vm"], &[]),
    (
        "docs",
        "cargo",
        &["doc", "--workspace", "--no-deps", "--locked"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    ),
];

/// Runs every step in order and stops at the first that fails. The last line counts the tests of
/// all binaries together.
pub(crate) fn run(root: &Path) -> Result<()> {
    super::tidy::run(root, std::iter::empty())?;
    let mut tests = Tests::default();
    for (name, program, arguments, environment) in STEPS {
        let begin = Instant::now();
        say(&format!("== {name}: {program} {}", arguments.join(" ")));
        let mut child = Command::new(program)
            .args(*arguments)
            .envs(environment.iter().copied())
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{program} cannot be started"))?;
        for line in BufReader::new(child.stdout.take().context("output")?).lines() {
            let line = line?;
            tests.count(&line);
            say(&line);
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("{name} failed ({status}); run `{program} {}` alone", arguments.join(" "));
        }
        say(&format!("== {name}: passed in {:.0} s", begin.elapsed().as_secs_f64()));
    }
    say(&format!("{} passed, {} failed, {} skipped", tests.passed, tests.failed, tests.ignored));
    Ok(())
}

/// Tests of all binaries so far.
#[derive(Default)]
struct Tests {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tests {
    /// Adds a closing line of a test binary: `test result: ok. 3 passed; 0 failed; ...`.
    fn count(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let number = words.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[allow(clippy::print_stdout, reason = "the gate's log is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up() {
        let mut tests = Tests::default();
        tests.count("test result: ok. 18 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        tests.count(
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        tests.count("test a_test ... ok");
        assert_eq!((tests.passed, tests.failed, tests.ignored), (20, 3, 1));
    }
}
