//! One run of a program of the suite, and how two of them differ. It ends with all its processes, whatever they do.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::list::Case;
use crate::ci::Mark;

/// What `timeout` returns that had to end a run, and what a shell says of one that it killed.
const LATE: [i32; 2] = [124, 137];

/// A program with its MPI and ranks.
pub(super) struct Job<'a> {
    pub(super) mpi: &'a str,
    pub(super) folder: &'a Path,
    pub(super) case: &'a Case,
    pub(super) ranks: u32,
    pub(super) seconds: u32,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    /// None where a signal ended the launcher.
    code: Option<i32>,
    /// What was printed, without what differs by itself, in one order.
    lines: Vec<String>,
    /// Calls of all ranks that were done in lines, as they report.
    pub(super) in_lines: u64,
}

impl Job<'_> {
    /// Runs it, under the library or without.
    pub(super) fn run(&self, library: Option<&Path>) -> Result<Ran> {
        let scratch = tempfile::tempdir()?;
        let of = |name: &str| scratch.path().join(name);
        let (said, told, reports) = (of("said"), of("told"), of("reports"));
        fs::create_dir(&reports)?;
        // Every communicator from its first call on.
        let at_once = json!({
            "calls_before": 0, "costs_before": 0, "bytes_max": 1 << 20, "reports": &reports
        });
        fs::write(&told, at_once.to_string())?;
        let mut command = Command::new("timeout");
        command.args(["-k", "5", &self.seconds.to_string(), &format!("mpirun.{}", self.mpi)]);
        if self.mpi == "openmpi" {
            command.arg("--oversubscribe");
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.env("OMPI_MCA_mpi_yield_when_idle", "1");
        }
        command.args(["-n", &self.ranks.to_string()]);
        // The launcher itself is not under the library.
        command.arg("env").args(&self.case.variables);
        if let Some(library) = library {
            command.arg(format!("LD_PRELOAD={}", library.display()));
            command.arg(format!("ISOCHRONE_MPI={}", told.display()));
        }
        let (mark, out) = (Mark::new(), File::create(&said)?);
        mark.put_on(&mut command);
        let status = command
            .arg(self.folder.join(&self.case.name))
            .args(&self.case.arguments)
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .status()
            .context("timeout is part of every system");
        // Launchers leave some behind.
        mark.end_all();
        let text = String::from_utf8_lossy(&fs::read(&said)?).into_owned();
        Ok(Ran { code: status?.code(), lines: words(&text), in_lines: in_lines(&reports)? })
    }
}

/// Calls in lines, by what ranks left in this folder.
fn in_lines(reports: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(reports)? {
        // Of a rank that was ended while it wrote there is half a report, which says nothing.
        let report: Value = serde_json::from_slice(&fs::read(entry?.path())?).unwrap_or_default();
        let calls = report["calls"].as_object().into_iter().flatten();
        sum += calls.filter_map(|(_, counts)| counts["lines"].as_u64()).sum::<u64>();
    }
    Ok(sum)
}

impl Ran {
    /// Whether it had to be ended.
    pub(super) fn is_late(&self) -> bool {
        self.code.is_none_or(|code| LATE.contains(&code))
    }

    /// How another run differs, if it does.
    pub(super) fn differs(&self, other: &Self) -> Option<String> {
        if self.is_late() || other.is_late() {
            let late = |ran: &Self| if ran.is_late() { "is too late" } else { "ends in time" };
            return (self.is_late() != other.is_late())
                .then(|| format!("{} without, {} with", late(self), late(other)));
        }
        if (self.code == Some(0)) != (other.code == Some(0)) {
            let said = other.lines.first().map_or("", String::as_str);
            return Some(format!("{:?} without, {:?} with: {said}", self.code, other.code));
        }
        let of = |ran: &Self| ran.lines.iter().cloned().collect::<BTreeSet<_>>();
        let (without, with) = (of(self), of(other));
        let more = with.difference(&without).next().map(|line| format!("with alone: {line}"));
        more.or_else(|| without.difference(&with).next().map(|l| format!("without alone: {l}")))
    }
}

/// What was printed, without addresses, numbers of processes, times, and the launcher's frames.
fn words(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(masked).filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines
}

/// A line with its long numbers masked; nothing where it is of the launcher's own.
fn masked(line: &str) -> String {
    const FRAMES: [&str; 5] = ["----", "====", "mpirun", "Abort(", "ORTE_ERROR_LOG"];
    let line = line.trim();
    if FRAMES.iter().any(|frame| line.starts_with(frame) || line.contains("show_help")) {
        return String::new();
    }
    let mut out = String::new();
    let mut number = String::new();
    for letter in line.chars().chain([' ']) {
        if letter.is_ascii_hexdigit() || letter == 'x' && number == "0" {
            number.push(letter);
            continue;
        }
        let long = number.len() > 3 && number.contains(|c: char| c.is_ascii_digit());
        out.push_str(if long { "#" } else { &number });
        number.clear();
        out.push(letter);
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32, text: &str) -> Ran {
        Ran { code: Some(code), lines: words(text), in_lines: 0 }
    }

    #[test]
    fn runs_differ_by_status_and_by_words_in_any_order() {
        let one = ran(0, "No Errors\nrank 1 at 0x7ffdeadbeef0\n-----\n");
        assert_eq!(one.differs(&ran(0, "rank 1 at 0x7ff000000000\nNo Errors\n")), None);
        assert!(one.differs(&ran(0, "No Errors\nrank 2 at 0x7ff000000000")).is_some());
        assert!(one.differs(&ran(1, "No Errors\nrank 1 at 0x7ffdeadbeef0")).is_some());
        // How a launcher ends a job that failed is its own affair.
        assert_eq!(ran(1, "Found 2 errors").differs(&ran(15, "Found 2 errors")), None);
        assert_eq!(ran(124, "a").differs(&ran(137, "b")), None, "both had to be ended");
        assert!(ran(124, "").differs(&one).is_some() && one.differs(&ran(124, "")).is_some());
    }

    #[test]
    fn calls_in_lines_are_summed_over_ranks() {
        let reports = tempfile::tempdir().expect("a folder");
        let counts = |lines: u64| json!({ "lines": lines, "across": 1, "mpi": 2 });
        let report = json!({ "calls": { "bcast": counts(3), "scan": counts(4) } }).to_string();
        for (name, text) in [("1.json", report.as_str()), ("2.json", &report), ("3.json", "{\"cal")]
        {
            fs::write(reports.path().join(name), text).expect("room");
        }
        assert_eq!(in_lines(reports.path()).expect("read"), 14);
    }
}
