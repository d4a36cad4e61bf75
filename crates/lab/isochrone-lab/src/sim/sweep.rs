//! Many runs on all cores of this machine. A finished run is one line of the results file, written at once;
//! a sweep that was stopped or killed reads the file and does the rest.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use isochrone_atlas_store::refuse_planted;
use isochrone_machine::Machine;
use isochrone_papers::numa_aware::THREADS;
use isochrone_papers::numa_aware::record::{Key, Record, parse_variants};
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};
use isochrone_report::table::{Cell, Table};
use isochrone_sim::coherence::NumaSpec;
use isochrone_tasks::Regime;
use isochrone_workloads::numa::{Bench, Variant};
use serde_json::Value;

use super::{described, made};
use crate::args::SweepArgs;
use isochrone_console::output::Terminal;
use isochrone_console::progress::Interrupt;

/// Runs the command.
pub(super) fn run(args: &SweepArgs, terminal: &Terminal) -> Result<ExitCode> {
    if args.list {
        let mut table = Table::new(["variant", "what it changes"]);
        for variant in Variant::ALL {
            table.row([variant.name().into(), variant.says().into()]);
        }
        terminal.print(&table.to_terminal(terminal.columns()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (machine, spec) = described::machine(&args.machine)?;
    let keys = keys(args, &machine.name)?;
    let jobs = args.jobs.map(usize::from);
    let records = to_the_end(&machine, &spec, &keys, Some(&args.out), jobs)?;
    terminal.print(&table(&records).to_terminal(terminal.columns()))?;
    let all = records.values().all(|record| record.verified);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn keys(args: &SweepArgs, machine: &str) -> Result<Vec<Key>> {
    let or = |given: &[Bench]| if given.is_empty() { Bench::ALL.to_vec() } else { given.to_vec() };
    let regimes = match args.regime.is_empty() {
        true => vec![Regime::Dft, Regime::Di, Regime::Naft],
        false => args.regime.clone(),
    };
    let threads = if args.threads.is_empty() { THREADS.to_vec() } else { args.threads.clone() };
    let sets = match args.variant.is_empty() {
        true => vec![Vec::new()],
        false => args.variant.iter().map(|set| parse_variants(set)).collect::<Result<_>>()?,
    };
    let mut keys = Vec::new();
    for bench in or(&args.bench) {
        for regime in &regimes {
            for set in &sets {
                for threads in &threads {
                    for seed in 1..=args.seeds {
                        let key = Key::new(machine, bench, *regime, *threads);
                        let key = key.with(set).seeded(seed);
                        keys.push(Key { paper_size: args.size.is_paper(), ..key });
                    }
                }
            }
        }
    }
    Ok(keys)
}

/// As [`sweep`], with a line of progress. Who stops it ends the process: a run takes minutes, and those that are over
/// stand in the file.
pub(crate) fn to_the_end(
    machine: &Machine,
    spec: &NumaSpec,
    keys: &[Key],
    file: Option<&Path>,
    jobs: Option<usize>,
) -> Result<BTreeMap<Key, Record>> {
    Interrupt::install().ends_with(&stopped(file));
    let bar = progress(keys.len());
    let found = sweep(machine, spec, keys, file, jobs, &|done, words| {
        bar.set_position(done as u64);
        bar.set_message(words.to_owned());
    })?;
    bar.finish_and_clear();
    Ok(found)
}

/// Runs all `keys` that the results file does not have. `seen` is told how many are done, and what was begun last.
pub(crate) fn sweep(
    machine: &Machine,
    spec: &NumaSpec,
    keys: &[Key],
    file: Option<&Path>,
    jobs: Option<usize>,
    seen: &(dyn Fn(usize, &str) + Sync),
) -> Result<BTreeMap<Key, Record>> {
    let known = file.map(|file| finished(file, keys)).transpose()?.unwrap_or_default();
    let missing: Vec<&Key> = keys.iter().filter(|key| !known.contains_key(*key)).collect();
    let known = Mutex::new((known, file.map(append).transpose()?));
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(key) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            let words = key.words();
            seen(known.lock().map_or(0, |known| known.0.len()), &words);
            let record = made::make(machine, spec, key).with_context(|| words.clone())?;
            let Ok(mut known) = known.lock() else { break };
            if let Some(file) = &mut known.1 {
                // One write for a whole line: a kill leaves it out or in, and half a line is skipped.
                file.write_all((json::line(Format::SimRecord, &record)? + "\n").as_bytes())?;
            }
            known.0.insert((*key).clone(), record);
        }
        Ok(())
    };
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.unwrap_or(1)).map(|_| scope.spawn(work)).collect();
        let ended = |worker: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            worker.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a run panicked")))
        };
        workers.into_iter().try_for_each(ended)
    })?;
    let (known, _) = known.into_inner().map_err(|_| anyhow::anyhow!("a run panicked"))?;
    Ok(known)
}

/// What is said where a sweep is stopped.
fn stopped(file: Option<&Path>) -> String {
    match file {
        Some(file) => format!(
            "stopped: what is finished stands in {}, and the same command does the rest",
            file.display()
        ),
        None => "stopped: nothing is kept; with --results FILE the runs that are over would be, and the same command \
                 would do the rest"
            .to_owned(),
    }
}

fn progress(all: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
    let style = "{pos}/{len} {wide_bar} {eta} {msg}";
    bar.set_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// Those of `keys` that a results file has.
pub(crate) fn finished(path: &Path, keys: &[Key]) -> Result<BTreeMap<Key, Record>> {
    let mut known = read(path)?;
    known.retain(|key, _| keys.contains(key));
    Ok(known)
}

/// The runs that a results file has; a line that is no record, as a kill leaves one, is done again.
fn read(path: &Path) -> Result<BTreeMap<Key, Record>> {
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {}; name another file", path.display()))?;
    Ok(text.lines().filter_map(record).map(|record| (record.key.clone(), record)).collect())
}

/// The record of a line; one that says no version is of the first.
fn record(line: &str) -> Option<Record> {
    let line: Value = serde_json::from_str(line).ok()?;
    let version = line.get("format_version").map_or(Some(1), Value::as_u64)?;
    let ours = version == u64::from(Format::SimRecord.version());
    ours.then(|| serde_json::from_value(line).ok()).flatten()
}

/// Opens the results file for appending, after a whole line.
fn append(path: &Path) -> Result<File> {
    let advice = || format!("cannot write {}; name a place that can be written", path.display());
    refuse_planted(path)?;
    let half = std::fs::read(path).is_ok_and(|text| text.last().is_some_and(|end| *end != b'\n'));
    let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(advice)?;
    if half {
        file.write_all(b"\n").with_context(advice)?;
    }
    Ok(file)
}

pub(super) fn table(records: &BTreeMap<Key, Record>) -> Table {
    let mut table = Table::new([
        "benchmark",
        "regime",
        "variant",
        "threads",
        "seed",
        "s",
        "GB moved",
        "GB/s",
        "uneven",
        "mode",
        "host s",
    ])
    .keyed(5);
    for (key, record) in records {
        let number = |value: f64| Cell::number(value, fmt::significant(value, 4));
        table.row([
            key.bench.as_str().into(),
            key.regime.as_str().into(),
            key.variant.as_str().into(),
            number(f64::from(key.threads)),
            key.seed.to_string().into(),
            number(record.seconds),
            number(record.movement(None) / 1e9),
            number(record.bandwidth()),
            record.skew().map_or_else(Cell::missing, number),
            record.mode().0.to_string().into(),
            number(record.host_seconds),
        ]);
    }
    table
}
