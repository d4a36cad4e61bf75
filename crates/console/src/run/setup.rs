//! From the options and the atlas to the record that the library reads.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use isochrone_alloc::{Mode, Policy};
use isochrone_atlas_store::contents::Contents;
use isochrone_host::{SysRoot, machine_state, total_memory_bytes};
use isochrone_malloc::{BINDINGS_BYTES, CORES_MAX, Config, CoreList, PathBytes, Pin, START_BYTES};
use isochrone_units::CoreId;

use crate::args::PlacementArgs;

/// Memory that is held for free, beyond the share.
const SLACK_BYTES: u64 = 1 << 20;
/// A last-level cache where the atlas does not say.
const LLC_BYTES: u64 = 32 << 20;
/// A second-level cache where the atlas does not say.
const L2_BYTES: u64 = 2 << 20;
/// Seed of `oblivious`: a program that is run twice gets the same lines.
const SEED: u64 = 1;

/// How memory is handed out in a mode.
pub fn policy(mode: Mode, args: &PlacementArgs, contents: &Contents) -> Policy {
    let first = contents.machine.cores.first().map_or(0, |core| core.id);
    let shown = contents.machine.last_level_cache(CoreId(first)).and_then(|cache| cache.bytes);
    // The share of the core that has least: near lines must fit it wherever a thread runs.
    let share = contents.llc_shares.iter().filter_map(|share| share.bytes).min();
    Policy {
        mode,
        near: args.near.0,
        waste: args.waste_of_programs().0,
        slack_bytes: args.slack.unwrap_or(SLACK_BYTES),
        llc_bytes: args.llc.or(share).or(shown).unwrap_or(LLC_BYTES),
        l2_bytes: l2_bytes(contents),
        // A program's threads may take memory in small pages (`malloc/src/growth/pages.rs`).
        tlb_bytes: isochrone_os::tlb::reach_bytes(false).unwrap_or(0),
        seed: SEED,
        checked: false,
    }
}

/// One core's second-level cache.
fn l2_bytes(contents: &Contents) -> u64 {
    let first = contents.machine.cores.first().map_or(0, |core| core.id);
    let cache = contents.machine.cache(CoreId(first), 2).and_then(|cache| cache.bytes);
    cache.unwrap_or(L2_BYTES)
}

/// The most memory to place in: what was asked for, or a quarter of what there is.
pub fn arena_limit(args: &PlacementArgs) -> u64 {
    let root = SysRoot::live();
    let group = machine_state(&root).memory_max_bytes;
    let all = total_memory_bytes(&root).into_iter().chain(group).min();
    args.arena_limit.or(all.map(|bytes| bytes / 4)).unwrap_or(1 << 30)
}

/// The cores of the atlas that this process may use.
pub fn cores(contents: &Contents) -> Result<Vec<CoreId>> {
    let allowed = isochrone_os::affinity::CoreSet::of_this_thread();
    let known = contents.machine.cores.iter().map(|core| CoreId(core.id));
    let usable = |core: &CoreId| allowed.as_ref().map_or(true, |set| set.contains(*core));
    let cores: Vec<CoreId> = known.filter(usable).take(CORES_MAX).collect();
    ensure!(
        !cores.is_empty(),
        "the atlas knows none of the cores that this process may use: measure them with \
         `isochrone map`"
    );
    Ok(cores)
}

/// A new table in a folder, in which the processes of a run count the threads that they bind.
pub fn bindings(folder: &Path) -> Result<PathBytes> {
    let path = folder.join("bindings");
    std::fs::write(&path, [0; BINDINGS_BYTES])
        .with_context(|| format!("cannot write {}", path.display()))?;
    path_bytes(&path)
}

fn path_bytes(path: &Path) -> Result<PathBytes> {
    PathBytes::new(path.as_os_str().as_bytes())
        .with_context(|| format!("{} is too long a path", path.display()))
}

/// What a process is told, but for how its threads are bound.
pub fn config(
    policy: Policy,
    args: &PlacementArgs,
    contents: &Contents,
    atlas: &Path,
    reports: &Path,
) -> Result<Config> {
    Ok(Config {
        policy,
        pin: Pin::None,
        arena_bytes_max: arena_limit(args),
        start_bytes: START_BYTES,
        cores: CoreList::new(&cores(contents)?).context("too many cores")?,
        atlas: path_bytes(atlas)?,
        reports: path_bytes(reports)?,
        bindings: PathBytes::NONE,
        filters: isochrone_malloc::filters::count().unwrap_or(u32::MAX),
        force: false,
    })
}
