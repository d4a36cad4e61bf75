//! Memory regions as cores see them: latency by chases, bandwidth by the triad.

use anyhow::Context as _;
use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, DriftEvent, RegionMap};
use isochrone_probe::bandwidth::{ArraySizes, BandwidthOptions, BandwidthPlan};
use isochrone_probe::region::{Mode, RegionOptions, RegionPlan};
use isochrone_probe::seats::Seats;
use isochrone_probe::watch::{Share, Watch};
use isochrone_probe::{bandwidth, region};
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level, LineAddr, PageAddr, RegionId};

use super::block::{Hands, nearest_class, pages_of};
use super::columns;
use crate::course::Course;
use crate::ground::Buffers;
use crate::run::{Cut, Run, keep_drift, note, note_failed};
use crate::size::triad_bytes;

/// Stride of the Latency Checker's stride mode: one line of every page.
const STRIDE_BYTES: u64 = 4096;

/// Every region from every core, in several orders.
pub(super) fn regions(
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    left_out(run, Experiment::Region, contents);
    course.step("region latency: mapping buffers");
    let ids = &run.reach.regions;
    let buffers = hands.ground.buffers(ids, run.wishes.buffer, &mut || course.keep_going());
    let mut buffers = match buffers {
        Ok(buffers) => buffers,
        Err(error) => {
            return note_failed(contents, Experiment::Region.title(), &error, course);
        }
    };
    let title = Experiment::Region.title();
    let lines = buffers.missing().iter().map(|line| format!("{title}: {line}"));
    contents.provenance.missing.extend(lines);
    // A class of pages comes behind these.
    let modes = [Mode::Random, Mode::InOrder, Mode::Stride { bytes: STRIDE_BYTES }];
    for (mode, left) in modes.into_iter().zip([4.0, 3.0, 2.0]) {
        course.step(&format!("region latency: {}", mode.name()));
        let chased = Chased { mode, buffers: &mut *buffers, share: 1.0 / left };
        chased.run(run, hands, contents, course);
    }
    one_class(run, hands, contents, course);
}

/// Buffers that are chased through in one order, in a share of the time that is left.
struct Chased<'a> {
    mode: Mode,
    buffers: &'a mut dyn Buffers,
    share: f64,
}

/// What a chase found.
struct Found {
    map: RegionMap,
    missing: Vec<String>,
    drift: Vec<DriftEvent>,
    complete: bool,
}

impl Chased<'_> {
    fn run(self, run: &Run, hands: &Hands<'_>, contents: &mut Contents, course: &mut dyn Course) {
        let what = format!("{}, {}", Experiment::Region.title(), self.mode.name());
        let since = hands.ground.seconds();
        let share = Share::of(course, self.share);
        let seats = Seats::of(&contents.machine, &run.cores);
        match chase(run, seats, self.buffers, self.mode, &share) {
            Ok(found) => {
                contents.provenance.missing.extend(found.missing);
                if !found.complete {
                    let cells = &found.map.latency_ns.cells;
                    let left_out = cells.iter().filter(|cell| cell.is_none()).count();
                    Cut { what: &what, left_out, of: cells.len(), lack: "cells were left out" }
                        .note(contents, course);
                }
                let all: Vec<RegionId> =
                    contents.machine.regions.iter().map(|r| RegionId(r.id)).collect();
                contents.regions.push(columns::of_all(found.map, &all));
                keep_drift(contents, since, found.drift);
            }
            Err(error) => note(contents, &what, &error),
        }
    }
}

fn chase(
    run: &Run,
    seats: Seats,
    buffers: &mut dyn Buffers,
    mode: Mode,
    watch: &dyn Watch,
) -> anyhow::Result<Found> {
    let count = buffers.count();
    // Stride and class go through less than a cache holds, so lines are put out of it first. A
    // scan and a random walk through all of the buffer are left as a program feels them.
    let flush = !matches!(mode, Mode::InOrder | Mode::Random);
    let options = RegionOptions {
        buffer_bytes: run.wishes.buffer,
        budget_s: within(region::budget_s(run.cores.len() * count, run.wishes.quick), watch),
        patience_s: left_s(watch).unwrap_or(0.0),
        seats: Some(seats),
        flush,
        ..RegionOptions::new(mode, derive_seed(run.seed, 6))
    };
    let plan = run.planned(|| RegionPlan::new(count, options))?;
    let mut report = None;
    buffers.chase(&plan.orders, &run.cores, &mut |target| {
        report = Some(region::run(target, &plan, &mut || !watch.keep_going())?);
        Ok(())
    })?;
    let report = report.context("nobody has chased through the buffers")?;
    let region::RegionReport { map, missing, drift, complete, .. } = report;
    Ok(Found { map, missing, drift, complete })
}

