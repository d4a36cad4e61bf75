//! Real programs with and without `libisochrone_malloc.so`: the same output and exit status, and at
//! least nine tenths of the bytes that could be placed were placed, since otherwise a run proves
//! nothing. What is not installed is named and skipped.
//!
//! It needs `target/release/isochrone`, the library beside it (`cargo preload`) and an atlas.

mod programs;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use programs::{Case, Compare};
use serde_json::{Value, json};

use crate::ci::say;

/// The share of placeable bytes that must be placed.
const LEAST_SHARE: f64 = 0.9;
/// A process counts as one that was placed at all from so many placeable bytes: below it the first
/// MiB, for which nothing is placed, is more than the tenth that may be left.
const LARGE_BYTES: f64 = (12 << 20) as f64;

/// What the command line says.
#[derive(Debug)]
struct Options {
    isochrone: PathBuf,
    atlas: Option<PathBuf>,
    json: Option<PathBuf>,
    only: Vec<String>,
}

impl Options {
    fn read(root: &Path, mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            isochrone: root.join("target/release/isochrone"),
            atlas: None,
            json: None,
            only: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().map(PathBuf::from).context("a path is missing");
            match word.as_str() {
                "--isochrone" => options.isochrone = value()?,
                "--atlas" => options.atlas = Some(value()?),
                "--json" => options.json = Some(value()?),
                name => options.only.push(name.to_owned()),
            }
        }
        let found = options.isochrone.canonicalize();
        options.isochrone = found.with_context(|| {
            format!(
                "{} is not there: cargo build --release && cargo preload",
                options.isochrone.display()
            )
        })?;
        Ok(options)
    }
}

/// What a program did.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    seconds: f64,
}

/// Runs all programs, or those that are named.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::read(root, words)?;
    let scratch = tempfile::tempdir()?;
    let mut records = Vec::new();
    let mut failed = Vec::new();
    for case in programs::all(root) {
        if !options.only.is_empty() && !options.only.iter().any(|name| name == case.name) {
            continue;
        }
        if let Some(missing) = case.missing() {
            say(&format!("{:<22} skipped: {missing} is not installed", case.name));
            continue;
        }
        let record = match compare(&case, &options, scratch.path()) {
            Ok(record) => record,
            Err(error) => json!({ "name": case.name, "failed": format!("{error:#}") }),
        };
        say(&words_of(&record));
        if !record["failed"].is_null() {
            failed.push(case.name);
        }
        records.push(record);
    }
    scratch.close()?;
    if let Some(path) = &options.json {
        fs::write(path, serde_json::to_string_pretty(&records)? + "\n")?;
    }
    ensure!(failed.is_empty(), "these did not behave as without: {}", failed.join(", "));
    Ok(())
}

/// A program without and with the library.
fn compare(case: &Case, options: &Options, scratch: &Path) -> Result<Value> {
    let direct = case.run(&case.command[..], &fresh(scratch, "direct")?)?;
    let report = scratch.join("report.json");
    let mut words = vec![options.isochrone.display().to_string(), "run".to_owned()];
    if let Some(atlas) = &options.atlas {
        words.extend(["--atlas".to_owned(), atlas.display().to_string()]);
    }
    // What is tried is the library, whatever is to be gained here.
    words.extend(["--force", "--json"].map(str::to_owned));
    words.push(report.display().to_string());
    words.extend(case.options.iter().map(|&word| word.to_owned()));
    words.push("--".to_owned());
    words.extend(case.command.iter().cloned());
    let under = case.run(&words, &fresh(scratch, "under")?)?;
    let text = fs::read_to_string(&report).context("isochrone run left no report")?;
    let placed = Placed::of(&serde_json::from_str(&text)?);
    fs::remove_file(&report)?;
    let mut record = json!({
        "name": case.name,
        "options": case.options,
        "code": under.code,
        "lines_compared": under.out.lines().count(),
        "placeable_mib": placed.placeable / f64::from(1 << 20),
        "placed_share": placed.share(),
        "placed_share_of_large_processes": placed.large_share(),
        "processes": placed.processes,
        "large_processes": placed.large_processes,
        "threads": placed.threads,
        "left_to_glibc_mib": placed.left,
        "startup_us_max": placed.startup_us,
        "seconds": [direct.seconds, under.seconds],
    });
    if let Err(error) = verdict(case, &direct, &under, &placed) {
        record["failed"] = json!(format!("{error:#}"));
    }
    Ok(record)
}

