//! Puts the experiments in order and their results into one atlas. An experiment that cannot be
//! done is named in one line, and the rest goes on.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Clock, Contents, Fingerprint, Provenance};
use isochrone_console::args::CoreList;
use isochrone_console::output::WrongUsage;
use isochrone_host::{
    Reach, SysRoot, fingerprint, machine_state, reach, this_machine, total_memory_bytes,
};
use isochrone_machine::Machine;
use isochrone_os::clock::thread_cpu_ns;
use isochrone_probe::awake::Awake;
use isochrone_probe::live::{LiveOptions, LiveTarget, usable_cores};
use isochrone_probe::target::Target;
use isochrone_report::fmt;
use isochrone_survey::{LiveGround, Memory, Run, Schedule, Size, Wishes};
use isochrone_units::{CoreId, Reading};

use super::timed::Timed;
use crate::args::MapArgs;
use isochrone_console::progress::Progress;

/// A second-level cache where the system does not say: the largest that is common.
const L2_BYTES: usize = 2 << 20;

/// What is measured, and who is told what there is so far.
pub(super) struct Order<'a> {
    pub(super) args: &'a MapArgs,
    pub(super) schedule: Schedule,
    pub(super) seed: u64,
    /// Is told how large all is, and until when it goes, before anything is measured.
    pub(super) plan: &'a mut dyn FnMut(&Size, &Schedule),
    /// Gets what there is after each experiment.
    pub(super) keep: &'a mut dyn FnMut(&Contents),
}

/// Measures everything that was asked for.
pub(super) fn measure(order: Order<'_>, progress: &mut Progress) -> Result<Contents> {
    use isochrone_probe::watch::Watch as _;
    let Order { args, schedule, seed, plan, keep } = order;
    let root = SysRoot::live();
    let mut machine = this_machine(&root).context("this machine cannot be described")?;
    let state = machine_state(&root);
    let reach = reach(&machine, &state);
    let limits = [total_memory_bytes(&root), state.memory_max_bytes];
    let (wishes, total_bytes) = (wishes(args), limits.into_iter().flatten().min());
    let memory = Memory::of(&wishes, total_bytes);
    let options = live_options(args, &memory, &machine)?;
    let cores = usable_cores(&options.cores)?;
    machine.cores.retain(|core| cores.contains(&CoreId(core.id)));
    let mut size = Size::of(&wishes, &machine, &cores, total_bytes);
    size.regions = reach.regions.len().max(1);
    if let Some(total) = total_bytes.filter(|_| schedule.experiments.contains(&Experiment::Region))
    {
        fits(wishes.buffer, size.regions, total)?;
    }
    let schedule = size.bounded(schedule);
    plan(&size, &schedule);
    progress.expect(size.estimates_s(&schedule));
    let begin = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    progress.step("mapping memory");
    progress.end_at(schedule.memory_ends().map(|time| begin + time));
    let target = LiveTarget::new_while(&options, &mut || progress.keep_going())
        .context("memory cannot be measured here")?;
    // Where the system refuses to pin there are fewer.
    let cores = target.cores().to_vec();
    machine.cores.retain(|core| cores.contains(&CoreId(core.id)));
    let _awake = args.awake.then(|| Awake::start(&cores));
    let calibration = target.calibration();
    let clock = Clock {
        hz: calibration.hz,
        tick_cycles: calibration.tick,
        overhead_cycles: calibration.overhead,
    };
    let (words, hash) = fingerprint(&machine, &state);
    let mut contents = Contents {
        state: Some(state),
        fingerprint: Fingerprint { words, hash },
        pages_keyed_by: target.frames_are().into(),
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").into(),
            seed,
            started_unix_s: started.as_secs(),
            options: words_of(args),
            missing: missing(args, &machine, &reach)
                .chain(target.missing().iter().cloned())
                .chain(memory.note)
                .collect(),
            ..Provenance::default()
        },
        ..Contents::begun(Reading::Measured, machine, clock)
    };
    let planned_s = Cell::new(0.0);
    let run = Run { wishes, schedule, seed, cores, reach, clock, total_bytes, cpu_s, planned_s };
    let mut ground = LiveGround::new(target, begin);
    isochrone_survey::all(&run, &mut ground, &mut contents, &mut Timed { progress, begin }, keep);
    contents.complete = !progress.is_interrupted();
    contents.provenance.seconds = begin.elapsed().as_secs_f64();
    contents.drift.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    Ok(contents)
}

