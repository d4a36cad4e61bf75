//! The gate, step by step; each step is a command that a developer can run alone.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Name, program, arguments, extra environment.
type Step =
    (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const STEPS: &[Step] = &[
    ("format", "cargo", &["fmt", "--all", "--check"], &[]),
    (
        "lints",
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        &[],
    ),
    ("build", "cargo", &["build", "--release", "--locked"], &[]),
    ("tests", "cargo", &["test", "--workspace", "--locked"], &[]),
    (
        "docs",
        "cargo",
        &["doc", "--workspace", "--no-deps", "--locked"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    ),
];

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    super::tidy::run(root)?;
    for (name, program, arguments, environment) in STEPS {
        let begin = Instant::now();
        say(&format!("== {name}: {program} {}", arguments.join(" ")));
        let status = Command::new(program)
            .args(*arguments)
            .envs(environment.iter().copied())
            .current_dir(root)
            .status()
            .with_context(|| format!("{program} cannot be started"))?;
        if !status.success() {
            bail!("{name} failed ({status}); run `{program} {}` alone", arguments.join(" "));
        }
        say(&format!("== {name}: passed in {:.0} s", begin.elapsed().as_secs_f64()));
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the gate's log is its output")]
fn say(line: &str) {
    println!("{line}");
}
