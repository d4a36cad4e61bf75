//! One run of a program: as it is, limited by a control group, under another pager, or under `isochrone run`.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use isochrone_console::partner;
use serde_json::Value;

use super::super::arm::Runner;
use super::super::group::Group;
use super::super::swap::Swap;
use super::programs::{Places, Program};
use crate::bench::process::on_cores;

/// Bytes of a page of another pager: that of our largest groups.
const PAGE: u64 = 64 << 10;
/// Enters a control group, then becomes the program.
const ENTER: &str = r#"echo $$ >"$0" && exec "$@""#;

/// How a program is run.
pub(super) enum Way<'w> {
    /// As it is.
    Plain,
    /// In a group that tells what it takes, limited or not, with a swap area, or on a mapped file in a folder.
    Group { limit: Option<u64>, swap: Option<&'w Swap>, file: Option<&'w Path> },
    /// On memory of another pager's library, which limits itself.
    Library { path: &'w Path, limit: u64 },
    /// Under `isochrone run --fast-memory`.
    Paged { limit: u64, far: &'w str },
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Once {
    pub(super) seconds: f64,
    pub(super) digest: String,
    /// The most bytes that were in fast memory: of ours of large mappings alone, of a group of all.
    pub(super) fast_bytes: Option<u64>,
    /// What is compressed took, at most.
    pub(super) compressed_bytes: Option<u64>,
    /// Faults that brought something: ours, or major ones.
    pub(super) faults: Option<u64>,
}

/// The kernel ended a process of the program's, since its group was at its limit and nothing could leave.
#[derive(Debug)]
pub(super) struct Killed;

impl std::fmt::Display for Killed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the kernel killed it at the limit of its control group")
    }
}

/// Runs it once.
pub(super) fn once(
    runner: &Runner,
    places: &Places,
    program: &Program,
    file: &Path,
    way: &Way<'_>,
) -> Result<Once> {
    let group = match way {
        Way::Group { limit, .. } => Some(Group::new(*limit)?),
        _ => None,
    };
    let record = places.scratch().join("run.json");
    let before = before(way, group.as_ref(), &record)?;
    let words = places.words(program, file, before, memory(way));
    let (first, rest) = words.split_first().context("a program has words")?;
    let cores: Vec<String> = runner.cores().iter().map(ToString::to_string).collect();
    let mut command = on_cores(&cores.join(","), Path::new(first));
    command.args(rest).env("LC_ALL", "C");
    if let Way::Library { limit, .. } = way {
        command.env("UMAP_PAGESIZE", PAGE.to_string());
        command.env("UMAP_BUFSIZE", (limit / PAGE).to_string());
    }
    let (held, swap) = (Cell::new(None), swap(way));
    let look = || held.set(held.get().max(swap.and_then(Swap::held)));
    let text = match (runner.printed(&mut command, &look), &group) {
        (Err(error), Some(group)) if group.kills() > 0 => return Err(error.context(Killed)),
        (printed, _) => printed?,
    };
    let (seconds, digest) = last_line(&text)
        .with_context(|| format!("{} printed no result: {}", program.name, text.trim()))?;
    let once = Once { seconds, digest: digest.to_owned(), ..Once::default() };
    match (way, group) {
        (Way::Paged { .. }, _) => {
            let text = std::fs::read_to_string(&record).context("isochrone run left no record")?;
            paged(once, &text)
        }
        (_, Some(group)) => Ok(Once {
            fast_bytes: group.peak(),
            compressed_bytes: held.get(),
            faults: group.major_faults(),
            ..once
        }),
        _ => Ok(once),
    }
}

const fn swap<'w>(way: &Way<'w>) -> Option<&'w Swap> {
    match way {
        Way::Group { swap, .. } => *swap,
        _ => None,
    }
}

