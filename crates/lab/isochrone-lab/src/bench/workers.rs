//! The processes that do the arms' work, one for each arm, asked over pipes.
//!
//! Only one works at a time: the others wait for their next line. All of them do the same work on
//! the same cores and say what they found, so an arm that did other work is found out.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use isochrone_malloc::CONFIG_VARIABLE;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::budget::Stop;
use crate::workload::NodesFrom;
use crate::workload::request::{Account, Played, Reply, Request};
use isochrone_console::progress::Bound;
use isochrone_console::run::ended::{alone, ended, kill};

/// Between two looks whether a worker is still wanted, milliseconds.
const LOOK_MS: u8 = 100;
/// Time to end after the last answer.
const FAREWELL: Duration = Duration::from_secs(5);

/// An arm that works in a process of its own.
#[derive(Clone, Debug)]
pub(crate) struct ArmSpec {
    /// Its name in tables.
    pub(crate) name: String,
    pub(crate) nodes: NodesFrom,
    /// Seed of what its pool chooses at random.
    pub(crate) seed: u64,
    /// What is preloaded into it, and what that is told.
    pub(crate) preload: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
}

/// What is the same for all arms of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) atlas: PathBuf,
    pub(crate) cores: Vec<u16>,
    pub(crate) near: f32,
    pub(crate) waste: f32,
    pub(crate) slack: Option<u64>,
    pub(crate) llc: Option<u64>,
    pub(crate) arena_limit: Option<u64>,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Worker {
    name: String,
    child: Child,
    _bound: Bound,
    ask: Option<ChildStdin>,
    hear: BufReader<ChildStdout>,
    stop: Stop,
}

impl ArmSpec {
    /// An arm whose nodes come from a pool.
    pub(crate) fn pool(name: &str, nodes: NodesFrom, seed: u64) -> Self {
        Self { name: name.to_owned(), nodes, seed, preload: None, config: None }
    }

    /// An arm with an allocator preloaded, or with glibc's.
    pub(crate) fn malloc(name: &str, preload: Option<PathBuf>, config: Option<&Path>) -> Self {
        let config = config.map(Path::to_path_buf);
        Self { name: name.to_owned(), nodes: NodesFrom::Malloc, seed: 0, preload, config }
    }
}

impl Worker {
    /// Starts one and waits until it can be asked. It is ended where `stop` says so, whatever it does.
    pub(crate) fn start(arm: &ArmSpec, common: &Common, stop: &Stop) -> Result<Self> {
        let nodes = arm.nodes.to_possible_value().context("an arm without a name")?;
        let cores: Vec<String> = common.cores.iter().map(ToString::to_string).collect();
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["workload", "--nodes", nodes.get_name()])
            .args(["--cores", &cores.join(","), "--seed", &arm.seed.to_string()])
            .args(["--near", &common.near.to_string(), "--waste", &common.waste.to_string()])
            .arg("--atlas")
            .arg(&common.atlas)
            .env_remove("LD_PRELOAD")
            .env_remove(CONFIG_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let sizes = [
            ("--slack", common.slack),
            ("--llc", common.llc),
            ("--arena-limit", common.arena_limit),
        ];
        for (name, bytes) in sizes {
            if let Some(bytes) = bytes {
                command.args([name, &bytes.to_string()]);
            }
        }
        if let Some(path) = &arm.preload {
            command.env("LD_PRELOAD", path);
        }
        if let Some(path) = &arm.config {
            command.env(CONFIG_VARIABLE, path);
        }
        let mut child =
            alone(&mut command).spawn().with_context(|| format!("{} cannot start", arm.name))?;
        let ask = child.stdin.take();
        let hear = BufReader::new(child.stdout.take().context("a worker without an output")?);
        let (name, stop, bound) = (arm.name.clone(), stop.clone(), Bound::to(&child));
        let mut worker = Self { name, child, _bound: bound, ask, hear, stop };
        let ready = worker.answer()?;
        ensure!(ready == Reply::Ready, "{} did not begin: {ready:?}", arm.name);
        Ok(worker)
    }

    fn answer(&mut self) -> Result<Reply> {
        self.wait()?;
        let mut line = String::new();
        let bytes = self.hear.read_line(&mut line)?;
        ensure!(bytes > 0, "the process of {} has ended", self.name);
        Ok(serde_json::from_str(&line)?)
    }

    /// Until it has said something, or has ended. An answer is one line, so that nothing of it is here already.
    fn wait(&mut self) -> Result<()> {
        loop {
            if self.stop.is_set() {
                kill(&self.child);
                bail!("{} was ended before its time", self.name);
            }
            let mut heard = [PollFd::new(self.hear.get_ref().as_fd(), PollFlags::POLLIN)];
            match poll(&mut heard, PollTimeout::from(LOOK_MS)) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error).context("workers cannot be waited for"),
            }
        }
    }

    fn asked(&mut self, request: &Request) -> Result<Reply> {
        let ask = self.ask.as_mut().context("a worker without an input")?;
        writeln!(ask, "{}", serde_json::to_string(request)?)
            .with_context(|| format!("the process of {} has ended", self.name))?;
        match self.answer()? {
            Reply::Failed(why) => bail!("{}: {why}", self.name),
            reply => Ok(reply),
        }
    }

    /// Lets it work.
    pub(crate) fn work(&mut self, request: &Request) -> Result<Played> {
        match self.asked(request)? {
            Reply::Played(played) => Ok(played),
            other => bail!("{} answered something else: {other:?}", self.name),
        }
    }

    /// What it holds and cost.
    pub(crate) fn account(&mut self) -> Result<Account> {
        match self.asked(&Request::Account)? {
            Reply::Account(account) => Ok(account),
            other => bail!("{} answered something else: {other:?}", self.name),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.ask = None;
        if self.stop.is_set() {
            // It has nothing to keep, and the user does not wait for one after the other.
            kill(&self.child);
            return;
        }
        // It ends when nobody asks any more, at once if it has nothing to do.
        let begin = Instant::now();
        let late = || self.stop.is_set() || begin.elapsed() > FAREWELL;
        let _ = ended(&mut self.child, &late);
    }
}

/// Finds out arms that did other work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Vec<Vec<Vec<u64>>>);

impl Findings {
    /// Notes what an arm found in its next run.
    pub(crate) fn note(&mut self, arm: usize, checksums: Vec<u64>) {
        if self.0.len() <= arm {
            self.0.resize(arm + 1, Vec::new());
        }
        self.0[arm].push(checksums);
    }

    /// Whether all arms found the same in each of their runs, as far as all have run.
    pub(crate) fn agree(&self) -> bool {
        let Some(first) = self.0.first() else { return true };
        self.0.iter().all(|runs| runs.iter().zip(first).all(|(a, b)| a == b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_that_did_other_work_is_found_out() {
        let mut findings = Findings::default();
        assert!(findings.agree());
        for run in 0..3 {
            findings.note(1, vec![run, 7]);
            findings.note(0, vec![run, 7]);
        }
        assert!(findings.agree());
        findings.note(1, vec![9, 7]);
        assert!(findings.agree(), "the other has not come so far yet");
        findings.note(0, vec![9, 8]);
        assert!(!findings.agree());
    }
}
