//! Runs the program once, under a lever or none, in a process group of its own: so long as there is time, with what it
//! wrote held against the plain program's. Its output goes nowhere else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use isochrone_console::progress::{Interrupt, Progress};
use isochrone_console::run::digest::Digest;
use isochrone_console::run::ended::{alone, ended};
use isochrone_console::run::usage::{Account, Measured, read_account};
use isochrone_probe::watch::Watch as _;

use super::levers::How;
use super::stages::{CONTROL, PLAIN, Runs, Turn};

/// A lever under which the program takes so many times as long as by itself, and [`SPARE_S`] more, is ended.
const LONGEST: f64 = 10.0;
const SPARE_S: f64 = 10.0;
/// What a shell calls a program that was killed.
const KILLED: u8 = 137;

/// The program and all ways to run it.
#[derive(Debug)]
pub(super) struct Program<'a> {
    /// The program's file, and its arguments.
    pub(super) command: Vec<OsString>,
    /// How it is run under each lever, and plainly under the names of the arms without one.
    pub(super) ways: BTreeMap<String, How>,
    /// What it reads.
    pub(super) input: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) interrupt: Interrupt,
    pub(super) progress: Progress,
    /// When the whole trial is over.
    pub(super) until: Instant,
    /// When the stage is, which begins nothing that would take longer.
    pub(super) stage_until: Instant,
    /// What the plain program left first.
    pub(super) first: Option<Account>,
    /// Whether outputs are compared: not any more where the plain program's differ from one another.
    pub(super) compares: bool,
    /// Runs that were made.
    pub(super) made: usize,
}

impl Program<'_> {
    /// Whether the user wants an end.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Runs it; nothing where that was stopped.
    fn once(&mut self, lever: &str) -> Result<Option<Result<Account, String>>> {
        let how = self.ways.get(lever).cloned().unwrap_or_default();
        let out = self.scratch.join("account.json");
        let _ = std::fs::remove_file(&out);
        let mut command: Vec<OsString> = how.prefix;
        command.extend(self.command.iter().cloned());
        let measured = Measured {
            preload: how.preload,
            set: how.set,
            digest: true,
            command,
            ..Measured::default()
        };
        let mut process = measured.command(&out, how.cores.as_deref(), self.limit_s())?;
        let input = File::open(self.input)
            .with_context(|| format!("{} cannot be read", self.input.display()))?;
        process.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = alone(&mut process).spawn().context("a run cannot be started")?;
        let (interrupt, until) = (&self.interrupt, self.until);
        let ended = ended(&mut child, &|| interrupt.is_set() || Instant::now() >= until)?;
        self.made += 1;
        Ok(ended.map(|_| read_account(&out).map_err(|_| "it cannot be started".to_owned())))
    }

    /// Whole seconds after which a run is ended, once it is known what the plain program takes.
    fn limit_s(&self) -> Option<u32> {
        let plain = self.first?.usage.seconds;
        let limit = (LONGEST * plain + SPARE_S).ceil();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is above 0 and clamped"
        )]
        Some(limit.clamp(1.0, f64::from(u32::MAX)) as u32)
    }

    /// Why a run does not count, if it does not.
    fn fault(&mut self, lever: &str, account: &Account) -> Result<Option<String>> {
        let Account { usage, output } = *account;
        if let Some(limit) = self.limit_s().filter(|limit| usage.seconds >= f64::from(*limit)) {
            return Ok(Some(format!("it took more than {limit} s and was ended")));
        }
        if usage.code != 0 {
            let killed = if usage.code >= KILLED - 9 { " (ended by a signal)" } else { "" };
            return Ok(Some(format!("it ended with {}{killed}", usage.code)));
        }
        let Some(first) = self.first.and_then(|first| first.output) else { return Ok(None) };
        if !self.compares || output == Some(first) {
            return Ok(None);
        }
        if lever == PLAIN || lever == CONTROL {
            self.compares = false;
            return Ok(None);
        }
        // Perhaps the plain program writes something else now, too: a time of day, say.
        let again = self.once(PLAIN)?;
        if let Some(Ok(again)) = again
            && again.output != Some(first)
        {
            self.compares = false;
            return Ok(None);
        }
        Ok(Some(format!("its output differs: {}", differs(output, first))))
    }
}

/// In what two outputs differ.
fn differs(output: Option<Digest>, first: Digest) -> String {
    match output {
        None => "it did not end with the program".to_owned(),
        Some(output) if output.bytes == first.bytes => {
            format!("other words in {} bytes", first.bytes)
        }
        Some(output) => format!("{} bytes, and {} without", output.bytes, first.bytes),
    }
}

impl Runs for Program<'_> {
    fn run(&mut self, lever: &str) -> Result<Turn> {
        let account = match self.once(lever)? {
            None => return Ok(Turn::Over),
            Some(Err(why)) => return Ok(Turn::Fails(why)),
            Some(Ok(account)) => account,
        };
        if lever == PLAIN && self.first.is_none() {
            self.compares = account.output.is_some();
            if account.usage.code == 0 {
                self.first = Some(account);
            }
        }
        if let Some(why) = self.fault(lever, &account)? {
            return Ok(Turn::Fails(why));
        }
        Ok(Turn::Took(account.usage.seconds))
    }

    fn has_time_for(&mut self, seconds: f64) -> bool {
        let lasts = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let left = self.stage_until.min(self.until).saturating_duration_since(Instant::now());
        !self.is_interrupted() && !left.is_zero() && lasts <= left
    }

    fn begins(&mut self, words: &str) {
        self.progress.step(words);
    }
}
