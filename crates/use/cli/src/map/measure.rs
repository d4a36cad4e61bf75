//! Puts the experiments in order and their results into one atlas. An experiment that cannot be
//! done is named in one line, and the rest goes on.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::{Clock, Contents, Fingerprint, Provenance};
use isochrone_host::{SysRoot, fingerprint, machine_state, this_machine, total_memory_bytes};
use isochrone_machine::Machine;
use isochrone_probe::awake::Awake;
use isochrone_probe::live::{LiveOptions, LiveTarget};
use isochrone_probe::target::Target;
use isochrone_units::{CoreId, Reading};

use super::experiments::{self, Run};
use crate::args::{MapArgs, parse_cores};
use crate::progress::Progress;

/// Memory whose pages are decoded unless told otherwise.
const MEMORY_BYTES: u64 = 1 << 30;
/// The same for `--quick`.
const QUICK_MEMORY_BYTES: u64 = 64 << 20;
/// A second-level cache where the system does not say: the largest that is common.
const L2_BYTES: usize = 2 << 20;

/// Measures everything that was asked for.
pub(super) fn measure(args: &MapArgs, seed: u64, progress: &mut Progress) -> Result<Contents> {
    use isochrone_probe::watch::Watch as _;
    let root = SysRoot::live();
    let mut machine = this_machine(&root).context("this machine cannot be described")?;
    let state = machine_state(&root);
    let begin = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    progress.step("mapping memory");
    let target = LiveTarget::new(&live_options(args, &machine)?)
        .context("memory cannot be measured here")?;
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
            options: options(args),
            missing: target.missing().to_vec(),
            ..Provenance::default()
        },
        ..Contents::begun(Reading::Measured, machine, clock)
    };
    let run = Run { args, seed, cores, clock, begin };
    experiments::all(&run, target, &mut contents, progress);
    contents.complete = !progress.is_interrupted();
    contents.provenance.seconds = begin.elapsed().as_secs_f64();
    contents.drift.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    Ok(contents)
}

fn live_options(args: &MapArgs, machine: &Machine) -> Result<LiveOptions> {
    let root = SysRoot::live();
    let quarter = total_memory_bytes(&root).map_or(u64::MAX, |bytes| bytes / 4);
    let default = if args.quick { QUICK_MEMORY_BYTES } else { MEMORY_BYTES };
    let bytes = args.memory.unwrap_or(default).min(quarter).max(4 << 20);
    let cores = match &args.cores {
        Some(list) => parse_cores(list).map_err(anyhow::Error::msg)?,
        None => Vec::new(),
    };
    let first = machine.cores.first().map_or(0, |core| core.id);
    let l2 = machine.cache(CoreId(first), 2).and_then(|cache| cache.bytes);
    Ok(LiveOptions {
        bytes: usize::try_from(bytes).context("so much memory cannot be addressed here")?,
        huge: !args.small_pages,
        evict: args.evict,
        cores: cores.into_iter().map(CoreId).collect(),
        l2_bytes: l2.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(L2_BYTES),
    })
}

/// The options that shape the numbers, as words for the record.
fn options(args: &MapArgs) -> Vec<String> {
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
