//! The command of a step, and what it says.

use std::io::{BufRead, BufReader, Read, pipe};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::count::Tests;
use super::say::say;
use super::steps::Step;
use super::watch::{self, Mark, Process};

/// A test binary that says nothing for so long waits for something that does not come. The longest
/// quiet test takes a fifth of it.
const SILENCE: Duration = Duration::from_secs(480);

/// What has ended may have left others who hold its output; nobody waits for them longer.
const AFTER: Duration = Duration::from_secs(5);

/// How often a step is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Runs a step's command with `more` words, hands its output on and counts the tests in it.
/// Errors: it cannot be started, or does not end within the step's limit.
pub(super) fn run_and_count(
    root: &Path,
    step: &Step,
    more: &[String],
    tests: &mut Tests,
) -> Result<ExitStatus> {
    let Step { program, arguments, environment, .. } = step;
    let mut command = Command::new(program);
    command
        .args(*arguments)
        .args(more)
        // Nobody builds upon what the gate has built: what is kept for that takes a tenth of a cold build.
        .env("CARGO_INCREMENTAL", "0")
        .envs(environment.iter().copied())
        .current_dir(root);
    to_its_end(command, step, tests)
}

/// Runs `command` for `step`. Whatever it leaves running is named and ended.
pub(super) fn to_its_end(
    mut command: Command,
    step: &Step,
    tests: &mut Tests,
) -> Result<ExitStatus> {
    let mark = Mark::new();
    mark.put_on(&mut command);
    let (output, to) = pipe().context("no pipe for what it says")?;
    if tests.kept.is_some() {
        command.stderr(to.try_clone().context("no pipe for what it says")?);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(to)
        .spawn()
        .with_context(|| format!("{:?} cannot be started", command.get_program()))?;
    // It holds the pipe open.
    drop(command);
    let lines = lines_of(output);
    let limit = Duration::from_secs(60 * step.minutes);
    let outcome = listen(&mut child, &lines, &mark, step, limit, tests);
    end("left running by this step, and ended:", &mark.processes());
    outcome
}

/// Lines as they come, read by a thread that lives as long as somebody holds the other end.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
        for line in lines {
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    from
}

fn listen(
    child: &mut Child,
    lines: &Receiver<String>,
    mark: &Mark,
    step: &Step,
    limit: Duration,
    tests: &mut Tests,
) -> Result<ExitStatus> {
    let begin = Instant::now();
    let mut heard = begin;
    let mut ended = None;
    loop {
        let next = lines.recv_timeout(LOOK);
        if let Ok(line) = next {
            heard = Instant::now();
            tests.count(&line);
            tests.say(&line);
            continue;
        }
        if let Some(status) = child.try_wait()? {
            let since = ended.get_or_insert_with(Instant::now).elapsed();
            if next == Err(RecvTimeoutError::Disconnected) || since > AFTER {
                return Ok(status);
            }
        }
        if next == Err(RecvTimeoutError::Disconnected) {
            std::thread::sleep(LOOK);
        }
        if begin.elapsed() > limit {
            end("did not end:", &mark.processes());
            child.wait()?;
            bail!("{} did not end within {} min", step.name, limit.as_secs() / 60);
        }
        if heard.elapsed() > SILENCE {
            heard = Instant::now();
            end_stuck(&mark.processes(), tests);
        }
    }
}

/// Ends what a test waits for. A test binary that had to be ended is remembered.
fn end_stuck(processes: &[Process], tests: &mut Tests) {
    let stuck: Vec<Process> = watch::stuck(processes).into_iter().cloned().collect();
    if !stuck.is_empty() {
        say(&format!("running for over a minute: {}", tests.running.join(", ")));
    }
    end("nothing was said for 8 min; ended:", &stuck);
    tests.ended.extend(stuck.into_iter().filter(Process::is_test_binary));
}

fn end(why: &str, processes: &[Process]) {
    if !processes.is_empty() {
        say(&format!("== {why}"));
    }
    for process in processes {
        say(&process.line());
        process.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(script: &'static [&'static str], seconds: u64) -> (Result<ExitStatus>, Tests) {
        let step = Step { name: "a step", program: "sh", arguments: script, ..Step::CARGO };
        let mut tests = Tests::default();
        let mark = Mark::new();
        let mut command = Command::new("sh");
        mark.put_on(command.args(script).stdout(Stdio::piped()));
        let mut child = command.spawn().expect("a shell");
        let lines = lines_of(child.stdout.take().expect("output"));
        let limit = Duration::from_secs(seconds);
        let outcome = listen(&mut child, &lines, &mark, &step, limit, &mut tests);
        end("left:", &mark.processes());
        (outcome, tests)
    }

    #[test]
    fn a_step_ends_though_somebody_holds_its_output() {
        let script = &["-c", "sleep 1000 & echo 'test result: ok. 3 passed; 0 failed'"];
        let (status, tests) = outcome(script, 600);
        assert!(status.expect("it ends").success());
        assert_eq!(tests.passed, 3);
    }

    #[test]
    fn a_step_that_does_not_end_fails_and_leaves_nothing() {
        let (status, _) = outcome(&["-c", "sleep 1000"], 0);
        let error = status.expect_err("it is ended").to_string();
        assert!(error.starts_with("a step did not end within 0 min"), "{error}");
    }

    #[test]
    fn words_that_are_no_text_are_handed_on() {
        let (status, tests) = outcome(&["-c", r"printf 'test \377 ... FAILED\n'; exit 3"], 600);
        assert_eq!(status.expect("it ends").code(), Some(3));
        assert_eq!(tests.names.len(), 1);
    }
}
