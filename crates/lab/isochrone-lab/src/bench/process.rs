//! Programs that are asked one question each, as a process on given cores.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::budget::Stop;
use isochrone_console::run::ended::{alone, ended};

/// A program that will run on `cores` only, as `taskset` lists them.
pub(super) fn on_cores(cores: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program);
    command
}

/// Runs a command, at most so long, and no longer than it is wanted; what it said.
pub(super) fn ask(
    command: &mut Command,
    name: &str,
    question: &str,
    limit: Duration,
    stop: &Stop,
) -> Result<String> {
    let mut child = alone(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name} cannot start (taskset is in util-linux)"))?;
    let begin = Instant::now();
    if ended(&mut child, &|| stop.is_set() || begin.elapsed() > limit)?.is_none() {
        ensure!(!stop.is_set(), "{name} was ended before its time");
        bail!("{name} took more than {} s for {question}", limit.as_secs());
    }
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "{name} failed at {question}: {}",
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no reason given")
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
