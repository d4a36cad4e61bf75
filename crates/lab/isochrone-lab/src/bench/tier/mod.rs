//! `isochrone bench tier`: the stencil with half of its data in fast memory, what a page costs, and what
//! others need for the same.

mod arm;
mod arms;
mod costs;
mod curves;
mod group;
mod hints;
mod mapped;
mod others;
mod peers;
mod swap;
mod text;
mod unmodified;
mod zswap;

use anyhow::{Context, Result};
use isochrone_console::written::scratch;
use isochrone_tier::regions::Regions;
use isochrone_units::{CoreId, RegionId};
use serde::Serialize;

use self::arm::{Extent, Runner};
use self::costs::{Breakdown, FaultCosts, Slopes};
use self::curves::{Controlled, Curve, Formula, Moving, Point, Serpentine, Sweeps};
use self::hints::{Hints, OfHints};
use self::mapped::{Mapped, OfGroups, OfThreads};
use self::others::{Other, Workload};
use self::peers::{Beside, Pair};
use self::unmodified::{OfPair, Unmodified};
use super::goals::Goal;
use super::rounds::{Cell, rounds};
use super::setting::Setting;
use crate::args::{TierArgs, TierPart};
use crate::tier::request::FarTier;

/// Blocks, and repeats of what is not compared, unless told otherwise.
const BLOCKS: u32 = 5;

/// All figures.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Figures {
    /// Whether every run gave the bits of plain memory.
    verified: bool,
    runs: u64,
    /// Where pages go, in all but the pairs with peers.
    far: &'static str,
    /// The region that fast memory comes from, by the atlas the nearest one; `null` where there is one region.
    fast_region: Option<u16>,
    /// The region of far memory, by the atlas the next one.
    far_region: Option<u16>,
    pages: usize,
    /// Of the plain sweep of one worker: arithmetic over replacement, one page at a time.
    intensity: Option<f64>,
    /// Microseconds of arithmetic for a page, in the plain sweep of one worker.
    t_compute: Option<f64>,
    /// Microseconds to replace a page in the worker that needs it, one at a time.
    t_move: Option<f64>,
    /// The same in batches of 32.
    t_move_batched: Option<f64>,
    ipi_slope: Slopes,
    fault_costs: Option<FaultCosts>,
    breakdown: Vec<Breakdown>,
    curves: Vec<Point>,
    synchronous_faults: Option<Formula>,
    serpentine: Option<Serpentine>,
    /// Programs with other patterns.
    workloads: Vec<Other>,
    /// A mapped array without a team.
    mapped: Mapped,
    /// A walk whose pages are told beforehand.
    hints: Vec<Hints>,
    peers: Vec<Pair>,
    /// How many times faster ours is than UMap with its store in memory, for a radius of 1.
    umap: Option<Controlled>,
    /// Programs that know nothing of us.
    unmodified: Vec<Unmodified>,
    /// What is wanted of these.
    goals: Vec<Goal>,
}

pub(super) fn measure(args: &TierArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let cores = setting.cores(2)?;
    let regions = by_distance(&cores, setting)?;
    let mut runner = Runner::new(&cores, regions, setting.stop());
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    let pages = usize::try_from(args.area / 4096).context("the area is too large")?;
    let extent = Extent { pages };
    let mut parts = Parts::asked(args, &runner, extent, setting)?;
    // Curves are over these costs, so they are measured whatever is asked for of what runs on an area.
    let on_area = args.only != [TierPart::Unmodified];
    let costs = on_area.then(|| costs::measure(&mut runner, blocks, setting)).transpose()?;
    let cycle = |batch| {
        let row = costs.as_ref()?.faults.evict_and_fill.iter().find(|row| row.batch == batch)?;
        Some(row.us?.median)
    };
    let (single, batched) = (cycle(1), cycle(32));
    let synchronous_faults = match &parts.sweeps {
        Some(_) if setting.keep_going() => {
            setting.step("synchronous faults");
            formula(&mut runner, pages, setting)?
        }
        _ => None,
    };
    rounds(&mut parts.by_turns(), blocks, &mut runner, setting);
    let moving = single.zip(batched).map(|(single, batched)| Moving { single, batched });
    let curves = parts.curves.into_iter();
    let curves: Vec<Point> = curves.filter_map(|curve| curve.point(moving?, setting)).collect();
    let plain = curves.iter().find(|point| (point.radius, point.workers) == (1, 1));
    let (intensity, t_compute) = plain.map(|point| (point.intensity, point.t_compute)).unzip();
    let serpentine = parts.sweeps.and_then(|sweeps| sweeps.serpentine(setting));
    let workloads = parts.workloads.into_iter().filter_map(|w| w.other(setting)).collect();
    let groups = parts.groups.into_iter().filter_map(|cell| cell.groups(setting)).collect();
    let threads = parts.threads.into_iter().filter_map(|cell| cell.threads(setting)).collect();
    let hints = parts.hints.into_iter().filter_map(|cell| cell.hints(setting)).collect();
    let peers: Vec<Pair> = parts.beside.into_iter().map(|beside| beside.pair(setting)).collect();
    let unmodified: Vec<Unmodified> =
        parts.unmodified.into_iter().map(|pair| pair.row(setting)).collect();
    let (slopes, fault_costs, breakdown) = match costs {
        Some(costs) => (costs.slopes, Some(costs.faults), costs.breakdown),
        None => (Slopes::default(), None, Vec::new()),
    };
    let of_umap = peers.iter().find(|pair| (pair.peer, pair.radius) == ("umap", 1));
    Ok(Figures {
        verified: runner.verified,
        runs: runner.runs,
        far: "memory",
        fast_region: regions.fast.map(|region| region.0),
        far_region: regions.far.map(|region| region.0),
        pages,
        intensity,
        t_compute,
        t_move: single,
        t_move_batched: batched,
        ipi_slope: slopes,
        fault_costs,
        breakdown,
        curves,
        synchronous_faults,
        serpentine,
        workloads,
        mapped: Mapped { groups, threads },
        hints,
        umap: of_umap.and_then(|pair| pair.faster),
        peers,
        goals: unmodified::goals(&unmodified),
        unmodified,
    })
}