/// Whether memory of so many bytes holds a buffer in each region.
///
/// # Errors
/// [`WrongUsage`], where it cannot.
fn fits(buffer: u64, regions: usize, total: u64) -> Result<()> {
    if buffer.saturating_mul(regions as u64) <= total {
        return Ok(());
    }
    Err(WrongUsage::error(format!(
        "--buffer {}: so much in each region ({regions} here) is more than the memory, {}; ask for less",
        fmt::bytes(buffer),
        fmt::bytes(total)
    )))
}

/// What is not known of the machine, and which cores are not measured though nobody chose others.
fn missing<'a>(
    args: &MapArgs,
    machine: &'a Machine,
    reach: &'a Reach,
) -> impl Iterator<Item = String> {
    let unknown = machine.unknown.iter().map(|what| format!("unknown: {what}"));
    let cores = if args.cores.is_none() { &reach.cores_left_out[..] } else { &[] };
    unknown.chain(cores.iter().cloned())
}

/// Seconds of processor time of this thread.
fn cpu_s() -> f64 {
    Duration::from_nanos(thread_cpu_ns()).as_secs_f64()
}

/// How much of everything is asked for.
fn wishes(args: &MapArgs) -> Wishes {
    Wishes { quick: args.quick, memory: args.memory, buffer: args.buffer }
}

fn live_options(args: &MapArgs, memory: &Memory, machine: &Machine) -> Result<LiveOptions> {
    let cores = args.cores.as_ref().map_or(Ok(Vec::new()), CoreList::usable)?;
    let first = machine.cores.first().map_or(0, |core| core.id);
    let l2 = machine.cache(CoreId(first), 2).and_then(|cache| cache.bytes);
    Ok(LiveOptions {
        bytes: usize::try_from(memory.bytes).context("so much memory cannot be addressed here")?,
        huge: !args.small_pages,
        evict: args.evict,
        cores,
        l2_bytes: l2.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(L2_BYTES),
    })
}

/// The options that shape the numbers, as words for the record.
fn words_of(args: &MapArgs) -> Vec<String> {
    let flags = [
        (args.quick, "--quick"),
        (args.evict, "--evict"),
        (args.small_pages, "--small-pages"),
        (args.awake, "--awake"),
    ];
    let mut words: Vec<String> =
        flags.iter().filter(|(set, _)| *set).map(|(_, word)| (*word).into()).collect();
    words.extend(args.budget.map(|time| format!("--budget {}s", time.as_secs_f64())));
    words.extend(args.memory.map(|bytes| format!("--memory {bytes}")));
    words.push(format!("--buffer {}", args.buffer));
    words.extend(args.cores.as_ref().map(|list| format!("--cores {list}")));
    words.extend(args.only.iter().map(|experiment| format!("--only {}", experiment.name())));
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn memory(line: &str, total: Option<u64>) -> Memory {
        let words = ["isochrone", "map"].into_iter().chain(line.split_whitespace());
        match Cli::parse_from(words).command {
            Command::Map(args) => Memory::of(&wishes(&args), total),
            other => panic!("{other:?} is not map"),
        }
    }

    #[test]
    fn buffers_that_memory_cannot_hold_are_refused() {
        let total = 8 << 30;
        assert!(fits(1 << 30, 8, total).is_ok() && fits(u64::MAX, 2, total).is_err());
        let refused = fits(1 << 30, 9, total).unwrap_err();
        let words = refused.to_string();
        assert!(words.contains("--buffer 1 GiB") && words.contains("8 GiB"), "{words}");
        assert!(refused.is::<WrongUsage>(), "the command line asks for what cannot be");
    }

    #[test]
    fn memory_that_is_capped_is_said() {
        let all = Some(8 << 30);
        for (line, bytes) in [
            ("", 1 << 30),
            ("--quick", 64 << 20),
            ("--memory 1.5G", 3 << 29),
            ("--memory 2G", 2 << 30),
        ] {
            let found = memory(line, all);
            assert_eq!((found.bytes, found.note), (bytes, None), "{line}");
        }
        let most = memory("--memory 3G", all);
        assert_eq!(most.bytes, 2 << 30);
        let note = most.note.unwrap_or_default();
        assert!(note.contains("--memory") && note.contains("a quarter"), "{note}");
        let least = memory("--memory 1k", all);
        assert_eq!(least.bytes, 4 << 20);
        assert!(least.note.is_some_and(|note| note.contains("the least")));
        assert_eq!(memory("--memory 1T", None).bytes, 1 << 40);
    }
}
