//! `isochrone bench tier`: the stencil with half of its data in fast memory, what a page costs, and what
//! others need for the same.

mod arm;
mod costs;
mod curves;
mod others;
mod peers;
mod swap;
mod text;

use anyhow::{Context, Result};
use isochrone_tier::regions::Regions;
use isochrone_units::{CoreId, RegionId};
use serde::Serialize;

use self::arm::Runner;
use self::costs::{Breakdown, FaultCosts, Slopes};
use self::curves::{Controlled, Formula, Moving, Point, Serpentine};
use self::others::Other;
use self::peers::Pair;
use super::setting::Setting;
use crate::args::{TierArgs, TierPart};

/// Blocks, and repeats of what is not compared, unless told otherwise.
const BLOCKS: u32 = 5;

/// All figures.
#[derive(Debug, Serialize)]
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
    peers: Vec<Pair>,
    /// How many times faster ours is than UMap with its store in memory, for a radius of 1.
    umap: Option<Controlled>,
}

/// How much is compared.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Pages of data.
    pages: usize,
    /// Blocks of each comparison.
    blocks: u32,
}

pub(super) fn measure(args: &TierArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let cores = setting.cores(2)?;
    let regions = by_distance(&cores, setting)?;
    let mut runner = Runner::new(&cores, regions, setting.interrupt());
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let pages = usize::try_from(args.area / 4096).context("the area is too large")?.max(64);
    let extent = Extent { pages, blocks };
    // Curves are over these costs, so they are always measured.
    let costs = costs::measure(&mut runner, blocks, setting)?;
    let cycle = |batch| {
        let row = costs.faults.evict_and_fill.iter().find(|row| row.batch == batch)?;
        Some(row.us?.median)
    };
    let (single, batched) = (cycle(1), cycle(32));
    let mut figures = Figures {
        verified: false,
        runs: 0,
        far: "memory",
        fast_region: regions.fast.map(|region| region.0),
        far_region: regions.far.map(|region| region.0),
        pages,
        intensity: None,
        t_compute: None,
        t_move: single,
        t_move_batched: batched,
        ipi_slope: costs.slopes,
        fault_costs: Some(costs.faults),
        breakdown: costs.breakdown,
        curves: Vec::new(),
        synchronous_faults: None,
        serpentine: None,
        workloads: Vec::new(),
        peers: Vec::new(),
        umap: None,
    };
    if let (true, Some(single), Some(batched)) = (wanted(TierPart::Curves), single, batched) {
        let moving = Moving { single, batched };
        curves(args, &mut runner, extent, moving, &mut figures, setting)?;
    }
    if wanted(TierPart::Faults) && setting.keep_going() {
        setting.step("synchronous faults");
        figures.synchronous_faults = Some(curves::formula(&mut runner, pages)?);
        figures.serpentine = Some(curves::serpentine(&mut runner, pages, blocks, setting)?);
    }
    if wanted(TierPart::Workloads) {
        others(&mut runner, extent, &mut figures, setting)?;
    }
    if wanted(TierPart::Peers) {
        figures.peers = peers::measure(args, &mut runner, extent, setting)?;
        let of_umap = figures.peers.iter().find(|pair| (pair.peer, pair.radius) == ("umap", 1));
        figures.umap = of_umap.and_then(|pair| pair.faster);
    }
    (figures.verified, figures.runs) = (runner.verified, runner.runs);
    Ok(figures)
}

/// Where there are several regions, those of fast and far memory by the atlas.
fn by_distance(cores: &[CoreId], setting: &mut Setting<'_>) -> Result<Regions> {
    let regions = setting.machine().regions.iter().map(|region| RegionId(region.id));
    let regions: Vec<RegionId> = regions.collect();
    if regions.len() < 2 {
        return Ok(Regions::default());
    }
    let scratch = tempfile::tempdir().context("there is no place for temporary files")?;
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

fn curves(
    args: &TierArgs,
    runner: &mut Runner,
    extent: Extent,
    moving: Moving,
    figures: &mut Figures,
    setting: &mut Setting<'_>,
) -> Result<()> {
    for workers in team_sizes(runner) {
        for radius in &args.radii {
            if !setting.keep_going() {
                return Ok(());
            }
            let point = curves::point(runner, *radius, workers, extent, moving, setting)?;
            if (point.radius, point.workers) == (1, 1) {
                figures.intensity = Some(point.intensity);
                figures.t_compute = Some(point.t_compute);
            }
            figures.curves.push(point);
        }
    }
    Ok(())
}

fn others(
    runner: &mut Runner,
    extent: Extent,
    figures: &mut Figures,
    setting: &mut Setting<'_>,
) -> Result<()> {
    let workers = team_sizes(runner);
    for workload in ["spmv", "cholesky"] {
        for workers in &workers {
            if !setting.keep_going() {
                return Ok(());
            }
            let other = others::measure(runner, workload, *workers, extent, setting)?;
            figures.workloads.push(other);
        }
    }
    Ok(())
}
