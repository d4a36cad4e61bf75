//! From the options and the atlas to the record that the library reads.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use isochrone_alloc::{Mode, Policy};
use isochrone_atlas_store::contents::Contents;
use isochrone_distance::{Distances, Fill, groups, order};
use isochrone_host::{SysRoot, machine_state, total_memory_bytes};
use isochrone_malloc::{
    BINDINGS_BYTES, CORES_MAX, Config, CoreList, PathBytes, Pin, START_BYTES, place,
};
use isochrone_os::affinity::CoreSet;
use isochrone_units::CoreId;
use serde::Serialize;

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
        // A program's threads may take memory in small pages (`crates/arrange/malloc/src/growth/pages.rs`).
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

/// The cores that this process may use, by their numbers, where there is no atlas.
pub fn allowed_cores() -> Result<Vec<CoreId>> {
    let allowed = CoreSet::of_this_thread().context("the cores of this process are not known")?;
    Ok(allowed.iter().take(CORES_MAX).collect())
}

/// The cores of the atlas that this process may use.
pub fn cores(contents: &Contents) -> Result<Vec<CoreId>> {
    let allowed = CoreSet::of_this_thread();
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

/// In which order threads are bound to cores, and by what that was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The cores, in the order of the record.
    pub cores: Vec<CoreId>,
    /// How the library goes through them.
    pub pin: Pin,
    /// By what; nothing where threads are not bound.
    pub by: Option<By>,
}

impl Binding {
    /// The cores in the order in which the library binds threads to them.
    pub fn in_order(&self) -> impl Iterator<Item = CoreId> + '_ {
        let count = self.cores.len();
        (0..count).filter_map(move |nth| self.cores.get(place(self.pin, nth, count)).copied())
    }
}

/// What an order of cores goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Groups of cores at equal distance.
    Distances,
    /// The numbers of the cores: distances do not tell them apart.
    Numbers,
}

/// The order in which threads are bound to `cores`: by distances where these tell the cores apart, and then the
/// library takes one after another; else by their numbers.
pub fn binding(pin: Pin, mut cores: Vec<CoreId>, on: &dyn Distances) -> Binding {
    let fill = match pin {
        Pin::None => return Binding { cores, pin, by: None },
        Pin::Compact => Fill::Compact,
        Pin::Spread => Fill::Spread,
    };
    let mut places = vec![0; cores.len()];
    // Cores that no group has, nothing is known of.
    let known: Vec<CoreId> =
        cores.iter().copied().filter(|core| on.group(0, *core).is_some()).collect();
    let apart = |level| groups(on, level, &known, &mut places[..known.len()]) > 1;
    if !(0..on.levels()).any(apart) {
        return Binding { cores, pin, by: Some(By::Numbers) };
    }
    order(on, fill, &mut cores);
    Binding { cores, pin: Pin::Compact, by: Some(By::Distances) }
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
        watches: false,
        promised: false,
    })
}

#[cfg(test)]
mod tests {
    use isochrone_atlas::Atlas;
    use isochrone_atlas_store::contents::{Cell, Clock, Matrix, TransferMap};
    use isochrone_atlas_store::encode;
    use isochrone_distance::Unknown;
    use isochrone_machine::{Core, Machine};

    use super::*;

    const CORES: u16 = 8;

    /// The order of all cores by an atlas in which those are near one another that `near` says.
    fn bound(pin: Pin, near: impl Fn(u16, u16) -> bool) -> (Vec<u16>, Pin, Option<By>) {
        let cores = (0..CORES).map(|id| Core { id, ..Core::default() }).collect();
        let pairs = (0..CORES).flat_map(|a| (0..CORES).map(move |b| (a, b)));
        let ns = |(a, b)| (a != b).then(|| Cell::single(if near(a, b) { 30.0 } else { 120.0 }));
        let names = || (0..CORES).map(|core| CoreId(core).to_string()).collect();
        let latency_ns = Matrix {
            what: "transfers".to_owned(),
            rows: names(),
            columns: names(),
            cells: pairs.map(ns).collect(),
        };
        let transfers = TransferMap {
            state: "modified".to_owned(),
            what: "one way".to_owned(),
            lines: 64,
            latency_ns,
            best_line_ns: Vec::new(),
            strata: Vec::new(),
        };
        let contents = Contents {
            transfers: vec![transfers],
            ..Contents::begun(
                isochrone_units::Reading::Measured,
                Machine { name: "made".to_owned(), cores, ..Machine::default() },
                Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 },
            )
        };
        let bytes = encode(&contents).expect("a sound atlas");
        let atlas = Atlas::open(&bytes).expect("just encoded");
        let found = binding(pin, (0..CORES).map(CoreId).collect(), &atlas);
        (found.cores.into_iter().map(|core| core.0).collect(), found.pin, found.by)
    }

    #[test]
    fn only_the_atlas_changes_and_threads_go_to_other_cores() {
        let (by, pin) = (Some(By::Distances), Pin::Compact);
        let parity = |a: u16, b: u16| a % 2 == b % 2;
        let halves = |a: u16, b: u16| a / 4 == b / 4;
        assert_eq!(bound(Pin::Compact, parity), (vec![0, 2, 4, 6, 1, 3, 5, 7], pin, by));
        assert_eq!(bound(Pin::Compact, halves), (vec![0, 1, 2, 3, 4, 5, 6, 7], pin, by));
        // The library takes an order by distances as it is, this one too.
        assert_eq!(bound(Pin::Spread, parity), (vec![0, 1, 2, 3, 4, 5, 6, 7], pin, by));
        assert_eq!(bound(Pin::Spread, halves), (vec![0, 4, 1, 5, 2, 6, 3, 7], pin, by));
    }

    #[test]
    fn where_distances_tell_nothing_apart_numbers_do() {
        let numbers: Vec<u16> = (0..CORES).collect();
        for pin in [Pin::Compact, Pin::Spread] {
            assert_eq!(bound(pin, |_, _| true), (numbers.clone(), pin, Some(By::Numbers)));
            let unknown = binding(pin, vec![CoreId(1), CoreId(0)], &Unknown);
            assert_eq!(
                unknown,
                Binding { cores: vec![CoreId(1), CoreId(0)], pin, by: Some(By::Numbers) }
            );
        }
        assert_eq!(bound(Pin::None, |a, b| a % 2 == b % 2), (numbers, Pin::None, None));
        let in_order = |pin| {
            let found = binding(pin, (0..CORES).map(CoreId).collect(), &Unknown);
            found.in_order().map(|core| core.0).collect::<Vec<_>>()
        };
        assert_eq!(in_order(Pin::Compact), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(in_order(Pin::Spread), [0, 4, 2, 6, 1, 5, 3, 7]);
    }
}
