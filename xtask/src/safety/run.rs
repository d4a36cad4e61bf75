//! One run of a program: plainly, with the library stepped aside, or with placing forced; what it printed, and what it
//! took.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use nix::unistd::Uid;
use serde::Deserialize;
use serde_json::Value;

use super::options::Options;
use super::programs::{Case, Compare};

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    /// Without us.
    Plain,
    /// The same again: the control.
    Again,
    /// With the library, which finds nothing to place by and steps aside.
    Aside,
    /// With the library, which places whatever is to be gained.
    Forced,
}

impl Arm {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Aside, Self::Forced, Self::Again];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Again => "plain again",
            Self::Aside => "aside",
            Self::Forced => "forced",
        }
    }

    /// The option of `isochrone run`; nothing for who is run without.
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Again => None,
            Self::Aside => Some("--aside"),
            Self::Forced => Some("--force"),
        }
    }
}

/// What it took, as `isochrone usage` says.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct Usage {
    pub(super) seconds: f64,
    pub(super) peak_rss_bytes: Option<u64>,
}

/// What a program did.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    /// What is compared.
    pub(super) out: String,
    /// What it says that it did in a second.
    pub(super) rate: Option<f64>,
    /// What it says of itself.
    pub(super) notes: Vec<String>,
    /// Nothing where it was not run.
    pub(super) usage: Option<Usage>,
    /// The report of `isochrone run`; null without.
    pub(super) report: Value,
}

/// Runs a program in an empty folder of `scratch`.
pub(super) fn once(case: &Case, arm: Arm, options: &Options, scratch: &Path) -> Result<Ran> {
    let folder = fresh(scratch, "run")?;
    for (name, text) in &case.files {
        fs::write(folder.join(name), text)?;
    }
    let (usage, report) = (folder.join("usage.json"), folder.join("report.json"));
    let words = words(case, arm, options, &usage, &report);
    let (program, rest) = words.split_first().context("no program")?;
    let output = Command::new(program)
        .args(rest)
        .current_dir(&folder)
        .envs(case.environment.iter().copied())
        .env("MPI_LIBRARY", options.isochrone.with_file_name("libisochrone_mpi.so"))
        .envs(case.user.map(|_| ("HOME", folder.as_os_str())))
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} cannot be started"))?;
    let both = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut ran = Ran { code: output.status.code(), ..told(&both) };
    if case.compare == Compare::TestLines {
        ran.out = test_lines(&(both + &String::from_utf8_lossy(&output.stderr)));
    }
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(&usage).with_context(said)?;
    ran.usage = Some(serde_json::from_str(&text)?);
    if arm.option().is_some() {
        let text = fs::read_to_string(&report).with_context(said)?;
        ran.report = serde_json::from_str(&text)?;
    }
    Ok(ran)
}

/// The whole command line. The program is measured from within, so that what is measured is the program alone.
fn words(case: &Case, arm: Arm, options: &Options, usage: &Path, report: &Path) -> Vec<String> {
    let shown = |path: &Path| path.display().to_string();
    let isochrone = shown(&options.isochrone);
    let mut words = Vec::new();
    if let Some(user) = case.user.filter(|_| Uid::effective().is_root()) {
        words.push("setpriv".to_owned());
        words.extend([format!("--reuid={user}"), format!("--regid={user}")]);
        words.extend(["--clear-groups", "--"].map(str::to_owned));
    }
    if let Some(option) = arm.option() {
        words.extend([isochrone.clone(), "run".to_owned(), option.to_owned()]);
        if let Some(atlas) = &options.atlas {
            words.extend(["--atlas".to_owned(), shown(atlas)]);
        }
        words.extend(["--json".to_owned(), shown(report)]);
        words.extend(case.options.iter().map(|&word| word.to_owned()));
        words.push("--".to_owned());
    }
    if arm.option().is_some() {
        words.extend(["sh", "-c", MEASURED_UNDER, "sh"].map(str::to_owned));
    }
    words.extend([isochrone, "usage".to_owned(), "--out".to_owned(), shown(usage)]);
    if arm.option().is_none() {
        words.push("--".to_owned());
    }
    words.extend(case.command.iter().cloned());
    words
}

/// `isochrone usage` gives the program what it is told to, and nothing of its own: so it is told what it has. Its words
/// are this shell's: its name, `usage`, `--out`, the place, and the program.
const MEASURED_UNDER: &str = r#"us=$1; place=$4; shift 4
exec "$us" usage --out "$place" --preload "$LD_PRELOAD" --config "$ISOCHRONE_CONFIG" -- "$@""#;

/// What a program printed, and apart from it what it says of its speed and of itself.
fn told(text: &str) -> Ran {
    let mut ran = Ran::default();
    for line in text.split_inclusive('\n') {
        if let Some(rate) = line.strip_prefix("rate: ") {
            ran.rate = rate.trim().parse().ok();
        } else if let Some(note) = line.strip_prefix("note: ") {
            ran.notes.push(note.trim().to_owned());
        } else {
            ran.out.push_str(line);
        }
    }
    ran
}

/// An empty folder that other users may write into.
fn fresh(scratch: &Path, name: &str) -> Result<PathBuf> {
    let folder = scratch.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fs::set_permissions(scratch, fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
    Ok(folder)
}

/// The verdicts of Python's unittest, sorted: other lines hold times and addresses.
fn test_lines(text: &str) -> String {
    let is_verdict = |line: &&str| {
        line.ends_with("... ok")
            || line.contains("... skipped")
            || line.ends_with("... FAIL")
            || line.ends_with("... ERROR")
    };
    let mut lines: Vec<&str> = text.lines().filter(is_verdict).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_sorted_and_times_left_out() {
        let text = "test_b (x.Y) ... ok\nRan 3 tests in 1.2s\ntest_a (x.Y) ... skipped 'no'\n";
        assert_eq!(test_lines(text), "test_a (x.Y) ... skipped 'no'\ntest_b (x.Y) ... ok");
    }

    #[test]
    fn speed_and_notes_are_told_apart_from_results() {
        let ran = told("one\nrate: 12.5\nnote: malloc=libc\ntwo\n");
        assert_eq!((ran.out.as_str(), ran.rate), ("one\ntwo\n", Some(12.5)));
        assert_eq!(ran.notes, ["malloc=libc"]);
        assert_eq!(told("rate: much\n").rate, None);
    }
}
