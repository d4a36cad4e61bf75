//! The command of a step, and what it says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use super::count::Tests;
use super::steps::Step;

/// Runs a step's command with `more` words, hands its output on and counts the tests in it.
pub(super) fn run_and_count(
    root: &Path,
    step: &Step,
    more: &[String],
    tests: &mut Tests,
) -> Result<ExitStatus> {
    let Step { program, arguments, environment, .. } = step;
    let mut child = Command::new(program)
        .args(*arguments)
        .args(more)
        // Nobody builds upon what the gate has built: what is kept for that takes a tenth of a cold build.
        .env("CARGO_INCREMENTAL", "0")
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
    Ok(child.wait()?)
}

#[allow(clippy::print_stdout, reason = "the gate's log is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