/// No more seconds than a watch has left.
fn within(seconds: f64, watch: &dyn Watch) -> f64 {
    left_s(watch).map_or(seconds, |left_s| left_s.min(seconds))
}

/// All that a watch has left, where there is a limit: a first round may take it on a slow machine.
fn left_s(watch: &dyn Watch) -> Option<f64> {
    watch.left().map(|left| left.as_secs_f64())
}

/// The nearest class of pages alone, chosen from what the block experiment found: with the memory
/// of one controller, as the Latency Checker's stride does by hand.
fn one_class(run: &Run, hands: &mut Hands<'_>, contents: &mut Contents, course: &mut dyn Course) {
    let region = contents.machine.regions.first().map_or(0, |region| region.id);
    let Some(mut arena) = hands.ground.arena(RegionId(region)) else { return };
    let Some(level) = contents.levels.iter().find(|l| l.level == Level::Dram.as_str()) else {
        return;
    };
    let Some(class) = nearest_class(level).filter(|_| contents.machine.regions.len() == 1) else {
        return;
    };
    let most = usize::try_from(run.wishes.buffer / 64).unwrap_or(usize::MAX);
    let lines: Vec<LineAddr> = pages_of(&hands.codes, level, class)
        .flat_map(|page| (0..64_u8).map(move |i| PageAddr(page).line(i)))
        .take(most)
        .collect();
    if lines.len() < 1024 {
        return;
    }
    course.step("region latency: one class of pages");
    let mode = Mode::OneClass { lines: vec![lines] };
    let chased = Chased { mode, buffers: &mut *arena, share: 1.0 };
    chased.run(run, hands, contents, course);
}

/// Says which regions are not measured, and why.
fn left_out(run: &Run, experiment: Experiment, contents: &mut Contents) {
    for why in &run.reach.regions_left_out {
        note(contents, experiment.title(), why);
    }
}

/// Groups of cores on each region's memory.
pub(super) fn triad(
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    course.step("bandwidth");
    let of = |cores: &[u16]| -> Vec<CoreId> {
        let cores = cores.iter().map(|core| CoreId(*core));
        cores.filter(|core| run.cores.contains(core)).collect()
    };
    let cores_of: Vec<(RegionId, Vec<CoreId>)> =
        contents.machine.regions.iter().map(|r| (RegionId(r.id), of(&r.cores))).collect();
    let seats = Seats::of(&contents.machine, &run.cores);
    let budget_s = bandwidth::budget_s(cores_of.len(), run.wishes.quick);
    let mut options = BandwidthOptions {
        budget_s: within(budget_s, course),
        patience_s: left_s(course).unwrap_or_else(|| bandwidth::first_rounds_s(budget_s)),
        seats: Some(seats.clone()),
        ..BandwidthOptions::new(derive_seed(run.seed, 7))
    };
    if run.wishes.quick {
        options.rounds_min = 3;
    }
    let bytes = triad_bytes(&contents.machine, &run.cores, run.wishes.quick, run.total_bytes);
    let plan = run.planned(|| BandwidthPlan::new(&cores_of, options).on(&run.reach.regions));
    left_out(run, Experiment::Bandwidth, contents);
    let sizes = ArraySizes::new(seats, bytes);
    let mut target = hands.ground.triad(sizes, plan.regions.len() > 1);
    match bandwidth::run(&mut *target, &plan, &mut || !course.keep_going()) {
        Ok(report) => {
            contents.bandwidth = report.bandwidth;
            contents.provenance.missing.extend(report.missing);
            if !report.complete {
                let of = plan.groups.len() * plan.regions.len();
                let left_out = report.left_out;
                let what = Experiment::Bandwidth.title();
                Cut { what, left_out, of, lack: "groups were left out" }.note(contents, course);
            }
        }
        Err(error) => note(contents, Experiment::Bandwidth.title(), &error),
    }
}
