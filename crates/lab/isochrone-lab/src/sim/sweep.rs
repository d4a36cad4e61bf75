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
use isochrone_machine::Machine;
use isochrone_papers::numa_aware::THREADS;
use isochrone_papers::numa_aware::record::{Key, Record, parse_variants};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_sim::coherence::NumaSpec;
use isochrone_tasks::Regime;
use isochrone_workloads::numa::{Bench, Variant};

use super::made;
use crate::args::SweepArgs;
use crate::output::Terminal;
use crate::progress::Interrupt;

/// What the shell sees when a sweep was interrupted and its results kept.
const INTERRUPTED: u8 = 3;

/// Runs the command.
pub(super) fn run(args: &SweepArgs, terminal: &Terminal) -> Result<ExitCode> {
    if args.list {
        let mut table = Table::new(["variant", "what it changes"]);
        for variant in Variant::ALL {
            table.row([variant.name().into(), variant.says().into()]);
        }
        let width = u16::try_from(terminal.width).unwrap_or(80);
        terminal.print(&table.to_terminal(width))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (machine, spec) = super::machine(&args.machine)?;
    let keys = keys(args, &machine.name)?;
    let jobs = args.jobs.map(usize::from);
    let Some(records) = sweep(&machine, &spec, &keys, Some(&args.out), jobs)? else {
        terminal.complain(&format!(
            "stopped; what is finished stands in {}, and the same command does the rest",
            args.out.display()
        ));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    terminal.print(&table(&records, terminal))?;
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

/// Runs all `keys` that the results file does not have. `None` if it was stopped.
pub(crate) fn sweep(
    machine: &Machine,
    spec: &NumaSpec,
    keys: &[Key],
    file: Option<&Path>,
    jobs: Option<usize>,
) -> Result<Option<BTreeMap<Key, Record>>> {
    let mut known = file.map(read).transpose()?.unwrap_or_default();
    known.retain(|key, _| keys.contains(key));
    let missing: Vec<&Key> = keys.iter().filter(|key| !known.contains_key(*key)).collect();
    let interrupt = Interrupt::install();
    let bar = progress(keys.len(), known.len());
    let known = Mutex::new((known, file.map(append).transpose()?));
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(key) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            if interrupt.is_set() {
                break;
            }
            bar.set_message(key.words());
            let record = made::make(machine, spec, key).with_context(|| key.words())?;
            let Ok(mut known) = known.lock() else { break };
            if let Some(file) = &mut known.1 {
                // One write for a whole line: a kill leaves it out or in, and half a line is skipped.
                file.write_all((serde_json::to_string(&record)? + "\n").as_bytes())?;
            }
            known.0.insert((*key).clone(), record);
            bar.inc(1);
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
    bar.finish_and_clear();
    let (known, _) = known.into_inner().map_err(|_| anyhow::anyhow!("a run panicked"))?;
    Ok((!interrupt.is_set() || known.len() == keys.len()).then_some(known))
}

fn progress(all: usize, done: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
    let style = "{pos}/{len} {wide_bar} {eta} {msg}";
    bar.set_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.set_position(done as u64);
    bar
}

/// The runs that a results file has; a line that is no record, as a kill leaves one, is done again.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<Key, Record>> {
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {}; name another file", path.display()))?;
    let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
    Ok(records.map(|record| (record.key.clone(), record)).collect())
}

/// Opens the results file for appending, after a whole line.
fn append(path: &Path) -> Result<File> {
    let advice = || format!("cannot write {}; name a place that can be written", path.display());
    let half = std::fs::read(path).is_ok_and(|text| text.last().is_some_and(|end| *end != b'\n'));
    let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(advice)?;
    if half {
        file.write_all(b"\n").with_context(advice)?;
    }
    Ok(file)
}

fn table(records: &BTreeMap<Key, Record>, terminal: &Terminal) -> String {
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
    ]);
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
    table.to_terminal(u16::try_from(terminal.width).unwrap_or(80))
}