/// Whether both did the same, and the one with the library shows that it works.
fn verdict(case: &Case, direct: &Ran, under: &Ran, placed: &Placed) -> Result<()> {
    ensure!(
        direct.code == under.code,
        "it ended with {:?}, without the library with {:?}",
        under.code,
        direct.code
    );
    if direct.out != under.out {
        let pairs = direct.out.lines().zip(under.out.lines());
        let first = pairs.into_iter().find(|(a, b)| a != b);
        bail!("its output differs, first in {first:?}");
    }
    ensure!(!direct.out.trim().is_empty(), "it printed nothing, so nothing was compared");
    ensure!(under.out.contains(case.says), "it did not get as far as to say {:?}", case.says);
    if case.must_place {
        let share = placed.large_share().context("no process placed anything")?;
        ensure!(
            share >= LEAST_SHARE,
            "only {share:.3} of what could be placed was; glibc got, in MiB, {:.1?}",
            placed.left
        );
    }
    Ok(())
}

/// An empty folder.
fn fresh(scratch: &Path, name: &str) -> Result<PathBuf> {
    let folder = scratch.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

impl Case {
    /// Runs these words in a folder, after what prepares it.
    fn run(&self, words: &[String], folder: &Path) -> Result<Ran> {
        for (name, text) in &self.files {
            fs::write(folder.join(name), text)?;
        }
        let (program, rest) = words.split_first().context("no program")?;
        let begin = Instant::now();
        let output = Command::new(program)
            .args(rest)
            .current_dir(folder)
            .envs(self.environment.iter().copied())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{program} cannot be started"))?;
        let seconds = begin.elapsed().as_secs_f64();
        let mut out = String::from_utf8_lossy(&output.stdout).into_owned();
        if self.compare == Compare::TestLines {
            out = test_lines(&(out + &String::from_utf8_lossy(&output.stderr)));
        }
        Ok(Ran { code: output.status.code(), out, seconds })
    }
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

/// Sums over the processes of a run.
#[derive(Debug, Default)]
struct Placed {
    placed: f64,
    placeable: f64,
    large: [f64; 2],
    processes: usize,
    large_processes: usize,
    threads: u64,
    startup_us: f64,
    /// MiB that large processes left to glibc, by reason.
    left: BTreeMap<String, f64>,
}

impl Placed {
    fn of(record: &Value) -> Self {
        let mut sums = Self::default();
        for process in record["processes"].as_array().into_iter().flatten() {
            let bytes = |name: &str| process[name]["bytes"].as_f64().unwrap_or(0.0);
            let (placed, placeable) = (bytes("placed"), bytes("placeable"));
            sums.processes += 1;
            sums.placed += placed;
            sums.placeable += placeable;
            if placeable >= LARGE_BYTES {
                sums.large_processes += 1;
                sums.large = [sums.large[0] + placed, sums.large[1] + placeable];
                for left in process["delegated"].as_array().into_iter().flatten() {
                    let reason = left["reason"].as_str().unwrap_or("?").to_owned();
                    let mib = left["bytes"].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
                    *sums.left.entry(reason).or_default() += mib;
                }
            }
            sums.threads += process["threads"].as_u64().unwrap_or(0);
            sums.startup_us = sums.startup_us.max(process["startup_us"].as_f64().unwrap_or(0.0));
        }
        sums
    }

    fn share(&self) -> Option<f64> {
        (self.placeable > 0.0).then(|| self.placed / self.placeable)
    }

    fn large_share(&self) -> Option<f64> {
        (self.large[1] > 0.0).then(|| self.large[0] / self.large[1])
    }
}

/// One line for people.
fn words_of(record: &Value) -> String {
    let name = record["name"].as_str().unwrap_or("?");
    let share = |field: &str| match record[field].as_f64() {
        Some(share) => format!("{:.1} %", 100.0 * share),
        None => "-".to_owned(),
    };
    let end = match record["failed"].as_str() {
        Some(why) => format!("FAILED: {why}"),
        None => "same output".to_owned(),
    };
    format!(
        "{name:<22} {end}; placed {} of {:.0} MiB in {} processes, {} of large ones",
        share("placed_share"),
        record["placeable_mib"].as_f64().unwrap_or(0.0),
        record["processes"],
        share("placed_share_of_large_processes"),
    )
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
    fn shares_are_of_bytes_and_small_processes_do_not_count_as_large() {
        let bytes = |count: u64| json!({ "bytes": count });
        let process = |placed: u64, placeable: u64| {
            let (placed, placeable) = (bytes(placed), bytes(placeable));
            json!({ "placed": placed, "placeable": placeable, "threads": 2 })
        };
        let record = json!({ "processes": [process(19 << 20, 20 << 20), process(0, 1 << 20)] });
        let placed = Placed::of(&record);
        assert_eq!((placed.processes, placed.large_processes, placed.threads), (2, 1, 4));
        assert_eq!(placed.large_share(), Some(0.95));
        assert_eq!(placed.share(), Some(19.0 / 21.0));
        assert_eq!(Placed::default().share(), None);
    }
}
