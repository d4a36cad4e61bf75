//! Real programs with and without `libisochrone_malloc.so`: the same output and exit status, and at
//! least nine tenths of the bytes that could be placed were placed, since otherwise a run proves
//! nothing. What is not installed is named and skipped.
//!
//! Each program runs plainly, with the library stepped aside, and with placing forced; with `--blocks` these take
//! turns and are timed, with a control. It needs `target/release/isochrone`, the library beside it (`cargo preload`)
//! and an atlas.

mod options;
mod programs;
mod run;
mod timing;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::ci::say;
use options::Options;
use programs::Case;
pub(crate) use programs::is_installed;
use run::{Arm, Ran};
use timing::Timed;

/// The share of placeable bytes that must be placed.
const LEAST_SHARE: f64 = 0.9;
/// Of it, what came while the base of the core was known.
const LEAST_KNOWN: f64 = 0.5;
/// The reason of what came while it was not.
const UNKNOWN_BASE: &str = "unknown_base";
/// A process counts as one that was placed at all from so many placeable bytes: below it the first
/// MiB, for which nothing is placed, is more than the tenth that may be left.
const LARGE_BYTES: f64 = (12 << 20) as f64;

/// What all programs need to be run at all.
#[cfg(test)]
pub(crate) fn needed() -> std::collections::BTreeSet<&'static str> {
    programs::all(Path::new("/")).iter().flat_map(Case::needs).copied().collect()
}

/// Runs all programs, or those that are named.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::read(root, words)?;
    let scratch = tempfile::tempdir()?;
    let mut records = Vec::new();
    let mut failed = Vec::new();
    for case in programs::all(root).iter().filter(|case| options.wants(case.name)) {
        if let Some(missing) = case.missing() {
            say(&format!("{:<22} skipped: {missing} is not installed", case.name));
            continue;
        }
        let record = match compare(case, &options, scratch.path()) {
            Ok(record) => record,
            Err(error) => json!({ "name": case.name, "failed": format!("{error:#}") }),
        };
        say(&words_of(&record));
        if !record["failed"].is_null() {
            failed.push(case.name);
        }
        records.push(record);
        // What is measured is not lost with what comes after it.
        if let Some(path) = &options.json {
            fs::write(path, serde_json::to_string_pretty(&records)? + "\n")?;
        }
    }
    scratch.close()?;
    ensure!(failed.is_empty(), "these did not behave as without: {}", failed.join(", "));
    Ok(())
}

/// A program without the library, with it stepped aside, and with placing forced.
fn compare(case: &Case, options: &Options, scratch: &Path) -> Result<Value> {
    let mut once = |arm| run::once(case, arm, options, scratch);
    let direct = once(Arm::Plain)?;
    let aside = once(Arm::Aside)?;
    let under = once(Arm::Forced)?;
    let placed = Placed::of(&under.report);
    let calls = under.report["malloc_calls_per_s"].as_f64();
    let seconds = |ran: &Ran| ran.usage.map(|usage| usage.seconds);
    let mut record = json!({
        "name": case.name,
        "notes": direct.notes,
        "options": case.options,
        "code": under.code,
        "lines_compared": under.out.lines().count(),
        "malloc_calls_per_s": calls,
        "placeable_mib": placed.placeable / f64::from(1 << 20),
        "placed_share": placed.share(),
        "placed_share_of_large_processes": placed.large_share(),
        "processes": placed.processes,
        "large_processes": placed.large_processes,
        "stepped_aside_processes": Placed::of(&aside.report).ended,
        "threads": placed.threads,
        "left_to_the_next_mib": placed.left,
        "startup_us_max": placed.startup_us,
        "seconds": [seconds(&direct), seconds(&aside), seconds(&under)],
    });
    let found = verdict(case, &direct, &under)
        .and_then(|()| verdict(case, &direct, &aside).context("stepped aside"))
        .and_then(|()| was_loaded(&under).and(was_loaded(&aside)))
        .and_then(|()| if case.must_place { placed.is_enough() } else { Ok(()) });
    if let Err(error) = found {
        record["failed"] = json!(format!("{error:#}"));
        return Ok(record);
    }
    if options.blocks > 0 {
        let timed: Timed = timing::measure(options.blocks, &mut once)?;
        let line = timing::line(case.name, calls, placed.share(), &timed);
        record["timed"] = serde_json::to_value(timed)?;
        say(timing::HEAD);
        say(&line);
    }
    Ok(record)
}

/// Whether both did the same, and enough that something was compared.
fn verdict(case: &Case, direct: &Ran, under: &Ran) -> Result<()> {
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
    Ok(())
}

/// Whether anything ran under the library but who measures it, which is a process too.
fn was_loaded(ran: &Ran) -> Result<()> {
    let processes = ran.report["processes"].as_array().map_or(0, Vec::len);
    ensure!(processes > 1, "no process of the program was under the library");
    Ok(())
}

/// Sums over the processes of a run.
#[derive(Debug, Default)]
struct Placed {
    placed: f64,
    placeable: f64,
    large: [f64; 2],
    processes: usize,
    large_processes: usize,
    /// Processes that left everything to the next allocator for good.
    ended: usize,
    threads: u64,
    startup_us: f64,
    /// MiB that large processes left to the next allocator, by reason.
    left: BTreeMap<String, f64>,
}

impl Placed {
    fn of(record: &Value) -> Self {
        let mut sums = Self::default();
        for process in record["processes"].as_array().into_iter().flatten() {
            let bytes = |name: &str| process[name]["bytes"].as_f64().unwrap_or(0.0);
            let (placed, placeable) = (bytes("placed"), bytes("placeable"));
            sums.processes += 1;
            sums.ended += usize::from(process["placed_no_more"].is_string());
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

    /// Whether most of what could be placed was. While the host has the cores where nobody knows their lines, nothing
    /// can be: that is the machine's doing, as long as it is not most of the time.
    fn is_enough(&self) -> Result<()> {
        let [placed, placeable] = self.large;
        ensure!(placeable > 0.0, "no process placed anything");
        let unknown = self.left.get(UNKNOWN_BASE).map_or(0.0, |mib| mib * f64::from(1 << 20));
        let known = placeable - unknown;
        ensure!(
            known >= LEAST_KNOWN * placeable && placed >= LEAST_SHARE * known,
            "only {:.3} of what could be placed was; the next allocator got, in MiB, {:.1?}",
            placed / placeable,
            self.left
        );
        Ok(())
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

    #[test]
    fn what_came_while_the_base_was_not_known_is_not_missed_unless_it_is_most() {
        let enough = |placed_mib: u64, reason: &str, left_mib: u64| {
            let bytes = |mib: u64| json!({ "bytes": mib << 20 });
            let left = json!([{ "reason": reason, "bytes": left_mib << 20 }]);
            let process =
                json!({ "placed": bytes(placed_mib), "placeable": bytes(100), "delegated": left });
            Placed::of(&json!({ "processes": [process] })).is_enough().is_ok()
        };
        assert!(enough(84, UNKNOWN_BASE, 15) && !enough(84, "arena_full", 15));
        assert!(!enough(70, UNKNOWN_BASE, 15), "of what was known a tenth may be left");
        assert!(!enough(40, UNKNOWN_BASE, 60), "most of it was not known");
    }
}
