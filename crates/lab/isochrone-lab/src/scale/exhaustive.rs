//! A sample of the cells of a map, measured with nothing left out: one pair after the other, as often as it takes to be
//! sure.

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::{Bandwidth, Cell, TransferMap};
use isochrone_probe::bandwidth::{ArraySizes, BandwidthOptions, BandwidthPlan};
use isochrone_probe::region::{Mode, RegionOptions, RegionPlan};
use isochrone_probe::seats::Seats;
use isochrone_probe::transfer::{CAS_TRIPS, Kind, Operation, Options, Schedule, TransferPlan};
use isochrone_probe::{bandwidth, region, transfer};
use isochrone_stats::{below, derive_seed, rng};
use isochrone_survey::synthetic::{Order, VirtualClock};
use isochrone_survey::{Ground, SyntheticGround};
use isochrone_units::{CoreId, LineState, RegionId};

/// Groups of three cores whose pairs are measured.
const TRIPLES: u64 = 12;
/// Cores from which all regions are measured.
const FROM: usize = 4;
/// Bytes of each of their buffers, and of lines that pairs exchange.
const BYTES: usize = 8 << 20;
/// Memory that a ground needs and nothing here looks at.
const UNUSED: u64 = 4 << 20;
/// Bytes of arrays that are never mapped in this time.
const ARRAYS: u64 = 128 << 20;

/// A matrix of a few cores.
pub(super) struct Few {
    pub(super) cores: Vec<CoreId>,
    pub(super) cells: Vec<Option<Cell>>,
}

/// A ground of its own.
fn ground(order: &Order) -> Result<SyntheticGround> {
    let seed = derive_seed(order.seed, 101);
    Ok(SyntheticGround::new(order.spec.clone(), UNUSED, seed, VirtualClock::default())?)
}

/// What a state of a line is measured as.
fn kind(state: &str) -> Option<Kind> {
    let timed = |state| Kind::Timed(state, Operation::Load);
    let kinds = [
        Kind::Cas { trips: CAS_TRIPS },
        timed(LineState::Modified),
        timed(LineState::Exclusive),
        timed(LineState::Shared),
    ];
    kinds.into_iter().find(|kind| kind.state_name() == state)
}

/// Pairs among a few triples of cores, drawn by the order's seed.
pub(super) fn transfers(order: &Order, cores: &[CoreId], state: &str) -> Result<Vec<Few>> {
    let kind = kind(state).with_context(|| format!("{state} is no state of a line"))?;
    let mut random = rng(derive_seed(order.seed, 102));
    let mut stage = ground(order)?.stage(cores, BYTES, derive_seed(order.seed, 103))?;
    let lines = stage.lines();
    let mut all = Vec::new();
    for triple in 0..TRIPLES {
        let mut few: Vec<CoreId> = Vec::new();
        while few.len() < cores.len().min(3) {
            let at = usize::try_from(below(&mut random, cores.len() as u64)).unwrap_or(0);
            if !few.contains(&cores[at]) {
                few.push(cores[at]);
            }
        }
        few.sort_unstable();
        let seed = derive_seed(order.seed, 200 + triple);
        let options = Options {
            budget_s: f64::INFINITY,
            schedule: Schedule::Serial,
            ..Options::new(kind, seed)
        };
        let plan = TransferPlan::new(&few, lines, options)?;
        let TransferMap { latency_ns, .. } = transfer::run(&mut *stage, &plan, &mut || false)?.map;
        all.push(Few { cores: few, cells: latency_ns.cells });
    }
    Ok(all)
}

/// All regions from a few cores.
pub(super) fn regions(order: &Order, cores: &[CoreId], regions: &[RegionId]) -> Result<Few> {
    let few: Vec<CoreId> = cores.iter().step_by(cores.len().div_ceil(FROM)).copied().collect();
    let buffer_bytes = BYTES as u64;
    let options = RegionOptions {
        buffer_bytes,
        budget_s: f64::INFINITY,
        ..RegionOptions::new(Mode::Random, derive_seed(order.seed, 104))
    };
    let plan = RegionPlan::new(regions.len(), options)?;
    let mut buffers = ground(order)?.buffers(regions, buffer_bytes, &mut || true)?;
    let mut cells = Vec::new();
    buffers.chase(&plan.orders, &few, &mut |target| {
        cells = region::run(target, &plan, &mut || false)?.map.latency_ns.cells;
        Ok(())
    })?;
    Ok(Few { cores: few, cells })
}

/// The first two cores, alone and together, on the first region.
pub(super) fn bandwidth(order: &Order) -> Result<Vec<Bandwidth>> {
    let options = BandwidthOptions {
        budget_s: f64::INFINITY,
        ..BandwidthOptions::new(derive_seed(order.seed, 105))
    };
    let cores = vec![CoreId(0), CoreId(1)];
    let sizes = ArraySizes::new(Seats::unknown(&cores), ARRAYS);
    let plan = BandwidthPlan::new(&[(RegionId(0), cores)], options);
    let mut triad = ground(order)?.triad(sizes, true);
    Ok(bandwidth::run(&mut *triad, &plan, &mut || false)?.bandwidth)
}
