//! One run of a program: by itself, watched by `isochrone advise -- CMD`, or under levers by `isochrone advise --try`.
//! The command of this build does the latter two, as a user would have it do them.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use isochrone_console::partner;
use isochrone_console::run::ended::{alone, ended};
use isochrone_console::run::usage::{self, Measured, Usage};
use isochrone_console::written::scratch;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::programs::{SET, Workshop};
use crate::bench::budget::Stop;
use crate::bench::setting::Setting;

/// What all programs are run with.
pub(super) struct Field {
    scratch: tempfile::TempDir,
    /// The command, and what tells it of which build it has to be.
    advise: Vec<OsString>,
    atlas: PathBuf,
    cores: Vec<u16>,
    stop: Stop,
}

/// What is said of a lever, as a watched run writes it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Bound {
    pub(super) lever: String,
    pub(super) says: String,
    pub(super) at_most: Option<f64>,
    pub(super) about: Option<f64>,
    pub(super) why: String,
}

/// What a watched run wrote.
#[derive(Debug, Deserialize)]
struct Figures {
    seen: Seen,
    levers: Vec<Bound>,
}

#[derive(Debug, Deserialize)]
struct Seen {
    seconds: f64,
    spent: Spent,
}

#[derive(Debug, Deserialize)]
struct Spent {
    user_s: f64,
    system_s: f64,
}

/// What a program took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    pub(super) seconds: f64,
    /// Of processors, in it and in the kernel for it.
    pub(super) processor_s: f64,
}

/// What came of a watched run.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) took: Took,
    /// What the command took before it began and when it had ended.
    pub(super) around_s: f64,
    pub(super) bounds: Vec<Bound>,
}

/// A ratio as a trial writes it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct TriedRatio {
    pub(super) median: f64,
    pub(super) lo: f64,
    pub(super) hi: f64,
    pub(super) blocks: usize,
}

/// A lever as a trial writes it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) ratio: Option<TriedRatio>,
    pub(super) control: Option<TriedRatio>,
    pub(super) why: Option<String>,
}

/// What a trial wrote.
#[derive(Debug, Deserialize)]
struct Trial {
    levers: Vec<Tried>,
}

impl Field {
    pub(super) fn new(setting: &mut Setting<'_>) -> Result<Self> {
        let scratch = scratch()?;
        let command = partner::command()?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let mut advise: Vec<OsString> = words.map(OsString::from).collect();
        advise.push("advise".into());
        let atlas = setting.atlas(scratch.path())?.path;
        let cores = setting.cores(usize::MAX)?.iter().map(|core| core.0).collect();
        Ok(Self { scratch, advise, atlas, cores, stop: setting.stop() })
    }

    /// Where programs are made ready.
    pub(super) fn workshop(&self) -> Workshop<'_> {
        Workshop { scratch: self.scratch.path(), stop: &self.stop }
    }

    /// The program by itself: what it took.
    pub(super) fn plain(&self, program: &[OsString]) -> Result<Took> {
        let (usage, said) = self.once(program.to_vec())?;
        ensure!(usage.code == 0, "it ended with {}: {said}", usage.code);
        Ok(Took { seconds: usage.seconds, processor_s: usage.user_s + usage.system_s })
    }

    /// The same watched.
    pub(super) fn watched(&self, program: &[OsString]) -> Result<Watched> {
        let (usage, said, figures) = self.advised::<Figures>(&[], program)?;
        ensure!(usage.code == 0, "watched, it ended with {}: {said}", usage.code);
        let Figures { seen, levers } = figures?;
        let took =
            Took { seconds: seen.seconds, processor_s: seen.spent.user_s + seen.spent.system_s };
        Ok(Watched { took, around_s: usage.seconds - seen.seconds, bounds: levers })
    }

    /// The same under each of these levers, as long as that.
    pub(super) fn tried(
        &self,
        levers: &[&str],
        time: Duration,
        seed: u64,
        program: &[OsString],
    ) -> Result<Vec<Tried>> {
        let (budget, seed) = (format!("{:.3}s", time.as_secs_f64()), seed.to_string());
        let only = levers.join(",");
        let words = ["--try", "--only", &only, "--budget", &budget, "--seed", &seed];
        let (_, _, trial) = self.advised::<Trial>(&words, program)?;
        Ok(trial?.levers)
    }

    /// `advise` with these words, and what it wrote or why there is nothing.
    fn advised<T: DeserializeOwned>(
        &self,
        words: &[&str],
        program: &[OsString],
    ) -> Result<(Usage, String, Result<T>)> {
        let out = self.scratch.path().join("advised.json");
        let _ = std::fs::remove_file(&out);
        let mut command = self.advise.clone();
        command.extend(words.iter().map(OsString::from));
        command.extend([
            "--json".into(),
            out.clone().into(),
            "--atlas".into(),
            self.atlas.clone().into(),
        ]);
        command.push("--".into());
        command.extend_from_slice(program);
        let (usage, said) = self.once(command)?;
        let read = || -> Result<T> { Ok(serde_json::from_slice(&std::fs::read(&out)?)?) };
        let found = read().with_context(|| said.clone());
        Ok((usage, said, found))
    }

    /// Runs a command where nobody looks at it: what it took, and the last line that it complained of.
    fn once(&self, command: Vec<OsString>) -> Result<(Usage, String)> {
        let folder = self.scratch.path();
        let (out, said) = (folder.join("usage.json"), folder.join("said.txt"));
        let _ = std::fs::remove_file(&out);
        let fixed = SET.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        // Records of what is run here are none of the user's.
        let own = ["XDG_CACHE_HOME", "TMPDIR"].map(|name| (name.into(), folder.as_os_str().into()));
        let measured = Measured {
            set: fixed.chain(own).collect(),
            blind: true,
            command,
            ..Measured::default()
        };
        let mut process = measured.command(&out, Some(&self.cores), None)?;
        process
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said)?);
        let status = ended(&mut alone(&mut process).spawn()?, &|| self.stop.is_set())?;
        status.context("it was ended before its time")?;
        let said = last_line(&said);
        Ok((usage::read(&out).with_context(|| said.clone())?, said))
    }
}

/// The last line of a file.
fn last_line(file: &Path) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.unwrap_or("no reason given").to_owned()
}