/// What a program runs under.
fn before(way: &Way<'_>, group: Option<&Group>, record: &Path) -> Result<Vec<OsString>> {
    if let Some(group) = group {
        let enter = group.folder().join("cgroup.procs");
        let words = ["sh", "-c", ENTER].map(OsString::from).into_iter();
        return Ok(words.chain([enter.into()]).collect());
    }
    let Way::Paged { limit, far } = way else { return Ok(Vec::new()) };
    let command = partner::command()?;
    let mut words = vec![command.get_program().to_owned()];
    words.extend(command.get_args().map(OsString::from));
    words.extend(["run", "--fast-memory"].map(OsString::from));
    words.extend([limit.to_string(), "--far".to_owned(), (*far).to_owned()].map(OsString::from));
    let mut json = OsString::from("--json=");
    json.push(record);
    words.extend([json, "--".into()]);
    Ok(words)
}

/// Where a program takes its memory, if it is told.
fn memory(way: &Way<'_>) -> Option<OsString> {
    let (kind, path) = match way {
        Way::Group { file: Some(folder), .. } => ("file:", *folder),
        Way::Library { path, .. } => ("library:", *path),
        _ => return None,
    };
    let mut word = OsString::from(kind);
    word.push(PathBuf::from(path));
    Some(word)
}

/// Seconds and digest, which are a program's last line.
pub(super) fn last_line(text: &str) -> Option<(f64, &str)> {
    let (seconds, digest) = text.trim_end().lines().last()?.split_once(' ')?;
    let seconds = seconds.parse().ok().filter(|s: &f64| s.is_finite() && *s > 0.0)?;
    (!digest.is_empty()).then_some((seconds, digest))
}

/// What the record of `isochrone run --json` says, of all of its processes together.
fn paged(once: Once, record: &str) -> Result<Once> {
    let record: Value =
        serde_json::from_str(record).context("reading a record of isochrone run")?;
    let why = record["untiered"].as_str().unwrap_or("its processes were refused");
    let processes = record["processes"].as_array().map_or(&[][..], Vec::as_slice);
    let tiered: Vec<&Value> = processes.iter().filter(|one| one["tiered"] == true).collect();
    ensure!(record["grade"] == "a" && tiered.len() == processes.len(), "ours ran untiered: {why}");
    ensure!(!tiered.is_empty(), "ours had no large mapping to page");
    let sum = |name: &str| tiered.iter().map(|one| one[name].as_u64()).sum::<Option<u64>>();
    Ok(Once {
        fast_bytes: sum("peak_fast_bytes"),
        compressed_bytes: sum("compressed_bytes"),
        faults: sum("faults"),
        ..once
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_the_last_line_and_nothing_else_is_one() {
        assert_eq!(last_line("a warning\n0.25 00ff\n"), Some((0.25, "00ff")));
        for text in ["", "0.25", "0.25 ", "x 00ff", "0 00ff", "NaN 00ff", "-1 00ff"] {
            assert_eq!(last_line(text), None, "{text:?}");
        }
    }

    fn record(grade: &str, processes: &str) -> String {
        format!(r#"{{"grade":"{grade}","untiered":null,"processes":[{processes}]}}"#)
    }

    #[test]
    fn a_record_is_of_all_processes_and_none_may_be_untiered() {
        let one = r#"{"tiered":true,"peak_fast_bytes":8192,"faults":3,"compressed_bytes":100}"#;
        let two = paged(Once::default(), &record("a", &format!("{one},{one}"))).unwrap();
        assert_eq!((two.fast_bytes, two.compressed_bytes), (Some(16384), Some(200)));
        assert_eq!(two.faults, Some(6));
        let file = one.replace("100", "null");
        assert_eq!(paged(Once::default(), &record("a", &file)).unwrap().compressed_bytes, None);
        let untiered = format!("{one},{}", one.replace("true", "false"));
        for (grade, processes) in [("c", ""), ("a", ""), ("c", one), ("a", &untiered)] {
            assert!(
                paged(Once::default(), &record(grade, processes)).is_err(),
                "{grade} {processes}"
            );
        }
    }
}
