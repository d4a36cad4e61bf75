//! Memory regions as cores see them: latency by chases, bandwidth by the triad.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, DriftEvent, RegionMap};
use isochrone_probe::bandwidth::{BandwidthOptions, BandwidthPlan, LiveTriad};
use isochrone_probe::region::{LiveRegions, Mode, RegionBuffers, RegionOptions, RegionPlan};
use isochrone_probe::target::TargetClock;
use isochrone_probe::watch::{Share, Watch};
use isochrone_probe::{bandwidth, region};
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level, LineAddr, PageAddr, RegionId};

use super::super::run::{Cut, Run, keep_drift, note, note_failed};
use super::super::size::triad_bytes;
use super::block::{Hands, nearest_class, pages_of};
use crate::progress::Progress;

/// Stride of the Latency Checker's stride mode: one line of every page.
const STRIDE_BYTES: u64 = 4096;

/// Every region from every core, in several orders.
pub(super) fn regions(
    run: &Run<'_>,
    hands: &mut Hands,
    contents: &mut Contents,
    progress: &mut Progress,
) {
    let ids: Vec<RegionId> = contents.machine.regions.iter().map(|r| RegionId(r.id)).collect();
    progress.step("region latency: mapping buffers");
    let buffers = RegionBuffers::map_while(&ids, run.args.buffer, &mut || progress.keep_going());
    let mut buffers = match buffers {
        Ok(buffers) => buffers,
        Err(error) => {
            return note_failed(contents, Experiment::Region.title(), &error, progress);
        }
    };
    // A class of pages comes behind these.
    let modes = [Mode::Random, Mode::InOrder, Mode::Stride { bytes: STRIDE_BYTES }];
    for (mode, left) in modes.into_iter().zip([4.0, 3.0, 2.0]) {
        progress.step(&format!("region latency: {}", mode.name()));
        let chased = Chased { mode, buffers: &mut buffers, share: 1.0 / left };
        chased.run(run, hands.clock, contents, progress);
    }
    one_class(run, hands, contents, progress);
}

/// Buffers that are chased through in one order, in a share of the time that is left.
struct Chased<'a> {
    mode: Mode,
    buffers: &'a mut RegionBuffers,
    share: f64,
}

/// What a chase found.
struct Found {
    map: RegionMap,
    drift: Vec<DriftEvent>,
    complete: bool,
}

impl Chased<'_> {
    fn run(
        self,
        run: &Run<'_>,
        clock: TargetClock,
        contents: &mut Contents,
        progress: &mut Progress,
    ) {
        let what = format!("{}, {}", Experiment::Region.title(), self.mode.name());
        let since = run.seconds();
        let share = Share::of(progress, self.share);
        match chase(run, clock, self.buffers, self.mode, &share) {
            Ok(found) => {
                if !found.complete {
                    let cells = &found.map.latency_ns.cells;
                    let left_out = cells.iter().filter(|cell| cell.is_none()).count();
                    Cut { what: &what, left_out, of: cells.len(), lack: "cells were left out" }
                        .note(contents, progress);
                }
                contents.regions.push(found.map);
                keep_drift(contents, since, found.drift);
            }
            Err(error) => note(contents, &what, &error),
        }
    }
}

fn chase(
    run: &Run<'_>,
    clock: TargetClock,
    buffers: &mut RegionBuffers,
    mode: Mode,
    watch: &dyn Watch,
) -> anyhow::Result<Found> {
    let count = buffers.count();
    // Stride and class go through less than a cache holds, so lines are put out of it first. A
    // scan and a random walk through all of the buffer are left as a program feels them.
    let flush = !matches!(mode, Mode::InOrder | Mode::Random);
    let options = RegionOptions {
        buffer_bytes: run.args.buffer,
        budget_s: if run.args.quick { 0.3 } else { 3.0 },
        flush,
        ..RegionOptions::new(mode, derive_seed(run.seed, 6))
    };
    let plan = RegionPlan::new(count, options)?;
    let rings = buffers.link(&plan.orders)?;
    let mut live = LiveRegions::new(&rings, &run.cores, clock);
    let report = region::run(&mut live, &plan, &mut || !watch.keep_going())?;
    Ok(Found { map: report.map, drift: report.drift, complete: report.complete })
}

/// The nearest class of pages alone, chosen from what the block experiment found: with the memory
/// of one controller, as the Latency Checker's stride does by hand.
fn one_class(run: &Run<'_>, hands: &mut Hands, contents: &mut Contents, progress: &mut Progress) {
    let Some(arena) = hands.arena.take() else { return };
    let Some(level) = contents.levels.iter().find(|l| l.level == Level::Dram.as_str()) else {
        return;
    };
    let Some(class) = nearest_class(level).filter(|_| contents.machine.regions.len() == 1) else {
        return;
    };
    let most = usize::try_from(run.args.buffer / 64).unwrap_or(usize::MAX);
    let lines: Vec<LineAddr> = pages_of(hands, level, class)
        .flat_map(|page| (0..64_u8).map(move |i| PageAddr(page).line(i)))
        .take(most)
        .collect();
    if lines.len() < 1024 {
        return;
    }
    progress.step("region latency: one class of pages");
    let region = RegionId(contents.machine.regions[0].id);
    let mut buffers = RegionBuffers::of(region, arena);
    let mode = Mode::OneClass { lines: vec![lines] };
    let chased = Chased { mode, buffers: &mut buffers, share: 1.0 };
    chased.run(run, hands.clock, contents, progress);
}

/// Groups of cores on each region's memory.
pub(super) fn triad(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    progress.step("bandwidth");
    let of = |cores: &[u16]| -> Vec<CoreId> {
        let cores = cores.iter().map(|core| CoreId(*core));
        cores.filter(|core| run.cores.contains(core)).collect()
    };
    let cores_of: Vec<(RegionId, Vec<CoreId>)> =
        contents.machine.regions.iter().map(|r| (RegionId(r.id), of(&r.cores))).collect();
    let mut options = BandwidthOptions::new(derive_seed(run.seed, 7));
    if run.args.quick {
        (options.rounds_min, options.budget_s) = (3, 0.5);
    }
    let bytes = triad_bytes(&contents.machine, &run.cores, run.args.quick);
    let plan = BandwidthPlan::new(&cores_of, options);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut live = LiveTriad::new(bytes, cores_of.len() > 1);
    match bandwidth::run(&mut live, &plan, &mut || !progress.keep_going()) {
        Ok(report) => {
            contents.bandwidth = report.bandwidth;
            contents.provenance.missing.extend(report.missing);
            if !report.complete {
                let of = plan.groups.len() * plan.regions.len();
                let left_out = of.saturating_sub(contents.bandwidth.len());
                let what = Experiment::Bandwidth.title();
                Cut { what, left_out, of, lack: "groups were left out" }.note(contents, progress);
            }
        }
        Err(error) => note(contents, Experiment::Bandwidth.title(), &error),
    }
}
