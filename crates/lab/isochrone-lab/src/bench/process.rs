//! Programs that are asked one question each, as a process on given cores.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How often one looks whether a process is over.
const LOOK: Duration = Duration::from_millis(2);

/// A program that will run on `cores` only, as `taskset` lists them.
pub(super) fn on_cores(cores: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program);
    command
}

/// Runs a command, at most so long; what it said.
pub(super) fn ask(
    command: &mut Command,
    name: &str,
    question: &str,
    limit: Duration,
) -> Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name} cannot start (taskset is in util-linux)"))?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            bail!("{name} took more than {} s for {question}", limit.as_secs());
        }
        std::thread::sleep(LOOK);
    }
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "{name} failed at {question}: {}",
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no reason given")
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