/// Counts synchronous faults once, if there is time.
fn formula(runner: &mut Runner, pages: usize, setting: &Setting<'_>) -> Result<Option<Formula>> {
    match curves::formula(runner, pages) {
        Err(_) if !setting.keep_going() => Ok(None),
        found => found.map(Some),
    }
}

/// What was asked for, part by part.
#[derive(Default)]
struct Parts {
    curves: Vec<Curve>,
    sweeps: Option<Sweeps>,
    workloads: Vec<Workload>,
    groups: Vec<OfGroups>,
    threads: Vec<OfThreads>,
    hints: Vec<OfHints>,
    beside: Vec<Beside>,
    unmodified: Vec<OfPair>,
}

impl Parts {
    fn asked(
        args: &TierArgs,
        runner: &Runner,
        extent: Extent,
        setting: &mut Setting<'_>,
    ) -> Result<Self> {
        let wanted = |part| args.only.is_empty() || args.only.contains(&part);
        let mut parts = Self::default();
        if wanted(TierPart::Curves) {
            for workers in team_sizes(runner) {
                for radius in &args.radii {
                    parts.curves.push(Curve::new(runner, *radius, workers, extent, setting));
                }
            }
        }
        if wanted(TierPart::Faults) {
            parts.sweeps = Some(Sweeps::new(runner, extent.pages, setting));
        }
        if wanted(TierPart::Workloads) {
            for name in ["spmv", "cholesky"] {
                for workers in team_sizes(runner) {
                    parts.workloads.push(Workload::new(runner, name, workers, extent, setting));
                }
            }
        }
        if wanted(TierPart::Mapped) {
            let far = [FarTier::Lz4, FarTier::File { folder: peers::folder(args)? }];
            parts.groups = OfGroups::all(runner, extent, &far, setting);
            parts.threads = OfThreads::both(runner, extent, setting);
        }
        if wanted(TierPart::Hints) {
            let far =
                [FarTier::Memory, FarTier::Lz4, FarTier::File { folder: peers::folder(args)? }];
            parts.hints = OfHints::all(runner, extent, &far, setting);
        }
        if wanted(TierPart::Peers) {
            parts.beside = peers::pairs(args, runner, extent, setting)?;
        }
        if args.only.contains(&TierPart::Unmodified) {
            parts.unmodified = unmodified::pairs(args, runner, setting)?;
        }
        Ok(parts)
    }

    /// A cell of each part, then another of each: so that none has to wait for all of another.
    fn by_turns(&mut self) -> Vec<&mut dyn Cell<Runner>> {
        let mut all: Vec<(usize, &mut dyn Cell<Runner>)> = Vec::new();
        all.extend(self.curves.iter_mut().enumerate().map(|(n, c)| (n, c as &mut dyn Cell<_>)));
        all.extend(self.sweeps.iter_mut().map(|c| (0, c as &mut dyn Cell<_>)));
        all.extend(self.workloads.iter_mut().enumerate().map(|(n, c)| (n, c as &mut dyn Cell<_>)));
        all.extend(self.groups.iter_mut().enumerate().map(|(n, c)| (n, c as &mut dyn Cell<_>)));
        all.extend(self.threads.iter_mut().enumerate().map(|(n, c)| (n, c as &mut dyn Cell<_>)));
        all.extend(self.hints.iter_mut().enumerate().map(|(n, c)| (n, c as &mut dyn Cell<_>)));
        all.extend(self.beside.iter_mut().enumerate().map(|(n, c)| (n, c as &mut dyn Cell<_>)));
        all.extend(self.unmodified.iter_mut().enumerate().map(|(n, c)| (n, c as &mut dyn Cell<_>)));
        all.sort_by_key(|(turn, _)| *turn);
        all.into_iter().map(|(_, cell)| cell).collect()
    }
}

/// Where there are several regions, those of fast and far memory by the atlas.
fn by_distance(cores: &[CoreId], setting: &mut Setting<'_>) -> Result<Regions> {
    let regions = setting.machine().regions.iter().map(|region| RegionId(region.id));
    let regions: Vec<RegionId> = regions.collect();
    if regions.len() < 2 {
        return Ok(Regions::default());
    }
    let scratch = scratch()?;
    let atlas = setting.atlas(scratch.path())?;
    let found = Regions::choose(&atlas.atlas.atlas()?, cores, &regions);
    if found.fast.is_none() {
        setting.miss(
            "the atlas has no latencies of regions; fast memory comes from where it is touched",
        );
    }
    Ok(found)
}

/// One worker, and one for each core.
fn team_sizes(runner: &Runner) -> Vec<u16> {
    let most = u16::try_from(runner.cores().len()).unwrap_or(1);
    let mut workers = vec![1, most];
    workers.dedup();
    workers
}
