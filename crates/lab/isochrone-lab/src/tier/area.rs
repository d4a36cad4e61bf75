//! The area of a run as its request has it: how large it is, how it goes about its pages, and where they go.

use anyhow::Result;
use isochrone_tier::live::Config;
use isochrone_tier::live::far::{Compressed, Far, File, Lz4, Memory};
use isochrone_tier::pager::Habit;
use isochrone_tier::prefetch::Prefetch;
use isochrone_units::{CoreId, RegionId};

use super::request::{FarTier, Moves, Request, Tables, whole};

/// An area of so many bytes.
pub(super) fn config(request: &Request, bytes: usize) -> Config {
    let fast = ((bytes / 4096) as f64 * request.fast).ceil();
    let mut config = Config::new(bytes, whole(fast) * 4096, request.workers);
    config.tables = match request.tables {
        Tables::Shared => isochrone_tier::live::Tables::Shared,
        Tables::Separated => isochrone_tier::live::Tables::Separated,
    };
    config.policy = request.policy.into();
    config.region = request.region.map(RegionId);
    config.group_pages = request.group_pages;
    config.follow = false;
    config.plan.batch = request.batch;
    config.plan.mover_batch = request.batch;
    config.plan.chunk = request.chunk;
    config.plan.cluster = request.cluster;
    config.plan.clean = request.clean;
    config.worker_cores = request.worker_cores.iter().copied().map(CoreId).collect();
    config.mover_cores = request.mover_cores.iter().copied().map(CoreId).collect();
    if let Some(Moves { movers, window, reserve }) = request.moves {
        config.movers = movers;
        config.habit = Habit { prefetch: Prefetch::Next, window, reserve, ..Habit::default() };
    }
    // Who waits for a core that others use must let them have it.
    config.spins = if request.oversubscribed { 20 } else { 2000 };
    config
}

/// The far tier of so many bytes.
pub(super) fn far(request: &Request, bytes: usize) -> Result<Box<dyn Far>> {
    Ok(match &request.far {
        FarTier::Memory => Box::new(Memory::new(bytes, request.far_region.map(RegionId))?),
        // Page by page, whatever a group has: the less a slot's size varies, the less room is lost.
        FarTier::Lz4 => Box::new(Compressed::new(&Lz4, bytes, 4096, 2 * bytes)?),
        FarTier::File { folder } => Box::new(File::new(folder, bytes as u64)?),
    })
}
